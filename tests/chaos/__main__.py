"""`make chaos MINUTES=60`: kill, cut the power, break the disk; print what was tried and found.

With a given seed the same is tried in the same order, as far as the time allows.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "experiments")]

import conftest  # noqa: E402, F401  # Programs are hardly optimised, as in the tests.

import dropin.training.services  # noqa: E402, F401  # Imported once, before processes are forked.
from chaos import counter  # noqa: E402
from chaos.drivers import DRIVERS, DriverVictim  # noqa: E402
from chaos.faults import fail, fast_scratch, jobs, lose_power, quiet  # noqa: E402
from chaos.kills import Found, Victim, table  # noqa: E402
from chaos.workloads import COUNTER, WORKLOADS  # noqa: E402

SHARES = {
    "kills of learners": 0.45,
    "kills": 0.05,
    "kills of drivers": 0.2,
    "power": 0.1,
    "disk": 0.2,
}
"""The parts, in order, with their shares of the time; what one leaves, the next ones have. Kills
come first, in a process that has computed nothing yet."""


def kills(names: str, scratch: Path, found: Found, until: float, seed: int) -> None:
    """Kill processes until the time is over.

    Args:
        names: `kills` for a run that is nothing but files, `kills of learners` for the others.
        scratch: A directory for the runs.
        found: Where to note what is found.
        until: When to stop.
        seed: Decides when they are killed.
    """
    victims: dict[str, Victim] = {}
    workloads = [COUNTER] if names == "kills" else list(WORKLOADS)
    while not victims or time.monotonic() < until:
        workload = min(workloads, key=lambda each: found.kills_of(each.name))
        if workload.name not in victims:
            own = scratch / str(len(victims))
            victims[workload.name] = Victim(workload, own, seed + len(victims))
        victims[workload.name].disturb(found, until)


def kills_of_drivers(part: str, scratch: Path, found: Found, until: float, seed: int) -> None:
    """Kill the commands that start processes of their own; the arguments are those of `kills`."""
    del part
    victims: dict[str, DriverVictim] = {}
    while not victims or time.monotonic() < until:
        driver = min(DRIVERS, key=lambda each: found.kills_of(each.name))
        if driver.name not in victims:
            own = scratch / str(len(victims))
            victims[driver.name] = DriverVictim(driver, own, seed + len(victims))
        victims[driver.name].disturb(found, until)


def faults(part: str, scratch: Path, found: Found, until: float, seed: int) -> None:
    """Cut the power or break the disk until everything was tried or the time is over.

    Args:
        part: `power` or `disk`.
        scratch: A directory for the runs.
        found: Where to note what is found.
        until: When to stop.
        seed: Decides the order.
    """
    with counter.counting(), quiet():
        every = jobs(scratch)
        for number, job in enumerate(every):
            share = (until - time.monotonic()) / (len(every) - number)
            own, end = scratch / f"job-{number}", time.monotonic() + share
            disturb = lose_power if part == "power" else fail
            whole = disturb(job, own, found, end, seed)
            print(f"{part}: {job.name}: {'all of it' if whole else 'as the time allows'}")


WORK = {
    "kills of learners": kills,
    "kills": kills,
    "kills of drivers": kills_of_drivers,
    "power": faults,
    "disk": faults,
}


def show(found: Found) -> None:
    """Print a table of what was tried, and what was found."""
    print(f"\n{table(found.kills)}")
    width = max(map(len, found.tries), default=0)
    print(f"\n{'tried':{width}}  number")
    for what, number in sorted(found.tries.items()):
        print(f"{what:{width}}  {number:6,}")
    killed = sum(map(found.kills_of, found.kills))
    print(f"\n{killed} kills; promises broken: {len(found.broken)}")
    for each in found.broken:
        print(f"BROKEN {each}")


def main() -> None:
    """Run the campaign; exit with 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", nargs="*", default=list(SHARES), choices=list(SHARES))
    parser.add_argument("--tally", type=Path, help="a file that adds up several campaigns")
    given = parser.parse_args()
    found, end = Found(given.tally), time.monotonic() + 60 * given.minutes
    scratch = Path(tempfile.mkdtemp(prefix="dropin-chaos-"))
    memory = fast_scratch(scratch.name, scratch)
    left = [part for part in SHARES if part in given.parts]
    for number, part in enumerate(left):
        share = SHARES[part] / sum(SHARES[each] for each in left[number:])
        until = time.monotonic() + share * max(end - time.monotonic(), 0.0)
        root = (memory if part in ("power", "disk") else scratch) / part
        root.mkdir(parents=True)
        WORK[part](part, root, found, until, given.seed)
        found.save()
    show(found)
    shutil.rmtree(memory, ignore_errors=True)
    if found.broken:
        raise SystemExit(f"Promises were broken; the files are in {scratch}.")
    shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
