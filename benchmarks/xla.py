"""What each device of `dropin._xla` gains: the speed with it over the speed without it.

Each device is switched off in a process of its own, by replacing it before the rest of the package
is imported. The processes take turns, because absolute times are not stable on a shared machine;
ratios are to the process with everything switched on, in the same round. A ratio of 1.00 means that
a device gains nothing, below it that the device costs time. The column "control" compares two equal
processes: a ratio that is no further from 1.00 than this one says nothing.

Measured are environment steps with all types acting, for a small and a large batch, and training of
GPL-Q. Compiler options are switched only in the large batch and in training. Processes run on one
core and are timed by the processor time they use, which other programs disturb less; only "one
thread" is compared by the clock, with a process that may use all cores. A first run compiles
everything; later ones read it from the cache.

    python benchmarks/xla.py [--quick] [--games lbf wolfpack fortattack] [--envs 16 1024]
                             [--devices materialize ...] [--rounds 3] [--seconds 0.5]
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from workers import Worker, random_play

GAMES = ("lbf", "wolfpack", "fortattack")
RULES = "reference"
TEAM_LIMIT = 5
TRAINING = "training"
STEPS_PER_CALL = 4096
"""Environment steps between two looks at the clock, all environments together."""
NOTHING = "nothing"
"""What is switched off in the process that the others are compared with."""


def drop_materialize() -> None:
    """Let the compiler fuse what it likes."""
    from dropin._xla import materialize

    materialize.materialize = lambda value: value


def drop_compute_where() -> None:
    """Compute all rows, then select."""
    import jax
    import jax.numpy as jnp

    from dropin._xla import compute_where

    def compute_all(
        function: Callable[[Any, Any], Any], where: Any, given: Any, shared: Any = (), **_: Any
    ) -> Any:
        return jax.tree.map(
            lambda out: jnp.where(where, out, jnp.zeros_like(out)), function(given, shared)
        )

    compute_where.compute_where = compute_all


def drop_step_rng() -> None:
    """Call `jax.random` for every draw."""
    import math

    import jax

    from dropin._xla.random import StepRNG

    def bits(self: Any, *shape: int) -> Any:
        key = jax.random.fold_in(self._key, self._used)
        self._used += math.prod(shape)
        return jax.random.bits(key, shape)

    StepRNG.bits = bits


def set_option(name: str, value: bool) -> None:
    """Compile with another value of an option."""
    from dropin._xla import compile as compile_module

    compile_module.OPTIONS = {**compile_module.OPTIONS, name: value}


CONTROL = "control"
"""The column of a second process in which nothing is switched off."""
MORE_THREADS = "one thread"
DEVICES: dict[str, Callable[[], None]] = {
    "materialize": drop_materialize,
    "compute_where": drop_compute_where,
    "StepRNG": drop_step_rng,
}
OPTIONS: dict[str, Callable[[], None]] = {
    "new emitters": lambda: set_option("xla_cpu_use_fusion_emitters", False),
    MORE_THREADS: lambda: set_option("xla_cpu_multi_thread_eigen", True),
}
SWITCHES = {NOTHING: lambda: None, CONTROL: lambda: None, **DEVICES, **OPTIONS}

Rates = dict[str, list[tuple[float, float]]]
"""By what is switched off, in each round the steps per second of the clock and of the processor."""


def env_steps(game: str, num_envs: int) -> tuple[Callable[[], None], int]:
    """Return a function that takes steps with random actions, and how many steps it takes."""
    import jax

    import dropin
    from dropin._xla.compile import compiled

    env = dropin.make(game, rules=RULES, team_limit=TEAM_LIMIT)
    length = STEPS_PER_CALL // num_envs

    fast = compiled(random_play(env, num_envs, length), donate="all")
    states, _ = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), num_envs))
    carry = (states, jax.random.key(1))

    def call() -> None:
        nonlocal carry
        carry = jax.block_until_ready(fast(*carry))[:2]

    return call, length * num_envs


def training_steps() -> tuple[Callable[[], None], int]:
    """Return a function that trains GPL-Q for some updates, and how many steps these take."""
    import jax
    import jax.numpy as jnp

    import dropin
    from dropin.core import registry
    from dropin.learners.config import TrainConfig
    from dropin.training.chunk import RunState, train_chunk

    env = dropin.make("lbf", rules=RULES)
    spec, config = registry.learners["gpl-q"], TrainConfig()
    learner = spec.make(spec.default_settings("lbf"), config)
    state = RunState(learner.init(jax.random.key(0), env), jnp.int32(0))
    steps_per_update = config.num_envs * config.rollout_length
    updates = max(STEPS_PER_CALL // 4 // steps_per_update, 1)

    def call() -> None:
        nonlocal state
        state = jax.block_until_ready(train_chunk((env, learner, jnp.int32(updates)), state)[0])

    return call, updates * steps_per_update


def serve(case: str, switched_off: str) -> None:
    """Run a worker: for every line "SECONDS" on standard input, print the steps per second.

    The first number is by the clock, the second by processor time.
    """
    SWITCHES[switched_off]()
    if "dropin.env" in sys.modules:
        raise RuntimeError("The package was imported before the device was switched off.")
    from dropin._xla.cache import use_cache

    use_cache()
    game, _, num_envs = case.partition(":")
    call, steps = training_steps() if case == TRAINING else env_steps(game, int(num_envs))
    call()
    if switched_off != MORE_THREADS and hasattr(os, "sched_setaffinity"):
        core = min(os.sched_getaffinity(0))
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), {core})
    call()
    print(flush=True)
    for line in sys.stdin:
        calls, start, used = 0, time.perf_counter(), time.process_time()
        while time.process_time() - used < float(line):
            call()
            calls += 1
        by_clock, by_processor = time.perf_counter() - start, time.process_time() - used
        print(calls * steps / by_clock, calls * steps / by_processor, flush=True)


def measure(case: str, devices: list[str], rounds: int, seconds: float) -> Rates:
    """Measure a case with everything switched on, and without each device."""
    names = [NOTHING, *devices]

    def start(name: str) -> Worker:
        return Worker(__file__, [case, name], environment={"XLA_FLAGS": None})

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # Compile on all cores.
        workers = dict(zip(names, pool.map(start, names), strict=True))
    rates: Rates = {name: [] for name in names}
    for _ in range(rounds):
        for name, worker in workers.items():
            by_clock, by_processor = worker.measure(seconds)
            rates[name].append((by_clock, by_processor))
    for worker in workers.values():
        worker.close()
    return rates


def table_row(case: str, rates: Rates, devices: list[str]) -> str:
    """Return a line of the table: median ratios, and the lowest and highest of them."""
    line = f"{case:>16} {statistics.median(rate for _, rate in rates[NOTHING]):>9,.0f}"
    for device in devices:
        if device not in rates:
            line += f" {'':>18}"
            continue
        which = 0 if device == MORE_THREADS else 1
        pairs = zip(rates[NOTHING], rates[device], strict=True)
        ratios = [on[which] / off[which] for on, off in pairs]
        spread = f"({min(ratios):.2f}-{max(ratios):.2f})"
        line += f" {statistics.median(ratios):>6.2f} {spread:>11}"
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--games", nargs="*", default=GAMES, help="none: training alone")
    parser.add_argument("--envs", nargs="+", type=int, default=[16, 1024])
    parser.add_argument("--devices", nargs="+", choices=[*DEVICES, *OPTIONS], metavar="DEVICE")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of everything")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--quick", action="store_true", help="small batches alone")
    parser.add_argument("--no-training", action="store_true", help="environments alone")
    parser.add_argument(
        "--serve", nargs=2, metavar=("CASE", "SWITCHED_OFF"), help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if options.serve:
        serve(*options.serve)
        return
    devices = [CONTROL, *(options.devices or [*DEVICES, *OPTIONS])]
    envs = options.envs[:1] if options.quick else options.envs
    rounds, seconds = (3, 0.5) if options.quick else (options.rounds, options.seconds)
    cases = {
        f"{game}:{number}": [d for d in devices if number == max(options.envs) or d not in OPTIONS]
        for game in options.games
        for number in envs
    }
    if not options.no_training:
        cases[TRAINING] = devices
    print(f"Rules {RULES}, team limit {TEAM_LIMIT}; training: GPL-Q in lbf, team limit 3.")
    print("Steps per second with everything switched on, then that over the rate without a device:")
    print(f"{'':>16} {'steps/s':>9}" + "".join(f" {name:>18}" for name in devices))
    for case, chosen in cases.items():
        rates = measure(case, chosen, rounds, seconds)
        print(table_row(case, rates, devices), flush=True)


if __name__ == "__main__":
    main()
