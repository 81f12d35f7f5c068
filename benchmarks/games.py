"""How fast the games are: environment steps a second with all teammates acting.

Everything is measured in one run, taking turns, because absolute times are not stable on a shared
machine; read the ratios to the tests' NumPy implementation of one environment (which in
level-based foraging has the heuristic types alone, and in the other games all).
With two cores the environments are spread over two devices of one process. "first" is the time of
the first call, compilation included.

    python benchmarks/games.py [--games lbf wolfpack fortattack] [--seconds 2] [--rounds 7]
"""

import argparse
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from workers import Worker, random_play

SLOTS = 5
COUNTS = (1, 16, 256, 1024)
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))


def slow_rate(game: str, rules: str, seconds: float) -> float:
    """Steps a second of the tests' NumPy implementation of one environment."""
    import numpy as np

    random = np.random.default_rng(0)
    if game == "lbf":
        from slow_lbf import SlowLBF  # pyright: ignore[reportMissingImports]

        slow = SlowLBF(rules, team_limit=SLOTS)

        def step() -> None:
            slow.step(int(random.integers(6)))
    elif game == "fortattack":
        import jax
        from slow_fortattack_types import (  # pyright: ignore[reportMissingImports]
            SlowTeams,
            networks,
        )

        from dropin.core.arrays import to_arrays
        from dropin.games.fortattack.learned import FighterNetwork

        untrained = to_arrays(FighterNetwork(key=jax.random.key(0)))
        fort = SlowTeams(rules, SLOTS, networks(untrained))

        def step() -> None:
            fort.step(int(random.integers(8)))
    else:
        from slow_wolfpack import SlowWolfpack  # pyright: ignore[reportMissingImports]

        hunt = SlowWolfpack(rules, team_limit=SLOTS, learned=True)

        def step() -> None:
            hunt.step(int(random.integers(5)))

    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(100):
            step()
        steps += 100
    return steps / (time.perf_counter() - start)


def serve(game: str, rules: str, envs: int, cores: int) -> None:
    """A worker: for every line "SECONDS" on standard input, the steps a second it reached."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    import dropin

    env = dropin.make(game, rules=rules, team_limit=SLOTS)
    length = max(64, 4096 // envs)
    each = envs // cores

    play = random_play(env, each, length)

    def run(state: Any, keys: Any) -> Any:
        state, key, reward = play(state, keys[0])
        return state, key[None], reward[None]

    spread = PartitionSpec("core")
    mesh = jax.make_mesh((cores,), ("core",), devices=jax.devices()[:cores])
    sharded = jax.jit(
        jax.shard_map(
            run, mesh=mesh, in_specs=(spread, spread), out_specs=(spread,) * 3, check_vma=False
        ),
        donate_argnums=(0, 1),
    )
    start = time.perf_counter()
    state, _ = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), envs))
    carry = jax.device_put(
        (state, jax.random.split(jax.random.key(1), cores)), NamedSharding(mesh, spread)
    )
    carry = jax.block_until_ready(sharded(*carry))
    print(f"{time.perf_counter() - start:.1f}", flush=True)
    for line in sys.stdin:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < float(line):
            carry = jax.block_until_ready(sharded(*carry[:2]))
            steps += length * envs
        rate = steps / (time.perf_counter() - start)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{rate:.1f} {memory:.0f}", flush=True)


def start(game: str, rules: str, envs: int, cores: int) -> Worker:
    """Start `serve`: it says how long the first call took, and measures steps a second and MiB."""
    flags = f"--xla_force_host_platform_device_count={cores} --xla_cpu_multi_thread_eigen=false"
    arguments = [game, rules, str(envs), str(cores)]
    return Worker(__file__, arguments, range(cores), {"XLA_FLAGS": flags})


def measure(game: str, rules: str, seconds: float, rounds: int) -> None:
    workers = {f"{envs} envs, 1 core": start(game, rules, envs, 1) for envs in COUNTS}
    workers |= {f"{envs} envs, 2 cores": start(game, rules, envs, 2) for envs in COUNTS[2:]}
    slow: list[float] = []
    fast: dict[str, list[float]] = {name: [] for name in workers}
    memory: dict[str, float] = {}
    for _ in range(rounds):
        for name, worker in workers.items():
            rate, memory[name] = worker.measure(seconds)
            fast[name].append(rate)
        slow.append(slow_rate(game, rules, seconds))

    print(f"\n{game}, rules {rules}, {SLOTS} slots, all types; median of {rounds} rounds")
    print(
        f"{'':>20} {'steps/s':>10} {'ratio':>7} {'lowest':>7} {'highest':>8}"
        f" {'MiB':>6} {'first':>6}"
    )
    row("NumPy, one env", slow, slow)
    for name, worker in workers.items():
        row(name, fast[name], slow, memory[name], *worker.ready)
        worker.close()


def row(
    name: str, rates: list[float], slow: list[float], memory: float = 0, first: float = 0
) -> None:
    """A line of the table; ratios are to the NumPy rate of the same round."""
    ratios = [rate / one for rate, one in zip(rates, slow, strict=True)]
    used = f" {memory:>6.0f} {first:>5.0f}s" if memory else ""
    print(
        f"{name:>20} {statistics.median(rates):>10,.0f} {statistics.median(ratios):>7.1f}"
        f" {min(ratios):>7.1f} {max(ratios):>8.1f}{used}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of everything")
    parser.add_argument("--games", nargs="+", default=["lbf", "wolfpack", "fortattack"])
    parser.add_argument("--rules", nargs="+", default=["paper", "reference"])
    parser.add_argument(
        "--serve", nargs=4, metavar=("GAME", "RULES", "ENVS", "CORES"), help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if options.serve:
        game, rules, envs, cores = options.serve
        serve(game, rules, int(envs), int(cores))
        return
    for game in options.games:
        for rules in options.rules:
            measure(game, rules, options.seconds, options.rounds)


if __name__ == "__main__":
    main()
