"""The heuristic types of Wolfpack."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_wolfpack import (
    DOWN,
    LEFT,
    RIGHT,
    TYPES,
    UP,
    SlowWolfpack,
    reference_first_step,
    shortest_first_steps,
)
from wolfpack_states import rows_of, state, state_of

from dropin._xla.random import StepRNG
from dropin.env import make
from dropin.games.wolfpack import Wolfpack, make_observer, make_types
from dropin.games.wolfpack.heuristics import action_probs
from dropin.games.wolfpack.observer import WAITING_TRAITS
from dropin.games.wolfpack.search import NO_PATH, reading_order_search, shortest_path_search

SLOTS = 5
HUNTERS = {
    rules: {name: make_types(rules)[name]() for name in TYPES} for rules in ("paper", "reference")
}


BATCH = 50
"""Number of positions in each call, so that one compiled program serves all tests."""


def _compile_probs(rules):
    """Compile (rows of states, radius [slot], companions [slot]) -> probs [type, slot, action]."""
    game, observe = Wolfpack(), make_observer(rules)

    def of_state(rows, radius, companions):
        rng, agent_seed = StepRNG(jax.random.key(0)), jnp.zeros(SLOTS, jnp.uint32)
        views = observe(game, rng, state_of(rows), agent_seed)

        def of_type(hunter):
            def of_slot(view, radius, companions):
                view = replace(view, waiting_radius=radius, min_companions=companions)
                return action_probs(view, hunter.heuristic(view), hunter.search)

            return jax.vmap(of_slot)(views, radius, companions)

        return jnp.stack([of_type(hunter) for hunter in HUNTERS[rules].values()])

    return jax.jit(jax.vmap(of_state))


PROBS = {rules: _compile_probs(rules) for rules in HUNTERS}


def probs(name, hunters, prey, slot=1, rules="reference", radius=2, companions=1, captured=None):
    """Return the probability of each action of the hunter in a slot, if it were of this type."""
    rows = [*hunters, *[None] * (SLOTS - len(hunters))]
    here = state(rows, prey, captured=captured)
    traits = np.full(SLOTS, radius, np.int32), np.full(SLOTS, companions, np.int32)
    parts = (tuple(jax.tree.leaves(here)), *traits)
    batch = jax.tree.map(lambda part: np.repeat(np.asarray(part)[None], BATCH, axis=0), parts)
    table = np.asarray(PROBS[rules](*batch))[0]
    return table[list(HUNTERS[rules]).index(name), slot]


def certain(*given, **more):
    """Return the action that has probability 1."""
    found = probs(*given, **more)
    assert found.max() == 1
    return int(found.argmax())


FAR = (9, 9)
LEARNER = (0, 0)
UNIFORM = pytest.approx([0.2] * 5)


def test_h1_does_anything(rules):
    assert probs("H1", [LEARNER, (4, 4)], [(4, 5), FAR], rules=rules) == UNIFORM


def test_h2_closes_the_larger_gap_first_and_columns_on_ties(rules):
    # To the cell left of (6, 6), which is (6, 5): 4 down, 2 right.
    assert certain("H2", [LEARNER, (2, 3)], [(6, 6), FAR], rules=rules) == DOWN
    # To (6, 5) from (3, 2): 3 and 3.
    assert certain("H2", [LEARNER, (3, 2)], [(6, 6), FAR], rules=rules) == RIGHT


def test_h2_pounces_on_the_first_living_prey_beside_it(rules):
    beside = [(4, 5), (3, 4)]
    assert certain("H2", [LEARNER, (4, 4)], beside, rules=rules) == RIGHT
    assert certain("H2", [LEARNER, (4, 4)], beside, rules=rules, captured=[True, False]) == UP


def test_h2_ignores_who_is_in_the_way(rules):
    assert certain("H2", [LEARNER, (2, 5), (3, 5)], [(6, 6), FAR], rules=rules) == DOWN


def test_without_living_prey_anything_is_done(rules):
    for name in ("H2", "H3", "H7", "H8"):
        dead = {"captured": [True, True], "rules": rules}
        assert probs(name, [LEARNER, (4, 4)], [(4, 5), FAR], **dead) == UNIFORM


def test_h3_may_err_in_the_reference_only():
    # To (6, 5) from (2, 3): 4 down, 2 right.
    down = np.exp(4 / 2.5) / (np.exp(4 / 2.5) + np.exp(2 / 2.5))
    got = probs("H3", [LEARNER, (2, 3)], [(6, 6), FAR], rules="paper")
    assert got == pytest.approx([0, 1 - down, down, 0, 0])
    good = 1 / (1 + np.exp(-0.8))
    assert good == pytest.approx(0.690, abs=5e-4)
    got = probs("H3", [LEARNER, (2, 3)], [(6, 6), FAR], rules="reference")
    expected = [
        down * (1 - good), (1 - down) * good, down * good, (1 - down) * (1 - good), 0
    ]  # fmt: skip
    assert got == pytest.approx(expected)


def test_h3_of_the_reference_avoids_the_border():
    # At row 9 without a vertical gap, down is "good" but off the grid; sideways both are possible.
    got = probs("H3", [LEARNER, (9, 0)], [(9, 5), (0, 9)], rules="reference")
    down = 1 / (1 + np.exp(4 / 2.5))
    assert got[DOWN] == pytest.approx(down * 0.231, abs=5e-4)
    assert got[UP] == pytest.approx(down * 0.769, abs=5e-4)
    assert got[LEFT] == pytest.approx((1 - down) * (1 - 0.943), abs=5e-4)


def test_h4_leaves_a_cell_to_who_has_the_longest_way(rules):
    # The learner is farthest and takes (1, 2), right of the prey; so (2, 1) is left, below it.
    prey = [(1, 1), (1, 8)]
    assert certain("H4", [(9, 2), (2, 2)], prey, rules=rules) == LEFT
    # If the learner stands closer than the teammate, the teammate chooses first.
    assert certain("H4", [(2, 3), (2, 2)], prey, rules=rules) == UP


def test_h4_on_its_cell_steps_at_the_prey(rules):
    assert certain("H4", [(9, 9), (2, 1)], [(1, 1), (8, 8)], rules=rules) == UP


def test_h4_goes_around_others(rules):
    # The learner takes (4, 5), so the way leads to (4, 7); (4, 4) is in it, and so is the prey.
    hunters = [(0, 0), (4, 3), (4, 4)]
    assert certain("H4", hunters, [(4, 6), FAR], rules=rules) == UP


def test_h4_without_a_way_does_anything(rules):
    # In the corner, closed in by two others.
    hunters = [(0, 1), (0, 0), (1, 0)]
    assert probs("H4", hunters, [(5, 5), FAR], rules=rules) == UNIFORM


def test_waiting_types_wait_alone_near_a_prey_but_not_with_company():
    prey = [(4, 6), FAR]
    for name in ("H7", "H8", "H9"):
        alone = [LEARNER, (4, 4)]
        assert probs(name, alone, prey, rules="paper", radius=3) == UNIFORM
        # The retreat of the reference: no row gap, so to the column side, left.
        assert certain(name, alone, prey, rules="reference", radius=3) == LEFT
        together = [(2, 6), (4, 4)]
        other = {"H7": "H2", "H8": "H3", "H9": "H4"}[name]
        for rules in HUNTERS:
            got = probs(name, together, prey, rules=rules, radius=3)
            assert np.array_equal(got, probs(other, together, prey, rules=rules))
        # Two are wanted, one is there.
        assert certain(name, together, prey, rules="reference", radius=3, companions=2) == LEFT
        # Beyond the radius it does not wait.
        got = probs(name, alone, prey, rules="paper", radius=1)
        assert np.array_equal(got, probs(other, alone, prey, rules="paper"))


def test_who_cannot_step_back_in_a_corner_moves_anyhow():
    # At (0, 0) below-left of nothing: the prey at (1, 1) is down and right; up and left are closed.
    got = probs("H7", [FAR, (0, 0)], [(1, 1), (8, 8)], rules="reference", radius=2)
    assert got == pytest.approx([0.25] * 4 + [0])


def test_waiting_traits_are_drawn_as_the_rules_say():
    bits = jax.random.bits(jax.random.key(0), (20000,))
    radius, companions = WAITING_TRAITS["reference"].draw(bits)
    frequencies = [float((radius == k).mean()) for k in (2, 3, 4)]
    assert frequencies == pytest.approx([0.4, 0.4, 0.2], abs=0.02)
    assert float((companions == 1).mean()) == pytest.approx(0.7, abs=0.02)
    assert float(((radius == 4) & (companions == 2)).mean()) == pytest.approx(0.06, abs=0.01)
    radius, companions = WAITING_TRAITS["paper"].draw(bits)
    assert [float((radius == k).mean()) for k in (3, 4, 5)] == pytest.approx([1 / 3] * 3, abs=0.02)
    assert (companions == 1).all()


def positions(rules, number, random):
    """Yield games after random play, some with hunters on the border and captured prey."""
    for seed in range(number):
        game = SlowWolfpack(rules, team_limit=int(random.integers(2, 6)), slots=SLOTS, seed=seed)
        for _ in range(int(random.integers(1, 40))):
            game.step(int(random.integers(5)), random.integers(0, 7, 2))
        yield game


@pytest.mark.parametrize("number", [250, pytest.param(1000, marks=pytest.mark.slow)])
def test_each_type_agrees_with_its_rule_on_random_positions(number, rules):
    random = np.random.default_rng(5)
    slow = list(positions(rules, number, random))
    rows = [np.stack(parts) for parts in zip(*map(rows_of, slow), strict=True)]
    radius = random.integers(2, 6, (number, SLOTS)).astype(np.int32)
    companions = random.integers(1, 3, (number, SLOTS)).astype(np.int32)
    batches = [each.reshape(-1, BATCH, *each.shape[1:]) for each in (*rows, radius, companions)]
    got = np.concatenate([
        PROBS[rules](each[:-2], *each[-2:]) for each in zip(*batches, strict=True)
    ])  # fmt: skip
    paths = 0
    for k, game in enumerate(slow):
        for slot in range(SLOTS):
            if game.hunters[slot] is None:
                continue
            for index, name in enumerate(TYPES):
                traits = int(radius[k, slot]), int(companions[k, slot])
                expected = game.distribution(name, slot, *traits)
                assert np.abs(got[k, index, slot] - expected).max() <= 1e-6, (k, slot, name)
                paths += name == "H4" and expected.max() == 1
    assert paths > number


def grids(number, size=10, walls=25):
    """Yield starts, goals and grids with many obstacles."""
    random = np.random.default_rng(3)
    for _ in range(number):
        cells = random.permutation(size * size)[: 2 + random.integers(0, walls)]
        start, goal, *blocked = [(int(cell) // size, int(cell) % size) for cell in cells]
        nowhere = [(-1, -1)] * (walls - len(blocked))
        yield start, goal, set(blocked), [*blocked, *nowhere]


@pytest.mark.parametrize(
    ("walls", "size"), [(6, 10), (50, 10), pytest.param(400, 34, marks=pytest.mark.slow)]
)
def test_searches_find_the_first_step_on_grids_with_many_obstacles(walls, size):
    """Rows of more than 32 cells take more than one word of bits."""
    cases = list(grids(1000 if size == 10 else 200, size, walls))
    start, goal, cells = (np.array([case[k] for case in cases], np.int32) for k in (0, 1, 3))

    def moves(search):
        every = jax.vmap(lambda *given: search(*given, size))
        return np.asarray(jax.jit(every)(start, goal, cells))

    ours, theirs = moves(shortest_path_search), moves(reading_order_search)
    detours = closed = 0
    for k, (start_cell, goal_cell, blocked, _) in enumerate(cases):
        steps = shortest_first_steps(start_cell, goal_cell, blocked, size)
        assert ours[k] == (steps[0] if steps else NO_PATH)
        step = reference_first_step(start_cell, goal_cell, blocked, size)
        assert theirs[k] == (NO_PATH if step is None else step)
        closed += not steps
        detours += bool(steps) and step not in steps
    assert detours > 10
    assert closed > 5 or walls < 10


def test_the_pool_acts_by_type(rules):
    env = make("wolfpack", rules=rules, types=TYPES)
    pool = env.team.pool
    hunters, prey = [(0, 0), (2, 3), (6, 1), (9, 9)], [(6, 6), (1, 8)]
    here = state([*hunters, None], prey)

    def act(key):
        rng = StepRNG(key)
        roster = pool.reset(rng, (0,) * SLOTS)
        greedy = jnp.full(SLOTS, pool.names.index("H2"))
        return pool.act(rng, env.game, replace(roster, type=greedy), here, here.present)

    actions, _ = jax.jit(act)(jax.random.key(1))
    expected = [certain("H2", hunters, prey, slot=slot, rules=rules) for slot in range(4)]
    assert actions[:4].tolist() == expected
