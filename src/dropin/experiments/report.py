"""The page of an experiment: Markdown and HTML for people, JSON for programs, and pictures."""

from pathlib import Path

from dropin import __version__
from dropin.core.config import PlainDict
from dropin.core.files import write_json
from dropin.core.specs import ExperimentSpec
from dropin.experiments.pages import Block, content, sheet_blocks, write_blocks
from dropin.experiments.planning import Job, Progress, identity, rules_of
from dropin.experiments.results import (
    CompletedRuns,
    ExperimentResult,
    Sheet,
    format_seeds,
)
from dropin.training.provenance import machine, versions
from dropin.training.run_directory import RunDirectory
from dropin.training.tables import write_table

__all__ = ["write_page"]

ESTIMATORS = {"fixed": "fixed", "legacy": "legacy, the authors' stopping rule"}
MAX_MISSING_NAMES = 6


def write_page(
    spec: ExperimentSpec,
    result: ExperimentResult,
    runs: CompletedRuns,
    command: str,
    directory: Path,
) -> list[Path]:
    """Write the page of an experiment with its pictures and numbers.

    Args:
        spec: The experiment.
        result: What it has found.
        runs: The runs it is made from.
        command: The command that makes the page, shown on it.
        directory: Where to write the files.

    Returns:
        The files that people open: the page as Markdown and as HTML.
    """
    notice = runs.options.small_notice
    blocks = _blocks(spec, result, runs, command)
    written = write_blocks(spec.name, spec.title, blocks, result, directory, notice)
    write_json(
        directory / f"{spec.name}.json",
        {
            "experiment": spec.name,
            "command": command,
            "small": notice,
            "missing": [job.name for job in runs.missing],
            "numbers": result.numbers,
            "made with": {"versions": versions(), "machine": machine()},
            "runs": [_about(job) for job in runs.jobs],
        },
    )
    if result.records:
        write_table(directory / f"{spec.name}.csv", result.records)
    return written


def _about(job: Job) -> PlainDict:
    """Return all that is known of a run, as plain values."""
    ran_on = RunDirectory(job.run.path).ran_on() if job.progress is Progress.DONE else {}
    return {
        "name": job.name,
        "identity": identity(job.config),
        "progress": job.progress.value,
        **ran_on,
        "config": job.run.config.to_dict(),
    }


def _blocks(
    spec: ExperimentSpec, result: ExperimentResult, runs: CompletedRuns, command: str
) -> list[Block]:
    """Return the content of the page from top to bottom."""
    options = runs.options
    source = f" ({spec.source})" if spec.source else ""
    blocks = [Block("title", f"{spec.title or spec.name}{source}")]
    if options.small_notice:
        blocks.append(Block("notice", options.small_notice))
    if runs.missing:
        blocks.append(Block("notice", _missing_sentence(runs)))
    estimator = ESTIMATORS[options.chosen_estimator]
    blocks += [
        Block("text", f"Rules: {rules_of(runs.jobs)}. Estimator of returns: {estimator}."
                       f" Intervals are 95 %, {result.intervals}."),
        *content(spec.name, result),
    ]  # fmt: skip
    return [
        *blocks,
        Block("heading", "How it was made"),
        Block("code", command),
        *sheet_blocks(_runs_sheet(runs)),
        Block("note", f"Dropin {__version__}; {_packages()}. All settings of all runs are in"
                       f" {spec.name}.json."),
    ]  # fmt: skip


def _missing_sentence(runs: CompletedRuns) -> str:
    missing = runs.missing
    names = ", ".join(job.name for job in missing[:MAX_MISSING_NAMES])
    more = len(missing) - MAX_MISSING_NAMES
    rest = f" and {more} more" if more > 0 else ""
    return f"Incomplete: {len(missing)} of {len(runs.jobs)} runs are missing ({names}{rest})."


def _packages() -> str:
    found = versions()
    return ", ".join(f"{name} {found[name]}" for name in ("python", "jax", "jaxlib"))


def _runs_sheet(runs: CompletedRuns) -> Sheet:
    """Return the table of runs: a row for each grid, game and learner."""
    rows = []
    for group, done in runs.groups.items():
        of = [
            job
            for job in runs.jobs
            if (job.grid, job.config.game, job.config.learner)
            == (group.grid, group.game, group.learner)
        ]
        missing = [job.config.seed for job in of if job.progress is not Progress.DONE]
        seeds = format_seeds(run.config.seed for run in done)
        about = (group.game, group.learner, group.grid, f"{of[0].config.steps:,}")
        rows.append((*about, seeds or "none", format_seeds(missing) or "none"))
    columns = ("game", "learner", "", "steps", "finished seeds", "missing seeds")
    failed = [f"{name} failed: {reason}" for name, reason in runs.failures.items()]
    return Sheet("Runs", columns, rows, " ".join(failed))
