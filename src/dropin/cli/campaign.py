"""Train all runs of the results page: `dropin campaign`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dropin.cli.reproduce import format_time, search_directories
from dropin.cli.show import show_table
from dropin.core.errors import InputError

if TYPE_CHECKING:
    from dropin.experiments.campaign import Campaign

__all__ = ["campaign"]


def campaign(
    plan: bool = False,
    keep: bool = False,
    blocks: tuple[int, ...] | None = None,
    cores: tuple[int, ...] | None = None,
    nice: int = 0,
    directory: Path = Path("campaign"),
    results: Path = Path("docs/results/campaign"),
    use: tuple[Path, ...] = (),
    report: str = "auto",
) -> None:
    """Train all runs of the results page, in order of importance, and keep what is done.

    It can be stopped (Ctrl-C) and started again at any time. Each finished run is evaluated in 400
    fresh episodes and kept as small tables in the directory of results, to be committed.

    Args:
        plan: Show what is done, started and missing, and about how long the rest takes; then stop.
        keep: Train nothing: keep the runs that are done, then stop.
        blocks: Only these blocks, as the plan numbers them.
        cores: Train on these cores, one run on each, as in --cores 0 1 (all cores if not given).
        nice: Lower the priority of all processes by so much, up to 19.
        directory: Where new runs go.
        results: Where finished runs are kept, without checkpoints and agents.
        use: More directories to search for runs; runs is searched too.
        report: auto (a live table in a terminal, lines elsewhere), lines, json or none.
    """
    from dropin.training.parallel import pin

    if not 0 <= nice <= 19:
        raise InputError(f"--nice {nice} is out of range: it is from 0 to 19.")
    if cores is not None:
        # Before JAX is imported, which starts a thread for every core it may use.
        pin(cores)
    os.nice(nice)

    from dropin.experiments.campaign import BLOCKS, PARTS, Campaign
    from dropin.training.reporters import check_screen

    check_screen(report)
    for block in blocks or ():
        if block not in BLOCKS:
            raise InputError(f"There is no block {block}: it can be {', '.join(map(str, BLOCKS))}.")
    parts = [part for part in PARTS if blocks is None or part.block in blocks]
    whole = Campaign(directory, results, search_directories(use), parts)
    if report in ("auto", "lines"):
        _show_plan(whole)
    if plan:
        return
    if keep:
        whole.keep()
        return
    try:
        whole.run(report)
    except KeyboardInterrupt:
        print("Interrupted: run the same command again to continue.", file=sys.stderr)
        raise


def _show_plan(campaign: "Campaign") -> None:
    """Print what is done, started and missing, and about how long the rest takes."""
    from dropin.experiments.campaign import BLOCKS
    from dropin.experiments.planning import Progress
    from dropin.experiments.results import format_seeds
    from dropin.training.parallel import cores

    rows: dict[tuple[str, ...], dict[Progress, set[int]]] = {}
    for part, jobs in campaign.plans.items():
        for job in jobs:
            config = job.config
            kind = (str(part.block), part.experiment, config.rules, config.game, config.learner)
            states = rows.setdefault((*kind, job.grid), {state: set() for state in Progress})
            states[job.progress].add(config.seed)
    columns = ("block", "experiment", "rules", "game", "learner", "", *(x.value for x in Progress))
    show_table(
        columns, [(*kind, *map(format_seeds, found.values())) for kind, found in rows.items()]
    )
    for block in dict.fromkeys(part.block for part in campaign.plans):
        print(f"Block {block}: {BLOCKS[block]}.")
    jobs, seconds, number = campaign.jobs, campaign.seconds_left(), len(cores())
    print(f"{sum(job.progress is Progress.DONE for job in jobs)} of {len(jobs)} runs are done.")
    if seconds:
        measured = campaign.speed.num_runs
        by = (
            f"measured by {measured} runs" if measured else "judged by the speed of another machine"
        )
        print(f"The rest takes about {format_time(seconds / number)} on {number} cores, {by}.")
