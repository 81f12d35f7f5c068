from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_lbf import SlowLBF
from slow_wolfpack import SlowWolfpack

from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.games import lbf, wolfpack
from dropin.teams.openness import Churn, Closed, Durations
from dropin.teams.scripted import Scripted


def openness_of(module, rules, slots):
    """Return the openness of a game under a set of rules."""
    return module.SPEC.openness(rules, module.SPEC.make_game(rules), slots)


@eqx.filter_jit
def _presences(openness, slots, limit, steps, keys):
    def episode(key):
        first, key = jax.random.split(key)
        usable_slots = jnp.arange(slots) < limit
        state, present = openness.reset(StepRNG(first), usable_slots)

        def step(carry, key):
            state, present, arrived = carry
            state, leaving, entering = openness.step(
                StepRNG(key), state, present, usable_slots, None
            )
            after = (present & ~leaving) | entering
            return (state, after, entering), (present, arrived)

        start = (state, present, present)
        return jax.lax.scan(step, start, jax.random.split(key, steps))[1]

    return jax.vmap(episode)(keys)


def presences(openness, slots, limit, steps, episodes, seed=0):
    """Return who is present at the start of each step and who has just arrived.

    Both arrays are [episode, step, slot].
    """
    keys = jax.random.split(jax.random.key(seed), episodes)
    return jax.device_get(_presences(openness, slots, jnp.int32(limit), steps, keys))


@pytest.mark.parametrize(
    ("limit", "slots", "shares"),
    [
        (3, 3, [24.8, 75.2]),
        (3, 5, [24.8, 75.2]),
        (5, 5, [36.5, 16.3, 20.1, 27.1]),
    ],
)
def test_team_sizes_of_the_reference_are_those_measured_in_it(limit, slots, shares):
    present, _ = presences(openness_of(lbf, "reference", slots), slots, limit, 50, 5000)
    sizes = present.sum(axis=-1)
    measured = [100 * (sizes == size).mean() for size in range(2, limit + 1)]
    assert measured == pytest.approx(shares, abs=1.0)
    if limit == 5:
        assert (sizes[:, :12] == 5).all()
        assert (sizes[:, 22:28] == 2).all()


@pytest.mark.parametrize("limit", [3, 5])
def test_team_sizes_of_the_paper_agree_with_the_slow_game(limit):
    present, _ = presences(openness_of(lbf, "paper", limit), limit, limit, 50, 5000)
    sizes = present.sum(axis=-1)
    counts = np.zeros(6)
    for seed in range(1500):
        slow = SlowLBF("paper", team_limit=limit, seed=seed)
        for _ in range(50):
            counts[slow.team_size()] += 1
            slow.open_process()
    shares = 100 * counts / counts.sum()
    measured = [100 * (sizes == size).mean() for size in range(6)]
    assert measured == pytest.approx(shares.tolist(), abs=1.0)


@pytest.mark.parametrize(
    ("limit", "slots", "shares"),
    [(3, 3, [38, 62]), (3, 5, [38, 62]), (5, 5, [16.5, 26.5, 24, 33])],
)
def test_team_sizes_of_wolfpack_in_the_reference_are_those_measured_in_it(limit, slots, shares):
    """After each of 200 steps."""
    present, _ = presences(openness_of(wolfpack, "reference", slots), slots, limit, 201, 5000)
    sizes = present[:, 1:].sum(axis=-1)
    measured = [100 * (sizes == size).mean() for size in range(2, limit + 1)]
    assert measured == pytest.approx(shares, abs=1.0)


def test_churn_keeps_agents_for_a_while_and_moves_two_at_most():
    present, arrived = presences(Churn(), 5, 5, 200, 300)
    assert (present[:, 0].sum(axis=-1) == 3).all()
    for slot in range(1, 5):
        for there, new in zip(present[:, :, slot], arrived[:, :, slot], strict=True):
            starts = np.flatnonzero(new)
            gone = np.flatnonzero(np.diff(there.astype(int)) == -1) + 1
            ends = np.sort(np.concatenate([gone, starts[1:]]))
            for start in starts:
                after = ends[ends > start]
                assert not len(after) or after[0] - start >= 26
    steps = np.diff(present.sum(axis=-1))
    assert np.abs(steps).max() == 2


def test_churn_of_probability_0_never_happens():
    present, _ = presences(Churn(initial_size=4, probability=0.0), 5, 5, 60, 3)
    assert (present == [True, True, True, True, False]).all()
    with pytest.raises(InputError, match="Churn's probability is 2, but it has to be within 0"):
        Churn(probability=2.0)
    with pytest.raises(InputError, match="Churn's pair_probability is -1"):
        Churn(pair_probability=-1.0)
    with pytest.raises(InputError, match="at least 2 agents, not 1"):
        Churn(initial_size=1)


def test_team_sizes_of_wolfpack_in_the_paper_agree_with_the_slow_game():
    present, _ = presences(openness_of(wolfpack, "paper", 5), 5, 5, 200, 2000)
    sizes = present.sum(axis=-1)
    counts = np.zeros(6)
    for seed in range(200):
        slow = SlowWolfpack("paper", team_limit=5, seed=seed)
        for _ in range(200):
            counts[slow.team_size()] += 1
            slow.open_process()
    measured = [100 * (sizes == size).mean() for size in range(6)]
    assert measured == pytest.approx((100 * counts / counts.sum()).tolist(), abs=1.0)


def runs(flags):
    """Return the lengths of the runs of True, without those that touch either end."""
    edges = np.flatnonzero(np.diff(flags.astype(int)))
    return [int(after - before) for before, after in pairwise(edges) if flags[before + 1]]


def test_durations_of_the_paper_lie_in_its_ranges():
    limit = 8
    present, arrived = presences(openness_of(lbf, "paper", limit), limit, limit, 200, 100)
    sizes = present.sum(axis=-1)
    stays = []
    for episode in range(100):
        for slot in range(1, limit):
            for start in np.flatnonzero(arrived[episode, :, slot]):
                later = slice(start + 1, None)
                gone = ~present[episode, later, slot] | arrived[episode, later, slot]
                # In a small team somebody may have to stay, so that the learner has a teammate.
                if gone.any() and sizes[episode, start : start + gone.argmax() + 2].min() >= 4:
                    stays.append(int(gone.argmax()) + 1)
    assert len(stays) > 500
    assert set(stays) == set(range(15, 26))

    # One of two teammates has to stay, so only one can be away. A team of two lasts longer than 20
    # steps only if the next one leaves as the first returns.
    present, _ = presences(openness_of(lbf, "paper", 3), 3, 3, 400, 300, seed=1)
    alone = present.sum(axis=-1) == 2
    waits = [length for episode in alone for length in runs(episode)]
    assert min(waits) == 10
    short = [wait for wait in waits if wait <= 20]
    assert set(short) == set(range(10, 21))


@given(
    seed=st.integers(0, 2**31 - 1),
    limit=st.integers(2, 6),
    active=st.tuples(st.integers(1, 6), st.integers(0, 5)),
    waiting=st.tuples(st.integers(1, 6), st.integers(0, 5)),
    population=st.sampled_from([None, 6, 9]),
)
def test_the_team_stays_between_two_and_the_limit(seed, limit, active, waiting, population):
    openness = Durations(
        (active[0], sum(active)), (waiting[0], sum(waiting)), population=population
    )
    present, arrived = presences(openness, 6, limit, 40, 3, seed)
    sizes = present.sum(axis=-1)
    assert sizes.min() >= 2
    assert sizes.max() <= limit
    assert present[..., 0].all()
    assert not arrived[:, 1:, 0].any()
    assert (arrived <= present).all()
    came = 1 + arrived[..., 1:].sum(axis=(1, 2))
    assert came.max() <= openness.max_agents_per_episode(6, 40)


def test_a_newcomer_says_arrived_exactly_once():
    present, arrived = presences(openness_of(lbf, "paper", 5), 5, 5, 200, 200)
    newly = present.copy()
    newly[:, 1:] &= ~present[:, :-1]
    assert (arrived >= newly).all()
    # A slot that is left and taken in the same step is marked too, and no other one.
    again = arrived & ~newly
    assert again.sum() < 0.05 * arrived.sum()
    assert not (arrived[:, 1:] & arrived[:, :-1]).any()


def test_the_limit_is_a_value_at_run_time():
    openness, traces = openness_of(lbf, "paper", 5), []

    @jax.jit
    def first(limit):
        traces.append(limit)
        return openness.reset(StepRNG(jax.random.key(0)), jnp.arange(5) < limit)[1].sum()

    assert [int(first(jnp.int32(limit))) for limit in (2, 3, 5)] == [2, 3, 5]
    assert len(traces) == 1


def test_a_closed_team_never_changes():
    present, arrived = presences(Closed(), 5, 4, 60, 2)
    assert (present == (np.arange(5) < 4)).all()
    assert not arrived[:, 1:].any()


def test_a_schedule_is_followed_to_the_step():
    openness = Scripted(
        [1, 2], [(3, "leaves", 1), (5, "enters", 3), (5, "leaves", 2), (6, "enters", 2)]
    )
    openness.validate((0,) * 4, limit=3)
    present, arrived = presences(openness, 4, 3, 7, 1)
    assert present[0].astype(int).tolist() == [
        [1, 1, 1, 0],
        [1, 1, 1, 0],
        [1, 1, 1, 0],
        [1, 0, 1, 0],
        [1, 0, 1, 0],
        [1, 0, 0, 1],
        [1, 0, 1, 1],
    ]
    assert np.argwhere(arrived[0, 1:]).tolist() == [[4, 3], [5, 2]]


@pytest.mark.parametrize(
    ("initial_slots", "schedule", "says"),
    [
        ([1], [(4, "enters", 9)], "slot 9"),
        ([7], [], "slot 7"),
        ([1], [(4, "enters", 0)], "slot 0"),
        ([1], [(4, "enters", 1)], "is there already"),
        ([1], [(4, "leaves", 2)], "is not there"),
        ([1], [(4, "leaves", 1)], "the team has 1 agents"),
        ([1, 2], [(4, "enters", 3)], "the team has 4 agents"),
        ([1], [(0, "leaves", 1)], "steps count from 1"),
        ([1], [(2, "jumps", 1)], "'leaves' or 'enters'"),
    ],
)
def test_an_impossible_schedule_is_refused(initial_slots, schedule, says):
    with pytest.raises(InputError, match=says):
        Scripted(initial_slots, schedule).validate((0,) * 4, limit=3)


def test_impossible_durations_are_refused():
    with pytest.raises(InputError, match="active duration is 5 to 3"):
        Durations((5, 3), (1, 2))
    with pytest.raises(InputError, match="waiting duration is 0 to 2"):
        Durations((5, 6), (0, 2))
    with pytest.raises(InputError, match="above the 4 agents that exist"):
        Durations((5, 6), (1, 2), population=4).validate((0,) * 5, limit=5)
