"""How long a user waits: from a command to its first result, without and with the cache.

    python benchmarks/startup.py [--before ../dropin-0.1] [--games lbf wolfpack fortattack]
                                 [--rounds 3]

For `dropin train GAME gpl-q` it is the time to the first row of metrics, for `dropin play GAME` the
time to the end of an episode that is not shown step by step. With --before, an older version is
measured in turns with this one. Each process may use all cores.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from workers import spread

ROOT = Path(__file__).resolve().parent.parent
FIRST_METRICS = re.compile(r"step [1-9][\d,]*:")


def seconds_until(
    pattern: re.Pattern[str] | None, checkout: Path, arguments: Sequence[str]
) -> float:
    """Return the seconds from a command's start to a line that matches, or to its end."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "dropin.cli", *arguments],
        env=os.environ | {"PYTHONPATH": str(checkout / "src"), "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    found = None
    for line in process.stdout:
        if pattern is not None and found is None and pattern.match(line):
            found = time.perf_counter() - start
    if process.wait() or (pattern is not None and found is None):
        raise SystemExit(f"dropin {' '.join(arguments)} failed.")
    return time.perf_counter() - start if found is None else found


def measure(checkout: Path, game: str, command: str) -> list[float]:
    """Return the times of a command with an empty cache, and then with what it has stored."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DROPIN_CACHE"] = str(Path(folder) / "cache")
        for number in range(2):
            if command == "train":
                run = Path(folder) / f"run-{number}"
                options = ["--steps", "640", "--seed", str(number), "--report", "lines"]
                arguments = ["train", game, "gpl-q", *options, "--directory", str(run)]
                times.append(seconds_until(FIRST_METRICS, checkout, arguments))
            else:
                arguments = ["play", game, "--seed", str(number)]
                times.append(seconds_until(None, checkout, arguments))
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path, help="a checkout of an older version")
    parser.add_argument("--games", nargs="+", default=("lbf", "wolfpack", "fortattack"))
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    versions = {"this": ROOT} | ({"before": given.before} if given.before else {})
    print(f"seconds, medians (least to greatest) of {given.rounds} rounds, {os.cpu_count()} cores")
    print(f"{'command':<24} {'version':<8} {'empty cache':<22} full cache")
    for command in ("train", "play"):
        for game in given.games:
            found: dict[str, list[list[float]]] = {name: [] for name in versions}
            for _ in range(given.rounds):
                for name, checkout in versions.items():
                    found[name].append(measure(checkout, game, command))
            for name, rows in found.items():
                cold, warm = (spread(column, "{:.1f}") for column in zip(*rows, strict=True))
                print(f"dropin {command + ' ' + game:<17} {name:<8} {cold:<22} {warm}", flush=True)


if __name__ == "__main__":
    main()
