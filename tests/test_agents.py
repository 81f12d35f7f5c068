import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dropin.interop.gymnasium  # noqa: F401
from dropin.adhoc import Interface, make
from dropin.agents import Agent, AgentType, agent_player, load_agent, save_agent
from dropin.errors import InputError
from dropin.evaluation.evaluate import run_episodes
from dropin.learners import find
from dropin.learners.gpl import GPL
from dropin.teams.types import Scene

SIZES = {"type_units": 6, "type_memory": 6, "type_size": 5, "graph_units": 6, "embedding": 5}
ENV = make("lbf", rules="reference", team_limit=3, types=["H6"])


def agent(name="gpl-q", seed=0):
    config = find(name).config(**SIZES)
    learner = eqx.filter_jit(GPL)(ENV.interface, config, key=jax.random.key(seed))
    return Agent(learner, jnp.float32(0.5), name)


def test_an_agent_survives_its_file(tmp_path):
    path = tmp_path / "agent.safetensors"
    save_agent(agent(), path, step=7)
    assert eqx.tree_equal(load_agent(path), agent())
    save_agent(agent(), tmp_path / "run" / "agent.safetensors")
    assert eqx.tree_equal(load_agent(tmp_path / "run"), agent())


def test_a_million_random_bytes_are_no_agent(tmp_path):
    path = tmp_path / "agent.safetensors"
    path.write_bytes(np.random.default_rng(0).bytes(1_000_000))
    with pytest.raises(InputError, match="damaged or not a file of Dropin"):
        load_agent(path)


def test_it_acts_over_the_gymnasium_view_as_in_the_environment():
    """The same episode, played through either."""
    who = agent()
    env = gymnasium.make("dropin/LBF-v0", rules="reference", team_limit=3, types=["H6"])
    seen, _ = env.reset(seed=3)
    memory, actions, over = None, [], False
    key = jax.random.key(0)
    while not over:
        action, memory = who.act(key, seen, memory)
        seen, _, terminated, truncated, _ = env.step(action)
        actions.append(int(action))
        over = terminated or truncated
    inner = env.unwrapped
    inner.reset(seed=3)
    state, player = inner._state, agent_player(who, ENV)
    observation = ENV._observe(state)
    memory, again = player.start(3), []
    for _ in actions:
        action, memory = player.act(key, state, observation, memory)
        again.append(int(action))
        inner.step(action)
        state = inner._state
        observation = ENV._observe(state)
    assert again == actions


def test_as_a_teammate_it_does_what_it_would_do_as_the_learner():
    """Each actor's action and memory, over some steps, with the slots really swapped."""
    who = agent()
    env = make("lbf", rules="reference", team_limit=3, types=[who])
    kind = env.team.pool.types[0]
    assert isinstance(kind, AgentType)
    assert (kind.name, kind.about) == ("gpl-q", "a trained gpl-q")
    step, plan = eqx.filter_jit(env.step), eqx.filter_jit(kind.plan)
    state, seen = eqx.filter_jit(env.reset)(jax.random.key(1))
    own = {slot: who.start(3) for slot in (1, 2)}
    for number in range(12):
        memory = jax.tree.map(lambda rows: rows[1:], state.cast.memory[0])
        scene = Scene(
            jax.random.key(0),
            state.game,
            state.arrived,
            (0, 0, 0),
            1,
            state.cast.character[1:],
            None,
            state.game.present[1:],
        )
        planned, _ = plan(scene, memory)
        for slot in (1, 2):
            order = np.array([slot if i == 0 else 0 if i == slot else i for i in range(3)])
            swapped = type(seen)(
                seen.agents[order],
                seen.shared,
                seen.present[order],
                seen.arrived[order],
                seen.sides,
            )
            if seen.arrived[slot]:
                own[slot] = who.start(3)
            action, own[slot] = who.act(jax.random.key(0), swapped, own[slot])
            if seen.present[slot]:
                assert int(action) == int(planned[slot - 1])
        state, time_step = step(jax.random.key(number), state, jnp.int32(number % 6))
        seen = time_step.observation


def test_a_team_of_agents_plays():
    env = make("lbf", rules="reference", team_limit=3, types=["H6", agent(seed=5)])
    assert env.team.pool.names == ("H6", "gpl-q")
    played = run_episodes(env, agent_player(agent(), env), envs=4, episodes=1)
    assert (played.returns >= 0).all()


def test_only_a_boltzmann_policy_is_sampled_from():
    _, seen = eqx.filter_jit(ENV.reset)(jax.random.key(1))
    with pytest.raises(InputError, match="gpl-q has no policy to sample from"):
        agent().act(jax.random.key(0), seen, policy="sampled")
    with pytest.raises(InputError, match="Unknown policy 'best'"):
        agent().act(jax.random.key(0), seen, policy="best")
    who = agent("gpl-spi")
    draws = {int(who.act(jax.random.key(n), seen, policy="sampled")[0]) for n in range(40)}
    assert len(draws) > 1
    greedy = {int(who.act(jax.random.key(n), seen)[0]) for n in range(5)}
    assert len(greedy) == 1


def test_an_agent_of_another_game_is_refused():
    def stranger(game):
        meets = Interface(game, ("x",), (), ("stay",))
        built = eqx.filter_jit(GPL)(meets, find("gpl-q").config(**SIZES), key=jax.random.key(0))
        return Agent(built, jnp.float32(1), "gpl-q")

    with pytest.raises(InputError, match="trained in 'wolfpack' and cannot play 'lbf'"):
        agent_player(stranger("wolfpack"), ENV)
    with pytest.raises(InputError, match="other features or actions"):
        agent_player(stranger("lbf"), ENV)
    with pytest.raises(InputError, match="other features or actions"):
        make("lbf", types=[stranger("lbf")])
