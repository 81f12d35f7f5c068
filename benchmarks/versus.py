"""Compare the speed of this version with an older one, both measured in one run, taking turns.

The older version is a checkout of the repository, for example of the commit of version 0.1:

    git worktree add ../dropin-0.1 798964d
    python benchmarks/versus.py --before ../dropin-0.1 [--only train games] [--rounds 7]

Both versions run with the same Python environment. Every worker is a process of its own with one
thread, pinned to a core. Only one of them works at a time, except where two processes are compared
with one. Absolute times are not stable on a shared machine; read the ratios.
"""

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from workers import Worker, memory_mib, random_play, spread

ROOT = Path(__file__).resolve().parent.parent
GAMES = ("lbf", "wolfpack", "fortattack")
LEARNERS = ("gpl-q", "gpl-spi", "ql", "ql-am", "gnn", "gnn-am", "dgn", "maddpg")
Run = Callable[[], int]
"""Does some work and returns the number of environment steps."""


def make_training(game: str, learner: str, slots: int) -> Run:
    """Return a function that trains for a while, in whichever version is imported."""
    import jax
    import jax.numpy as jnp

    import dropin

    changes: dict[str, Any] = {"size": 20} if slots > 5 else {}
    env = dropin.make(game, rules="reference", team_limit=slots, **changes)
    if dropin.__version__.startswith("0.1"):
        chunk, state = _old_training(env, game, learner)
    else:
        chunk, state = _new_training(env, game, learner)
    number = 1

    def run() -> int:
        nonlocal state, number
        start, done = time.perf_counter(), number
        state = jax.block_until_ready(chunk(state, jnp.int32(number)))
        if time.perf_counter() - start < 0.25:
            number *= 2
        return done * 64

    return run


def _new_training(env: Any, game: str, learner: str) -> tuple[Callable[..., Any], Any]:
    import jax
    import jax.numpy as jnp

    from dropin.core import registry
    from dropin.learners.config import TrainConfig
    from dropin.training.chunk import RunState, train_chunk

    spec = registry.learners[learner]
    made = spec.make(spec.default_settings(game), TrainConfig())
    state = RunState(made.init(jax.random.key(0), env), jnp.int32(0))
    return lambda state, number: train_chunk((env, made, number), state)[0], state


def _old_training(env: Any, game: str, learner: str) -> tuple[Callable[..., Any], Any]:
    """Do the same with the names of version 0.1."""
    from importlib import import_module

    import jax

    find: Any = import_module("dropin.learners").find
    config: Any = import_module("dropin.training.chunk").TrainConfig()
    entry = find(learner)
    trainer: Any = import_module(f"dropin.training.{'joint' if entry.joint else 'update'}")
    network = import_module(entry.module).LEARNER(
        env.interface, entry.config(game), key=jax.random.key(0)
    )
    chunk: Any = import_module("dropin.training.chunk").chunk(trainer.update)
    state = trainer.start(env, network, config, jax.random.key(1))
    return lambda state, number: chunk((env, config, number), state)[0], state


def make_playing(game: str, num_envs: int) -> Run:
    """Return a function that takes random actions in many environments."""
    import jax

    import dropin

    env = dropin.make(game, rules="reference", team_limit=5)
    length = max(64, 4096 // num_envs)
    played = jax.jit(random_play(env, num_envs, length), donate_argnums=(0, 1))
    carry = (
        jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), num_envs))[0],
        jax.random.key(1),
    )

    def run() -> int:
        nonlocal carry
        carry = jax.block_until_ready(played(*carry))[:2]
        return length * num_envs

    return run


def serve(kind: str, *what: str) -> None:
    """Measure in a worker: for every line SECONDS on standard input, print steps a second."""
    start = time.perf_counter()
    if kind == "train":
        run = make_training(what[0], what[1], int(what[2]))
    else:
        run = make_playing(what[0], int(what[1]))
    run()
    print(f"{time.perf_counter() - start:.3f}", flush=True)
    for line in sys.stdin:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < float(line):
            steps += run()
        rate = steps / (time.perf_counter() - start)
        held, peak = memory_mib()
        print(f"{rate:.3f} {held:.0f} {peak:.0f}", flush=True)


def start(checkout: Path, what: Sequence[str], core: int = 0) -> Worker:
    """Start `serve` with the code of one version."""
    variables = {
        "PYTHONPATH": str(checkout / "src"),
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "DROPIN_CACHE": "off",
    }
    return Worker(__file__, what, [core], variables)


def compare(before: Path, what: Sequence[str], rounds: int, seconds: float) -> dict[str, Any]:
    """Measure one thing in both versions, in turns, and print a row."""
    old, new = start(before, what), start(ROOT, what)
    ratios, rates, found = [], [], {}
    for turn in range(rounds):
        pair = (old, new) if turn % 2 else (new, old)
        found = {worker: worker.measure(seconds) for worker in pair}
        ratios.append(found[new][0] / found[old][0])
        rates.append(found[new][0])
    compiling = [*old.ready, *new.ready]
    held, peak = ([found[worker][column] for worker in (old, new)] for column in (1, 2))
    row = {
        "what": " ".join(what),
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "steps_per_second": statistics.median(rates),
        "compile_seconds": compiling,
        "memory_mib": held,
        "peak_memory_mib": peak,
    }
    print(
        f"{row['what']:<28} {spread(ratios):<22} {row['steps_per_second']:>9.0f}"
        f"  {compiling[0]:>5.1f} {compiling[1]:>5.1f}  {held[0]:>4.0f} {held[1]:>4.0f}"
        f"  {peak[0]:>4.0f} {peak[1]:>4.0f}",
        flush=True,
    )
    old.close()
    new.close()
    return row


def two_over_one(what: Sequence[str], rounds: int, seconds: float) -> dict[str, Any]:
    """Measure how much two processes of this version do, each on a core, relative to one."""
    first, second = start(ROOT, what, 0), start(ROOT, what, 1)
    gains = []
    for _ in range(rounds):
        alone = first.measure(seconds)[0]
        first.ask(seconds)
        second.ask(seconds)
        both = first.hear()[0] + second.hear()[0]
        gains.append(2 * both / (alone + first.measure(seconds)[0]))
    first.close()
    second.close()
    print(f"two processes over one, {' '.join(what)}: {spread(gains)}", flush=True)
    return {"what": " ".join(what), "gain": statistics.median(gains), "gains": gains}


def tasks(only: Sequence[str]) -> list[tuple[str, ...]]:
    """Return what is compared: all learners in LBF, GPL in all games, the games alone."""
    rows: list[tuple[str, ...]] = []
    if "train" in only:
        rows += [("train", game, "gpl-q", "3") for game in GAMES]
        rows += [("train", "lbf", learner, "3") for learner in LEARNERS if learner != "gpl-q"]
        rows += [("train", game, "gpl-spi", "3") for game in GAMES[1:]]
    if "teams" in only:
        rows += [("train", "lbf", "gpl-q", size) for size in ("20", "40")]
    if "games" in only:
        rows += [("play", game, number) for game in GAMES for number in ("16", "1024")]
    return rows


def main() -> None:
    """Measure and print; with --json, also write what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path, help="a checkout of the older version")
    parser.add_argument("--only", nargs="+", default=("train", "teams", "games", "two"))
    parser.add_argument("--what", nargs="+", help="one comparison, as in: train lbf gpl-q 3")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(*given.serve)
        return
    if given.before is None:
        parser.error("--before has to name a checkout of the older version")
    import jax

    from dropin.training.provenance import processor

    print(f"{processor()}, {platform.system()}, jax {jax.__version__}")
    print(f"medians (least to greatest) of {given.rounds} rounds of {given.seconds:g} s")
    columns = ("compile, s", "held, MiB", "peak, MiB")
    print(f"{'what':<28} {'ratio':<22} {'steps/s':>9}", *(f"{each:>11}" for each in columns))
    chosen = [tuple(given.what)] if given.what else tasks(given.only)
    rows = [compare(given.before, each, given.rounds, given.seconds) for each in chosen]
    if "two" in given.only and not given.what:
        rows.append(two_over_one(("train", "lbf", "gpl-q", "3"), given.rounds, given.seconds))
    if given.json:
        report = {"processor": processor(), "jax": jax.__version__, "rows": rows}
        given.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
