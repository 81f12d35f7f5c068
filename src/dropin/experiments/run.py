"""Running the runs of an experiment, on this machine or on a cluster."""

from collections.abc import Sequence

from dropin.errors import unknown
from dropin.experiments.plan import Job, Progress
from dropin.training.many import run_all

PLACES = ("here", "ray")


def check_place(on: str) -> None:
    """Raise `InputError` for a place that does not exist."""
    if on not in PLACES:
        raise unknown("place", on, PLACES)


def run_jobs(
    jobs: Sequence[Job], *, on: str = "here", address: str | None = None, report: str = "auto"
) -> None:
    """Run what is not done: one pinned process for each core, or one task of a Ray cluster each.

    Longer runs are begun first. Interrupted, all save what they have.
    """
    check_place(on)
    # Two grids may share a run.
    left = {job.kept.path: job for job in jobs if job.progress is not Progress.DONE}
    longest = sorted(left.values(), key=lambda job: -job.seconds)
    for job in longest:
        job.begin()
    if not longest:
        return
    if on == "ray":
        from dropin.experiments.cluster import run_on_ray

        run_on_ray({job.name: job.kept.path for job in longest}, address, report)
    else:
        run_all({job.name: ["--resume", str(job.kept.path)] for job in longest}, report)
