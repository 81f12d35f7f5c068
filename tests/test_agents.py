import itertools
from dataclasses import replace
from pathlib import Path
from unittest import mock

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.seeding import np_random
from lbf_states import make_state

import dropin.interop.gymnasium  # noqa: F401
from dropin.agents import Agent, AgentType, agent_path, agent_policy, load_agent, save_agent
from dropin.core import registry
from dropin.core.errors import InputError
from dropin.core.observation import Interface, Observation
from dropin.env import make
from dropin.learners.base import LearnerInput
from dropin.learners.config import TrainConfig
from dropin.learners.gpl import GPLNetwork
from dropin.learners.network_policy import NetworkPolicy
from dropin.models.coordination import Utilities
from dropin.teams.types import PolicyInput

SIZES = {
    "type_hidden_size": 6,
    "type_lstm_size": 6,
    "type_vector_size": 5,
    "utility_hidden_size": 6,
    "embedding_size": 5,
}
TEMPERATURE = 0.05
ENV = make("lbf", rules="reference", team_limit=3, types=["H6"])


def make_agent(name="gpl-q", seed=9, interface=ENV.interface):
    """Return an agent with random weights whose actions depend on what it sees.

    With the usual initial weights it would always take the same action.
    """
    settings = registry.learners[name].default_settings("lbf", **SIZES)
    network = eqx.filter_jit(GPLNetwork)(interface, settings, key=jax.random.key(seed))
    network = jax.tree.map(lambda leaf: (3.0 if leaf.ndim > 1 else 0.0) * leaf, network)
    return Agent(NetworkPolicy(network, jnp.float32(TEMPERATURE)), name, settings)


def network_of(agent) -> GPLNetwork:
    assert isinstance(agent.policy, NetworkPolicy)
    assert isinstance(agent.policy.network, GPLNetwork)
    return agent.policy.network


def observations(env, steps, seed=0):
    """Return what the learner sees while it acts at random, over several episodes."""
    step = eqx.filter_jit(env.step)
    state, observation = eqx.filter_jit(env.reset)(jax.random.key(seed))
    found = [observation]
    for number in range(1, steps):
        state, time_step = step(jax.random.key(number), state, jnp.int32(number % 6))
        found.append(time_step.observation)
    return found


def expected_q_values(utilities: Utilities, logits, present):
    """Return the learner's action values (Eq. 9) as sums over all joint actions of teammates."""
    individual = np.asarray(utilities.individual, np.float64)
    slots, actions = individual.shape
    pair = {
        (j, k): np.asarray(utilities.factors.pair_utility(j, k), np.float64)
        for j, k in itertools.combinations(range(slots), 2)
    }
    probs = np.exp(np.asarray(logits, np.float64))
    probs /= probs.sum(axis=1, keepdims=True)
    team = [slot for slot in range(slots) if slot == 0 or present[slot]]
    values = np.zeros(actions)
    for own in range(actions):
        for others in itertools.product(range(actions), repeat=len(team) - 1):
            joint = dict(zip(team, (own, *others), strict=True))
            weight = np.prod([probs[slot, joint[slot]] for slot in team[1:]])
            value = sum(individual[slot, joint[slot]] for slot in team)
            value += sum(pair[j, k][joint[j], joint[k]] for j, k in itertools.combinations(team, 2))
            values[own] += weight * value
    return values


@eqx.filter_jit
def terms(network: GPLNetwork, memory, observation):
    """Return the utilities and the logits of an observation, and the memory afterwards."""
    assert network.agent is not None
    logits, agent_memory = network.agent(memory.agent, observation)
    types, value_memory = network.value.infer_types(memory.value, LearnerInput(observation, logits))
    memory = replace(memory, value=value_memory, agent=agent_memory)
    return network.value.graph(types), logits, memory


def test_a_greedy_agent_takes_the_action_of_the_largest_expected_value():
    """Its memory, its predictions and its values are computed by hand, step by step."""
    env = make("lbf", rules="reference", team_limit=3, types=["H6"], horizon=20)
    agent = make_agent()
    network = network_of(agent)
    own, memory, compared = network.init_memory(3), None, []
    for number, observation in enumerate(observations(env, 50)):
        action, memory = agent.act(jax.random.key(number), observation, memory)
        utilities, logits, own = terms(network, own, observation)
        values = expected_q_values(utilities, logits, np.asarray(observation.present))
        best, second = np.sort(values)[::-1][:2]
        if best - second > 1e-4 * abs(best):
            assert int(action) == int(np.argmax(values))
            compared.append(int(action))
    assert len(compared) > 40
    assert len(set(compared)) > 2


def test_a_sampled_agent_draws_from_the_boltzmann_distribution():
    agent = make_agent("gpl-spi")
    network = network_of(agent)
    observation = observations(ENV, 1)[0]
    utilities, logits, _ = terms(network, network.init_memory(3), observation)
    values = expected_q_values(utilities, logits, np.asarray(observation.present))
    expected = np.exp((values - values.max()) / TEMPERATURE)
    expected /= expected.sum()
    assert expected.max() > 2 * expected.min()
    act = jax.vmap(lambda key: agent.act(key, observation, mode="sampled")[0])
    drawn = np.asarray(act(jax.random.split(jax.random.key(0), 5000)))
    assert np.bincount(drawn, minlength=6) / 5000 == pytest.approx(expected, abs=0.03)


def test_only_modes_that_exist_can_be_chosen():
    observation = observations(ENV, 1)[0]
    with pytest.raises(InputError, match="gpl-q has no distribution to sample from"):
        make_agent().act(jax.random.key(0), observation, mode="sampled")
    with pytest.raises(InputError, match="Unknown mode 'best'"):
        make_agent().act(jax.random.key(0), observation, mode="best")


def test_a_loaded_agent_acts_bit_by_bit_as_the_saved_one(tmp_path):
    agent = make_agent("gpl-spi")
    save_agent(agent, tmp_path / "agent.safetensors", step=7)
    save_agent(agent, tmp_path / "run" / "agent.safetensors")
    for path in (tmp_path / "agent.safetensors", tmp_path / "run"):
        loaded = load_agent(path)
        assert (loaded.learner, loaded.settings) == (agent.learner, agent.settings)
        assert loaded.interface == agent.interface
        for mode in ("greedy", "sampled"):
            memory = own = None
            for number, observation in enumerate(observations(ENV, 10)):
                key = jax.random.key(number)
                action, memory = agent.act(key, observation, memory, mode=mode)
                other, own = loaded.act(key, observation, own, mode=mode)
                assert int(action) == int(other)
                assert eqx.tree_equal(memory, own)


def test_the_shapes_of_a_policy_are_found_without_its_random_numbers():
    """Tracing how they are drawn, 4,000 operations, would be most of the time of loading."""
    spec, interface = registry.learners["gpl-q"], make("lbf").interface
    learner = spec.make(spec.default_settings("lbf"), TrainConfig())
    traced = jax.make_jaxpr(lambda: eqx.filter(learner.policy_template(interface), eqx.is_array))()
    assert len(traced.eqns) < 400


def test_an_agent_of_the_package_is_the_one_in_its_file():
    found = registry.agents["lbf/gpl-q"].directory / "agent.safetensors"
    assert eqx.tree_equal(load_agent("lbf/gpl-q"), load_agent(found))
    assert agent_path("lbf/gpl-q") == found.parent


def test_loading_an_agent_again_traces_nothing():
    """JAX keeps something of all that it traces: a process that goes on loading would grow."""
    load_agent("lbf/ql")
    with mock.patch.object(jax, "eval_shape", side_effect=AssertionError("traced")):
        load_agent("lbf/ql")


def test_the_name_of_an_agent_wins_over_a_file_and_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other = make_agent()
    save_agent(other, "lbf/gpl-q/agent.safetensors")
    with pytest.warns(UserWarning, match=r"write \./lbf/gpl-q for the one in this directory"):
        assert not eqx.tree_equal(load_agent("lbf/gpl-q"), other)
    for path in ("./lbf/gpl-q", Path("lbf/gpl-q"), tmp_path / "lbf" / "gpl-q"):
        assert eqx.tree_equal(load_agent(path), other)
    with pytest.raises(InputError, match=r"^There is no file wolfpack.gpl-q\.$"):
        load_agent(Path("wolfpack/gpl-q"))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("lbf/gpl-Q", r"no file lbf/gpl-Q, and no .*lbf/gpl-q, .*; did you mean 'lbf/gpl-q'\?"),
        ("../agents/lbf/gpl-q", r"There is no file \.\./agents/lbf/gpl-q"),
        ("nothing", r"There is no file nothing.*: it can be lbf/gpl-q, .*\.$"),
    ],
)
def test_an_unknown_name_of_an_agent_says_which_there_are(tmp_path, monkeypatch, name, says):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=says):
        load_agent(name)


def test_a_million_random_bytes_are_no_agent(tmp_path):
    path = tmp_path / "agent.safetensors"
    path.write_bytes(np.random.default_rng(0).bytes(1_000_000))
    with pytest.raises(InputError, match="damaged or not a file of Dropin"):
        load_agent(path)


def test_an_agent_acts_in_the_gymnasium_view_as_in_the_environment():
    """The same episode through both: the view's random numbers are those of its generator."""
    agent = make_agent()
    env = gymnasium.make("dropin/LBF-v0", rules="reference", team_limit=3, types=["H6"])
    observation, _ = env.reset(seed=0)
    memory, actions, done = None, [], False
    while not done:
        action, memory = agent.act(jax.random.key(0), observation, memory)
        observation, _, terminated, truncated, _ = env.step(action)
        actions.append(int(action))
        done = terminated or truncated
    random, _ = np_random(0)
    policy = agent_policy(agent, ENV)
    act, step = eqx.filter_jit(policy.act), eqx.filter_jit(ENV.step)
    state, observation = eqx.filter_jit(ENV.reset)(jax.random.key(random.integers(2**31)))
    memory, direct, done = policy.init_memory(3), [], False
    for _ in actions:
        action, memory = act(jax.random.key(0), ENV, state, observation, memory)
        direct.append(int(action))
        key = jax.random.key(random.integers(2**31))
        state, time_step = step(key, state, action, auto_reset=False)
        observation, done = time_step.final_observation, bool(time_step.done)
    assert direct == actions
    assert done
    assert len(set(actions)) > 2


def assert_close(a, b):
    """Check that two pytrees hold nearly the same numbers."""
    jax.tree.map(lambda one, two: np.testing.assert_allclose(one, two, atol=1e-5), a, b)


def swapped(rows, slot):
    """Return rows with those of slot 0 and another slot exchanged."""
    rows = list(rows)
    rows[0], rows[slot] = rows[slot], rows[0]
    return rows


def test_as_a_teammate_an_agent_sees_a_state_from_its_own_slot():
    """It acts as the learner would in the state in which the two have changed places."""
    agent = make_agent()
    agents = [[1, 2, 1], [4, 5, 3], [7, 0, 2]]
    objects = [[2, 2, 1], [5, 6, 2]]
    arrived = [True, False, True]
    kind = agent.as_type(ENV.game)
    memory = jax.tree.map(  # A different one for each slot.
        lambda leaf: jax.random.normal(jax.random.key(1), leaf.shape), kind.init_memory(3)
    )
    state = make_state(agents, objects)
    inputs = PolicyInput(
        key=jax.random.key(0),
        game=ENV.game,
        state=state,
        arrived=jnp.array(arrived),
        sides=(0, 0, 0),
        first=1,
        agent_seed=jnp.zeros(2, jnp.uint32),
        views=None,
        active=state.present[1:],
    )
    actions, after = kind.plan(inputs, jax.tree.map(lambda leaf: leaf[1:], memory))
    for slot in (1, 2):
        other = make_state(swapped(agents, slot), objects)
        features, shared = ENV.game.observe(other)
        here = jnp.array(swapped(arrived, slot))
        observation = Observation(features, shared, other.present, here, (0, 0, 0))
        own = jax.tree.map(lambda leaf, slot=slot: leaf[slot], memory)
        action, own = agent.act(jax.random.key(0), observation, own)
        assert int(action) == int(actions[slot - 1])
        rows = jax.tree.map(lambda leaf, slot=slot: leaf[slot - 1], after)
        assert_close(rows, own)
    first, second = (
        jax.tree.leaves(jax.tree.map(lambda leaf, n=n: leaf[n], after)) for n in (0, 1)
    )
    assert not all(np.allclose(a, b) for a, b in zip(first, second, strict=True))


def test_in_an_open_team_agents_and_types_act_as_themselves():
    """Agents come and go; a newcomer starts with an empty memory."""
    agent = make_agent(seed=2)
    env = make("lbf", rules="reference", team_limit=3, types=["H6", agent])
    kind = env.team.pool.types[1]
    assert isinstance(kind, AgentType)
    assert (kind.name, kind.summary) == ("gpl-q", "a trained gpl-q")
    step = eqx.filter_jit(env.step)
    state, observation = eqx.filter_jit(env.reset)(jax.random.key(1))
    memory, compared, differ = {}, [], 0
    for number in range(60):
        state_before, arrived = state, np.asarray(observation.arrived)
        state, time_step = step(jax.random.key(number), state, jnp.int32(number % 6))
        for slot in (1, 2):
            if arrived[slot]:
                memory[slot] = agent.init_memory(3)
            rows = state_before.game.agents[np.array(swapped(range(3), slot))]
            features, shared = env.game.observe(replace(state_before.game, agents=rows))
            here = jnp.array(swapped(arrived, slot))
            seen = Observation(features, shared, rows[:, 2] > 0, here, (0, 0, 0))
            action, memory[slot] = agent.act(jax.random.key(0), seen, memory[slot])
            if not time_step.acted[slot]:
                continue
            if not time_step.observation.arrived[slot]:
                stored = jax.tree.map(lambda leaf, slot=slot: leaf[slot], state.roster.memory[1])
                assert_close(stored, memory[slot])
            if int(state_before.roster.type[slot]) == 1:
                assert int(action) == int(time_step.actions[slot])
                compared.append(int(action))
            else:
                differ += int(action) != int(time_step.actions[slot])
        observation = time_step.observation
    assert len(compared) > 20
    assert len(set(compared)) > 1
    assert differ > 10


def test_an_agent_of_another_game_is_refused():
    def stranger(game):
        return make_agent(interface=Interface(game, ("x",), (), ("stay",)))

    with pytest.raises(InputError, match="trained in 'wolfpack' and cannot play 'lbf'"):
        agent_policy(stranger("wolfpack"), ENV)
    with pytest.raises(InputError, match="other features or actions"):
        agent_policy(stranger("lbf"), ENV)
    with pytest.raises(InputError, match="other features or actions"):
        make("lbf", types=[stranger("lbf")])
