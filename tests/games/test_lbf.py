import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lbf_states import rows_of, same, state
from slow_lbf import EAST, LOAD, NONE, NORTH, SOUTH, WEST, SlowLBF

from dropin.dice import Dice
from dropin.errors import InputError
from dropin.games.lbf import LBF, State, preset

GAME = LBF()
step = eqx.filter_jit(lambda here, actions: GAME.step(Dice(jax.random.key(0)), here, actions))


def play(agents, objects, actions, time=0):
    """(cells, rewards, levels of the objects left, terminated, truncated) after one step."""
    following, outcome = step(state(agents, objects, time), jnp.array(actions, jnp.int32))
    cells = [tuple(map(int, row[:2])) for row in following.agents]
    left = [int(level) for level in following.objects[:, 2] if level]
    return cells, outcome.rewards.tolist(), left, bool(outcome.terminated), bool(outcome.truncated)


FAR = [7, 7, 3]


def test_each_move_goes_its_way():
    for action, cell in [(NORTH, (2, 3)), (SOUTH, (4, 3)), (WEST, (3, 2)), (EAST, (3, 4))]:
        cells, *_ = play([[3, 3, 1], [0, 0, 1]], [FAR], [action, NONE])
        assert cells[0] == cell


def test_walls_and_objects_stop_a_move():
    cells, *_ = play([[0, 3, 1], [6, 7, 1]], [FAR], [NORTH, SOUTH])
    assert cells == [(0, 3), (6, 7)]


def test_two_who_name_the_same_cell_both_stay():
    cells, *_ = play([[3, 3, 1], [3, 5, 1]], [FAR], [EAST, WEST])
    assert cells == [(3, 3), (3, 5)]


def test_whoever_stays_blocks_its_cell():
    cells, *_ = play([[3, 3, 1], [3, 4, 1]], [FAR], [EAST, NONE])
    assert cells == [(3, 3), (3, 4)]


def test_an_impossible_load_blocks_like_none():
    cells, rewards, *_ = play([[3, 3, 1], [3, 4, 1]], [FAR], [EAST, LOAD])
    assert cells == [(3, 3), (3, 4)]
    assert rewards == [0, 0]


def test_two_may_swap_and_a_row_may_move_on():
    cells, *_ = play([[3, 3, 1], [3, 4, 1]], [FAR], [EAST, WEST])
    assert cells == [(3, 4), (3, 3)]
    cells, *_ = play([[3, 3, 1], [3, 4, 1], [3, 5, 1]], [FAR], [EAST, EAST, EAST])
    assert cells == [(3, 4), (3, 5), (3, 6)]


def test_a_cell_whose_occupant_was_blocked_is_entered_all_the_same():
    # The second and third name (3, 5) and stay; the first alone names (3, 4) and enters it.
    agents = [[3, 3, 1], [3, 4, 1], [3, 6, 1]]
    cells, *_ = play(agents, [FAR], [EAST, EAST, WEST])
    assert cells == [(3, 4), (3, 4), (3, 6)]
    # Of two on one cell, one may leave alone; both who stay stay.
    cells, *_ = play([[3, 4, 1], [3, 4, 1]], [FAR], [NONE, EAST])
    assert cells == [(3, 4), (3, 5)]
    cells, *_ = play([[3, 4, 1], [3, 4, 1]], [FAR], [NONE, NONE])
    assert cells == [(3, 4), (3, 4)]


def test_somebody_absent_neither_blocks_nor_acts():
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
    following, outcome = step(state(agents, objects), jnp.array([LOAD, LOAD]))
    assert outcome.rewards.tolist() == [3, 2]
    assert following.objects.tolist() == [[3, 3, 1], [-1, -1, 0], [-1, -1, 0]]
    assert outcome.happened.collected.tolist() == [[True, False, False], [False, False, True]]


def test_the_horizon_truncates_but_the_last_object_terminates():
    stay = [[2, 3, 1], [0, 0, 1]]
    assert play(stay, [[3, 3, 1]], [NONE, NONE], time=49)[3:] == (False, True)
    assert play(stay, [[3, 3, 1]], [LOAD, NONE], time=49)[3:] == (True, False)
    assert play(stay, [[3, 3, 1]], [NONE, NONE], time=48)[3:] == (False, False)


def test_the_observation_is_the_state_as_numbers():
    agents, shared = GAME.observe(state([[1, 2, 3], None], [[5, 6, 2], [0, 7, 1]]))
    assert agents.tolist() == [[1, 2, 3], [-1, -1, 0]]
    assert shared.tolist() == [0, 7, 1, 5, 6, 2, -1, -1, 0]


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(None, 0, 0, 0, 0))
def step_many(game, agents, objects, time, actions):
    return game.step(Dice(jax.random.key(0)), State(agents, objects, time), actions)


@pytest.mark.parametrize("team_limit", [3, 5])
@pytest.mark.parametrize("episodes", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_step_by_step_parity_with_the_slow_game(rules, team_limit, episodes):
    """2 x 2 x 1000 episodes of random joint actions, teams changing at random in between."""
    slow_games = [
        SlowLBF(rules, team_limit=team_limit, slots=5, seed=seed) for seed in range(episodes)
    ]
    game = preset(rules)
    random = np.random.default_rng(team_limit)
    alive = np.ones(episodes, bool)
    collected = 0
    while alive.any():
        before = [np.stack(parts) for parts in zip(*map(rows_of, slow_games), strict=True)]
        # Loading often, so that objects do get collected.
        often = random.random((episodes, 5)) < 0.4
        actions = np.where(often, LOAD, random.integers(0, 6, (episodes, 5))).astype(np.int32)
        after, outcome = jax.device_get(step_many(game, *before, actions))
        for k in np.flatnonzero(alive):
            slow = slow_games[k]
            objects = len(slow.objects)
            rewards, terminated, truncated = slow.act(actions[k])
            for expected, got in zip(
                rows_of(slow), (after.agents, after.objects, after.time), strict=True
            ):
                assert np.array_equal(expected, got[k])
            assert rewards == outcome.rewards[k].tolist()
            assert (terminated, truncated) == (outcome.terminated[k], outcome.truncated[k])
            collected += objects - len(slow.objects)
            slow.open_process()
            alive[k] = not (terminated or truncated)
    assert collected > 0.3 * episodes, "too few objects were collected for the test to mean much"


@given(seed=st.integers(0, 2**31 - 1), limit=st.integers(2, 5))
def test_a_start_obeys_the_rules(seed, limit):
    for rules in ("paper", "reference"):
        game = preset(rules)
        first = START[rules](jax.random.key(seed), jnp.arange(5) < limit)
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
        assert game.objects == 3


def _starter(game):
    return jax.jit(lambda key, present: game.start(Dice(key), present))


START = {rules: _starter(preset(rules)) for rules in ("paper", "reference")}


def test_starts_have_the_same_distribution_as_the_slow_game(rules):
    """Levels and places, each cell and level within five standard errors."""
    number = 4000
    keys = jax.random.split(jax.random.key(7), number)
    states = jax.vmap(lambda key: START[rules](key, jnp.arange(3) < 3))(keys)
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
def test_newcomers_stand_on_free_cells_and_others_stay_put(seed, entering):
    here = state([[3, 3, 2], None, None, None, None], [[0, 0, 1], [5, 5, 3]])
    mask = jnp.array([False, *entering])
    after = ENTER(jax.random.key(seed), here, mask)
    assert after.present.tolist() == [True, *entering]
    assert after.agents[0].tolist() == [3, 3, 2]
    taken = [(0, 0), (5, 5)] + [tuple(row[:2]) for row in np.asarray(after.agents)[after.present]]
    assert len(set(taken)) == len(taken)
    back = GAME.leave(after, mask)
    assert same(back, here)


ENTER = jax.jit(lambda key, state, entering: GAME.enter(Dice(key), state, entering))


@given(
    seed=st.integers(0, 2**31 - 1),
    actions=st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=1, max_size=60),
)
def test_nobody_stands_on_an_object_and_objects_never_reappear(seed, actions):
    now = START["paper"](jax.random.key(seed), jnp.ones(4, bool))
    total = 0.0
    most = int(now.objects[:, 2].sum())
    for joint in actions:
        after, outcome = step(now, jnp.array(joint, jnp.int32))
        things = {tuple(row) for row in np.asarray(after.objects) if row[2]}
        assert things <= {tuple(row) for row in np.asarray(now.objects) if row[2]}
        cells = {tuple(row[:2]) for row in np.asarray(after.agents)}
        assert not cells & {thing[:2] for thing in things}
        rewards = np.asarray(outcome.rewards)
        assert all(joint[slot] == LOAD for slot in np.flatnonzero(rewards))
        total += float(rewards[0])
        now = after
    assert 0 <= total <= most


def test_feature_tables_describe_the_observation(rules):
    game = preset(rules, objects=2, size=9)
    agent, shared = game.features(slots=5)
    assert [each.name for each in agent] == ["row", "column", "level"]
    assert len(shared) == 6
    assert agent[0].high == 8
    assert shared[-1].name == "object 2: level"
    assert shared[-1].high == (9 if rules == "reference" else 3)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"size": 1}, "size is 1"),
        ({"objects": 0}, "objects is 0"),
        ({"horizon": 0}, "horizon is 0"),
        ({"agent_levels": (0, 2)}, "agent_levels are 0 to 2"),
        ({"object_levels": (3, 2)}, "object_levels are 3 to 2"),
        ({"sizes": 4}, "did you mean 'size'"),
    ],
)
def test_impossible_settings_are_refused(changes, says):
    with pytest.raises(InputError, match=says):
        preset("paper", **changes)


def test_a_grid_too_small_for_its_objects_is_refused():
    with pytest.raises(InputError, match="4x4 is too small for 3 objects and 3 agents"):
        preset("paper", size=4).check(slots=3)
    with pytest.raises(InputError, match="too small"):
        preset("reference", size=6).check(slots=3)
    preset("reference", size=8).check(slots=5)
