"""Use Dropin for hours in compressed time, and see whether anything is left behind.

    make soak MINUTES=15

A cycle is about what a person does in an hour: a training run that is resumed, an evaluation, three
agents of the zoo, the page of an experiment, a server with 42 rooms in which somebody plays, all of
it recorded. The first cycles fill caches. Then nothing may grow: open files, threads, child
processes, temporary files and arrays have to come back to what they were, and the slope of the
memory and of the memory maps over the second half of all cycles has to be below a limit, with all
of its 95 % interval. Exits with 1 if a promise is broken, with 2 if too few cycles leave one open.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from soak.measures import EXACT, Reading, fit_slope, judge_end, judge_slope, read
from soak.use import ROOMS, Use

DAY = 24
"""Cycles that are a day of use."""
WARM_UP = 3
"""Cycles after which everything has been done that is done once."""
LIMITS = {"memory": 64.0, "maps": 0.5}
"""Slopes that are allowed: KiB of memory, and memory maps, a cycle."""


def soak(directory: Path, minutes: float, least: int, rooms: int) -> list[Reading]:
    """Use Dropin for some time, at least for a number of cycles; return a reading of each.

    Ctrl-C ends it earlier.
    """
    use, readings, start = Use(directory, rooms), [], time.monotonic()
    print("cycle" + "".join(f"{name:>10}" for name in Reading.names()) + "   seconds", flush=True)
    try:
        while len(readings) < least or time.monotonic() - start < 60 * minutes:
            use.cycle()
            readings.append(read())
            values = "".join(f"{value:10d}" for value in readings[-1].values())
            print(f"{use.cycles:5d}{values}{time.monotonic() - start:10.0f}", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    seconds = time.monotonic() - start
    print(f"\n{use.cycles} cycles in {seconds / 60:.1f} minutes: about {use.cycles} hours of use")
    print(f"{use.opened} rooms opened, played and closed; {use.recorded} episodes recorded")
    return readings


def verdicts(readings: Sequence[Reading]) -> list[str]:
    """Print how each promise fared; return `kept`, `open` or `broken` for each."""
    found: list[str] = []
    first, last = readings[min(WARM_UP, len(readings)) - 1], readings[-1]
    print(f"\n{'promise':<12}{'after warm-up':>14}{'at the end':>12}   verdict")
    for name in EXACT:
        found.append(judge_end(name, first, last))
        before, after = getattr(first, name), getattr(last, name)
        print(f"{name:<12}{before:>14}{after:>12}   {found[-1]}")
    for name, limit in LIMITS.items():
        slope = fit_slope([getattr(each, name) for each in readings])
        found.append(judge_slope(slope, limit))
        print(f"{name:<12}{slope} a cycle; limit {limit:g}   {found[-1]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--cycles", type=int, default=DAY, help="at least so many")
    parser.add_argument("--rooms", type=int, default=ROOMS, help="rooms of a cycle")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work, temporary = Path(place) / "work", Path(place) / "temporary"
        work.mkdir()
        temporary.mkdir()
        tempfile.tempdir = str(temporary)
        try:
            readings = soak(work, chosen.minutes, chosen.cycles, chosen.rooms)
        finally:
            tempfile.tempdir = None
    if not readings:
        return 2
    found = verdicts(readings)
    return 1 if "broken" in found else 2 if "open" in found else 0


if __name__ == "__main__":
    sys.exit(main())
