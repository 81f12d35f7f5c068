"""The rules of level-based foraging."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lbf_states import equal_states, make_state, state_arrays
from slow_lbf import EAST, LOAD, NONE, NORTH, SOUTH, WEST, SlowLBF

from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.games.lbf import LBF, SPEC, State
from dropin.games.lbf.game import make_game

GAME = LBF()
step = eqx.filter_jit(lambda state, actions: GAME.step(StepRNG(jax.random.key(0)), state, actions))


def play(agents, objects, actions, time=0):
    """Take one step.

    Returns:
        The agents' cells, the rewards, the levels of the objects left, terminated, truncated.
    """
    following, outcome = step(make_state(agents, objects, time), jnp.array(actions, jnp.int32))
    cells = [tuple(map(int, row[:2])) for row in following.agents]
    left = [int(level) for level in following.objects[:, 2] if level]
    return cells, outcome.rewards.tolist(), left, bool(outcome.terminated), bool(outcome.truncated)


FAR = [7, 7, 3]


def test_each_move_goes_in_its_direction():
    for action, cell in [(NORTH, (2, 3)), (SOUTH, (4, 3)), (WEST, (3, 2)), (EAST, (3, 4))]:
        cells, *_ = play([[3, 3, 1], [0, 0, 1]], [FAR], [action, NONE])
        assert cells[0] == cell


def test_walls_and_objects_stop_a_move():
    cells, *_ = play([[0, 3, 1], [6, 7, 1]], [FAR], [NORTH, SOUTH])
    assert cells == [(0, 3), (6, 7)]


def test_two_agents_that_name_the_same_cell_both_stay():
    cells, *_ = play([[3, 3, 1], [3, 5, 1]], [FAR], [EAST, WEST])
    assert cells == [(3, 3), (3, 5)]


def test_an_agent_that_stays_blocks_its_cell():
    cells, *_ = play([[3, 3, 1], [3, 4, 1]], [FAR], [EAST, NONE])
    assert cells == [(3, 3), (3, 4)]


def test_an_impossible_load_blocks_like_none():
    cells, rewards, *_ = play([[3, 3, 1], [3, 4, 1]], [FAR], [EAST, LOAD])
    assert cells == [(3, 3), (3, 4)]
    assert rewards == [0, 0]


def test_two_agents_may_swap_cells_and_a_queue_may_move_on():
    cells, *_ = play([[3, 3, 1], [3, 4, 1]], [FAR], [EAST, WEST])
    assert cells == [(3, 4), (3, 3)]
    cells, *_ = play([[3, 3, 1], [3, 4, 1], [3, 5, 1]], [FAR], [EAST, EAST, EAST])
    assert cells == [(3, 4), (3, 5), (3, 6)]


def test_a_cell_is_entered_even_if_its_occupant_was_blocked():
    # The second and third name (3, 5) and stay; the first alone names (3, 4) and enters it.
    agents = [[3, 3, 1], [3, 4, 1], [3, 6, 1]]
    cells, *_ = play(agents, [FAR], [EAST, EAST, WEST])
    assert cells == [(3, 4), (3, 4), (3, 6)]
    # Of two agents on one cell, one may leave, or both may stay.
    cells, *_ = play([[3, 4, 1], [3, 4, 1]], [FAR], [NONE, EAST])
    assert cells == [(3, 4), (3, 5)]
    cells, *_ = play([[3, 4, 1], [3, 4, 1]], [FAR], [NONE, NONE])
    assert cells == [(3, 4), (3, 4)]


def test_an_absent_agent_neither_blocks_nor_acts():
    cells, rewards, *_ = play([[3, 3, 1], None], [FAR], [EAST, LOAD])
    assert cells == [(3, 4), (-1, -1)]
    assert rewards == [0, 0]


def test_every_loader_gets_the_level_of_the_object():
    agents = [[2, 3, 1], [4, 3, 2], [3, 4, 3]]
    _, rewards, left, terminated, _ = play(agents, [[3, 3, 3]], [LOAD, LOAD, NONE])
    assert rewards == [3, 3, 0]
    assert left == []
    assert terminated


def test_too_little_strength_collects_nothing():
    agents = [[2, 3, 1], [4, 3, 1]]
    _, rewards, left, terminated, _ = play(agents, [[3, 3, 3]], [LOAD, LOAD])
    assert rewards == [0, 0]
    assert left == [3]
    assert not terminated


def test_a_diagonal_neighbour_cannot_load():
    _, rewards, *_ = play([[2, 2, 3], [0, 0, 1]], [[3, 3, 1]], [LOAD, NONE])
    assert rewards == [0, 0]


def test_two_objects_are_collected_in_one_step_and_the_rest_moves_up():
    agents = [[1, 2, 3], [6, 5, 2]]
    objects = [[1, 1, 3], [3, 3, 1], [6, 6, 2]]
    following, outcome = step(make_state(agents, objects), jnp.array([LOAD, LOAD]))
    assert outcome.rewards.tolist() == [3, 2]
    assert following.objects.tolist() == [[3, 3, 1], [-1, -1, 0], [-1, -1, 0]]
    assert outcome.events.collected.tolist() == [[True, False, False], [False, False, True]]


def test_the_horizon_truncates_but_the_last_object_terminates():
    stay = [[2, 3, 1], [0, 0, 1]]
    assert play(stay, [[3, 3, 1]], [NONE, NONE], time=49)[3:] == (False, True)
    assert play(stay, [[3, 3, 1]], [LOAD, NONE], time=49)[3:] == (True, False)
    assert play(stay, [[3, 3, 1]], [NONE, NONE], time=48)[3:] == (False, False)


def test_the_observation_is_the_state_as_numbers():
    agents, shared = GAME.observe(make_state([[1, 2, 3], None], [[5, 6, 2], [0, 7, 1]]))
    assert agents.tolist() == [[1, 2, 3], [-1, -1, 0]]
    assert shared.tolist() == [0, 7, 1, 5, 6, 2, -1, -1, 0]


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(None, 0, 0, 0, 0))
def step_many(game, agents, objects, time, actions):
    return game.step(StepRNG(jax.random.key(0)), State(agents, objects, time), actions)


@pytest.mark.parametrize("team_limit", [pytest.param(3, marks=pytest.mark.slow), 5])
@pytest.mark.parametrize("episodes", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_step_by_step_parity_with_the_slow_game(rules, team_limit, episodes):
    """Random joint actions, with teams that change at random in between."""
    slow_games = [
        SlowLBF(rules, team_limit=team_limit, slots=5, seed=seed) for seed in range(episodes)
    ]
    game = make_game(rules)
    random = np.random.default_rng(team_limit)
    alive = np.ones(episodes, bool)
    collected = 0
    while alive.any():
        before = [np.stack(parts) for parts in zip(*map(state_arrays, slow_games), strict=True)]
        # Agents load often, so that objects do get collected.
        load = random.random((episodes, 5)) < 0.4
        actions = np.where(load, LOAD, random.integers(0, 6, (episodes, 5))).astype(np.int32)
        after, outcome = jax.device_get(step_many(game, *before, actions))
        for k in np.flatnonzero(alive):
            slow = slow_games[k]
            objects = len(slow.objects)
            rewards, terminated, truncated = slow.act(actions[k])
            for expected, got in zip(
                state_arrays(slow), (after.agents, after.objects, after.time), strict=True
            ):
                assert np.array_equal(expected, got[k])
            assert rewards == outcome.rewards[k].tolist()
            assert (terminated, truncated) == (outcome.terminated[k], outcome.truncated[k])
            collected += objects - len(slow.objects)
            slow.open_process()
            alive[k] = not (terminated or truncated)
    assert collected > 0.3 * episodes, "too few objects were collected for the test to mean much"


@given(seed=st.integers(0, 2**31 - 1), limit=st.integers(2, 5))
def test_the_first_state_obeys_the_rules(seed, limit):
    for rules in ("paper", "reference"):
        first = RESET[rules](jax.random.key(seed), jnp.arange(5) < limit)
        agents, objects = np.asarray(first.agents), np.asarray(first.objects)
        assert (agents[limit:] == [-1, -1, 0]).all()
        agents = agents[:limit]
        cells = [tuple(row[:2]) for row in [*agents, *objects]]
        assert len(set(cells)) == len(cells)
        assert cells[limit:] == sorted(cells[limit:])
        for i in range(3):
            for j in range(i):
                assert np.abs(objects[i, :2] - objects[j, :2]).sum() >= 3
        agent_high, object_low, object_high = (6, 1, 6) if rules == "reference" else (7, 0, 7)
        assert agents[:, :2].min() >= 0
        assert agents[:, :2].max() <= agent_high
        assert objects[:, :2].min() >= object_low
        assert objects[:, :2].max() <= object_high
        top = agents[:, 2].sum() - 1 if rules == "reference" else 3
        assert ((objects[:, 2] >= 1) & (objects[:, 2] <= top)).all()
        assert set(agents[:, 2]) <= ({1, 2} if rules == "reference" else {1, 2, 3})
        assert int(first.time) == 0
        assert len(objects) == 3


def _compiled_reset(game):
    return jax.jit(lambda key, present: game.reset(StepRNG(key), present))


RESET = {rules: _compiled_reset(make_game(rules)) for rules in ("paper", "reference")}


def test_first_states_have_the_same_distribution_as_in_the_slow_game(rules):
    """The shares of each row, column and level differ by less than five standard errors."""
    number = 4000
    keys = jax.random.split(jax.random.key(7), number)
    states = jax.vmap(lambda key: RESET[rules](key, jnp.arange(3) < 3))(keys)
    slow = [SlowLBF(rules, team_limit=3, seed=seed) for seed in range(number)]
    for fast_rows, slow_rows in [
        (np.asarray(states.agents), np.array([each.players for each in slow])),
        (np.asarray(states.objects), np.array([each.objects for each in slow])),
    ]:
        for column in range(3):
            for value in range(8):
                ours = (fast_rows[..., column] == value).mean()
                theirs = (slow_rows[..., column] == value).mean()
                spread = np.sqrt(max(theirs, 1e-4) * 2 / (number * 3))
                assert abs(ours - theirs) < 5 * spread


@given(seed=st.integers(0, 2**31 - 1), entering=st.lists(st.booleans(), min_size=4, max_size=4))
def test_newcomers_get_free_cells_and_other_agents_stay(seed, entering):
    before = make_state([[3, 3, 2], None, None, None, None], [[0, 0, 1], [5, 5, 3]])
    mask = jnp.array([False, *entering])
    after = spawn(jax.random.key(seed), before, mask)
    assert after.present.tolist() == [True, *entering]
    assert after.agents[0].tolist() == [3, 3, 2]
    taken = [(0, 0), (5, 5)] + [tuple(row[:2]) for row in np.asarray(after.agents)[after.present]]
    assert len(set(taken)) == len(taken)
    assert equal_states(GAME.despawn(after, mask), before)


spawn = jax.jit(lambda key, state, entering: GAME.spawn(StepRNG(key), state, entering))


@given(
    seed=st.integers(0, 2**31 - 1),
    actions=st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=1, max_size=60),
)
def test_no_agent_is_on_an_object_and_objects_never_reappear(seed, actions):
    state = RESET["paper"](jax.random.key(seed), jnp.ones(4, bool))
    total = 0.0
    most = int(state.objects[:, 2].sum())
    for joint in actions:
        after, outcome = step(state, jnp.array(joint, jnp.int32))
        things = {tuple(row) for row in np.asarray(after.objects) if row[2]}
        assert things <= {tuple(row) for row in np.asarray(state.objects) if row[2]}
        cells = {tuple(row[:2]) for row in np.asarray(after.agents)}
        assert not cells & {thing[:2] for thing in things}
        rewards = np.asarray(outcome.rewards)
        assert all(joint[slot] == LOAD for slot in np.flatnonzero(rewards))
        total += float(rewards[0])
        state = after
    assert 0 <= total <= most


def test_feature_tables_describe_the_observation(rules):
    game = make_game(rules, objects=2, size=9)
    agent, shared = game.features(slots=5)
    assert [each.name for each in agent] == ["row", "column", "level"]
    assert len(shared) == 6
    assert agent[0].high == 8
    assert shared[-1].name == "object 2: level"
    assert shared[-1].high == (9 if rules == "reference" else 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 1}, "size is 1"),
        ({"objects": 0}, "objects is 0"),
        ({"horizon": 0}, "horizon is 0"),
        ({"agent_levels": (0, 2)}, "agent_levels are 0 to 2"),
        ({"object_levels": (3, 2)}, "object_levels are 3 to 2"),
        ({"sizes": 4}, "did you mean 'size'"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        make_game("paper", **settings)


def test_a_grid_too_small_for_its_objects_is_refused():
    with pytest.raises(InputError, match="4x4 is too small for 3 objects and 3 agents"):
        make_game("paper", size=4).validate(slots=3)
    with pytest.raises(InputError, match="too small"):
        make_game("reference", size=6).validate(slots=3)
    make_game("reference", size=8).validate(slots=5)


def test_the_spec_describes_the_game(rules):
    SPEC.validate()
    game = SPEC.make_game(rules, size=9)
    assert isinstance(game, LBF)
    assert (SPEC.name, game.size) == (game.name, 9)
    assert not SPEC.shared_type(rules)
    assert len(game.actions) == game.valid_actions(make_state([[0, 0, 1]], [FAR])).shape[-1]


def test_valid_actions_agree_with_the_slow_game(rules):
    game = make_game(rules)
    for seed in range(20):
        slow = SlowLBF(rules, team_limit=4, slots=5, seed=seed)
        for _ in range(seed):
            slow.act(slow.rng.integers(0, 6, 5))
        agents, objects, time = map(jnp.asarray, state_arrays(slow))
        valid = np.asarray(game.valid_actions(State(agents, objects, time)))
        for slot in range(4):
            assert valid[slot].tolist() == slow.valid(slot)
