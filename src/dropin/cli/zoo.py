"""`dropin zoo`: the learned teammates and prey, and how to train them again."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from dropin.cli.show import show_table
from dropin.core.config import PlainMapping
from dropin.core.errors import InputError, unknown
from dropin.zoo import RECIPES, make_recipe

__all__ = ["zoo"]

ACTIONS = ("list", "train")


def zoo(
    action: Annotated[Positional[str], arg(metavar="ACTION")],
    name: Annotated[Positional[str | None], arg(metavar="[NAME]")] = None,
    seed: int = 0,
    directory: Path = Path("zoo"),
    install: bool = False,
) -> None:
    """List the learned teammates and prey, or train one of them again.

    Ctrl-C saves the training; the same command continues it.

    Args:
        action: list, or train.
        name: What to train, see `dropin zoo list`.
        seed: The same seed gives the same weights.
        directory: Where to write the weights and their card.
        install: Copy both into the package, in place of those that are there. If the directory
            has them already, they are not trained again.
    """
    if action not in ACTIONS:
        raise unknown("action", action, ACTIONS)
    if action == "list":
        _list()
        return
    if name is None:
        raise InputError(f"Give the name of a recipe: {', '.join(RECIPES)}.")
    recipe = make_recipe(name)

    from dropin.core.files import read_json
    from dropin.zoo.cards import card_path
    from dropin.zoo.recipe import run_recipe

    weights, card = directory / f"{name}.safetensors", directory / f"{name}.json"
    if not (install and card.exists()):
        run_recipe(recipe, directory, seed)
    elif read_json(card)["seed"] != seed:
        raise InputError(
            f"{card} is of seed {read_json(card)['seed']}: give that --seed, or train with this"
            " one in another --directory."
        )
    _show_measurements([read_json(card)])
    for made, installed in ((weights, recipe.weights_path), (card, card_path(name))):
        if not made.exists():  # A script has no weights.
            continue
        print(made)
        if install:
            installed.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made, installed)
            print(f"is installed in place of {installed.name}.")


def _list() -> None:
    from dropin.zoo.cards import read_card

    cards = {name: card for name in RECIPES if (card := read_card(name)) is not None}
    show_table(
        ("name", "what it is", "how it was trained", "seed", "steps"),
        [
            (
                card["name"],
                card["summary"],
                card["method"],
                str(card["seed"]),
                f"{card['settings']['steps']:,}",
            )
            for card in cards.values()
        ],
        numbers=2,
    )
    print()
    _show_measurements(list(cards.values()))
    for name in RECIPES:
        if name not in cards:
            print(f"{name} has no card: make it with dropin zoo train {name} --install")


def _show_measurements(cards: Sequence[PlainMapping]) -> None:
    rows = [
        (card["name"], each["quantity"], each["policy"], f"{each['mean']:.2f}", _interval(each))
        for card in cards
        for each in card["measurements"]
    ]
    show_table(("name", "measured", "of", "mean", "95 % interval"), rows, numbers=2)


def _interval(measurement: PlainMapping) -> str:
    return f"{measurement['low']:.2f} to {measurement['high']:.2f}"
