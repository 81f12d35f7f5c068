"""Fuzz all targets, guided by coverage, within a number of minutes: `make fuzz MINUTES=30`.

Each target runs in a process of its own, so that one that hangs or dies is only one line of the
table. An input that fails is written to the output directory; once it is mended, copy it to
`tests/fuzz/corpus/TARGET`, where it stays a test.
"""

import argparse
import contextlib
import hashlib
import importlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

WATCHED = ("dropin.core", "dropin.arena", "dropin.training", "dropin.agents", "dropin.zoo.cards",
           "dropin.cli", "dropin.evaluation.curves", "dropin.experiments", "dropin.teams.scripted",
           "dropin.learners.config")  # fmt: skip
"""The modules whose coverage guides the search."""
GRACE = 90.0
"""Seconds for a process to start, and to end after its time."""
SHARE_BY_FUZZER = 0.1
"""Share of inputs that the fuzzer changes by itself, from what it saw compared."""


@dataclass
class Report:
    """What came of a target."""

    target: str
    inputs: int = 0
    seconds: float = 0.0
    edges: int | None = None
    failures: dict[str, int] = field(default_factory=dict)
    """How many inputs failed, by kind and place."""


class Run:
    """Inputs of one target, one after another.

    Args:
        name: The target.
        out: Where inputs that fail are written.
    """

    def __init__(self, name: str, out: Path) -> None:
        from fuzz_guard import Watch
        from fuzz_targets import TARGETS

        from dropin.core.errors import InputError

        shm = Path("/dev/shm")
        made = tempfile.mkdtemp(prefix="dropin-fuzz-", dir=shm if shm.is_dir() else None)
        self.directory = Path(made)
        self.target, self.out = TARGETS[name], out / name
        self.report, self.start = Report(name), time.monotonic()
        self._watch = Watch(self.directory)
        for seed in self.target.seeds():  # What is imported late is imported now.
            with contextlib.suppress(InputError):
                self.target.read(seed, self.directory / "input")

    def one(self, data: bytes) -> None:
        """Read an input."""
        from fuzz_guard import check

        target, place = self.target, self.directory / "input"
        failure = check(lambda: target.read(data, place), self._watch)
        self.report.inputs += 1
        if failure is None:
            return
        found = self.report.failures
        if failure.key not in found:
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)
            print(f"{target.name}: {failure.key}: {failure.detail}", flush=True)
        found[failure.key] = found.get(failure.key, 0) + 1

    def finish(self) -> None:
        """Write the report."""
        self.report.seconds = time.monotonic() - self.start
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "report.json").write_text(json.dumps(asdict(self.report)))


def fuzz_one(name: str, seconds: float, most: int, out: Path) -> None:
    """Fuzz one target with the coverage of this process; ends the process.

    Args:
        name: The target.
        seconds: For how long.
        most: How many inputs at most.
        out: Where the report and inputs that fail go.
    """
    # Only on some systems, and of no use to anything else.
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=list(WATCHED)):
        import fuzz_targets  # noqa: F401

        run = Run(name, out)
    until = time.monotonic() + seconds

    def test_one(data: bytes) -> None:
        run.one(data)
        if run.report.inputs >= most or (run.report.inputs % 64 == 0 and time.monotonic() > until):
            run.finish()
            print("\n#0 DONE", file=sys.stderr, flush=True)
            os._exit(0)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < SHARE_BY_FUZZER:
            return atheris.Mutate(data, max_size)
        return run.target.mutate(data, rng)[:max_size]

    corpus = run.directory / "corpus"
    corpus.mkdir()
    for number, seed in enumerate((*run.target.seeds(), *map(Path.read_bytes, run.target.failed))):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = ["-max_len=100000", "-len_control=0", "-rss_limit_mb=6000", "-timeout=60",
               f"-artifact_prefix={run.directory}/"]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], test_one, custom_mutator=mutate)
    atheris.Fuzz()


def fuzz_unguided(name: str, inputs: int, seed: int, out: Path) -> Report:
    """Fuzz one target in this process without coverage, each input made of a right one.

    Args:
        name: The target.
        inputs: How many.
        seed: The same seed gives the same inputs.
        out: Where inputs that fail go.
    """
    run, rng = Run(name, out), random.Random(seed)
    seeds = [*run.target.seeds(), *map(Path.read_bytes, run.target.failed)]
    for _ in range(inputs):
        data = rng.choice(seeds)
        for _ in range(rng.choice((1, 1, 2, 4))):
            data = run.target.mutate(data, rng)
        run.one(data)
    run.finish()
    return run.report


def fuzz_all(names: Sequence[str], minutes: float, most: int, out: Path) -> list[Report]:
    """Fuzz targets one after another, each in a process of its own.

    Args:
        names: The targets.
        minutes: For how long, all together; each process needs some seconds more to start.
        most: How many inputs of each at most.
        out: Where reports and inputs that fail go.
    """
    from fuzz_targets import TARGETS

    weights = sum(TARGETS[name].weight for name in names)
    reports = []
    for name in names:
        seconds = 60 * minutes * TARGETS[name].weight / weights
        reports.append(_in_process(name, seconds, most, out))
        print(_row(reports[-1]), flush=True)
    return reports


def _in_process(name: str, seconds: float, most: int, out: Path) -> Report:
    directory = out / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "report.json").unlink(missing_ok=True)
    command = [sys.executable, __file__, "--one", name, "--seconds", str(seconds)]
    command += ["--inputs", str(most), "--out", str(out)]
    log = directory / "log"
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            process.wait(seconds + GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    text = log.read_text(errors="replace")
    stored = directory / "report.json"
    if stored.exists():
        report = Report(**json.loads(stored.read_text()))
    else:
        last = text.strip().splitlines()[-1:] or [""]
        report = Report(
            name, failures={f"the process ended with {process.returncode}: {last[0]}": 1}
        )
    covered = re.findall(r"cov: (\d+)", text)
    report.edges = int(covered[-1]) if covered else None
    return report


def _row(report: Report) -> str:
    edges = "-" if report.edges is None else str(report.edges)
    failures = sum(report.failures.values())
    kinds = f" ({'; '.join(report.failures)})" if failures else ""
    return (
        f"{report.target:<18} {report.inputs:>10,} inputs {report.seconds:>6.0f} s"
        f" {edges:>6} edges {failures:>6,} failures{kinds}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz; return 1 if an input failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--inputs", type=int, default=10**9, help="of each target at most")
    parser.add_argument("--targets", default="", help="comma-separated; all if not given")
    parser.add_argument("--out", type=Path, default=Path("fuzz-failures"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        fuzz_one(given.one, given.seconds, given.inputs, given.out)
    from fuzz_targets import TARGETS

    names = given.targets.split(",") if given.targets else list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        parser.error(f"no target {unknown[0]!r}: {', '.join(TARGETS)}")
    reports = fuzz_all(names, given.minutes, given.inputs, given.out)
    inputs = sum(each.inputs for each in reports)
    failed = sum(bool(each.failures) for each in reports)
    print(f"{inputs:,} inputs of {len(reports)} targets; {failed} targets failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
