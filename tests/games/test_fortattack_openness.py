"""Both sides of FortAttack: openness by shooting, and how types are drawn and act."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fortattack_states import DOWN, UP, random_states, state
from hypothesis import given
from hypothesis import strategies as st

from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.env import make
from dropin.games.fortattack.game import make_game
from dropin.games.fortattack.learned import FighterNetwork, LearnedFighter, encode_view
from dropin.games.fortattack.observer import Observer
from dropin.games.fortattack.openness import Shooting
from dropin.games.fortattack.state import SHOOT, Geometry
from dropin.teams.openness import Churn, Closed, Durations
from dropin.teams.scripted import Scripted
from dropin.teams.types import ViewType

AT_EASE = [ViewType("guard", "", lambda view: jnp.int32(0)),
           ViewType("attacker", "", lambda view: jnp.int32(0), side=1)]  # fmt: skip


def arena(**settings):
    return make("fortattack", **{"types": AT_EASE, **settings})


@eqx.filter_jit
def advance(env, key, now, actions):
    return env.step_all(key, now, actions, auto_reset=False)


@eqx.filter_jit
def start(env, key):
    return env.reset(key)


def placed(env, here):
    """An environment's state at this state of the game."""
    now, _ = start(env, jax.random.key(0))
    return eqx.tree_at(lambda each: each.game, now, here)


@pytest.mark.parametrize(("rules", "wait"), [("paper", 38), ("reference", 37)])
def test_who_is_shot_is_back_after_exactly_its_waiting_time(rules, wait):
    env = arena(rules=rules, team_limit=2)
    # 0.5 away: 80 * (1 - 0.5 / 0.95) = 37.9.
    here = state([(0, 0.4, DOWN), (0.6, 0.7, DOWN)], [(0, -0.1, DOWN), (-0.7, -0.7, DOWN)])
    now, result = advance(env, jax.random.key(0), placed(env, here), jnp.array([SHOOT, 0, 0, 0]))
    assert result.final_observation.present.tolist() == [True, True, False, True]
    assert result.removed.tolist() == [False, False, True, False]
    for number in range(wait):
        assert not bool(now.game.present[2])
        now, result = advance(env, jax.random.key(number), now, jnp.zeros(4, jnp.int32))
    assert result.final_observation.arrived.tolist() == [False, False, True, False]
    assert bool(now.game.present[2])
    assert float(now.game.heading[2]) == pytest.approx(UP)


def test_types_are_drawn_for_each_side_alone():
    types = [ViewType(name, "", lambda view: jnp.int32(0), side=side)
             for name, side in (("a", 1), ("x", 0), ("b", 1), ("y", 0), ("c", 1))]  # fmt: skip
    env = arena(types=types, team_limit=3)
    assert env.team.pool.names == ("x", "y", "a", "b", "c")
    drawn_types = jax.vmap(lambda key: env.reset(key)[0].roster.type)(
        jax.random.split(jax.random.key(0), 900)
    )
    guards, attackers = np.asarray(drawn_types)[:, :3], np.asarray(drawn_types)[:, 3:]
    for drawn, numbers in ((guards, (0, 1)), (attackers, (2, 3, 4))):
        shares = [(drawn == number).mean() for number in numbers]
        assert shares == pytest.approx([1 / len(numbers)] * len(numbers), abs=0.05)
    mixed = [len(set(row)) > 1 for row in guards.tolist()]
    assert np.mean(mixed) == pytest.approx(0.75, abs=0.06)


def test_under_reference_a_side_has_one_type_for_the_whole_episode():
    types = [ViewType(name, "", lambda view: jnp.int32(0), side=side)
             for name, side in (("x", 0), ("y", 0), ("a", 1), ("b", 1))]  # fmt: skip
    env = arena(types=types, rules="reference", team_limit=3)
    drawn_types = np.asarray(
        jax.vmap(lambda key: env.reset(key)[0].roster.type)(
            jax.random.split(jax.random.key(0), 400)
        )
    )
    assert (drawn_types[:, :3] == drawn_types[:, :1]).all()
    assert (drawn_types[:, 3:] == drawn_types[:, 3:4]).all()
    assert drawn_types[:, 0].mean() == pytest.approx(0.5, abs=0.1)
    assert np.corrcoef(drawn_types[:, 0], drawn_types[:, 3])[0, 1] == pytest.approx(0, abs=0.2)
    pool, roster = env.team.pool, env.reset(jax.random.key(1))[0].roster
    after = pool.spawn(StepRNG(jax.random.key(2)), roster, jnp.ones(6, bool))
    assert after.type.tolist() == roster.type.tolist()
    assert after.agent_seed.tolist() != roster.agent_seed.tolist()
    assert not arena(types=types, rules="reference", shared_type=False).team.pool.shared_type


def test_types_of_one_side_leave_the_other_its_own():
    names = arena(types=["G4"]).team.pool.names
    assert "G4" in names
    assert "A1" in names
    assert "G2" not in names
    names = arena(types=["A1"]).team.pool.names
    assert "A2" not in names
    assert "G2" in names


def test_who_can_be_open_in_which_way():
    for openness in (Durations((5, 6), (5, 6)), Churn(), Scripted([1], [])):
        with pytest.raises(InputError, match="for teams without opponents"):
            arena(openness=openness)
    with pytest.raises(InputError, match="for games with opponents"):
        make("lbf", openness=Shooting())
    with pytest.raises(InputError, match="max_waiting_time is -1, but it has to be above 0"):
        Shooting(max_waiting_time=-1)


def test_in_a_closed_game_the_shot_do_not_return():
    env = arena(team_limit=2, openness=Closed(), horizon=500)
    here = state([(0, 0.4, DOWN), (0.6, 0.7, DOWN)], [(0, -0.1, DOWN), (-0.7, -0.7, DOWN)])
    now, _ = advance(env, jax.random.key(0), placed(env, here), jnp.array([SHOOT, 0, 0, 0]))
    for number in range(100):
        now, result = advance(env, jax.random.key(number), now, jnp.zeros(4, jnp.int32))
        assert result.final_observation.present.tolist() == [True, True, False, True]


@given(seed=st.integers(0, 10**6))
def test_nobody_is_anywhere_beyond_the_limit(seed):
    env = arena(team_limit=3, slots=4, num_attackers=2)
    _, observation = start(env, jax.random.key(seed))
    assert observation.present.tolist() == [True] * 3 + [False] + [True] * 2


@eqx.filter_jit
def views_of(game, here):
    return Observer()(game, StepRNG(jax.random.key(0)), here, jnp.zeros(6, jnp.uint32))


@pytest.mark.parametrize("rules", ["paper", "reference"])
def test_views_say_where_everybody_is(rules):
    game = make_game(rules)
    for here in random_states(rules, 10, seed=3):
        views = views_of(game, here)
        geometry = Geometry.from_state(here)
        for a in np.flatnonzero(here.present):
            for b in np.flatnonzero(here.present):
                dx, dy = float(here.x[b] - here.x[a]), float(here.y[b] - here.y[a])
                turn = -float(here.heading[a])
                ahead = dx * np.cos(turn) - dy * np.sin(turn)
                left = dx * np.sin(turn) + dy * np.cos(turn)
                assert float(views.ahead[a, b]) == pytest.approx(ahead, abs=1e-5)
                assert float(views.left[a, b]) == pytest.approx(left, abs=1e-5)
                against = (a < 3) != (b < 3)
                assert bool(views.opponents[a, b]) == against
                assert bool(views.mates[a, b]) == (not against and a != b)
                hit = against and bool(game.in_laser(geometry)[a, b])
                assert bool(views.in_laser[a, b]) == bool(views.in_laser_of[b, a]) == hit


def test_a_network_sees_the_same_from_wherever_the_plane_is_turned_to():
    """Mates and opponents as they lie to the agent, in any order; the absent leave no trace."""
    net = FighterNetwork(key=jax.random.key(0))
    game = make_game("paper")

    def numbers(here):
        views = views_of(game, here)
        both = []
        for side, rows in ((0, slice(0, 3)), (1, slice(3, 6))):
            some = jax.tree.map(lambda leaf, rows=rows: leaf[rows], views)
            both.append(net(jax.vmap(partial(encode_view, sides=here.sides, side=side))(some)))
        return np.concatenate(both)

    order = np.array([0, 2, 1, 5, 3, 4])
    for here in random_states("paper", 5, seed=4):
        whole = numbers(here)
        shuffled = jax.tree.map(lambda leaf: leaf[order] if leaf.ndim else leaf, here)
        there = np.asarray(shuffled.present)
        assert numbers(shuffled)[there] == pytest.approx(whole[order][there], abs=1e-5)
        gone = ~np.asarray(here.present)
        junk = eqx.tree_at(lambda each: each.x, here, jnp.where(gone, 0.3, here.x))
        assert numbers(junk)[~gone] == pytest.approx(whole[~gone], abs=1e-6)


def test_a_learned_type_acts_for_its_own_side_alone():
    sure = FighterNetwork(key=jax.random.key(0))
    sure = eqx.tree_at(lambda net: net.decide.layers[-1].bias, sure,
                       jnp.full(8, -50.0).at[SHOOT].set(50.0))  # fmt: skip
    types = [LearnedFighter("g", "", sure), LearnedFighter("a", "", sure, side=1)]
    env = arena(types=types)
    now, _ = eqx.filter_jit(env.reset)(jax.random.key(0))
    _, result = eqx.filter_jit(env.step)(jax.random.key(1), now, jnp.int32(0))
    assert result.actions.tolist() == [0] + [SHOOT] * 5
    mixed = arena(types=[types[0], AT_EASE[1]])
    now, _ = eqx.filter_jit(mixed.reset)(jax.random.key(0))
    _, result = eqx.filter_jit(mixed.step)(jax.random.key(1), now, jnp.int32(0))
    assert result.actions.tolist() == [0, SHOOT, SHOOT, 0, 0, 0]
