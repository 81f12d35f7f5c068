"""The types of level-based foraging."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lbf_states import make_state, state_arrays
from slow_lbf import EAST, LOAD, NONE, NORTH, SOUTH, TYPES, WEST, SlowLBF

from dropin._xla.random import StepRNG
from dropin.env import make
from dropin.games.lbf import State
from dropin.games.lbf.types import make_types

SLOTS = 5
ENVS = {rules: make("lbf", rules=rules, types=TYPES) for rules in ("paper", "reference")}
"""With the heuristics alone."""


def _make_act(rules):
    """Return a function `(keys [draw], state, sight) -> actions [draw, type, slot]`."""
    game, pool = ENVS[rules].game, ENVS[rules].team.pool

    def act_once(key, state, sight):
        rng = StepRNG(key)
        roster = pool.reset(rng, (0,) * SLOTS)
        # The seed of an agent decides its sight, which is 1, 2 or 3 under the rules `paper`.
        agent_seed = jnp.broadcast_to((sight - 1).astype(jnp.uint32), (SLOTS,))
        columns = []
        for index in range(len(pool.types)):
            acting = replace(roster, type=jnp.full(SLOTS, index), agent_seed=agent_seed)
            rest = StepRNG(key, used=rng.used)
            columns.append(pool.act(rest, game, acting, state, state.present)[0])
        return jnp.stack(columns)

    return jax.jit(jax.vmap(act_once, in_axes=(0, None, None)))


ACT = {rules: _make_act(rules) for rules in ENVS}
ACT_ALL = {
    rules: jax.jit(jax.vmap(lambda keys, *rows, act=act: act(keys, State(*rows[:3]), rows[3])))
    for rules, act in ACT.items()
}


def act(name, agents, objects, slot=1, rules="reference", sight=1, draws=1):
    """Return the action of a type, or the set of its actions in several draws."""
    rows = [*agents, *[None] * (SLOTS - len(agents))]
    keys = jax.random.split(jax.random.key(0), draws)
    actions = ACT[rules](keys, make_state(rows, objects), jnp.int32(sight))
    column = np.asarray(actions[:, TYPES.index(name), slot])
    return int(column[0]) if draws == 1 else set(column.tolist())


NEAR, MIDDLE, FARTHEST = [1, 5, 2], [4, 1, 1], [6, 6, 4]
OBJECTS = [NEAR, MIDDLE, FARTHEST]
LEARNER, ME, WEAK = [0, 0, 2], [1, 3, 1], [5, 3, 1]


def test_the_pool_holds_the_types_of_the_paper(rules):
    expected = ("H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9")
    assert tuple(make_types(rules)) == expected == make("lbf", rules=rules).team.pool.names


def test_h1_follows_the_strongest_to_the_best_object_for_its_level():
    # The learner (level 2) leads; the highest object up to 2 is NEAR, in my row to the east.
    assert act("H1", [LEARNER, ME, WEAK], OBJECTS) == EAST
    # With the learner at level 5 its choice is FARTHEST: row first, so south.
    assert act("H1", [[0, 0, 5], ME, WEAK], OBJECTS) == SOUTH


def test_h1_without_a_stronger_agent_follows_the_farthest():
    # WEAK is 16 away, the learner 10. Its level 1 suffices for MIDDLE alone: south.
    assert act("H1", [[0, 0, 1], ME, WEAK], OBJECTS) == SOUTH


def test_h2_goes_where_the_farthest_agent_would_go_farthest():
    # WEAK at (5, 3) leads; its farthest object is NEAR (16 + 4), not MIDDLE (1 + 4).
    assert act("H2", [LEARNER, ME, WEAK], [NEAR, MIDDLE]) == EAST


def test_h3_takes_the_highest_object_it_can_lift():
    # Level 1 suffices for MIDDLE: south. Level 2 for NEAR: east. Nothing fits: the highest of all.
    assert act("H3", [LEARNER, ME], OBJECTS) == SOUTH
    assert act("H3", [LEARNER, [1, 3, 2]], OBJECTS) == EAST
    assert act("H3", [LEARNER, ME], [NEAR, [6, 3, 3]]) == SOUTH


def test_h4_goes_for_the_farthest_object():
    assert act("H4", [LEARNER, [3, 6, 1]], [[3, 1, 1], NEAR]) == WEST


def test_h6_goes_for_the_closest_object():
    assert act("H6", [LEARNER, ME], OBJECTS) == EAST


def test_h7_goes_for_the_object_closest_to_the_team():
    # The middle of (0, 0), (1, 3), (5, 3) is (2, 2): MIDDLE is 5 away, NEAR 10.
    assert act("H7", [LEARNER, ME, WEAK], OBJECTS) == SOUTH
    # Halves go to even: (0, 0) and (1, 3) have their middle (0.5, 1.5) at (0, 2), where (0, 6) is
    # 16 away and (4, 1) 17; at (1, 1) or (1, 2) it would be the other way round.
    assert act("H7", [LEARNER, ME], [[0, 6, 2], [4, 1, 1]]) == NORTH


def test_h8_goes_for_the_closest_object_it_can_lift_alone():
    assert act("H8", [LEARNER, ME], OBJECTS) == SOUTH
    # None fits, so the action is random. All are valid but load.
    random = act("H8", [LEARNER, ME], [NEAR, FARTHEST], draws=200)
    assert random == {NONE, NORTH, SOUTH, WEST, EAST}


def test_h9_asks_whether_the_team_is_strong_enough():
    # Three agents of level 1: together 3, so FARTHEST (4) is out although it is the closest.
    team = [[6, 3, 1], [5, 5, 1], [5, 6, 1]]
    assert act("H9", team, [[2, 5, 3], FARTHEST]) == NORTH
    assert act("H9", [[6, 3, 2], *team[1:]], [[2, 5, 3], FARTHEST]) == SOUTH


def test_next_to_the_target_a_type_loads():
    for name in ("H1", "H2", "H3", "H4", "H6", "H7", "H8", "H9"):
        assert act(name, [LEARNER, [1, 4, 2]], [NEAR]) == LOAD


def test_an_object_in_the_way_is_passed_by_column():
    # The target lies south-east; (2, 3) is blocked by another object, so east.
    assert act("H4", [LEARNER, ME], [[2, 3, 1], FARTHEST]) == EAST


def test_with_both_ways_blocked_the_action_is_random():
    # South of (3, 3) is an object and the target (7, 3) is in the same column.
    chosen = act("H4", [LEARNER, [3, 3, 1]], [[4, 3, 1], [7, 3, 1]], draws=300)
    assert chosen == {NONE, NORTH, WEST, EAST, LOAD}


def test_sight_is_a_square():
    # Radius 2 sees (3, 5) from (1, 3) but not (4, 3).
    objects = [[3, 5, 1], [4, 3, 1]]
    assert act("H4", [[7, 7, 1], ME], objects, rules="paper", sight=2) == SOUTH
    assert act("H6", [[7, 7, 1], ME], [[1, 6, 1]], rules="paper", sight=3) == EAST
    random = act("H6", [[7, 7, 1], ME], [[1, 6, 1]], rules="paper", sight=2, draws=200)
    assert random == {NONE, NORTH, SOUTH, WEST, EAST}


def test_a_follower_that_sees_no_object_walks_to_its_leader_and_never_loads_it():
    for name in ("H1", "H2"):
        assert act(name, [[1, 4, 2], ME], [FARTHEST], rules="paper", sight=1) == EAST
        assert act(name, [[2, 4, 2], ME], [FARTHEST], rules="paper", sight=1) == SOUTH
        alone = act(name, [[7, 7, 2], ME], [FARTHEST], rules="paper", sight=1, draws=200)
        assert alone == {NONE, NORTH, SOUTH, WEST, EAST}


def test_a_leader_is_read_off_its_cell_in_the_reference_only():
    # Two agents on (3, 3): the stronger leads; the last one there has level 1.
    team = [[3, 3, 3], ME, [3, 3, 1]]
    objects = [[1, 5, 3], [4, 1, 1]]
    assert act("H1", team, objects, rules="reference") == SOUTH
    assert act("H1", team, objects, rules="paper", sight=3) == EAST


DRAWS = 64


@cache
def positions(rules):
    """Return 1000 slow games, the sight in each, and what all types did there in `DRAWS` draws.

    Returns:
        The games, sight [game], actions [game, draw, type, slot].
    """
    random = np.random.default_rng(7)
    number, slow = 1000, []
    for seed in range(number):
        game = SlowLBF(rules, team_limit=int(random.integers(2, 6)), slots=SLOTS, seed=seed)
        for _ in range(int(random.integers(0, 30))):
            if game.act(random.integers(0, 6, SLOTS))[1]:
                game.reset()
            game.open_process()
        slow.append(game)
    rows = [np.stack(parts) for parts in zip(*map(state_arrays, slow), strict=True)]
    sights = random.integers(1, 4, number).astype(np.int32)
    keys = jax.random.split(jax.random.key(5), (number, DRAWS))
    return slow, sights, np.asarray(ACT_ALL[rules](keys, *rows, sights))


@pytest.mark.parametrize("name", TYPES)
def test_each_type_agrees_with_its_rule_on_random_positions(name, rules):
    """Compare actions where the rule is deterministic and frequencies where it is not."""
    slow, sights, actions = positions(rules)
    chosen = actions[:, :, TYPES.index(name)]
    certain = uncertain = 0
    expected_total, counted_total = np.zeros(6), np.zeros(6)
    for k, game in enumerate(slow):
        sight = int(sights[k]) if rules == "paper" else None
        for slot in range(SLOTS):
            if game.players[slot] is None:
                continue
            probs = game.distribution(name, slot, sight)
            counted = np.bincount(chosen[k, :, slot], minlength=6) / DRAWS
            assert not counted[probs == 0].any()
            if probs.max() == 1:
                certain += 1
            else:
                uncertain += 1
                expected_total += probs
                counted_total += counted
    assert certain > 500
    if uncertain > 100:
        assert counted_total / uncertain == pytest.approx(expected_total / uncertain, abs=0.02)
