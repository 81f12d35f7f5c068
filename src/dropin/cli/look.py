"""Commands that list what is registered: games, types and learners, those of plug-ins included."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from dropin.cli.show import show_table

if TYPE_CHECKING:
    from dropin.teams.types import Type

__all__ = ["games", "learners", "types"]


def games() -> None:
    """List the games, their rules, and the kinds of openness."""
    from dropin.core import registry

    specs = list(registry.games.values())
    show_table(
        ("game", "title", "about"), [(each.name, each.title, each.summary) for each in specs]
    )
    games_with: dict[tuple[str, str], list[str]] = {}
    for each in specs:
        for rule in each.rules.items():
            games_with.setdefault(rule, []).append(each.name)
    print()
    for (rules, summary), names in games_with.items():
        where = "" if len(names) == len(specs) else f" (in {', '.join(names)})"
        print(f"--rules {rules}: {summary}{where}")
    print(f"\n--openness: {', '.join(registry.openness)}; if not given, as the rules say")


def learners() -> None:
    """List the learners."""
    from dropin.core import registry

    specs = registry.learners.values()
    show_table(("learner", "about"), [(each.name, each.summary) for each in specs])


def types(game: Annotated[Positional[str], arg(metavar="GAME")], rules: str | None = None) -> None:
    """List the types of agents that a game has.

    Newcomers are drawn from the types in the pool; others are used if --types names them.

    Args:
        game: Name of the game, see `dropin games`.
        rules: Name of a preset, see `dropin games`; the game's first one if not given.
    """
    from dropin.core import registry
    from dropin.core.specs import check_rules

    spec = registry.games[game]
    rules = next(iter(spec.rules)) if rules is None else rules
    check_rules(rules, spec.rules)
    pool, registered = spec.types(rules), registry.types_of(game)
    side_names = spec.make_game(rules).side_names
    rows = []
    for name, make_type in {**pool, **registered}.items():
        made = make_type() if name not in registered else _make_registered(make_type)
        in_pool = "yes" if name in pool else "no"
        if isinstance(made, str):
            rows.append((name, in_pool, "", made))
        else:
            rows.append((name, in_pool, side_names[made.side], made.summary))
    columns = ["type", "in pool", "side", "what it does"]
    if len(side_names) == 1:
        columns.remove("side")
        rows = [(name, in_pool, summary) for name, in_pool, _, summary in rows]
    show_table(columns, rows)


def _make_registered(make_type: "Callable[[], Type]") -> "Type | str":
    """Make a type that somebody has registered; return what is wrong if that fails."""
    try:
        return make_type()
    except Exception as error:
        return f"cannot be made: {type(error).__name__}: {error}"
