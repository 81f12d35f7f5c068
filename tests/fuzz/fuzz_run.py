"""Fuzz all targets, guided by coverage, for a number of minutes: `make fuzz MINUTES=30`.

The corpus and the counts are kept, so each call goes on where the last one ended, however that was.
Targets take turns. Each turn is a process of its own, so that one that hangs or dies is only one
line; it is the longer, the more inputs its target lacks. Ctrl-C ends it all.
"""

import argparse
import contextlib
import importlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

from fuzz_state import DIED, Counts, State

WATCHED = (
    "dropin.core", "dropin.arena", "dropin.training", "dropin.agents", "dropin.zoo.cards",
    "dropin.zoo.recipe", "dropin.cli", "dropin.evaluation.curves", "dropin.experiments",
    "dropin.teams.dynamics", "dropin.teams.kinds", "dropin.teams.schedule", "dropin.teams.scripted",
    "dropin.teams.weights", "dropin.learners.config",
)  # fmt: skip
"""The modules whose coverage guides the search."""
GOAL = 1_000_000
"""Inputs of each target: those that have them wait for the others."""
TURN, SHORTEST_TURN = 240.0, 20.0
"""Seconds of a turn of a target that has no inputs yet, and of one that has nearly all."""
SAVE_SECONDS = 5.0
"""Between two times that a process writes its counts."""
GRACE = 120.0
"""Seconds for a process to start, and to end after its time."""
LONGEST_INPUT = 20_000
"""Bytes of an input, at most."""
SHARE_BY_FUZZER = 0.1
"""Share of inputs that the fuzzer changes by itself, from what it saw compared."""


class Turn:
    """Inputs of one target, one after another.

    Args:
        name: The target.
        state: What is kept of it.
        place: An empty directory, best in memory, which is used for every input anew.
    """

    def __init__(self, name: str, state: State, place: Path) -> None:
        from fuzz_guard import Guard
        from fuzz_targets import TARGETS

        from dropin.core.errors import InputError

        self.target, self.state, self.counts = TARGETS[name], state, state.read()
        self.inputs = 0
        """Inputs of this turn."""
        self._path, self._seconds_before = place / "input", self.counts.seconds
        self.seeds = [*self.target.seeds(), *map(Path.read_bytes, self.target.failed)]
        for seed in self.seeds:  # What is imported late is imported now, and templates are made.
            with contextlib.suppress(InputError, TypeError, ValueError, KeyError, AttributeError):
                self.target.read(seed, self._path)
        self._guard = Guard(place)
        state.make()
        for key, data in state.failures(self.counts):
            if self._guard.check(lambda data=data: self.target.read(data, self._path)) is None:
                state.mend(self.counts, key)
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long the turn has lasted."""
        return time.monotonic() - self._start

    def one(self, data: bytes, *, new: bool = True) -> None:
        """Read an input.

        Args:
            data: The input.
            new: Whether it counts; those of the corpus do not.
        """
        read, path = self.target.read, self._path
        failure = self._guard.check(lambda: read(data, path))
        if new:
            self.inputs += 1
            self.counts.inputs += 1
        if failure is not None and self.state.add_failure(self.counts, failure.key, data):
            print(f"{self.target.name}: {failure.key}: {failure.detail}", flush=True)

    def save(self) -> None:
        """Write the counts."""
        self.counts.seconds = self._seconds_before + self.seconds
        self.state.write(self.counts)


def fuzz_guided(name: str, state: State, place: Path, seconds: float, most: int) -> None:
    """Fuzz one target with the coverage of this process; ends the process.

    Args:
        name: The target.
        state: What is kept of it.
        place: An empty directory.
        seconds: For how long.
        most: How many inputs at most.
    """
    # Only on some systems, and of no use to anything else.
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=list(WATCHED)):
        import fuzz_targets  # noqa: F401

        turn = Turn(name, state, place)
    parent, saved, started = os.getppid(), 0.0, False

    def test_one(data: bytes) -> None:
        nonlocal saved
        turn.one(data, new=started)
        if turn.inputs % 16 and turn.inputs < most:
            return
        now = turn.seconds
        ends = now > seconds or turn.inputs >= most or os.getppid() != parent
        if ends or now > saved + SAVE_SECONDS:
            saved = now
            turn.save()
        if ends:
            print("\n#0 DONE", file=sys.stderr, flush=True)
            os._exit(0)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        nonlocal started
        started = True  # Before, the fuzzer reads the corpus again.
        rng = random.Random(seed)
        if rng.random() < SHARE_BY_FUZZER:
            return atheris.Mutate(data, max_size)
        return turn.target.mutate(data, rng)[:max_size]

    first = place / "first"
    first.mkdir()
    for number, seed in enumerate(turn.seeds):
        (first / f"seed-{number}").write_bytes(seed)
    options = [f"-max_len={LONGEST_INPUT}", "-len_control=0", "-rss_limit_mb=6000", "-timeout=60",
               f"-artifact_prefix={place}/"]  # fmt: skip
    arguments = [sys.argv[0], *options, str(state.corpus), str(first)]
    atheris.Setup(arguments, test_one, custom_mutator=mutate)
    atheris.Fuzz()


def fuzz_unguided(name: str, state: State, place: Path, inputs: int, seed: int) -> Counts:
    """Fuzz one target in this process without coverage, each input made of a right one.

    Args:
        name: The target.
        state: What is kept of it.
        place: An empty directory.
        inputs: How many.
        seed: The same seed gives the same inputs.
    """
    turn, rng = Turn(name, state, place), random.Random(seed)
    for _ in range(inputs):
        data = rng.choice(turn.seeds)
        for _ in range(rng.choice((1, 1, 2, 4))):
            data = turn.target.mutate(data, rng)
        turn.one(data)
    turn.save()
    return turn.counts


def fuzz_all(
    names: Sequence[str], minutes: float, goal: int, directory: Path, turn: float = TURN
) -> None:
    """Let targets take turns, those with the fewest inputs first, and print a line for each turn.

    Args:
        names: The targets.
        minutes: For how long, all together.
        goal: How many inputs of each.
        directory: Where the state of all targets is.
        turn: Seconds of the longest turn.
    """
    until = time.monotonic() + 60 * minutes
    states = {name: State(directory, name) for name in names}
    while True:
        inputs = {name: each.read().inputs for name, each in states.items()}
        below = [name for name in names if inputs[name] < goal]
        if not below:
            print(f"All targets have {goal:,} inputs: give a higher --goal to go on.", flush=True)
            return
        for name in sorted(below, key=lambda name: inputs[name]):
            left = until - time.monotonic()
            if left <= 0:
                return
            seconds = turn_seconds(inputs[name], goal, min(turn, left / len(below)))
            _take_turn(name, states[name], seconds, goal - inputs[name])


def turn_seconds(inputs: int, goal: int, most: float) -> float:
    """Return how long a turn is: the longer, the more inputs are missing.

    Args:
        inputs: How many inputs the target has.
        goal: How many it should have.
        most: How long it may be at most.
    """
    return min(most, max(SHORTEST_TURN, TURN * (goal - inputs) / goal))


def _take_turn(name: str, state: State, seconds: float, most: int) -> None:
    """Fuzz one target for some seconds, in a process of its own."""
    state.make()
    before, shm = state.read(), Path("/dev/shm")
    shm = shm if shm.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="dropin-fuzz-", dir=shm) as place:
        command = [sys.executable, __file__, "--one", name, "--seconds", str(seconds)]
        command += ["--inputs", str(most), "--place", place, "--state", str(state.directory.parent)]
        with state.log.open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                code = process.wait(seconds + GRACE)
            except subprocess.TimeoutExpired:
                code = "a timeout"
            finally:
                process.kill()
                process.wait()
        text, counts = state.log.read_text(errors="replace"), state.read()
        if code != 0:
            last = (text.strip().splitlines() or [""])[-1]
            # The fuzzer writes the input at hand to a file, if it still can.
            data = next((each.read_bytes() for each in Path(place).glob("*-*")), b"")
            state.add_failure(counts, f"{DIED} with {code}: {last:.200}", data)
    counts.edges = int((re.findall(r"cov: (\d+)", text) or [counts.edges])[-1])
    state.write(counts)
    print(_row(name, before, counts), flush=True)


def _row(name: str, before: Counts, counts: Counts) -> str:
    kinds = f" ({'; '.join(counts.failures)})" if counts.failures else ""
    return (
        f"{name:<18} {counts.inputs - before.inputs:>9,} inputs in"
        f" {counts.seconds - before.seconds:>4.0f} s {counts.inputs:>11,} inputs in all"
        f" {counts.edges:>6,} edges {len(counts.failures):>3} failures{kinds}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz; return 1 if an input fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="0: only print the counts")
    parser.add_argument("--goal", type=int, default=GOAL, help="inputs of each target")
    parser.add_argument("--turn", type=float, default=TURN, help="seconds of a turn, at most")
    parser.add_argument("--targets", default="", help="comma-separated; all if not given")
    parser.add_argument("--state", type=Path, default=Path("fuzz-state"), help="what is kept")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--inputs", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        state = State(given.state, given.one)
        fuzz_guided(given.one, state, given.place, given.seconds, given.inputs)
    from fuzz_targets import TARGETS

    from dropin.core.locks import hold

    names = given.targets.split(",") if given.targets else list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        parser.error(f"no target {unknown[0]!r}: {', '.join(TARGETS)}")
    given.state.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Stopped; the same command goes on."))
    with hold(given.state / ".lock", f"Another process is fuzzing in {given.state}"):
        with contextlib.suppress(KeyboardInterrupt):
            fuzz_all(names, given.minutes, given.goal, given.state, given.turn)
        return _summary(names, given.state, given.goal)


def _summary(names: Sequence[str], directory: Path, goal: int) -> int:
    """Print the counts of all targets; return 1 if an input fails."""
    print(f"\n{'target':<18} {'inputs in all':>14} {'seconds':>8} {'edges':>6} {'failures':>8}")
    found = {name: State(directory, name).read() for name in names}
    for name, each in found.items():
        row = f"{name:<18} {each.inputs:>14,} {each.seconds:>8,.0f} {each.edges:>6,}"
        print(f"{row} {len(each.failures):>8}")
    inputs = sum(each.inputs for each in found.values())
    done = sum(each.inputs >= goal for each in found.values())
    failed = sum(bool(each.failures) for each in found.values())
    print(
        f"{inputs:,} inputs of {len(found)} targets, of which {done} have {goal:,} or more;"
        f" {failed} targets fail"
    )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
