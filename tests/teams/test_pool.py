import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_changes import TYPES, named, no_view, played

import dropin
from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.teams.pool import Pool

POOL = Pool([*TYPES, named("x", side=1), named("y", side=1)], no_view)
SIDES = (0,) * 100_000 + (1,) * 1000


def test_no_type_outside_the_mask_is_ever_drawn():
    traces = []

    @eqx.filter_jit
    def drawn(pool, key):
        traces.append(1)
        rng = StepRNG(key)
        roster = pool.reset(rng, SIDES)
        new = pool.spawn(rng, roster, jnp.ones(len(SIDES), bool))
        return roster.type, new.type, pool.change_types(rng, new, jnp.ones(len(SIDES), bool))

    for names in (["a"], ["b", "d"], ["a", "c", "d"]):
        first, later, (roster, changed) = drawn(POOL.restricted_to(names, 0), jax.random.key(1))
        allowed = [POOL.names.index(name) for name in names]
        for types in (first, later, roster.type):
            counts = np.bincount(np.asarray(types)[:100_000], minlength=6)
            assert np.flatnonzero(counts).tolist() == allowed
            assert counts[allowed] / 1e5 == pytest.approx(1 / len(names), abs=0.01)
            assert set(np.asarray(types)[100_000:].tolist()) == {4, 5}
        assert changed[:100_000].all() == (len(names) > 1)
    assert len(traces) == 1


def test_a_mask_of_all_types_draws_what_none_draws():
    key = jax.random.key(4)
    plain = POOL.reset(StepRNG(key), SIDES)
    masked = POOL.restricted_to(["a", "b", "c", "d"], 0).reset(StepRNG(key), SIDES)
    assert np.array_equal(plain.type, masked.type)
    assert np.array_equal(plain.agent_seed, masked.agent_seed)


def test_one_program_serves_every_choice_of_types():
    env = dropin.make("lbf", types=TYPES, openness="churn")
    traces = []

    @eqx.filter_jit
    def types_of(env):
        traces.append(1)
        present, _, types, _, _, _ = played(env, 30, 20)
        return present, types

    for names in (["a"], ["b", "c"], ["d"]):
        present, types = map(np.asarray, types_of(env.restricted_to(names)))
        assert {TYPES[each].name for each in types[present]} == set(names)
    assert len(traces) == 1


def test_a_restriction_that_leaves_nobody_is_refused():
    env = dropin.make("lbf", types=TYPES)
    with pytest.raises(InputError, match="Unknown type 'H1': it can be a, b, c, d"):
        env.restricted_to(["H1"])
    with pytest.raises(InputError, match="names no types"):
        env.restricted_to([])
    with pytest.raises(InputError, match="'ab' names no types"):
        env.restricted_to("ab")
    with pytest.raises(InputError, match="Unknown type 'x'"):
        POOL.restricted_to(["x"], 0)
    with pytest.raises(InputError, match="No type of the pool is allowed for side 1"):
        Pool(POOL.types, no_view, allowed=jnp.arange(6) < 4).validate((0, 1))
    with pytest.raises(InputError, match="has 6 types, but 2"):
        Pool(POOL.types, no_view, allowed=jnp.ones(2, bool)).validate((0, 1))
