"""The rules of Wolfpack, in hand-made positions and compared with a slow implementation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_wolfpack import DOWN, LEFT, RIGHT, STAY, TURN_LEFT, TURN_RIGHT, UP, SlowWolfpack
from wolfpack_states import FIELDS, rows_of, state, state_of

from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.games.wolfpack import SPEC, RandomPrey, Wolfpack, make_recurrent_prey
from dropin.games.wolfpack import make_game as make_game_with_learned_prey


def make_game(rules, **settings):
    """Make the game with random prey, unless others are given."""
    return make_game_with_learned_prey(rules, **{"prey_policy": RandomPrey(), **settings})


GAME = make_game("paper")
STEP = eqx.filter_jit(lambda game, key, here, actions: game.step(StepRNG(key), here, actions))
RESPAWN = eqx.filter_jit(lambda game, key, here: game.respawn_prey(StepRNG(key), here))
APPLY_ACTIONS = eqx.filter_jit(lambda game, *given: game.apply_actions(*given))
FAR = [(9, 9)]
"""A prey that is out of the way."""
AHEAD = 0


def play(hunters, prey, actions, prey_actions=None, rules="paper", **more):
    """Take a step; return the cells of hunters and prey, the rewards, the state and the outcome."""
    prey_actions = [STAY] * len(prey) if prey_actions is None else prey_actions
    game = make_game(rules, num_prey=len(prey))
    here = state(hunters, prey, **more)
    after, outcome = APPLY_ACTIONS(game, here, jnp.array(actions), jnp.array(prey_actions))
    cells = [tuple(map(tuple, np.asarray(rows).tolist())) for rows in (after.hunters, after.prey)]
    return [list(rows) for rows in cells], np.asarray(outcome.rewards), after, outcome


def test_each_action_moves_as_it_says_and_nobody_leaves_the_grid():
    middle = [(4, 4), (0, 0)]
    for action, cell in [(UP, (3, 4)), (RIGHT, (4, 5)), (DOWN, (5, 4)), (LEFT, (4, 3))]:
        (hunters, _), *_ = play(middle, FAR, [action, STAY])
        assert hunters == [cell, (0, 0)]
    for action in (UP, LEFT, STAY):
        (hunters, _), *_ = play(middle, FAR, [STAY, action])
        assert hunters == middle


def test_prey_move_relative_to_where_they_face_and_turn():
    hunters = [(0, 0), (0, 9)]
    # Facing right (1): ahead is right, then down, left, up; 4 stays.
    for action, cell in enumerate([(5, 6), (6, 5), (5, 4), (4, 5), (5, 5)]):
        (_, prey), _, after, _ = play(hunters, [(5, 5)], [STAY, STAY], [action], facing=[1])
        assert prey == [cell]
        assert after.facing.tolist() == [1]
    for action, facing in [(TURN_LEFT, 0), (TURN_RIGHT, 2)]:
        (_, prey), _, after, _ = play(hunters, [(5, 5)], [STAY, STAY], [action], facing=[1])
        assert prey == [(5, 5)]
        assert after.facing.tolist() == [facing]


def test_two_may_swap_cells():
    (hunters, _), *_ = play([(4, 4), (4, 5)], FAR, [RIGHT, LEFT])
    assert hunters == [(4, 5), (4, 4)]


def test_three_into_one_cell_all_go_back():
    (hunters, _), *_ = play([(4, 3), (4, 5), (3, 4)], FAR, [RIGHT, LEFT, DOWN])
    assert hunters == [(4, 3), (4, 5), (3, 4)]


def test_who_stays_blocks_and_those_behind_are_sent_back_in_turn():
    # 2 walks into 1, who walks into 0, who stays: first 0 and 1 meet, then 1 is back in 2's way.
    (hunters, _), *_ = play([(4, 4), (4, 5), (4, 6)], FAR, [STAY, LEFT, LEFT])
    assert hunters == [(4, 4), (4, 5), (4, 6)]


def test_a_train_moves_as_a_whole():
    (hunters, _), *_ = play([(4, 4), (4, 5), (4, 6)], FAR, [LEFT, LEFT, LEFT])
    assert hunters == [(4, 3), (4, 4), (4, 5)]


def test_hunters_and_prey_block_one_another_but_a_turn_is_kept():
    (hunters, prey), _, after, _ = play([(5, 5), (0, 0)], [(4, 5)], [UP, STAY], [TURN_RIGHT])
    assert hunters == [(5, 5), (0, 0)]
    assert prey == [(4, 5)]
    assert after.facing.tolist() == [1]


def test_the_border_makes_a_hunter_stay_and_who_stays_may_be_met():
    # The first cannot go up; the second walks into it: both are where they were.
    (hunters, _), *_ = play([(0, 4), (1, 4)], FAR, [UP, UP])
    assert hunters == [(0, 4), (1, 4)]


def test_a_prey_between_two_hunters_is_captured():
    _, rewards, after, outcome = play([(4, 4), (4, 6), (9, 0)], [(4, 5)], [STAY] * 3)
    assert rewards.tolist() == [4.0, 4.0, 0.0]
    assert after.captured.tolist() == [True]
    assert outcome.events.captured.tolist() == [[True], [True], [False]]


def test_every_member_of_a_pack_of_three_gets_six():
    _, rewards, *_ = play([(4, 4), (4, 6), (3, 5)], [(4, 5)], [STAY] * 3)
    assert rewards.tolist() == [6.0, 6.0, 6.0]


def test_diagonal_is_not_next_to():
    _, rewards, after, _ = play([(3, 4), (3, 6)], [(4, 5)], [STAY] * 2)
    assert rewards.tolist() == [0.0, 0.0]
    assert not after.captured.any()


def test_alone_next_to_a_prey_costs_the_penalty():
    _, rewards, *_ = play([(4, 4), (9, 0)], [(4, 5)], [STAY] * 2)
    assert rewards.tolist() == [-0.5, 0.0]


def test_one_hunter_next_to_two_prey_gets_both_terms():
    hunters, prey = [(4, 4), (4, 6), (9, 0)], [(4, 5), (4, 3)]
    _, rewards, after, _ = play(hunters, prey, [STAY] * 3)
    assert rewards.tolist() == [3.5, 4.0, 0.0]
    assert after.captured.tolist() == [True, False]
    _, rewards, *_ = play([(4, 4), (4, 6), (4, 2)], prey, [STAY] * 3)
    assert rewards.tolist() == [8.0, 4.0, 4.0]


def test_captured_prey_reappear_elsewhere_in_the_next_step_and_can_be_captured_again():
    game = make_game("paper", num_prey=1, size=3)
    here = state([(0, 0), (0, 2)], [(0, 1)], captured=[True])
    again = 0
    for seed in range(40):
        back = RESPAWN(game, jax.random.key(seed), here)
        cell = tuple(back.prey[0].tolist())
        assert cell not in [(0, 0), (0, 2), (0, 1)]
        assert not back.captured.any()
        after, outcome = STEP(game, jax.random.key(seed), here, jnp.array([DOWN, DOWN]))
        again += bool(after.captured[0])
        assert (outcome.rewards[0] == 4.0) == bool(after.captured[0])
    assert again > 0


def test_two_captured_prey_reappear_on_different_cells():
    game = make_game("paper", size=3)
    here = state([(0, 0), (0, 2)], [(0, 1), (1, 0)], captured=[True, True])
    seen = set()
    for seed in range(60):
        back = RESPAWN(game, jax.random.key(seed), here)
        cells = [tuple(cell) for cell in back.prey.tolist()]
        assert len(set(cells)) == 2
        seen |= set(cells)
    assert seen == {(1, 1), (1, 2), (2, 0), (2, 1), (2, 2)}


class Rightwards(RandomPrey):
    def act(self, rng, size, state):
        return jnp.full(len(state.prey), RIGHT), ()


def test_a_prey_reappears_before_it_moves_and_its_way_counts_from_there():
    game = make_game("reference", num_prey=1, prey_policy=Rightwards())
    here = state([(0, 0), (5, 5)], [(5, 6)], captured=[True])
    back = RESPAWN(game, jax.random.key(3), here)
    after, outcome = STEP(game, jax.random.key(3), here, jnp.array([STAY, STAY]))
    row, column = back.prey[0].tolist()
    assert after.prey[0].tolist() == [row, min(column + 1, 9)]
    closer = row + column - after.prey[0].sum()
    assert float(outcome.shaping[0]) == pytest.approx(0.01 * int(closer))


def test_shaping_is_part_of_the_reward_and_reported_separately():
    hunters, prey = [(4, 2), (9, 9), None], [(4, 6), (0, 6)]
    actions, moves = [RIGHT, UP, STAY], [AHEAD, STAY]
    _, rewards, _, outcome = play(hunters, prey, actions, moves, rules="reference", facing=[3, 0])
    # The learner comes from 4 to 2, the other from 8 to 8 (it and the prey by one each).
    assert rewards == pytest.approx([0.02, 0.0, 0.0])
    assert outcome.shaping.tolist() == rewards.tolist()
    _, rewards, _, outcome = play(hunters, prey, actions, moves, facing=[3, 0])
    assert rewards.tolist() == outcome.shaping.tolist() == [0, 0, 0]
    # A prey that is captured in this step still counts where it was captured.
    _, rewards, _, outcome = play([(4, 3), (4, 6)], [(4, 5)], [RIGHT, STAY], rules="reference")
    assert rewards == pytest.approx([4.01, 4.0])


def test_only_the_horizon_ends_an_episode():
    for time, truncated in [(198, False), (199, True)]:
        *_, after, outcome = play([(0, 0), (0, 9)], FAR, [STAY] * 2, time=time)
        assert bool(outcome.truncated) == truncated
        assert not outcome.terminated
        assert int(after.time) == time + 1


def test_the_observation_is_the_state_as_numbers():
    agents, shared = GAME.observe(state([(1, 2), None], [(5, 6), (0, 7)], facing=[1, 3]))
    assert agents.tolist() == [[1, 2], [-1, -1]]
    assert shared.tolist() == [5, 6, 0, 7, 0, 1, 0, 0, 0, 0, 0, 1]


def test_feature_tables_describe_the_observation():
    agent, shared = make_game("paper", num_prey=3, size=12).features(slots=5)
    assert [each.name for each in agent] == ["row", "column"]
    assert agent[0].high == 11
    assert len(shared) == 3 * 2 + 3 * 4
    assert [each.name for each in shared][:3] == ["prey 1: row", "prey 1: column", "prey 2: row"]
    assert shared[-1].name == "prey 3: left"


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(None, 0, 0, 0, 0))
def step_many(game, key, rows, actions, prey_actions):
    back = game.respawn_prey(StepRNG(key), state_of(rows))
    after, outcome = game.apply_actions(back, actions, prey_actions)
    return back.prey, [getattr(after, name) for name in FIELDS], outcome


def check_parity(rules, episodes, slots=5):
    """Random episodes with open teams on grids that are crowded enough for things to happen."""
    random = np.random.default_rng(11)
    captures = respawns = 0
    for size, count in ((4, episodes // 2), (10, episodes - episodes // 2)):
        game = make_game(rules, size=size, horizon=40)
        limits = random.integers(2, slots + 1, count)
        slow = [
            SlowWolfpack(rules, int(limit), slots, seed=k, size=size, horizon=40)
            for k, limit in enumerate(limits)
        ]
        for step in range(40):
            rows = [np.stack(parts) for parts in zip(*map(rows_of, slow), strict=True)]
            actions = random.integers(0, 5, (count, slots)).astype(np.int32)
            prey_actions = random.integers(0, 7, (count, 2)).astype(np.int32)
            keys = jax.random.split(jax.random.key(step), count)
            got = step_many(game, keys, rows, actions, prey_actions)
            back, after, outcome = jax.tree.map(np.asarray, got)
            for k, each in enumerate(slow):
                cells = {i: tuple(back[k, i]) for i in range(2) if each.captured[i]}
                respawns += len(cells)
                rewards, shaping, truncated = each.act(actions[k], prey_actions[k], cells)
                for expected, fields in zip(rows_of(each), after, strict=True):
                    assert np.array_equal(expected, fields[k])
                assert outcome.rewards[k] == pytest.approx(rewards, abs=1e-5)
                assert outcome.shaping[k] == pytest.approx(shaping, abs=1e-5)
                assert bool(outcome.truncated[k]) == truncated == (step == 39)
                captures += sum(each.captured)
                each.open_process()
    assert captures > episodes
    assert respawns > episodes


def test_random_episodes_equal_those_of_the_slow_game(rules):
    check_parity(rules, episodes=300)


@pytest.mark.slow
def test_2000_random_episodes_equal_those_of_the_slow_game(rules):
    check_parity(rules, episodes=2000)


RESET = eqx.filter_jit(lambda game, key, present: game.reset(StepRNG(key), present))
SPAWN = eqx.filter_jit(lambda game, key, here, who: game.spawn(StepRNG(key), here, who))


@given(seed=st.integers(0, 2**31 - 1), limit=st.integers(2, 5))
def test_a_start_puts_everybody_on_a_cell_of_its_own(seed, limit):
    first = RESET(GAME, jax.random.key(seed), jnp.arange(5) < limit)
    cells = [tuple(row) for row in [*first.hunters[:limit].tolist(), *first.prey.tolist()]]
    assert len(set(cells)) == limit + 2
    assert all(0 <= line < 10 for cell in cells for line in cell)
    assert (first.hunters[limit:] == -1).all()
    assert not first.facing.any()
    assert not first.captured.any()
    assert int(first.time) == 0


def test_starts_are_uniform_over_the_cells():
    number = 4000
    keys = jax.random.split(jax.random.key(7), number)
    first = jax.vmap(lambda key: RESET(GAME, key, jnp.ones(3, bool)))(keys)
    for rows in (first.hunters, first.prey):
        cell = np.asarray(rows[..., 0] * 10 + rows[..., 1]).ravel()
        counts = np.bincount(cell, minlength=100)
        expected = len(cell) / 100
        assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


@given(seed=st.integers(0, 2**31 - 1), entering=st.lists(st.booleans(), min_size=4, max_size=4))
def test_newcomers_stand_on_free_cells_and_leave_without_a_trace(seed, entering):
    here = state([(1, 1), None, None, None, None], [(0, 0), (2, 2)])
    who = jnp.array([False, *entering])
    after = SPAWN(make_game("paper", size=3), jax.random.key(seed), here, who)
    assert after.present.tolist() == [True, *entering]
    cells = [tuple(row) for row in np.asarray(after.hunters)[np.asarray(after.present)].tolist()]
    assert len({*cells, (0, 0), (2, 2)}) == len(cells) + 2
    back = GAME.despawn(after, who)
    assert np.array_equal(back.hunters, here.hunters)


@given(
    seed=st.integers(0, 2**31 - 1),
    actions=st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=1, max_size=40),
)
def test_no_two_ever_share_a_cell(seed, actions):
    now = RESET(SMALL, jax.random.key(seed), jnp.ones(4, bool))
    for k, joint in enumerate(actions):
        now, outcome = STEP(SMALL, jax.random.key(seed + k), now, jnp.array(joint, jnp.int32))
        cells = [tuple(row) for row in [*now.hunters.tolist(), *now.prey.tolist()]]
        assert len(set(cells)) == 6
        assert all(0 <= line < 4 for cell in cells for line in cell)
        assert (np.asarray(outcome.rewards) >= -1.0).all()


SMALL = make_game("paper", size=4)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"size": 1}, "size is 1"),
        ({"num_prey": 0}, "num_prey is 0"),
        ({"horizon": 0}, "horizon is 0"),
        ({"lone_penalty": -1.0}, "lone_penalty is -1"),
        ({"shaping_weight": float("nan")}, "shaping_weight is nan"),
        ({"lone_penalties": 1.0}, "did you mean 'lone_penalty'"),
    ],
)
def test_impossible_settings_are_refused(settings, says):
    with pytest.raises(InputError, match=says):
        make_game("paper", **settings)


def test_unknown_rules_are_refused():
    with pytest.raises(InputError, match="did you mean 'paper'"):
        make_game("papers")


def test_the_game_made_by_name_has_learned_prey_and_shaping_as_the_rules_say(rules):
    game = SPEC.make_game(rules)
    assert isinstance(game, Wolfpack)
    assert eqx.tree_equal(game.prey_policy, make_recurrent_prey())
    assert game.has_shaping == (rules == "reference")


def test_more_agents_and_prey_than_cells_are_refused():
    with pytest.raises(InputError, match="3x3 is too small for 6 agents and 2 prey: they need 10"):
        make_game("paper", size=3).validate(slots=6)
    make_game("paper", size=3).validate(slots=5)
