"""The experiment `corridor-dueling`: the dueling network beside QL in the corridor."""

from collections.abc import Mapping
from typing import Any

from dropin import ExperimentSpec
from dropin.evaluation.statistics import estimate
from dropin.experiments import Chart, CompletedRuns, ExperimentResult, Grid, Options, Sheet
from dropin.experiments.results import estimate_as_dict, format_interval, learner_colour
from dropin.plots.charts import Panel
from dropin.plots.curves import curve_line

__all__ = ["SPEC", "compare", "make_grids"]

GAME, LARGER_TEAM = "corridor", 5


def make_grids(options: Options) -> Mapping[str, Grid]:
    """Return the runs: four seeds of each learner, tested in larger teams too."""
    del options
    return {
        "": Grid(
            games=(GAME,),
            learners=("dueling", "ql"),
            seeds=4,
            test_limits=(LARGER_TEAM,),
            extra_learners="all",
        )
    }


def compare(runs: CompletedRuns) -> ExperimentResult:
    """Return a table of returns and a chart of learning curves."""
    rows, lines = [], []
    numbers: dict[str, Any] = {}
    for learner, group in runs.by_learner(GAME).items():
        best = runs.best_checkpoint(group)
        larger = runs.returns_at(group, best.step, LARGER_TEAM)
        joined = runs.curve(group, column="gates_joined", missing_value=0.0).points[-1]
        rows.append((
            learner, format_interval(best.training_returns), format_interval(larger),
            f"{best.step:,}", f"{joined.mean:.2f}",
        ))  # fmt: skip
        lines.append(curve_line(runs.curve(group, learner), learner_colour(learner)))
        numbers[learner] = {
            "limit 3": estimate_as_dict(estimate(best.training_returns)),
            f"limit {LARGER_TEAM}": estimate_as_dict(estimate(larger)),
            "gates joined": joined.mean,
        }
    columns = ("learner", "limit 3", f"limit {LARGER_TEAM}", "at step", "gates joined, at the end")
    return ExperimentResult(
        sheets=[Sheet("Returns in the corridor", columns, rows)],
        charts=[Chart("curves", "Returns in training.", [Panel(GAME, lines)], columns=1)],
        numbers=numbers,
    )


SPEC = ExperimentSpec(
    name="corridor-dueling",
    title="A dueling network in the corridor",
    source="plug-in dropin-corridor",
    grids=make_grids,
    result=compare,
    in_all=False,
)
