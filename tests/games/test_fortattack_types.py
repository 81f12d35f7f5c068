"""Each type of FortAttack does what its slow version does."""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fortattack_states import FIELDS, random_states
from slow_fortattack import SlowFortAttack
from slow_fortattack_types import ATTACKERS, GUARDS, Types, networks

from dropin._xla.random import StepRNG
from dropin.core.arrays import to_arrays
from dropin.env import make

CLOSE = 2e-5


def slow_types(env, game):
    untrained = env.team.pool.types[env.team.pool.names.index("G1")]
    return Types(game, networks(to_arrays(untrained.network)))


def set_state(slow, here, random=None):
    """Everybody where they are, or a little beside it."""
    numbers = [np.asarray(getattr(here, name), float) for name in FIELDS]
    if random is not None:
        numbers = [each + random.uniform(-CLOSE, CLOSE, each.shape) for each in numbers]
    x, y, vx, vy, heading = numbers
    slow.set_state(x, y, vx, vy, heading, here.present, here.time)


@pytest.mark.parametrize("rules", [pytest.param("paper", marks=pytest.mark.slow), "reference"])
def test_types_do_what_their_slow_versions_do(rules):
    """1000 positions each; where rounding decides, what is done a hair's breadth away counts."""
    env = make("fortattack", rules=rules, team_limit=3)
    pool, slow = env.team.pool, SlowFortAttack(rules)
    assert pool.names == (*GUARDS, *ATTACKERS)
    types, random = slow_types(env, slow), np.random.default_rng(0)

    @eqx.filter_jit
    def decide(here, key):
        rng = StepRNG(key)
        roster = pool.reset(rng, here.sides)
        rest = partial(StepRNG, key, used=rng.used)
        uniform = pool.observer(env.game, rest(), here, roster.agent_seed).uniform
        actions = [
            pool.act(
                rest(),
                env.game,
                replace(roster, type=jnp.full(6, index)),
                here,
                here.present,
            )[0]
            for index in range(len(pool.names))
        ]
        return jnp.stack(actions), uniform

    seen = {name: set() for name in pool.names}
    close = 0
    for number, here in enumerate(random_states(rules, 400, seed=7)):
        actions, uniforms = map(np.asarray, decide(here, jax.random.key(number)))
        for k, name in enumerate(pool.names):
            for slot in range(3) if name in GUARDS else range(3, 6):
                if not here.present[slot]:
                    continue
                set_state(slow, here)
                uniform, did = uniforms[slot], int(actions[k, slot])
                seen[name].add(did)
                if did == types.action(name, slot, uniform):
                    continue
                close += 1
                beside = set()
                for _ in range(200):
                    set_state(slow, here, random)
                    nearly = uniform + random.uniform(-CLOSE, CLOSE, 2)
                    beside.add(types.action(name, slot, nearly))
                assert did in beside, (name, number, slot)
    assert close < 20
    for name, different in seen.items():
        assert len(different) >= 6, name
