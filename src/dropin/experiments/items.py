"""The experiments: every table, figure and analysis of the paper, and one beyond it."""

from collections.abc import Callable
from dataclasses import dataclass

from dropin.errors import unknown
from dropin.experiments import diversity, generalisation, insights, returns
from dropin.experiments.choices import Choices
from dropin.experiments.collected import Collected
from dropin.experiments.grid import GPL, JOINT, LEARNERS, SINGLE, Grid
from dropin.experiments.outcome import Outcome


@dataclass(frozen=True)
class Item:
    """An experiment: the runs that it needs, and what is made of them."""

    name: str
    where: str
    """In the paper."""
    title: str
    grids: Callable[[Choices], dict[str, Grid]]
    outcome: Callable[[Collected], Outcome]
    agents: bool = False
    """Whether the agents of all checkpoints are looked at again, and not only their returns."""


def _one(**settings: object) -> Callable[[Choices], dict[str, Grid]]:
    """One grid, without a name."""
    return lambda choices: {"": Grid(**settings)}  # pyright: ignore  # noqa: ARG005


def _two(choices: Choices) -> dict[str, Grid]:
    """As many attackers as the learner has teammates."""
    del choices
    changes = {"fortattack": {"fewer": 1}}
    return {"": Grid(team_limit=2, test_limits=(3, 5), changes=changes, others="all")}


def _fixed(choices: Choices) -> dict[str, Grid]:
    del choices
    return {
        f"among {guard}": Grid(
            games=("fortattack",), types={"fortattack": (guard, "A2")}, others="all"
        )
        for guard in ("G4", "G6")
    }


_ITEMS = (
    Item("figure2", "figure 2", "Returns in training",
         _one(learners=LEARNERS, others="all"), returns.training_curves),
    Item("table2", "table 2", "Generalisation to larger teams",
         _one(learners=LEARNERS, others="all"), generalisation.larger_teams),
    Item("figure3a", "figure 3a", "Shooting accuracy in FortAttack",
         _one(games=("fortattack",), learners=("gpl-q", *SINGLE), others="all"),
         returns.shooting_accuracy),
    Item("figure3b", "figure 3b", "Pair utilities of shooting over training",
         _one(games=("fortattack",), learners=("gpl-q",), seeds=1), insights.pair_values,
         agents=True),
    Item("diversity", "appendix B.4", "Whether the types demand adaptation",
         diversity.one_type_grids, diversity.heat_maps, agents=True),
    Item("partners", "appendix F", "Jointly trained learners among their partners",
         _one(learners=JOINT, others="joint"), returns.among_partners),
    Item("team-of-two", "appendix G", "Trained in teams of two, tested in larger ones",
         _two, generalisation.other_teams),
    Item("fixed-types", "appendix G", "Trained with guards of one type",
         _fixed, generalisation.other_teams),
    Item("wolfpack-utilities", "appendix H", "What GPL makes of its teammates in Wolfpack",
         _one(games=("wolfpack",), learners=GPL[:1], seeds=1), insights.hunting_utilities,
         agents=True),
    Item("shooting-values", "appendix I", "What the baselines make of shooting",
         _one(games=("fortattack",), learners=SINGLE, seeds=1), insights.values_of_shooting,
         agents=True),
    Item("held-out", "beyond the paper", "Types that were not there in training",
         diversity.held_out_grids, diversity.held_out, agents=True),
)  # fmt: skip
ITEMS = {item.name: item for item in _ITEMS}


ALL = "all"


def find_items(name: str, choices: Choices) -> list[Item]:
    """The experiment of this name; or all of the paper of which something is chosen."""
    if name != ALL:
        if name not in ITEMS:
            raise unknown("experiment", name, [*ITEMS, ALL])
        return [ITEMS[name]]
    return [
        item
        for item in ITEMS.values()
        if item.name != "held-out"
        and any(grid.runs(choices) for grid in item.grids(choices).values())
    ]
