"""`dropin zoo`: the learned teammates, prey and agents, and how to train them again."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from dropin.cli.show import show_table
from dropin.core import registry
from dropin.core.config import PlainDict, PlainMapping
from dropin.core.errors import InputError, unknown
from dropin.zoo import AGENT_RECIPES, RECIPES, make_recipe

__all__ = ["zoo"]

ACTIONS = ("list", "show", "train")


def zoo(
    action: Annotated[Positional[str], arg(metavar="ACTION")],
    name: Annotated[Positional[str | None], arg(metavar="[NAME]")] = None,
    seed: int = 0,
    directory: Path = Path("zoo"),
    run: Path | None = None,
    install: bool = False,
) -> None:
    """List the trained agents and the learned teammates and prey, or train one of them again.

    Ctrl-C saves the training; the same command continues it.

    Args:
        action: list, show (everything on the card of one) or train.
        name: What to show or to train, see `dropin zoo list`.
        seed: The same seed gives the same weights.
        directory: Where to write the weights and their card.
        run: For an agent: take this finished run instead of training one.
        install: Copy both into the package, in place of those that are there. If the directory
            has them already, they are not trained again.
    """
    if action not in ACTIONS:
        raise unknown("action", action, ACTIONS)
    if action == "list":
        _list()
    elif action == "show":
        _show(name)
    elif name is None:
        known = (*AGENT_RECIPES, *RECIPES)
        raise InputError(f"Give the name of a recipe: {', '.join(known)}.")
    elif name in AGENT_RECIPES:
        _train_agent(name, seed, directory, run, install=install)
    elif run is not None:
        raise InputError(f"--run is for trained agents only: {', '.join(AGENT_RECIPES)}.")
    else:
        _train_recipe(name, seed, directory, install=install)


def _train_recipe(name: str, seed: int, directory: Path, *, install: bool) -> None:
    try:
        recipe = make_recipe(name)
    except InputError:
        raise unknown("recipe", name, (*AGENT_RECIPES, *RECIPES)) from None

    from dropin.zoo.cards import card_path, read_card_file
    from dropin.zoo.recipe import run_recipe

    weights, card = directory / f"{name}.safetensors", directory / f"{name}.json"
    if not (install and card.exists()):
        run_recipe(recipe, directory, seed)
    elif (found := read_card_file(card)["seed"]) != seed:
        raise InputError(
            f"{card} is of seed {found}: give that --seed, or train with this one in another"
            " --directory."
        )
    _show_measurements([read_card_file(card)])
    files = {weights: recipe.weights_path, card: card_path(name)}
    # A script has no weights.
    _put({made: files[made] for made in files if made.exists()}, install=install)


def _train_agent(name: str, seed: int, directory: Path, run: Path | None, *, install: bool) -> None:
    from dropin.core.files import file_checksum, write_json
    from dropin.training.run_directory import RunDirectory
    from dropin.zoo.agent_recipe import make_agent_card, train_agent
    from dropin.zoo.agents import agent_directory
    from dropin.zoo.cards import card_path, read_card_file

    if run is None:
        run = directory / name
        train_agent(name, run, seed)
    made, card = RunDirectory(run).agent, directory / f"{name}.json"
    if not card.exists():
        print(f"{name}: measuring how well it does", flush=True)
        write_json(card, make_agent_card(name, run))
    elif read_card_file(card)["sha256"] != file_checksum(made):
        raise InputError(f"{card} is of another agent: remove it or give another --directory.")
    _show_measurements([read_card_file(card)])
    installed = agent_directory(name)
    files = {each: installed / each.name for each in (made, run / "run.json")}
    _put({**files, card: card_path(name)}, install=install)


def _put(files: Mapping[Path, Path], *, install: bool) -> None:
    """Print the files that were made, and copy each to its place in the package."""
    from dropin.core.files import write

    for made, installed in files.items():
        print(made)
        if install:
            write(installed, made.read_bytes())
            print(f"is installed in place of {installed.name}.")


def _cards() -> dict[str, PlainDict]:
    """Return the cards that there are, by name, those of agents first."""
    from dropin.zoo.cards import read_card, read_card_file

    agents = {
        name: read_card_file(spec.card)
        for name, spec in registry.agents.items()
        if spec.card is not None and spec.card.exists()
    }
    return agents | {name: card for name in RECIPES if (card := read_card(name)) is not None}


def _list() -> None:
    cards = _cards()
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
    for name in (*AGENT_RECIPES, *RECIPES):
        if name not in cards:
            print(f"{name} has no card: make it with dropin zoo train {name} --install")
    print("\nWatch an agent: dropin play lbf --agent lbf/gpl-q")


def _show(name: str | None) -> None:
    cards = _cards()
    if name is None:
        raise InputError(f"Give a name: {', '.join(cards)}.")
    if name not in cards:
        raise unknown("name", name, cards)
    card = cards[name]
    print(f"{name}: {card['summary']}\n{card['method']}\n")
    _show_measurements([card])
    print()
    facts = {key: each for key, each in card.items() if key not in _SHOWN_ABOVE}
    show_table(("entry", "value"), _flat(facts))


_SHOWN_ABOVE = ("name", "summary", "method", "measurements")
"""Entries of a card that are not shown in the table of all others."""


def _flat(values: PlainMapping, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested entries with dotted names; one row for each element of a list of texts."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list) and all(isinstance(each, str) for each in value):
            yield from ((f"{prefix}{name}", each) for each in value)
        else:
            yield f"{prefix}{name}", str(value)


def _show_measurements(cards: Sequence[PlainMapping]) -> None:
    columns = ("name", "measured", "of", "n", "mean", "95 % interval")
    show_table(columns, _measurement_rows(cards), numbers=3)


def _measurement_rows(cards: Sequence[PlainMapping]) -> list[tuple[str, ...]]:
    return [
        (
            card["name"],
            each["quantity"],
            each["policy"],
            str(each["n"]),
            f"{each['mean']:.2f}",
            _interval(each),
        )
        for card in cards
        for each in card["measurements"]
    ]


def _interval(measurement: PlainMapping) -> str:
    return f"{measurement['low']:.2f} to {measurement['high']:.2f}"
