"""How long the benchmark takes to measure one agent in all tasks of a game.

    python benchmarks/benchmark.py lbf [--agent lbf/gpl-q] [--tasks lbf/standard ...]

The first round compiles all programs, or reads them from the cache; the second one shows what every
further agent takes. Processor time is printed too: it tells what other programs have not taken.
"""

import argparse
import tempfile
import time
from pathlib import Path

from dropin.agents import AGENT_FILE, agent_path
from dropin.experiments.benchmark.running import Benchmark, Options
from dropin.experiments.benchmark.tasks import select_tasks
from dropin.training.parallel import cores


def agent_file(name: str) -> Path:
    """Return the file of a trained agent."""
    path = agent_path(name)
    return path / AGENT_FILE if path.is_dir() else path


def main() -> None:
    """Measure an agent twice, and print how long each took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("game")
    parser.add_argument("--agent")
    parser.add_argument("--tasks", nargs="+")
    given = parser.parse_args()
    tasks = select_tasks(given.tasks or [given.game])
    agent = given.agent or f"{given.game}/gpl-q"
    # Of a file alone nobody knows with which types it was trained, so it takes all tasks.
    content = agent_file(agent).read_bytes()
    for which in ("first", "second"):
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory) / AGENT_FILE
            copy.write_bytes(content)
            benchmark = Benchmark(str(copy), tasks, Options(directory=Path(directory)))
            wall, used = time.perf_counter(), time.process_time()
            records = benchmark.run()
            wall, used = time.perf_counter() - wall, time.process_time() - used
        steps = sum(int(record.episodes.steps.sum()) for record in records)
        print(
            f"{which} time: {len(records)} records of {agent}, {steps:,} steps with all types,"
            f" {wall:.1f} s on {len(cores())} cores, {used:.1f} s of processor time",
            flush=True,
        )


if __name__ == "__main__":
    main()
