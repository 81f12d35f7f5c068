from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Int

from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.env import make
from dropin.evaluation.evaluate import run_episodes
from dropin.policies import RandomPolicy, TypePolicy, make_policy
from dropin.teams.scripted import Scripted
from dropin.teams.types import PolicyInput, Type


@eqx.filter_jit
def pool_action(env, name, key, state):
    """Return the action of slot 0 if its agent were a teammate of a type in the whole pool."""
    pool, roster = env.team.pool, state.roster
    roster = replace(roster, type=roster.type.at[0].set(pool.names.index(name)))
    return pool.act(StepRNG(key), env.game, roster, state.game, state.arrived)[0][0]


@pytest.mark.parametrize(
    ("game", "name"),
    [("lbf", "H1"), ("lbf", "H6"), ("wolfpack", "H3"), ("fortattack", "G3")],
)
def test_a_type_acts_in_slot_0_as_the_pool_would_for_a_teammate_there(game, name):
    """The pool plans with all types at once; the policy has one type only."""
    types = {"lbf": ["H1", "H6"], "wolfpack": ["H1", "H3"], "fortattack": ["G1", "G3", "A1"]}
    env = make(game, types=types[game])
    policy = make_policy(env, name)
    act, step = eqx.filter_jit(policy.act), eqx.filter_jit(env.step)
    state, observation = eqx.filter_jit(env.reset)(jax.random.key(0))
    memory, actions = policy.init_memory(env.slots), []
    for number in range(30):
        key = jax.random.key(number)
        action, memory = act(key, env, state, observation, memory)
        assert int(action) == int(pool_action(env, name, key, state))
        actions.append(int(action))
        state, time_step = step(key, state, action)
        observation = time_step.observation
    assert len(set(actions)) > 1


def test_a_type_has_the_agent_seed_of_slot_0():
    """Under the paper's rules it decides how far an agent of LBF sees."""
    env = make("lbf", types=["H6"])
    policy = make_policy(env, "H6")
    state, observation = eqx.filter_jit(env.reset)(jax.random.key(0))

    @jax.vmap
    def act(seed, key):
        roster = replace(state.roster, agent_seed=state.roster.agent_seed.at[0].set(seed))
        own = replace(state, roster=roster)
        return policy.act(key, env, own, observation, policy.init_memory(env.slots))[0]

    # The agent is far from all objects, so that only those with a wide sight know where to go.
    agents = jnp.array([[0, 0, 1], [7, 7, 1], [7, 5, 1]])
    objects = jnp.array([[0, 3, 1], [-1, -1, 0], [-1, -1, 0]])
    state = replace(state, game=replace(state.game, agents=agents, objects=objects))
    keys = jax.random.split(jax.random.key(1), 40)
    east = [(act(jnp.full(40, seed, jnp.uint32), keys) == 4).all() for seed in range(3)]
    assert east == [False, False, True]


class Counter(Type):
    """Acts by how many steps the agent has been present."""

    def init_memory(self, slots: int) -> Int[Array, " slot"]:
        return jnp.zeros(slots, jnp.int32)

    def plan(self, inputs: PolicyInput, memory: Any) -> tuple[Int[Array, " actor"], Any]:
        return memory % 6, memory + 1


def test_the_memory_of_a_slot_is_cleared_when_somebody_arrives_there():
    openness = Scripted([1], [(3, "enters", 2)])
    counter = Counter("counter", "counts")
    env = make("lbf", types=[counter], openness=openness, horizon=5)
    policy = make_policy(env, "counter")
    act, step = eqx.filter_jit(policy.act), eqx.filter_jit(env.step)
    state, observation = eqx.filter_jit(env.reset)(jax.random.key(0))
    memory = (jnp.full(3, 77),)  # Whatever an earlier episode has left.
    actions, memories = [], []
    for number in range(8):
        key = jax.random.key(number)
        action, memory = act(key, env, state, observation, memory)
        actions.append(int(action))
        memories.append(np.asarray(memory[0]).tolist())
        state, time_step = step(key, state, jnp.int32(0))
        observation = time_step.observation
    # Episodes of five steps; in the first one slot 2 is empty for three steps.
    assert actions == [0, 1, 2, 3, 4, 0, 1, 2]
    assert [each[:2] for each in memories] == [[n, n] for n in (1, 2, 3, 4, 5, 1, 2, 3)]
    assert [each[2] for each in memories[3:5]] == [1, 2]


def test_a_random_policy_takes_every_action_equally_often():
    env = make("wolfpack", types=["H1"])
    state, observation = eqx.filter_jit(env.reset)(jax.random.key(0))
    policy = RandomPolicy()

    @jax.vmap
    def act(key):
        return policy.act(key, env, state, observation, policy.init_memory(env.slots))[0]

    actions = np.asarray(act(jax.random.split(jax.random.key(0), 5000)))
    shares = np.bincount(actions, minlength=5) / 5000
    assert shares == pytest.approx(np.full(5, 0.2), abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["paper", "reference"])
def test_a_heuristic_in_the_learners_place_is_better_than_a_random_policy(rules):
    env = make("lbf", rules=rules, team_limit=3, types=["H8"])
    heuristic, random = (
        run_episodes(env, make_policy(env, name), num_envs=256, episodes=1).mean
        for name in ("H8", "random")
    )
    assert heuristic > 1.5 * random > 0


@pytest.mark.slow
def test_a_hunter_in_the_learners_place_is_better_than_a_random_policy():
    env = make("wolfpack", types=["H6"], horizon=100)
    hunter, random = (
        run_episodes(env, make_policy(env, name), num_envs=32, episodes=1).mean
        for name in ("H6", "random")
    )
    assert hunter > 5 + random


def test_policies_by_name():
    env = make("fortattack", types=["G2", "A1"])
    policy = make_policy(env, "G2")
    assert isinstance(policy, TypePolicy)
    assert policy.pool.names == ("G2",)
    assert isinstance(make_policy(env, "random"), RandomPolicy)
    with pytest.raises(InputError, match="Unknown type 'A1': it can be random, G2"):
        make_policy(env, "A1")  # A type of the opponents.
    with pytest.raises(InputError, match="random, H1"):
        make_policy(make("lbf"), "H99")
