from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import PRNGKeyArray
from lbf_states import make_state

import dropin
from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.core.observation import Observation, TimeStep
from dropin.env import AdHocEnv, EnvState, make
from dropin.teams.openness import Closed
from dropin.teams.scripted import Scripted

LOAD = 5


class Rollout(NamedTuple):
    """Steps of a random learner. Leading axes are [time], or [env, time] of a batch."""

    first: Observation
    """The first observation; without a time axis."""
    keys: PRNGKeyArray
    """The key of each step."""
    states: EnvState[Any]
    """The state before each step."""
    steps: TimeStep
    last: EnvState[Any]
    """The state after the last step; without a time axis."""


def play(env: AdHocEnv[Any], key: PRNGKeyArray, steps: int) -> Rollout:
    """Let a random learner play in one environment."""
    key, reset_key = jax.random.split(key)
    state, first = env.reset(reset_key)

    def step(state, key):
        act_key, step_key = jax.random.split(key)
        action = jax.random.randint(act_key, (), 0, len(env.game.actions))
        following, time_step = env.step(step_key, state, action)
        return following, (step_key, state, time_step)

    last, found = jax.lax.scan(step, state, jax.random.split(key, steps))
    return Rollout(first, *found, last)


@eqx.filter_jit
def rollout(env: AdHocEnv[Any], key: PRNGKeyArray, steps: int = 130, num_envs: int = 8) -> Rollout:
    """Let random learners play in parallel environments."""
    return jax.vmap(lambda key: play(env, key, steps))(jax.random.split(key, num_envs))


def assert_same_trees(a, b):
    """Check that two pytrees hold the same arrays, bit by bit."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for one, two in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(one, two)


ENVS = {rules: make("lbf", rules=rules, team_limit=2, slots=5) for rules in ("paper", "reference")}


def with_team_limit(env, limit):
    """Change the limit as a run-time value, without the checks of `env.with_team_limit`."""
    return eqx.tree_at(lambda env: env.team.limit, env, jnp.int32(limit))


@given(seed=st.integers(0, 2**31 - 1), limit=st.integers(2, 5))
def test_what_holds_in_every_episode(seed, limit):
    for each in ENVS.values():
        env = with_team_limit(each, limit)
        played = rollout(env, jax.random.key(seed))
        states, steps = jax.device_get(
            jax.tree.map(lambda leaf: leaf[0], (played.states, played.steps))
        )
        agents, objects = states.game.agents, states.game.objects
        present = agents[..., 2] > 0
        size = present.sum(axis=-1)
        assert size.min() >= 2
        assert size.max() <= limit
        assert present[:, 0].all()

        on_object = (agents[:, :, None, :2] == objects[:, None, :, :2]).all(axis=-1)
        there = present[:, :, None] & (objects[:, None, :, 2] > 0)
        assert not (on_object & there).any()

        done = steps.terminated | steps.truncated
        left = (objects[..., 2] > 0).sum(axis=-1)
        assert (np.diff(left)[~done[:-1]] <= 0).all()

        paid = steps.rewards > 0
        assert (steps.actions[paid] == 5).all()
        assert steps.acted[paid].all()
        assert (steps.rewards <= objects[..., 2].sum(axis=-1)[:, None]).all()

        assert np.array_equal(steps.acted, present)
        # At the start everybody has arrived, later those who were absent or took a leaver's slot.
        arrived = states.arrived
        assert (arrived[1:][done[:-1]] == present[1:][done[:-1]]).all()
        not_done = ~done[:-1]
        new = present[1:] & ~present[:-1]
        assert (arrived[1:][not_done] >= new[not_done]).all()
        assert not (arrived & ~present).any()
        assert not arrived[1:, 0][not_done].any()
        stayed_put = (arrived[1:] & arrived[:-1])[not_done]
        assert not stayed_put[:, 1:].any()


def test_a_step_is_the_game_with_the_joint_action(rules):
    env = with_team_limit(ENVS[rules], 5)
    played = rollout(env, jax.random.key(0))
    flat = jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (played.states, played.steps)
    )
    unused = StepRNG(jax.random.key(0))  # A step of level-based foraging is deterministic.
    step = eqx.filter_vmap(lambda here, actions: env.game.step(unused, here, actions))
    _, outcome = eqx.filter_jit(step)(flat[0].game, flat[1].actions)
    assert np.array_equal(outcome.rewards, flat[1].rewards)
    assert np.array_equal(outcome.terminated, flat[1].terminated)
    assert np.array_equal(outcome.truncated, flat[1].truncated)


def test_with_some_slots_under_control_the_others_act_by_their_types(rules):
    """In FortAttack all guards are given actions; the attackers do what they would have done."""
    env = make("fortattack", rules=rules)
    state, _ = eqx.filter_jit(env.reset)(jax.random.key(0))
    step, step_all = eqx.filter_jit(env.step), eqx.filter_jit(env.step_all)
    key = jax.random.key(1)
    _, by_types = step(key, state, jnp.int32(2))
    after, controlled = step_all(key, state, jnp.array([2, 5, 6]))
    assert controlled.actions[:3].tolist() == [2, 5, 6]
    np.testing.assert_array_equal(controlled.actions[3:], by_types.actions[3:])
    after_all, _ = step_all(key, state, controlled.actions)
    assert_same_trees(after.game, after_all.game)


@pytest.mark.parametrize("game", ["lbf", "wolfpack"])
def test_forced_actions_replace_those_of_types_and_nothing_else(game):
    env = make(game, team_limit=3, types=["H1", "H4"], openness="closed")
    key, action = jax.random.key(5), jnp.array([1])
    state, _ = eqx.filter_jit(env.reset)(key)
    step = eqx.filter_jit(env.step_all)
    free_state, free = step(key, state, action)
    nobody = jnp.full(3, -1)
    assert_same_trees((free_state, free), step(key, state, action, forced=nobody))
    for slot in range(3):
        other = (free.actions[slot] + 1) % len(env.game.actions)
        forced_state, forced = step(key, state, action, forced=nobody.at[slot].set(other))
        wanted = free.actions.at[slot].set(other)
        assert forced.actions.tolist() == wanted.tolist()
        assert_same_trees(forced_state.roster, free_state.roster)


def at_time(tree, time):
    """Return one step of a batch of rollouts."""
    return jax.tree.map(lambda leaf: leaf[:, time], tree)


def test_observations_are_those_of_the_states(rules):
    """At the start and after each step, in all fields."""
    env = with_team_limit(ENVS[rules], 4)
    played = rollout(env, jax.random.key(4))

    @jax.jit
    @jax.vmap
    def observe(state):
        agents, shared = env.game.observe(state.game)
        present = state.game.agents[:, 2] > 0
        return Observation(agents, shared, present, state.arrived, (0,) * 5)

    states = [at_time(played.states, time) for time in range(130)]
    assert_same_trees(played.first, observe(states[0]))
    for time, following in enumerate([*states[1:], played.last]):
        assert_same_trees(at_time(played.steps.observation, time), observe(following))


def test_auto_reset_replaces_the_end_of_an_episode_and_nothing_else(rules):
    """The same steps without it: only what follows the end of an episode differs."""
    env = with_team_limit(ENVS[rules], 3)
    played = rollout(env, jax.random.key(1))
    step = jax.jit(jax.vmap(jax.vmap(lambda *given: env.step(*given, auto_reset=False))))
    following, without = step(played.keys, played.states, played.steps.actions[..., 0])
    assert_same_trees(without.final_observation, without.observation)
    assert_same_trees(replace(played.steps, observation=without.observation), without)

    states, steps, following = jax.device_get((played.states, played.steps, following))
    done = steps.terminated | steps.truncated
    assert done.any(axis=1).all()
    assert not (steps.terminated & steps.truncated).any()
    # Within an episode the next state is that without automatic reset.
    within = ~done[:, :-1]
    for a, b in zip(jax.tree.leaves(states), jax.tree.leaves(following), strict=True):
        np.testing.assert_array_equal(a[:, 1:][within], b[:, :-1][within])
    # After its end there is a new one, in which everybody has just arrived.
    new = jax.tree.map(lambda leaf: leaf[:, 1:][done[:, :-1]], states)
    assert (new.game.time == 0).all()
    assert (new.game.objects[:, :, 2] > 0).all()
    assert (new.arrived == (new.game.agents[:, :, 2] > 0)).all()
    assert (following.game.time == states.game.time + 1).all()
    assert (following.game.time[steps.truncated] == 50).all()


def test_a_last_step_by_hand():
    """The learner collects the last object: the old episode ends and a new one starts."""
    env = make("lbf", rules="reference", team_limit=3, types=["H6"])
    state, _ = env.reset(jax.random.key(0))
    agents = [[2, 2, 2], None, [7, 7, 1]]
    state = replace(state, game=make_state(agents, [[2, 3, 2]], time=10))
    following, step = eqx.filter_jit(env.step)(jax.random.key(1), state, jnp.int32(LOAD))
    assert (float(step.reward), bool(step.terminated), bool(step.truncated)) == (2, True, False)
    assert step.acted.tolist() == [True, False, True]
    final = step.final_observation
    assert final.agents[0].tolist() == [2, 2, 2]
    assert final.shared.tolist() == [-1, -1, 0] * 3
    assert final.present.tolist() == [True, False, True]
    assert not final.arrived.any()
    first = step.observation
    assert first.present.tolist() == first.arrived.tolist() == [True, True, True]
    assert (np.asarray(first.shared).reshape(3, 3)[:, 2] > 0).all()
    assert int(following.game.time) == 0
    stopped, _ = eqx.filter_jit(env.step)(
        jax.random.key(1), state, jnp.int32(LOAD), auto_reset=False
    )
    assert int(stopped.game.time) == 11
    assert stopped.game.agents[0].tolist() == [2, 2, 2]
    assert not stopped.game.remaining.any()


@pytest.mark.slow
def test_compiled_steps_are_those_of_the_interpreter(rules):
    """Operation by operation, over the end of two episodes."""
    env = make("lbf", rules=rules, types=["H1", "H6"], horizon=3)
    step = eqx.filter_jit(env.step)
    state, observation = env.reset(jax.random.key(0))
    assert_same_trees(eqx.filter_jit(env.reset)(jax.random.key(0)), (state, observation))
    for number in range(7):
        given = (jax.random.key(number), state, jnp.int32(number % 6))
        expected = env.step(*given)
        assert_same_trees(step(*given), expected)
        state = expected[0]


@pytest.mark.parametrize("game", ["lbf", pytest.param("wolfpack", marks=pytest.mark.slow)])
def test_a_batch_of_environments_is_many_single_ones(game):
    env = make(game, types=["H1", "H2"], horizon=20)
    keys = jax.random.split(jax.random.key(9), 8)
    batch = rollout(env, jax.random.key(9), steps=45)
    single = eqx.filter_jit(play)
    rows = [single(env, keys[row], 45) for row in (0, 5)]
    for row, alone in zip((0, 5), rows, strict=True):
        for name in ("first", "states", "steps", "last"):
            of_batch = jax.tree.map(lambda leaf, row=row: leaf[row], getattr(batch, name))
            assert_same_trees(of_batch, getattr(alone, name))
    one, other = (each.steps.observation.agents for each in rows)
    assert (one != other).any()


def test_limits_can_differ_between_parallel_environments():
    env = make("lbf", team_limit=2, slots=5)
    limits = jnp.arange(2, 6)
    envs = eqx.tree_at(lambda env: env.team.limit, env, limits)
    axes = jax.tree.map(lambda leaf: 0 if leaf is limits else None, envs)
    resetting = eqx.filter_vmap(lambda env, key: env.reset(key), in_axes=(axes, 0))
    _, observations = eqx.filter_jit(resetting)(envs, jax.random.split(jax.random.key(0), 4))
    assert observations.present.sum(axis=1).tolist() == [2, 3, 4, 5]


def test_one_compilation_serves_every_limit():
    traces = []

    @eqx.filter_jit
    def step(env, key, state):
        traces.append(1)
        return env.step(key, state, jnp.int32(0))

    env = make("lbf", team_limit=3, slots=5)
    state, _ = eqx.filter_jit(env.reset)(jax.random.key(0))
    for limit in (3, 5, 2):
        state, _ = step(with_team_limit(env, limit), jax.random.key(limit), state)
    assert len(traces) == 1


def test_a_schedule_drives_the_team():
    openness = Scripted([1], [(2, "enters", 2), (4, "leaves", 1)])
    env = make("lbf", team_limit=3, openness=openness)
    state, _ = eqx.filter_jit(env.reset)(jax.random.key(0))
    sizes = []
    for number in range(5):
        sizes.append(np.asarray(state.game.present).astype(int).tolist())
        state, _ = eqx.filter_jit(env.step)(jax.random.key(number), state, jnp.int32(0))
    assert sizes == [[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 0, 1]]


def test_only_the_types_asked_for_are_drawn():
    env = make("lbf", team_limit=5, types=["H3", "H8"])
    assert env.team.pool.names == ("H3", "H8")
    assert set(np.unique(rollout(env, jax.random.key(0)).states.roster.type)) == {0, 1}


@pytest.mark.slow
def test_types_are_drawn_uniformly_and_kept_while_present():
    env = make("lbf", rules="reference", team_limit=5)
    states = jax.device_get(rollout(env, jax.random.key(3), 200, num_envs=200).states)
    kinds, arrived = states.roster.type, states.arrived
    kept = ~arrived[:, 1:] & (states.game.agents[:, 1:, :, 2] > 0)
    assert (kinds[:, 1:] == kinds[:, :-1])[kept].all()
    assert (states.roster.agent_seed[:, 1:] == states.roster.agent_seed[:, :-1])[kept].all()
    shares = np.bincount(kinds[..., 1:][arrived[..., 1:]]) / arrived[..., 1:].sum()
    assert shares == pytest.approx(np.full(9, 1 / 9), abs=0.02)


def test_a_function_can_be_a_type():
    def lazy(view):
        """Never moves."""
        return view.me[0] * 0

    env = make("lbf", team_limit=3, types=[lazy, "H6"], openness=Closed())
    assert env.team.pool.names == ("lazy", "H6")
    assert env.team.pool.types[0].summary == "Never moves."
    played = rollout(env, jax.random.key(0))
    is_lazy = np.asarray(played.states.roster.type == 0)[..., 1:]
    actions = np.asarray(played.steps.actions)[..., 1:]
    assert is_lazy.any()
    assert (actions[is_lazy] == 0).all()
    assert (actions[~is_lazy] != 0).any()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: make("lfb"), "did you mean 'lbf'"),
        (lambda: make("lbf", rules="papers"), "did you mean 'paper'"),
        (lambda: make("lbf", types=["H33"]), "Unknown type 'H33'"),
        (lambda: make("lbf", types=[]), "pool is empty"),
        (lambda: make("lbf", types=["H3", "H3"]), "two types that are called 'H3'"),
        (lambda: make("lbf", team_limit=0), "Team limit 0 is too small"),
        (lambda: make("lbf", team_limit=1, slots=5), "Team limit 1 is too small"),
        (lambda: make("lbf", team_limit=6, slots=5), "above the number of slots, 5"),
        (lambda: make("lbf", size=4), "too small for 3 objects"),
        (lambda: make("lbf", openness=Scripted([1], [(3, "enters", 7)])), "names slot 7"),
        (lambda: make("lbf", sizes=9), "did you mean 'size'"),
    ],
)
def test_wrong_input_gets_one_sentence(call, says):
    with pytest.raises(InputError, match=says) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def test_the_public_names():
    assert dropin.make is make
    for name in dropin.__all__:
        assert getattr(dropin, name).__name__.rpartition(".")[2] == name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        dropin.nothing  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
