import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dropin
from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.games.fortattack import Shooting
from dropin.teams.schedule import Schedule

TEAM, LIMIT, OPPONENTS, STEPS = 5, 4, 2, 24
SIDES = (0,) * TEAM + (1,) * OPPONENTS
USABLE = jnp.array([slot < LIMIT for slot in range(TEAM)] + [True] * OPPONENTS)


class Fallen(eqx.Module):
    """Whoever the game has removed returns two steps later; the events say who is removed."""

    def validate(self, sides, limit):
        pass

    def max_agents_per_episode(self, slots, horizon):
        return 1 + slots * horizon

    def reset(self, rng, usable_slots):
        return jnp.zeros(len(usable_slots), jnp.int32), usable_slots

    def step(self, rng, state, present, usable_slots, events):
        wait = jnp.where(events, 2, jnp.maximum(state - 1, 0))
        return wait, jnp.zeros_like(present), usable_slots & ~present & (wait == 0)


@eqx.filter_jit
def followed(schedule, removed):
    """Return who is present before each step and who enters, if the game removes these."""
    rng = StepRNG(jax.random.key(0))
    state, present = schedule.reset(rng, USABLE)

    def step(carry, hit):
        state, present = carry
        hit = hit & present
        state, leaving, entering = schedule.step(rng, state, present & ~hit, USABLE, hit)
        after = (present & ~hit & ~leaving) | entering
        return (state, after), (present, hit, leaving, entering, after)

    return jax.lax.scan(step, (state, present), removed)[1]


def sizes(schedule, removed=None):
    """Return who of the learner's team is present before each step, as 0 and 1."""
    removed = np.zeros((STEPS, TEAM + OPPONENTS), bool) if removed is None else removed
    return np.asarray(followed(schedule, jnp.asarray(removed))[0]).astype(int)[:, :TEAM].tolist()


def test_a_repeated_schedule_is_followed_to_the_step():
    """Everybody leaves at once at the end of step 3, and two others enter; step 5 undoes it."""
    events = [(3, "leaves", 1), (3, "leaves", 2), (3, "enters", 3), (3, "enters", 4)]
    back = [(5, "leaves", 3), (5, "leaves", 4), (5, "enters", 1), (5, "enters", 2)]
    schedule = Schedule(TEAM, [1, 2], [*events, *back], every=6)
    schedule.validate((0,) * TEAM, LIMIT)
    cycle = [[1, 1, 1, 0, 0]] * 3 + [[1, 0, 0, 1, 1]] * 2 + [[1, 1, 1, 0, 0]]
    assert sizes(schedule) == cycle * 4
    once = Schedule(TEAM, [1, 2], [*events, *back])
    assert sizes(once) == cycle + [[1, 1, 1, 0, 0]] * 18
    assert sizes(Schedule(TEAM)) == [[1, 1, 1, 1, 0]] * STEPS


def test_a_slot_can_change_hands_in_a_step():
    schedule = Schedule(TEAM, [1], [(2, "leaves", 1), (2, "enters", 1)], every=2)
    schedule.validate((0,) * TEAM, 2)
    _, _, leaving, entering, _ = followed(schedule, jnp.zeros((STEPS, TEAM + OPPONENTS), bool))
    turn = np.arange(STEPS) % 2 == 1
    assert np.array_equal(np.asarray(leaving)[:, 1], turn)
    assert np.array_equal(entering, leaving)


def test_a_schedule_is_added_to_the_openness_of_the_game():
    """Slot 1 is shot in step 2; slot 2 is to leave at step 3, but waits for the return of 1."""
    schedule = Schedule(TEAM, [1, 2], [(3, "leaves", 2), (8, "enters", 3)], others=Fallen())
    removed = np.zeros((STEPS, TEAM + OPPONENTS), bool)
    removed[1, 1] = removed[5, 6] = True  # Step 6: an opponent, who returns as ever.
    found = sizes(schedule, removed)
    assert found[:10] == [
        [1, 1, 1, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 1, 0, 0],
        [1, 0, 1, 0, 0],  # 2 is due, but would leave the learner alone.
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 0, 1, 0],
    ]
    opponents = np.asarray(followed(schedule, jnp.asarray(removed))[0])[:, TEAM:]
    assert np.argwhere(~opponents).tolist() == [[6, 1], [7, 1]]


@given(seed=st.integers(0, 2**31 - 1), every=st.sampled_from([0, 12]))
def test_the_learner_stays_and_is_left_alone_by_the_game_only(seed, every):
    random = np.random.default_rng(seed)
    there, events = {1, 2}, []
    for step in (2, 3, 7, 8, 9, 11):
        slot = int(random.choice([x for x in range(1, TEAM) if 1 <= len(there ^ {x}) < LIMIT]))
        events.append((step, "leaves" if slot in there else "enters", slot))
        there ^= {slot}
    schedule = Schedule(TEAM, [1, 2], events, every, Fallen())
    if every == 0 or there == {1, 2}:
        schedule.validate(SIDES, LIMIT)
    removed = random.random((STEPS, TEAM + OPPONENTS)) < 0.1
    removed[:, 0] = False
    present, hit, leaving, entering, after = map(
        np.asarray, followed(schedule, jnp.asarray(removed))
    )
    own = slice(1, TEAM)
    assert after[:, 0].all()
    assert not leaving[:, 0].any()
    assert not entering[:, 0].any()
    assert after[:, :TEAM].sum(axis=1).max() <= LIMIT
    survivors = (present & ~hit)[:, own].any(axis=1)
    assert after[survivors][:, own].any(axis=1).all()
    assert not (entering & present & ~hit & ~leaving).any()
    assert (leaving <= (present & ~hit)).all()


def test_schedules_of_one_length_share_a_program():
    traces = []

    @eqx.filter_jit
    def first(schedule):
        traces.append(1)
        return schedule.reset(StepRNG(jax.random.key(0)), USABLE)[1].sum()

    first(Schedule(TEAM, [1], [(2, "enters", 2)]))
    first(Schedule(TEAM, [1, 3], [(5, "leaves", 1)], every=9))
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("start", "events", "every", "says"),
    [
        ([1, 2], [(4, "leaves", 1), (4, "leaves", 2)], 0, "After step 4 .* the team has 1 agents"),
        ([1], [(4, "enters", 2)], 6, "At step 10 of the schedule slot 2 enters, but it is there"),
        ([1], [(4, "enters", 5)], 0, "slot 5, but teammates have slots 1 to 4"),
        ([1], [(9, "enters", 2)], 5, "goes on to step 9 cannot be repeated every 5 steps"),
        (None, [(1, "enters", 4)], 0, "After step 1 of the schedule the team has 5 agents"),
    ],
)  # fmt: skip
def test_an_impossible_schedule_is_refused(start, events, every, says):
    with pytest.raises(InputError, match=says):
        Schedule(TEAM, start, events, every).validate(SIDES, LIMIT)


def test_in_fortattack_the_schedule_is_added_to_shooting():
    events = [[5, "leaves", 1], [9, "enters", 1]]
    env = dropin.make("fortattack", openness={"kind": "schedule", "start": 3, "events": events})
    schedule = env.team.openness
    assert isinstance(schedule, Schedule)
    assert isinstance(schedule.others, Shooting)
    assert schedule.start.tolist() == [False, True, True]


def test_a_schedule_is_made_without_compiling_a_program(caplog):
    events = [(step, "leaves", 1) for step in range(1, 18)]  # As many as in no other test.
    with jax.log_compiles():
        Schedule(TEAM, [1, 2], events, every=40)
    assert "Compiling" not in caplog.text
