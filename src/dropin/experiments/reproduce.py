"""From an experiment to its page: plan, train what is missing, compute the result, write it."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from dropin.core import registry
from dropin.core.errors import InputError, StoppedError, unknown
from dropin.core.specs import ExperimentSpec
from dropin.experiments.analyses import AnalysisCache
from dropin.experiments.cluster import run_on_ray
from dropin.experiments.kept import find_failures
from dropin.experiments.planning import Job, Progress, plan
from dropin.experiments.report import write_page
from dropin.experiments.results import CompletedRuns, ExperimentResult
from dropin.experiments.runs import Options
from dropin.training.parallel import run_all

__all__ = ["ALL", "PLACES", "Experiment", "check_place", "select_experiments", "train_missing"]

ALL = "all"
"""The name that stands for all experiments of the paper."""
PLACES = ("here", "ray")
"""Where runs can be trained."""


def check_place(place: str) -> None:
    """Raise `InputError` for a place that does not exist."""
    if place not in PLACES:
        raise unknown("place", place, PLACES)


def select_experiments(name: str, options: Options) -> list[ExperimentSpec]:
    """Return the experiment with a name; for `all`, each one that has runs left under the options.

    Args:
        name: Name of a registered experiment, or `all`.
        options: The options of the experiments.

    Raises:
        InputError: If there is no such experiment.
    """
    if name != ALL:
        return [registry.experiments[name]]
    return [
        spec
        for spec in registry.experiments.values()
        if spec.in_all and not all(grid.is_empty(options) for grid in spec.grids(options).values())
    ]


def train_missing(
    jobs: Sequence[Job], *, on: str = "here", address: str | None = None, report: str = "auto"
) -> None:
    """Train the runs that are not done, those that take longest first.

    Args:
        jobs: The runs; several may be of one run.
        on: As in `Experiment.run`.
        address: As in `Experiment.run`.
        report: As in `Experiment.run`.

    Raises:
        StoppedError: If some runs failed, once all others are done.
        KeyboardInterrupt: If it was interrupted, once all runs are saved.
    """
    check_place(on)
    # Two grids may share a run.
    left = {job.run.path: job for job in jobs if job.progress is not Progress.DONE}
    longest_first = sorted(left.values(), key=lambda job: -job.seconds_left)
    for job in longest_first:
        job.create()
    if not longest_first:
        return
    if on == "ray":
        run_on_ray({job.name: job.run.path for job in longest_first}, address, report)
    else:
        run_all({job.name: ["--resume", str(job.run.path)] for job in longest_first}, report)


class Experiment:
    """An experiment with its options, from the plan to the page.

    Args:
        spec: The experiment, see `dropin.core.registry.experiments`.
        options: Its options.
        directory: Where runs, stored analyses and the page go.
        search: Further directories to search for runs.

    >>> from dropin.core import registry
    >>> from dropin.experiments import Experiment, Options
    >>> options = Options(scale=0.05, games=("lbf",), learners=("gpl-q", "ql"))
    >>> experiment = Experiment(registry.experiments["table2"], options, Path("experiments"))
    >>> [job.name for job in experiment.jobs]
    ['lbf gpl-q seed 0', 'lbf gpl-q seed 1', 'lbf ql seed 0', 'lbf ql seed 1']
    """

    def __init__(
        self, spec: ExperimentSpec, options: Options, directory: Path, search: Sequence[Path] = ()
    ):
        self.spec, self.options = spec, options
        self.directory, self.search = directory, search

    @cached_property
    def jobs(self) -> list[Job]:
        """The runs that it needs, with how far they are; planned once, updated by `run`."""
        return plan(
            self.spec.grids(self.options),
            self.options,
            self.directory,
            self.search,
            needs_agents=self.spec.needs_agents,
            experiment=self.spec.name,
        )

    def run(self, *, on: str = "here", address: str | None = None, report: str = "auto") -> None:
        """Train the runs that are not done, those that take longest first.

        Args:
            on: `here` for one pinned process per core, or `ray` for one task per run on a cluster.
            address: The address of the Ray cluster; a local one is started if it is not given.
            report: How to report progress: `auto`, `lines`, `json` or `none`.

        Raises:
            StoppedError: If some runs failed, once all others are done.
            KeyboardInterrupt: If it was interrupted, once all runs are saved.
        """
        try:
            train_missing(self.jobs, on=on, address=address, report=report)
        finally:
            self.jobs = [job.refreshed() for job in self.jobs]

    def completed_runs(self) -> CompletedRuns:
        """Return the runs that are done.

        Raises:
            InputError: If there are none.
        """
        analyses = AnalysisCache(self.directory / "analyses")
        failures = find_failures([self.directory, *self.search])
        runs = CompletedRuns(self.jobs, self.options, analyses, failures)
        if len(runs.missing) == len(runs.jobs):
            raise InputError(f"No run of {self.spec.name} is done yet: there is nothing to draw.")
        return runs

    def result(self) -> ExperimentResult:
        """Return the result of the runs that are done."""
        return self.spec.result(self.completed_runs())

    def write(self, command: str) -> list[Path]:
        """Write the page of the runs that are done.

        Args:
            command: The command that makes the page, shown on it.

        Returns:
            The page as Markdown and as HTML.
        """
        runs = self.completed_runs()
        directory = self.directory / self.spec.name
        return write_page(self.spec, self.spec.result(runs), runs, command, directory)

    def reproduce(
        self, command: str, *, on: str = "here", address: str | None = None, report: str = "auto"
    ) -> list[Path]:
        """Train the runs that are not done and write the page, even if some of them fail.

        Args:
            command: The command that makes the page, shown on it.
            on: As in `run`.
            address: As in `run`.
            report: As in `run`.

        Returns:
            The page as Markdown and as HTML.

        Raises:
            StoppedError: If some runs failed; the page is without them.
        """
        failure = None
        try:
            self.run(on=on, address=address, report=report)
        except StoppedError as error:
            failure = error
        try:
            pages = self.write(command)
        except InputError as error:
            raise failure or error from None
        if failure is not None:
            raise StoppedError(f"{failure} The page without them is {pages[0]}.")
        return pages
