"""The experiments: every table, figure and analysis of the paper, and one beyond it.

An experiment is an `ExperimentSpec`: grids of runs, and a function from the finished runs to tables
and charts. `register_experiment` makes one known to `dropin reproduce`; those of the paper are
registered here.
"""

from collections.abc import Callable, Mapping

from dropin.core.registry import register_experiment
from dropin.core.specs import ExperimentSpec
from dropin.experiments import larger_teams, summary, training_curves, type_diversity, utilities
from dropin.experiments.reproduce import Experiment, select_experiments
from dropin.experiments.results import Chart, CompletedRuns, ExperimentResult, Sheet
from dropin.experiments.runs import (
    JOINT_LEARNERS,
    PAPER_LEARNERS,
    SINGLE_AGENT_BASELINES,
    Grid,
    Options,
)

__all__ = [
    "Chart",
    "CompletedRuns",
    "Experiment",
    "ExperimentResult",
    "Grid",
    "Options",
    "Sheet",
    "select_experiments",
]


def _only(grid: Grid) -> Callable[[Options], Mapping[str, Grid]]:
    """Return the `grids` of an experiment that has a single grid, without a name."""
    return lambda options: {"": grid}  # noqa: ARG005


_EXPERIMENTS = (
    ExperimentSpec(
        name="summary",
        source="figures 2 and 3a, table 2, appendix F",
        title="All learners beside the paper",
        grids=_only(Grid(learners=PAPER_LEARNERS, extra_learners="all", extra_games=True)),
        result=summary.summary,
    ),
    ExperimentSpec(
        name="figure2",
        source="figure 2",
        title="Returns in training",
        grids=_only(Grid(learners=PAPER_LEARNERS, extra_learners="all", extra_games=True)),
        result=training_curves.training_returns,
    ),
    ExperimentSpec(
        name="table2",
        source="table 2",
        title="Generalisation to larger teams",
        grids=_only(Grid(learners=PAPER_LEARNERS, extra_learners="all", extra_games=True)),
        result=larger_teams.larger_teams,
    ),
    ExperimentSpec(
        name="figure3a",
        source="figure 3a",
        title="Shooting accuracy in FortAttack",
        grids=_only(
            Grid(
                games=("fortattack",),
                learners=("gpl-q", *SINGLE_AGENT_BASELINES),
                extra_learners="all",
            )
        ),
        result=training_curves.shooting_accuracy,
    ),
    ExperimentSpec(
        name="figure3b",
        source="figure 3b",
        title="Pair utilities of shooting over training",
        grids=_only(Grid(games=("fortattack",), learners=("gpl-q",), seeds=1)),
        result=utilities.shooting_pair_utilities,
        needs_agents=True,
    ),
    ExperimentSpec(
        name="diversity",
        source="appendix B.4",
        title="Whether the types demand adaptation",
        grids=type_diversity.diversity_grids,
        result=type_diversity.diversity,
        needs_agents=True,
    ),
    ExperimentSpec(
        name="partners",
        source="appendix F",
        title="Jointly trained learners among their partners",
        grids=_only(Grid(learners=JOINT_LEARNERS, extra_learners="partners", extra_games=True)),
        result=training_curves.partners,
    ),
    ExperimentSpec(
        name="team-of-two",
        source="appendix G",
        title="Trained in teams of two, tested in larger ones",
        grids=larger_teams.team_of_two_grids,
        result=larger_teams.other_teams,
    ),
    ExperimentSpec(
        name="fixed-types",
        source="appendix G",
        title="Trained with guards of one type",
        grids=larger_teams.fixed_types_grids,
        result=larger_teams.other_teams,
    ),
    ExperimentSpec(
        name="wolfpack-utilities",
        source="appendix H",
        title="How GPL values its teammates in Wolfpack",
        grids=_only(Grid(games=("wolfpack",), learners=("gpl-q",), seeds=1)),
        result=utilities.wolfpack_utilities,
        needs_agents=True,
    ),
    ExperimentSpec(
        name="shooting-values",
        source="appendix I",
        title="How the baselines value shooting",
        grids=_only(Grid(games=("fortattack",), learners=SINGLE_AGENT_BASELINES, seeds=1)),
        result=utilities.shooting_action_values,
        needs_agents=True,
    ),
    ExperimentSpec(
        name="held-out",
        source="beyond the paper",
        title="Types that were not seen in training",
        grids=type_diversity.held_out_grids,
        result=type_diversity.held_out,
        needs_agents=True,
        in_all=False,
    ),
)
for _spec in _EXPERIMENTS:
    register_experiment(_spec)
