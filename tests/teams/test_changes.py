import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dropin
from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.teams.changes import AlternatingPools, Turncoat, TypeChanges, apply_type_changes
from dropin.teams.pool import Pool
from dropin.teams.types import ViewType


def rest(view):
    """Does nothing."""
    return jnp.int32(0)


def named(name, side=0):
    return ViewType(name=name, summary="", decide=rest, side=side)


TYPES = [named(name) for name in "abcd"]


def no_view(game, rng, state, agent_seed):
    return jnp.zeros(len(agent_seed), jnp.int32)


@eqx.filter_jit
def played(env, steps, envs, seed=0):
    """Return who is present, newcomers, types and seeds before each step; then changes and ends."""

    def episode(key):
        first, key = jax.random.split(key)
        state, _ = env.reset(first)

        def step(state, key):
            after, time_step = env.step(key, state, jnp.int32(0))
            seen = (state.game.present, state.arrived, state.roster.type, state.roster.agent_seed)
            return after, (*seen, time_step.type_changed, time_step.done)

        return jax.lax.scan(step, state, jax.random.split(key, steps))[1]

    return jax.vmap(episode)(jax.random.split(jax.random.key(seed), envs))


def renewal(low, high, steps):
    """The mean number of changes in this many steps, by the renewal equation."""
    share = 1 / (high - low + 1)
    mean = [0.0]
    for time in range(1, steps + 1):
        mean.append(
            sum(share * (1 + mean[time - wait]) for wait in range(low, high + 1) if wait <= time)
        )
    return mean[steps]


def test_turncoats_change_at_their_rate_and_arrived_stays_silent():
    env = dropin.make(
        "lbf", types=TYPES, openness="closed", type_changes={"kind": "turncoat", "interval": [2, 7]}
    )
    steps = 40
    present, arrived, types, seeds, changed, done = map(np.asarray, played(env, steps, 400))
    assert not done.any()
    assert present.all()
    assert not arrived[:, 1:].any()
    assert not changed[..., 0].any()
    assert np.array_equal(np.diff(types, axis=1) != 0, changed[:, :-1])
    assert np.array_equal(np.diff(seeds.astype(np.int64), axis=1) != 0, changed[:, :-1])
    numbers = changed[..., 1:].sum(axis=1)
    error = numbers.std() / np.sqrt(numbers.size)
    assert abs(numbers.mean() - renewal(2, 7, steps)) < 4 * error
    times = [
        np.flatnonzero(row) + 1 for row in changed[..., 1:].transpose(0, 2, 1).reshape(-1, steps)
    ]
    waits = np.concatenate([np.diff(row, prepend=0) for row in times])
    assert set(waits.tolist()) == set(range(2, 8))
    # The new type is any of the other three.
    before, after = types[:, :-1][changed[:, :-1]], types[:, 1:][changed[:, :-1]]
    counts = np.bincount((after - before) % 4, minlength=4)
    assert counts[0] == 0
    assert counts[1:] / counts.sum() == pytest.approx([1 / 3] * 3, abs=0.04)


def test_newcomers_of_alternating_pools_are_of_the_current_one():
    changes = {"kind": "alternating", "pools": [["a", "b"], ["c"]], "period": 5}
    openness = {"kind": "durations", "active": [1, 6], "waiting": [1, 4]}
    env = dropin.make("lbf", team_limit=5, types=TYPES, openness=openness, type_changes=changes)
    present, arrived, types, _, changed, _ = map(np.asarray, played(env, 40, 50))
    is_c = types == 2
    second = np.broadcast_to((np.arange(40) // 5 % 2 == 1)[:, None], types.shape)
    mates = present.copy()
    mates[..., 0] = False
    assert arrived[:, 1:].any()
    assert np.array_equal(is_c[mates], second[mates])
    assert not (types[mates] == 3).any()
    switches = np.broadcast_to((np.arange(40) % 5 == 4)[:, None], types.shape)
    assert not (changed & ~switches).any()
    # Whoever stays over a switch has changed.
    stays = mates[:, 1:] & mates[:, :-1] & ~arrived[:, 1:]
    assert np.array_equal(changed[:, :-1][stays], switches[:, :-1][stays])


def test_teammates_of_a_shared_type_change_together():
    pool = Pool([*TYPES, named("x", side=1), named("y", side=1)], no_view, shared_type=True)
    sides, changes = (0, 0, 0, 0, 1, 1), Turncoat((3, 3))
    rng = StepRNG(jax.random.key(3))
    state, roster = changes.reset(rng, sides), pool.reset(rng, sides)
    # The first teammate is away, and the side keeps its time.
    stays, entering = jnp.array([1, 0, 1, 1, 1, 1], bool), jnp.array([0, 1, 0, 0, 0, 0], bool)
    history = [np.asarray(roster.type).tolist()]
    for step in range(1, 7):
        state, roster, changed = apply_type_changes(
            changes, pool, rng, state, roster, stays, entering
        )
        assert changed.tolist() == (
            [False, False, True, True, False, False] if step % 3 == 0 else [False] * 6
        )
        history.append(np.asarray(roster.type).tolist())
        assert len(set(history[-1][1:4])) == 1
        assert (history[-1][1:4] == history[-2][1:4]) == (step % 3 != 0)
        assert (history[-1][0], history[-1][4:]) == (history[0][0], history[0][4:])


def test_a_side_with_one_type_has_no_turncoats():
    pool = Pool([TYPES[0]], no_view)
    rng = StepRNG(jax.random.key(0))
    roster = pool.reset(rng, (0, 0))
    after, changed = pool.change_types(rng, roster, jnp.array([False, True]))
    assert not changed.any()
    assert after.agent_seed.tolist() == roster.agent_seed.tolist()


def test_impossible_type_changes_are_refused():
    pool = Pool(TYPES, no_view)
    assert isinstance(Turncoat((1, 2)), TypeChanges)
    with pytest.raises(InputError, match="interval is 5 to 3 steps"):
        Turncoat((5, 3))
    with pytest.raises(InputError, match="interval is 0 to 3 steps"):
        Turncoat((0, 3))
    with pytest.raises(InputError, match="Unknown type 'e'"):
        AlternatingPools([["a"], ["e"]], 5, pool)
    with pytest.raises(InputError, match=r"\[\] names no types"):
        AlternatingPools([["a"], []], 5, pool)
    with pytest.raises(InputError, match="every 0 steps: at least 1"):
        AlternatingPools([["a"]], 0, pool)
    with pytest.raises(InputError, match="of the types a, b, c, d, but the pool of the team is a"):
        AlternatingPools([["a"]], 5, pool).validate(Pool(TYPES[:1], no_view), (0, 0))
    with pytest.raises(InputError, match="No type of alternating pool 2 is allowed"):
        AlternatingPools([["a"], ["b"]], 5, pool).validate(
            pool.restricted_to(["a", "c"], 0), (0, 0)
        )
