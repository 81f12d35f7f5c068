"""Commands that show what there is."""

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from dropin.games import CATALOGUE, RULES


def games() -> None:
    """List the games and the sets of rules."""
    table = Table(box=None, pad_edge=False)
    for column in ("game", "title", "about"):
        table.add_column(column, no_wrap=column == "game")
    for entry in CATALOGUE.values():
        table.add_row(entry.name, entry.title, entry.about)
    console = Console()
    console.print(table)
    console.print()
    for name, about in RULES.items():
        console.print(f"--rules {name}: {about}", highlight=False)


def types(game: Positional[str], rules: str = "paper") -> None:
    """List the types of teammates that a game's pool holds.

    Args:
        game: Name of the game, see `dropin games`.
        rules: paper or reference.
    """
    from dropin.adhoc import make

    table = Table(box=None, pad_edge=False)
    for column in ("type", "what it does"):
        table.add_column(column, no_wrap=column == "type")
    for each in make(game, rules=rules).team.pool.types:
        table.add_row(each.name, each.about)
    Console().print(table)
