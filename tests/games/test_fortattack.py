"""The rules of FortAttack, by hand and beside a slow implementation."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fortattack_states import DOWN, FIELDS, UP, random_states, state
from hypothesis import given
from hypothesis import strategies as st
from slow_fortattack import SlowFortAttack, barycentric, triangle, waiting_time

from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.env import make
from dropin.games.fortattack.game import make_game
from dropin.games.fortattack.openness import Shooting
from dropin.games.fortattack.state import DOWN as GO_DOWN
from dropin.games.fortattack.state import LEFT as GO_LEFT
from dropin.games.fortattack.state import NOTHING, RIGHT, SHOOT, TURN_LEFT, TURN_RIGHT, Geometry
from dropin.games.fortattack.state import UP as GO_UP
from dropin.teams.types import ViewType

RULES = ("paper", "reference")
GAMES = {rules: make_game(rules) for rules in RULES}
OPENNESS = {"paper": Shooting(), "reference": Shooting(sums_hits=True)}
AWAY = (-0.7, -0.7, DOWN)
"""An attacker in the corner that looks at the wall."""


@eqx.filter_jit
def advance(game, here, actions):
    return game.step(StepRNG(jax.random.key(0)), here, jnp.asarray(actions, jnp.int32))


def play(guards, attackers, actions, rules="reference", **more):
    """What a step leads to, and the rewards."""
    after, outcome = advance(GAMES[rules], state(guards, attackers, **more), actions)
    return after, np.asarray(outcome.rewards, float), outcome


def waits(rules, outcome):
    """How long each victim has to wait."""
    return np.asarray(OPENNESS[rules].waiting_time(outcome.events.distance, outcome.events.hits))


def test_each_action_does_what_it_says():
    for action, vx, vy in [
        (RIGHT, 0.3, 0),
        (GO_LEFT, -0.3, 0),
        (GO_UP, 0, 0.3),
        (GO_DOWN, 0, -0.3),
    ]:
        after, _, _ = play([(0.2, 0.1, DOWN)], [AWAY], [action, NOTHING])
        assert [float(after.vx[0]), float(after.vy[0])] == pytest.approx([vx, vy])
        place = [float(after.x[0]), float(after.y[0])]
        assert place == pytest.approx([0.2 + 0.1 * vx, 0.1 + 0.1 * vy])
    for action, turn in [(TURN_LEFT, 0.17), (TURN_RIGHT, -0.17), (NOTHING, 0), (SHOOT, 0)]:
        after, _, _ = play([(0.2, 0.1, 1.0)], [AWAY], [action, NOTHING])
        assert float(after.heading[0]) == pytest.approx(1 + turn)
        assert float(after.x[0]) == pytest.approx(0.2)


def test_headings_stay_within_a_full_turn():
    after, _, _ = play([(0, 0, 0.1)], [(0, -0.5, 2 * np.pi - 0.1)], [TURN_RIGHT, TURN_LEFT])
    assert after.heading.tolist() == pytest.approx([2 * np.pi - 0.07, 0.07], abs=1e-6)


def test_two_who_shoot_each_other_both_vanish():
    after, rewards, outcome = play(
        [(0, 0.3, DOWN), (0.6, 0.6, DOWN)], [(0, 0, UP)], [SHOOT, 0, SHOOT]
    )
    assert after.present.tolist() == [False, True, False]
    assert rewards == pytest.approx([-0.1, 0, -0.1])  # 3 - 3 - 0.1
    assert bool(outcome.terminated)
    assert [float(getattr(after, name)[2]) for name in FIELDS] == [0] * 5


def test_two_shooters_on_one_victim():
    guards, attackers = [(0.1, 0.3, DOWN), (-0.1, 0.4, DOWN)], [(0, 0, DOWN), (0.8, 0, DOWN)]
    actions = [SHOOT, SHOOT, NOTHING, NOTHING]
    far = [np.hypot(0.1, 0.3), np.hypot(0.1, 0.4)]
    _, rewards, outcome = play(guards, attackers, actions)
    assert rewards == pytest.approx([2.9, 2.9, -3, 0])
    assert waits("reference", outcome)[2] == int(80 * sum(1 - d / 0.95 for d in far)) == 98
    assert waits("paper", outcome)[2] == round(80 * (1 - far[0] / 0.95)) == 53


def test_one_shot_hits_all_in_the_triangle_but_none_of_its_own_side_and_pays_once():
    guards = [(0, 0.5, DOWN), (0, 0.3, UP)]
    attackers = [(0, 0.1, DOWN), (0.1, 0.0, DOWN), (0.5, 0.4, DOWN)]
    after, rewards, outcome = play(guards, attackers, [SHOOT, 0, 0, 0, 0])
    assert outcome.events.hits[0].tolist() == [False, False, True, True, False]
    assert after.present.tolist() == [True, True, False, False, True]
    assert rewards == pytest.approx([2.9, 0, -3, -3, 0])


def test_the_edge_of_the_triangle_belongs_to_it():
    # Looking right from the origin: the apex is at 0.05, the far side at 0.05 + 0.8 cos(22.5 deg).
    end, half = 0.05 + 0.8 * np.cos(np.pi / 8), np.tan(np.pi / 8)
    inside = [(end - 1e-4, 0.0), (0.45, 0.4 * half - 1e-4), (0.06, 0), (end - 1e-4, 0.3)]
    outside = [(end + 1e-4, 0.0), (0.45, 0.4 * half + 1e-4), (0.04, 0), (-0.3, 0), (end, 0.31)]
    for places, hit in ((inside, True), (outside, False)):
        for x, y in places:
            for side in (1, -1):
                _, _, outcome = play([(0, 0, 0.0)], [(x, side * y, 0.0)], [SHOOT, NOTHING])
                assert bool(outcome.events.hits[0, 1]) == hit, (x, y)


def test_waiting_times_at_no_distance_and_at_full_range():
    full = np.hypot(0.05 + 0.8 * np.cos(np.pi / 8), 0.8 * np.sin(np.pi / 8))
    for distance, reference, paper in [(0.0, 80, 80), (full, 8, 9), (0.95, 0, 0), (2.0, 0, 0)]:
        distances, hits = jnp.full((1, 1), distance, jnp.float32), jnp.array([[True]])
        assert int(OPENNESS["reference"].waiting_time(distances, hits)[0]) == reference
        assert int(OPENNESS["paper"].waiting_time(distances, hits)[0]) == paper
        assert waiting_time("reference", [distance]) == reference
        assert waiting_time("paper", [distance]) == paper


def test_agents_that_overlap_push_each_other_apart():
    after, _, _ = play([(0, 0, DOWN), (0.06, 0, DOWN)], [AWAY], [0, 0, 0])
    # They overlap by 0.04: a force of 4, a speed of 0.4.
    assert after.vx.tolist() == pytest.approx([-0.4, 0.4, 0], abs=1e-5)
    same, _, _ = play([(0, 0, DOWN), (0, 0, DOWN)], [AWAY], [0, 0, 0])
    assert same.vx.tolist() == [0, 0, 0]


def test_who_is_shot_pushes_nobody():
    guards, attackers = [(-0.3, 0, 0.0)], [(-0.2, 0, UP), (-0.2, 0.06, UP)]
    after, _, _ = play(guards, attackers, [SHOOT, NOTHING, NOTHING])
    assert after.present.tolist() == [True, False, True]
    assert after.vy.tolist() == [0, 0, 0]
    after, _, _ = play(guards, attackers, [NOTHING, NOTHING, NOTHING])
    assert after.vy.tolist() == pytest.approx([0, -0.4, 0.4], abs=1e-5)


def test_the_corner_of_the_walls_pushes_both_ways():
    after, _, _ = play([(0.98, 0.77, DOWN)], [AWAY], [NOTHING, NOTHING])
    # 0.03 and 0.02 beyond: forces of 3 and 2.
    assert [float(after.vx[0]), float(after.vy[0])] == pytest.approx([-0.3, -0.2], abs=1e-5)


def test_the_fort_falls_when_an_attacker_is_within_it():
    for y, falls in [(0.64, False), (0.66, True)]:
        _, rewards, outcome = play([(0.5, 0.7, DOWN)], [(0, y, UP)], [NOTHING, NOTHING])
        assert bool(outcome.terminated) == falls
        assert rewards.tolist() == ([-10, 10] if falls else [0, 0])
    _, _, outcome = play([(0.5, 0.9, DOWN)], [(0, 0.75, UP)], [0, 0], rules="paper")
    assert bool(outcome.events.fort_fell)
    _, _, outcome = play([(0, 0.7, DOWN)], [AWAY], [0, 0])
    assert not bool(outcome.events.fort_fell)  # a guard may be there


def test_the_fort_reached_in_the_last_step():
    _after, rewards, outcome = play([(0.5, 0.7, DOWN)], [(0, 0.7, UP)], [0, 0], time=99)
    assert bool(outcome.terminated)
    assert rewards.tolist() == [0, 0]  # -10 + 10
    _, rewards, outcome = play([(0.5, 0.7, DOWN)], [AWAY], [SHOOT, 0], time=99)
    assert bool(outcome.terminated)
    assert not bool(outcome.truncated)
    assert rewards == pytest.approx([9.9, -10])
    _, rewards, outcome = play([(0.5, 0.7, DOWN)], [AWAY], [0, 0], time=98)
    assert not bool(outcome.terminated)


def test_the_learner_is_shot_while_the_fort_falls():
    _, rewards, outcome = play(
        [(0, 0.3, DOWN)], [(0, 0, UP), (0, 0.7, UP)], [NOTHING, SHOOT, NOTHING]
    )
    assert rewards == pytest.approx([-13, 12.9, 10])
    assert bool(outcome.terminated)


def test_a_mate_that_is_shot_does_not_end_the_episode_but_the_learner_does():
    guards, attackers = [(0.6, 0.3, DOWN), (0, 0.3, DOWN)], [(0, 0, UP)]
    _after, rewards, outcome = play(guards, attackers, [0, 0, SHOOT])
    assert not bool(outcome.terminated)
    assert rewards == pytest.approx([0, -3, 2.9])
    _, _, outcome = play(guards[::-1], attackers, [0, 0, SHOOT])
    assert bool(outcome.terminated)
    game = make_game("reference", ends_with_learner=False)
    _, outcome = advance(game, state(guards[::-1], attackers), [0, 0, SHOOT])
    assert not bool(outcome.terminated)


def copy_state(slow, here):
    """Bring the slow game to a state."""
    x, y, vx, vy, heading = (np.asarray(getattr(here, name)) for name in FIELDS)
    slow.set_state(x, y, vx, vy, heading, here.present, here.time)


def compare(slow, rules, here, actions):
    """One step of both from the same state."""
    after, outcome = advance(GAMES[rules], here, actions)
    copy_state(slow, here)
    rewards, terminated = slow.step(actions)
    assert set(zip(*np.nonzero(np.asarray(outcome.events.hits)), strict=True)) == slow.hits
    assert np.asarray(outcome.events.fired).tolist() == slow.fired.tolist()
    assert bool(outcome.events.fort_fell) == slow.fallen
    assert np.asarray(outcome.rewards) == pytest.approx(rewards, abs=1e-5)
    assert bool(outcome.terminated) == terminated
    assert not bool(outcome.truncated)
    assert after.present.tolist() == slow.present.tolist()
    for name in FIELDS[:-1]:
        assert np.asarray(getattr(after, name)) == pytest.approx(getattr(slow, name), abs=1e-5)
    turned = np.asarray(after.heading) - slow.heading
    assert np.abs((turned + np.pi) % (2 * np.pi) - np.pi).max() < 1e-5
    return after, outcome


def on_an_edge(slow):
    """Whether somebody is so close to the rim of a laser or of the fort that rounding decides."""
    here = [slot for slot in range(slow.slots) if slow.present[slot]]
    for a in here:
        corners = triangle(slow.x[a], slow.y[a], slow.heading[a])
        for b in here:
            if a != b and abs(min(barycentric((slow.x[b], slow.y[b]), corners))) < 1e-5:
                return True
    return False


@pytest.mark.parametrize("rules", RULES)
def test_one_step_from_crowded_states_agrees_with_the_slow_game(rules):
    random = np.random.default_rng(1)
    slow = SlowFortAttack(rules)
    shots = 0
    for here in random_states(rules, 400, seed=2):
        copy_state(slow, here)
        if on_an_edge(slow):
            continue
        actions = np.where(random.random(6) < 0.4, SHOOT, random.integers(0, 8, 6))
        _, outcome = compare(slow, rules, here, actions)
        shots += int(outcome.events.hits.sum())
    assert shots > 200


def episodes_agree(rules, limit, episodes):
    """Play whole episodes with random actions; compare the game, its openness and observations.

    Returns the number of re-entries, each of which happened exactly when the waiting time was over.
    """
    env = make("fortattack", rules=rules, team_limit=limit, types=[IDLE_GUARD, IDLE_ATTACKER])
    reset = eqx.filter_jit(env.reset)
    step = eqx.filter_jit(partial(env.step_all, auto_reset=False))
    slow = SlowFortAttack(rules, limit, limit)
    random = np.random.default_rng(limit)
    re_entries = 0
    for episode in range(episodes):
        key = jax.random.key(episode)
        now, observation = reset(key)
        assert np.asarray(observation.present).all()
        slow.reset()
        due, time, done = {}, 0, False
        while not done:
            actions = np.where(
                random.random(2 * limit) < 0.5, SHOOT, random.integers(0, 8, 2 * limit)
            )
            key, step_key = jax.random.split(key)
            before, time = now.game, time + 1
            copy_state(slow, before)
            assert slow.wait.tolist() == np.asarray(now.openness).tolist()
            rewards, terminated = slow.step(actions)
            slow_entered = slow.open_process()
            now, result = step(step_key, now, jnp.asarray(actions, jnp.int32))
            assert np.asarray(result.rewards) == pytest.approx(rewards, abs=1e-5)
            assert bool(result.terminated) == terminated
            entered = np.flatnonzero(result.final_observation.arrived).tolist()
            assert entered == slow_entered
            for slot in entered:  # their places are random
                slow.x[slot], slow.y[slot] = float(now.game.x[slot]), float(now.game.y[slot])
            observed = np.asarray(result.final_observation.agents)
            assert observed == pytest.approx(slow.observe(), abs=1e-5)

            due |= due_times(rules, before, result.events.hits, time)
            assert entered == sorted(slot for slot in due if due[slot] == time)
            due = {slot: at for slot, at in due.items() if at > time}
            assert np.flatnonzero(~now.game.present).tolist() == sorted(due)
            re_entries += len(entered)
            done = bool(result.done)
    return re_entries


def due_times(rules, before, hits, time):
    """In which step each victim of this step has to re-enter."""
    hits = np.asarray(hits)
    x, y = np.asarray(before.x, float), np.asarray(before.y, float)
    due = {}
    for victim in np.flatnonzero(hits.any(axis=0)).tolist():
        shooters = np.flatnonzero(hits[:, victim])
        distances = np.hypot(x[shooters] - x[victim], y[shooters] - y[victim]).tolist()
        due[victim] = time + waiting_time(rules, distances)
    return due


IDLE_GUARD = ViewType("guard", "", lambda view: jnp.int32(0))
IDLE_ATTACKER = ViewType("attacker", "", lambda view: jnp.int32(0), side=1)


@pytest.mark.parametrize("rules", [pytest.param("paper", marks=pytest.mark.slow), "reference"])
def test_step_by_step_parity_with_the_slow_game(rules):
    assert episodes_agree(rules, 3, 20) > 0
    assert episodes_agree(rules, 5, 5) > 0


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULES)
def test_step_by_step_parity_over_many_episodes(rules):
    assert episodes_agree(rules, 3, 500) > 0


@pytest.mark.parametrize("rules", RULES)
def test_newcomers_are_placed_where_the_rules_say(rules):
    game = GAMES[rules]
    enter = jax.jit(jax.vmap(lambda key: game.reset(StepRNG(key), jnp.ones(6, bool))))
    here = enter(jax.random.split(jax.random.key(0), 2000))
    wide, low, high, middle = (0.8, 0.8, 1.0, 0.12) if rules == "paper" else (1.0, 0.64, 0.8, 0.06)
    for rows, sign, half in ((slice(0, 3), 1, middle), (slice(3, 6), -1, wide)):
        x, y = np.asarray(here.x)[:, rows], sign * np.asarray(here.y)[:, rows]
        assert (np.abs(x) <= half).all()
        assert np.abs(x).max() > 0.99 * half
        assert (y >= low - 1e-6).all()
        assert (y <= high).all()
        assert y.min() < low + 0.01 * (high - low)
        assert y.max() > high - 0.01 * (high - low)
        assert x.mean() == pytest.approx(0, abs=0.05 * half)
    assert np.asarray(here.heading)[0].tolist() == pytest.approx([DOWN] * 3 + [UP] * 3)


def test_terminal_speed_of_thrust_alone():
    here = state([(-0.9, 0, DOWN)], [AWAY])
    game = make_game("reference", half_width=50.0)
    for _ in range(100):
        here, _ = advance(game, here, [RIGHT, NOTHING])
    assert float(here.vx[0]) == pytest.approx(1.2, abs=1e-4)


@given(seed=st.integers(0, 10**6), rules=st.sampled_from(RULES))
def test_energy_does_not_grow_without_thrust(seed, rules):
    """Away from walls and contacts; with them the springs hold energy too."""
    (here,) = random_states(rules, 1, seed)
    alone = here.present & (np.arange(6) == seed % 6)
    here = eqx.tree_at(lambda each: each.present, here, alone)
    game = eqx.tree_at(
        lambda game: (game.half_width, game.half_height),
        GAMES[rules],
        (jnp.float32(99), jnp.float32(99)),
    )
    energy = jnp.sum(jnp.where(alone, here.vx**2 + here.vy**2, 0))
    after, _ = advance(game, here, [NOTHING, SHOOT, TURN_LEFT] * 2)
    moved = jnp.sum(jnp.where(alone, after.vx**2 + after.vy**2, 0))
    assert float(moved) <= float(energy) * (0.75**2 + 1e-5)


@given(seed=st.integers(0, 10**6), rules=st.sampled_from(RULES), pull=st.integers(0, 4))
def test_nobody_leaves_the_plane_by_more_than_the_walls_give(seed, rules, pull):
    """Nobody is faster than 3, so one alone gets no deeper than 0.3 into a wall."""
    game = GAMES[rules]
    here = game.reset(StepRNG(jax.random.key(seed)), jnp.ones(2, bool))
    far = eqx.tree_at(
        lambda each: (each.vx, each.vy), here, (jnp.array([3.0, -2.1]), jnp.array([0.0, -2.1]))
    )
    for _ in range(40):
        far, _ = advance(game, far, [pull, pull])
        there = np.asarray(far.present)
        assert (np.abs(far.x)[there] <= float(game.half_width) - 0.05 + 0.3).all()
        assert (np.abs(far.y)[there] <= float(game.half_height) - 0.05 + 0.3).all()


@given(seed=st.integers(0, 10**6), rules=st.sampled_from(RULES))
def test_who_is_absent_has_no_part(seed, rules):
    (here,) = random_states(rules, 1, seed)
    actions = np.random.default_rng(seed).integers(0, 8, 6)
    after, outcome = advance(GAMES[rules], here, actions)
    gone = ~np.asarray(here.present)
    other, same = advance(GAMES[rules], here, np.where(gone, SHOOT, actions))
    assert eqx.tree_equal((after, outcome), (other, same))
    assert (np.asarray(outcome.rewards)[gone] == 0).all()
    away = ~np.asarray(after.present)
    for name in FIELDS:
        assert (np.asarray(getattr(after, name))[away] == 0).all()


def test_lasers_are_those_of_the_slow_game():
    for here in random_states("paper", 100, seed=5):
        slow = SlowFortAttack("paper")
        copy_state(slow, here)
        if on_an_edge(slow):
            continue
        mine = np.asarray(GAMES["paper"].in_laser(Geometry.from_state(here)))
        for a in np.flatnonzero(here.present):
            for b in np.flatnonzero(here.present):
                assert a == b or bool(mine[a, b]) == slow.in_triangle(a, b)


def test_features_follow_the_encoding_of_headings():
    agent, shared = GAMES["paper"].features(3)
    assert len(agent) == 8
    assert shared == []
    assert len(GAMES["reference"].features(3)[0]) == 7


def test_the_metric_is_the_accuracy_of_the_learners_shots_alone():
    hit, miss = (0, 0.2, DOWN), (0.6, 0.6, UP)
    target = [(0, 0, DOWN)]
    for guards, actions, total, count in [
        ([hit, miss], [SHOOT, NOTHING, NOTHING], 1, 1),
        ([miss, hit], [SHOOT, SHOOT, NOTHING], 0, 1),
        ([miss, hit], [NOTHING, SHOOT, NOTHING], 0, 0),
    ]:
        _, _, outcome = play(guards, target, actions)
        (name, accuracy), *others = GAMES["reference"].metrics(outcome.events).items()
        assert (name, others) == ("shooting_accuracy", [])
        assert accuracy.total.dtype == accuracy.count.dtype == jnp.float32
        assert accuracy.total.shape == accuracy.count.shape == ()
        assert (float(accuracy.total), float(accuracy.count)) == (total, count)


def test_bad_settings_get_a_clear_sentence():
    with pytest.raises(InputError, match="num_attackers is 0, but it has to be at least 1"):
        make_game("paper", num_attackers=0)
    with pytest.raises(InputError, match="A team limit of 2 leaves no attacker"):
        make("fortattack", team_limit=2, slots=5, fewer_attackers=2)
    with pytest.raises(InputError, match="With 3 fewer attackers than 3 guards there is no"):
        make("fortattack", team_limit=3, fewer_attackers=3)
    with pytest.raises(InputError, match="'degrees', but it can be 'vector' or 'angle'"):
        make_game("paper", heading_encoding="degrees")
    with pytest.raises(InputError, match="fort_radius is -1, but it has to be above 0"):
        make_game("paper", fort_radius=-1)
    with pytest.raises(InputError, match="wheels"):
        make_game("paper", wheels=4)


def test_sides_may_differ_in_size():
    game = make_game("paper", num_attackers=2)
    assert game.sides(3) == (0, 0, 0, 1, 1)
    assert game.usable_slots(3, jnp.int32(2)).tolist() == [True, True, False, True, True]
    assert GAMES["paper"].usable_slots(3, jnp.int32(2)).tolist() == [True, True, False] * 2
