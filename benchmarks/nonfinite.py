"""What it costs to look for numbers that are not finite while a learner trains.

    python benchmarks/nonfinite.py [--game lbf] [--learner gpl-q] [--rounds 15] [--updates 50]

The program of a chunk is compiled as it is and without the checks, and both run in turns in one
process. Times are the processor time of the process, so that what else runs matters little; read
the ratio.
"""

import argparse
import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp

import dropin
from dropin._xla.cache import use_cache
from dropin._xla.compile import Compiled, compiled
from dropin.core import registry
from dropin.training import chunk
from dropin.training.chunk import RunState
from dropin.training.config import TrainConfig


def make_program(*, checked: bool) -> "Compiled[Any, Any]":
    """Return the program of a chunk, with the checks or without them."""

    def function(fixed: Any, state: RunState) -> Any:
        check, broken = chunk._check, chunk._first_broken
        if not checked:  # While the program is traced, which is now.
            chunk._check = lambda found, *_: found
            chunk._first_broken = lambda *_: jnp.int32(-1)
        try:
            return chunk._train_chunk(fixed, state)
        finally:
            chunk._check, chunk._first_broken = check, broken

    return compiled(function, donate="all-except-first")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--game", default="lbf")
    parser.add_argument("--learner", default="gpl-q")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--updates", type=int, default=50)
    chosen = parser.parse_args()
    use_cache()
    env, spec = dropin.make(chosen.game), registry.learners[chosen.learner]
    learner = spec.make(spec.default_settings(chosen.game), TrainConfig())
    programs = {each: make_program(checked=each) for each in (True, False)}
    states = {
        each: RunState(learner.init(jax.random.key(0), env), jnp.int32(0)) for each in programs
    }
    times: dict[bool, list[float]] = {each: [] for each in programs}
    fixed = (env, learner, jnp.int32(chosen.updates))
    for number in range(chosen.rounds + 1):
        for each in (True, False) if number % 2 else (False, True):
            start = time.process_time()
            states[each], *_ = jax.block_until_ready(programs[each](fixed, states[each]))
            if number:  # The first call compiles.
                times[each].append(time.process_time() - start)
    ratios = [one / two for one, two in zip(times[True], times[False], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"{chosen.game} {chosen.learner}, {chosen.updates} updates a chunk: with the checks"
        f" {middle:.3f} times the processor time of without (quartiles {low:.3f} to {high:.3f},"
        f" {chosen.rounds} rounds)"
    )


if __name__ == "__main__":
    main()
