"""Commands that show what there is."""

from typing import Annotated

from tyro.conf import Positional, arg

from dropin.cli.show import show_table
from dropin.games import CATALOGUE, RULES
from dropin.learners import LEARNERS


def games() -> None:
    """List the games and the sets of rules."""
    entries = CATALOGUE.values()
    show_table(
        ("game", "title", "about"), [(each.name, each.title, each.about) for each in entries]
    )
    print()
    for name, about in RULES.items():
        print(f"--rules {name}: {about}")


def learners() -> None:
    """List the learners."""
    show_table(("learner", "about"), [(each.name, each.about) for each in LEARNERS.values()])


def types(game: Annotated[Positional[str], arg(metavar="GAME")], rules: str = "paper") -> None:
    """List the types of teammates that a game's pool holds.

    Args:
        game: Name of the game, see `dropin games`.
        rules: paper or reference.
    """
    from dropin.adhoc import make

    pool = make(game, rules=rules).team.pool
    show_table(("type", "what it does"), [(each.name, each.about) for each in pool.types])
