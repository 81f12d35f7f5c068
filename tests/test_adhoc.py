import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dropin
from dropin.adhoc import make
from dropin.dice import Dice
from dropin.errors import InputError
from dropin.teams.openness import Closed, Scripted


@eqx.filter_jit
def rollout(env, key, steps=130, envs=8):
    """States and time steps of random learners, [env, time, ...], and the first observations."""

    def one(key):
        key, first = jax.random.split(key)
        state, observation = env.reset(first)

        def step(state, key):
            acting, key = jax.random.split(key)
            action = jax.random.randint(acting, (), 0, len(env.game.actions))
            following, time_step = env.step(key, state, action)
            return following, (state, time_step)

        return observation, jax.lax.scan(step, state, jax.random.split(key, steps))[1]

    return jax.vmap(one)(jax.random.split(key, envs))


ENVS = {rules: make("lbf", rules=rules, team_limit=2, slots=5) for rules in ("paper", "reference")}


def with_limit(env, limit):
    return eqx.tree_at(lambda env: env.team.limit, env, jnp.int32(limit))


@given(seed=st.integers(0, 2**31 - 1), limit=st.integers(2, 5))
def test_what_holds_in_every_episode(seed, limit):
    for each in ENVS.values():
        env = with_limit(each, limit)
        _, (states, steps) = jax.device_get(rollout(env, jax.random.key(seed)))
        states, steps = jax.tree.map(lambda leaf: leaf[0], (states, steps))
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
        # Arrived: at a start everybody, else who was not there, or took the slot of a leaver.
        arrived = states.arrived
        assert (arrived[1:][done[:-1]] == present[1:][done[:-1]]).all()
        going_on = ~done[:-1]
        new = present[1:] & ~present[:-1]
        assert (arrived[1:][going_on] >= new[going_on]).all()
        assert not (arrived & ~present).any()
        assert not arrived[1:, 0][going_on].any()
        stayed_put = (arrived[1:] & arrived[:-1])[going_on]
        assert not stayed_put[:, 1:].any()


def test_a_step_is_the_game_with_the_joint_action(rules):
    env = with_limit(ENVS[rules], 5)
    _, (states, steps) = rollout(env, jax.random.key(0))
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (states, steps))
    unused = Dice(jax.random.key(0))  # Nothing in a step of level-based foraging is left to chance.
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
    usual = step(key, state, jnp.int32(2))[1]
    given = jnp.array([2, 5, 6])
    after, told = step_all(key, state, given)
    assert told.actions[:3].tolist() == [2, 5, 6]
    np.testing.assert_array_equal(told.actions[3:], usual.actions[3:])
    everybody, _ = step_all(key, state, told.actions)
    alike = jax.tree.map(np.array_equal, after.game, everybody.game)
    assert all(jax.tree.leaves(alike))


def test_the_final_observation_is_the_end_and_the_next_one_the_new_start(rules):
    env = with_limit(ENVS[rules], 3)
    _, (states, steps) = jax.device_get(rollout(env, jax.random.key(1)))
    done = steps.terminated | steps.truncated
    assert steps.truncated.sum() >= 4
    same = (steps.final.agents == steps.observation.agents).all(axis=(-1, -2))
    assert same[~done].all()
    assert not same[done].all()
    following = states.game.time[:, 1:]
    assert (following[done[:, :-1]] == 0).all()
    assert (following[~done[:, :-1]] > 0).all()
    assert states.game.time[:, :-1][steps.truncated[:, :-1]] == pytest.approx(49)
    assert not (steps.terminated & steps.truncated).any()


def test_without_restart_the_episode_stays_at_its_end():
    env = make("lbf", team_limit=3, horizon=4)
    step = eqx.filter_jit(env.step)
    state, _ = eqx.filter_jit(env.reset)(jax.random.key(0))
    for number in range(4):
        key = jax.random.key(number)
        restarted, ours = step(key, state, jnp.int32(0))
        state, theirs = step(key, state, jnp.int32(0), restart=False)
        assert np.array_equal(ours.final.agents, theirs.observation.agents)
    assert bool(theirs.truncated)
    assert int(state.game.time) == 4
    assert int(restarted.game.time) == 0


def test_the_same_key_gives_the_same_episode():
    env = with_limit(ENVS["paper"], 5)
    first, second = (rollout(env, jax.random.key(9)) for _ in range(2))
    assert eqx.tree_equal(first, second)


def test_limits_can_differ_between_parallel_environments():
    env = make("lbf", team_limit=2, slots=5)
    limits = jnp.arange(2, 6)
    envs = eqx.tree_at(lambda env: env.team.limit, env, limits)
    axes = jax.tree.map(lambda leaf: 0 if leaf is limits else None, envs)
    resetting = eqx.filter_vmap(lambda env, key: env.reset(key), in_axes=(axes, 0))
    _, observations = eqx.filter_jit(resetting)(envs, jax.random.split(jax.random.key(0), 4))
    assert observations.present.sum(axis=1).tolist() == [2, 3, 4, 5]


def test_one_compilation_serves_every_limit():
    compiled = []

    @eqx.filter_jit
    def step(env, key, state):
        compiled.append(1)
        return env.step(key, state, jnp.int32(0))

    env = make("lbf", team_limit=3, slots=5)
    state, _ = eqx.filter_jit(env.reset)(jax.random.key(0))
    for limit in (3, 5, 2):
        state, _ = step(with_limit(env, limit), jax.random.key(limit), state)
    assert len(compiled) == 1


def test_a_schedule_drives_the_team():
    script = Scripted([1], [(2, "enters", 2), (4, "leaves", 1)])
    env = make("lbf", team_limit=3, openness=script)
    state, _ = eqx.filter_jit(env.reset)(jax.random.key(0))
    sizes = []
    for number in range(5):
        sizes.append(np.asarray(state.game.present).astype(int).tolist())
        state, _ = eqx.filter_jit(env.step)(jax.random.key(number), state, jnp.int32(0))
    assert sizes == [[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 0, 1]]


def test_only_the_types_asked_for_are_drawn():
    env = make("lbf", team_limit=5, types=["H3", "H8"])
    _, (states, _) = rollout(env, jax.random.key(0))
    assert env.team.pool.names == ("H3", "H8")
    assert set(np.unique(states.cast.type)) == {0, 1}


def test_types_are_drawn_uniformly_and_kept_while_present():
    env = make("lbf", rules="reference", team_limit=5)
    _, (states, _) = jax.device_get(rollout(env, jax.random.key(3), 200, envs=200))
    kinds, arrived = states.cast.type, states.arrived
    kept = ~arrived[:, 1:] & (states.game.agents[:, 1:, :, 2] > 0)
    assert (kinds[:, 1:] == kinds[:, :-1])[kept].all()
    assert (states.cast.character[:, 1:] == states.cast.character[:, :-1])[kept].all()
    shares = np.bincount(kinds[..., 1:][arrived[..., 1:]]) / arrived[..., 1:].sum()
    assert shares == pytest.approx(np.full(9, 1 / 9), abs=0.02)


def test_a_function_can_be_a_type():
    def lazy(view):
        """Never moves."""
        return view.me[0] * 0

    env = make("lbf", team_limit=3, types=[lazy, "H6"], openness=Closed())
    assert env.team.pool.names == ("lazy", "H6")
    assert env.team.pool.types[0].about == "Never moves."
    _, (states, steps) = rollout(env, jax.random.key(0))
    lazily = np.asarray(states.cast.type == 0)[..., 1:]
    assert (np.asarray(steps.actions)[..., 1:][lazily] == 0).all()
    assert lazily.any()


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
    assert set(dropin.__all__) <= set(dir(dropin)) | set(dropin._HOMES)
    for name in dropin.__all__:
        assert getattr(dropin, name) is not None
    with pytest.raises(AttributeError):
        dropin.nothing  # noqa: B018
