"""What DGN meets in Wolfpack while it learns: captures, contacts with a prey alone, distances.

    python benchmarks/dgn_wolfpack.py RUN [--steps 0 1600000 6400000] [--episodes 128]

RUN is the directory of a run of DGN in Wolfpack that kept its agents. At each of the given steps
all agents act as that agent does, with the share of random actions that the run had then.
"""

import argparse
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, PyTree

from dropin._xla.random import split
from dropin.agents import load_agent
from dropin.env import AnyEnv
from dropin.games.wolfpack.state import manhattan_distance
from dropin.learners.network_policy import NetworkPolicy
from dropin.training.run_directory import RunDirectory, run_env

COLUMNS = ("step", "random", "captures", "alone", "return", "distance", "two near")


def play(
    env: AnyEnv, policy: NetworkPolicy, epsilon: Array, key: PRNGKeyArray, size: tuple[int, int]
) -> PyTree:
    """Return what is measured [time, episode], for `size` = (steps, episodes)."""
    steps, episodes = size
    reset_key, play_key = split(key)
    states, observations = jax.vmap(env.reset)(split(reset_key, episodes))

    def one(key: PRNGKeyArray, state: PyTree, observation: PyTree) -> PyTree:
        act_key, step_key = split(key)
        actions = policy.network.act_all(  # pyright: ignore[reportAttributeAccessIssue]
            policy.init_memory(env.slots), observation, epsilon, act_key
        )
        following, step = env.step_all(step_key, state, actions)
        game = state.game
        near = manhattan_distance(game.hunters[:, None], game.prey[None])
        present = game.present
        number = jnp.sum(present)
        closest = jnp.where(present, jnp.min(near, axis=1), 0)
        captured = jnp.any(step.events.captured, axis=1)
        lone = present & (step.rewards - step.shaping < -0.25)
        values = {
            "captures": jnp.sum(jnp.any(step.events.captured, axis=0)),
            "alone": jnp.sum(lone & ~captured) / number,
            "return": step.reward,
            "distance": jnp.sum(closest) / number,
            # Of all prey and steps: whether two hunters are within two cells.
            "two near": jnp.mean(
                jnp.sum((near <= 2) & present[:, None], axis=0) >= 2, dtype=jnp.float32
            ),
        }
        return (following, step.observation), values

    def all_envs(carry: PyTree, key: PRNGKeyArray) -> PyTree:
        return jax.vmap(one)(split(key, episodes), *carry)

    return jax.lax.scan(all_envs, (states, observations), split(play_key, steps))[1]


def main() -> None:
    """Print a row for each step."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--steps", type=int, nargs="+", default=[0, 800_000, 1_600_000, 6_400_000])
    parser.add_argument("--episodes", type=int, default=128)
    given = parser.parse_args()
    env, config = run_env(given.run)
    files = RunDirectory(given.run)
    sums, size = eqx.filter_jit(play), (int(env.game.horizon), given.episodes)
    print(
        f"{config.learner}, seed {config.seed}, {given.episodes} episodes; captures, contacts of a"
    )
    print("hunter alone with a prey and returns are those of an episode")
    print("  ".join(f"{name:>10}" for name in COLUMNS))
    for step in given.steps:
        policy = load_agent(files.agent_at(step)).policy
        assert isinstance(policy, NetworkPolicy)
        epsilon = config.training.epsilon(jnp.int32(step))
        found = sums(env, policy, epsilon, jax.random.key(11), size)
        means = {name: float(np.mean(np.sum(found[name], axis=0))) for name in COLUMNS[2:5]}
        means |= {name: float(np.mean(found[name])) for name in COLUMNS[5:]}
        cells = [f"{step:,}", f"{float(epsilon):.2f}", *(f"{each:.2f}" for each in means.values())]
        print("  ".join(f"{cell:>10}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
