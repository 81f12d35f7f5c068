"""The learned teammates and prey, and how to make them again."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from dropin.cli.show import show_table
from dropin.errors import InputError, unknown
from dropin.zoo import RECIPES, find

ACTIONS = ("list", "train")


def zoo(
    action: Annotated[Positional[str], arg(metavar="ACTION")],
    name: Annotated[Positional[str | None], arg(metavar="[NAME]")] = None,
    seed: int = 0,
    directory: Path = Path("zoo"),
    install: bool = False,
) -> None:
    """List the learned teammates and prey, or train one of them again.

    Ctrl-C saves; the same command goes on.

    Args:
        action: list, or train.
        name: What to train, see `dropin zoo list`.
        seed: The same seed gives the same weights.
        directory: Where the weights and their card are written.
        install: Put them into the package as well, in place of those that are there; what the
            directory has already is not trained again.
    """
    if action not in ACTIONS:
        raise unknown("action", action, ACTIONS)
    if action == "list":
        _list()
        return
    if name is None:
        raise InputError(f"Give the name of a recipe: {', '.join(RECIPES)}.")
    entry = find(name)

    from dropin.files import read_json
    from dropin.teams.learned import weights_path
    from dropin.zoo.cards import card_path
    from dropin.zoo.recipe import prepare

    weights, card = directory / f"{name}.safetensors", directory / f"{name}.json"
    if not (install and card.exists()):
        prepare(entry.load(), directory, seed)
    elif read_json(card)["seed"] != seed:
        raise InputError(f"{card} is of seed {read_json(card)['seed']}: give --seed, or train anew"
                         " in another --directory.")  # fmt: skip
    _show([read_json(card)])
    for made, place in ((weights, weights_path(name)), (card, card_path(name))):
        if not made.exists():  # A script has no weights.
            continue
        print(made)
        if install:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made, place)
            print(f"is installed in place of {place.name}.")


def _list() -> None:
    from dropin.zoo.cards import read_card

    cards = [card for name in RECIPES if (card := read_card(name)) is not None]
    show_table(
        ("name", "what it is", "how it was trained", "seed", "steps"),
        [
            (
                card["name"],
                card["about"],
                card["how"],
                str(card["seed"]),
                f"{card['settings']['steps']:,}",
            )
            for card in cards
        ],
        numbers=2,
    )
    print()
    _show(cards)
    for name in RECIPES:
        if name not in [card["name"] for card in cards]:
            print(f"{name} has no card: make it with dropin zoo train {name} --install")


def _show(cards: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        (card["name"], each["what"], each["who"], f"{each['mean']:.2f}", _interval(each))
        for card in cards
        for each in card["scores"]
    ]
    show_table(("name", "measured", "of", "mean", "95 % interval"), rows, numbers=2)


def _interval(score: Mapping[str, Any]) -> str:
    return f"{score['low']:.2f} to {score['high']:.2f}"
