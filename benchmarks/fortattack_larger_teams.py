"""What a learner of FortAttack does at team limits 3 and 5 in the course of its training.

    python benchmarks/fortattack_larger_teams.py RUN [--every 1600000] [--steps 500] [--envs 64]

RUN is the directory of a run in FortAttack that kept its agents. For every checkpoint and limit:
returns, how episodes end, shots, where the learner stands, and what it expects.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dropin.agents import Agent, load_agent
from dropin.analysis.measure import AgentStep, measure, require_game
from dropin.env import AnyEnv
from dropin.games.fortattack.game import FortAttack
from dropin.models.coordination import Utilities
from dropin.training.run_directory import RunDirectory, run_env

COLUMNS = {
    "step": "",
    "limit": "",
    "return": ".2f",
    "fell": ".2f",
    "hit": ".2f",
    "shots": ".1f",
    "accuracy": ".2f",
    "|x|": ".2f",
    "y": ".2f",
    "to fort": ".2f",
    "value": ".1f",
    "real": ".1f",
    "own": ".1f",
    "pairs": ".1f",
}
DISCOUNT = 0.99


def look(env: AnyEnv, step: AgentStep) -> Mapping[str, Array]:
    """Return what is measured of a step, of the learner in slot 0."""
    game, state = require_game(env, FortAttack), step.state
    utilities, happened = step.prediction.utilities, step.step
    assert isinstance(utilities, Utilities)
    taken = happened.actions[0]
    pairs = [
        jnp.where(
            happened.acted[other], utilities.factors.pair_utility(0, other)[taken].mean(), 0.0
        )
        for other in range(1, env.slots)
    ]
    return {
        "reward": happened.reward,
        "done": happened.done,
        "fell": happened.events.fort_fell,
        "hit": happened.events.was_hit[0],
        "fired": happened.events.fired[0],
        "hits": jnp.any(happened.events.hits[0]),
        "x": state.x[0],
        "y": state.y[0],
        "fort": game.distance_to_fort(state)[0],
        "value": jnp.max(step.prediction.q_values),
        "own": utilities.individual[0, taken],
        "pairs": sum(pairs, jnp.float32(0)),
    }


def row(agent: Agent, env: AnyEnv, steps: int, num_envs: int) -> Mapping[str, float]:
    """Return the numbers of an agent at one limit, over whole episodes."""
    found = measure(agent, env, look, steps=steps, num_envs=num_envs, seed=11)
    returns, real, ends = [], [], {"fell": 0, "hit": 0}
    counted = np.zeros(found["done"].shape, bool)
    for number in range(num_envs):
        start = 0
        for end in np.flatnonzero(found["done"][:, number]):
            rewards = found["reward"][start : end + 1, number]
            returns.append(rewards.sum())
            discounted = 0.0
            for reward in rewards[::-1]:
                discounted = reward + DISCOUNT * discounted
                real.append(discounted)
            for name in ends:
                ends[name] += int(found[name][end, number])
            counted[start : end + 1, number] = True
            start = end + 1
    means = {name: float(values[counted].mean()) for name, values in found.items()}
    return {
        "return": float(np.mean(returns)),
        **{name: count / len(returns) for name, count in ends.items()},
        "shots": 100 * means["fired"],
        "accuracy": means["hits"] / max(means["fired"], 1e-9),
        "|x|": float(np.abs(found["x"][counted]).mean()),
        "y": means["y"],
        "to fort": means["fort"],
        "value": means["value"],
        "real": float(np.mean(real)),
        "own": means["own"],
        "pairs": means["pairs"],
    }


def main() -> None:
    """Print a row for each checkpoint and limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--every", type=int, default=1_600_000)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--envs", type=int, default=64)
    given = parser.parse_args()
    _, config = run_env(given.run)
    files, wide = RunDirectory(given.run), config.make_env(slots=5)
    print(
        f"{config.learner}, rules {config.rules}, seed {config.seed}, greedy;"
        f" {given.steps} steps in {given.envs} environments, whole episodes.\n"
        "fell, hit: share of episodes that end with the fort or the learner; shots: in 100 steps;\n"
        "value: the largest action value, real: the discounted return from there; own, pairs: the\n"
        "learner's own utility of its action, and the sum of its pairs' (the other's action\n"
        "averaged)."
    )
    print("  ".join(f"{name:>10}" for name in COLUMNS))
    for step in files.steps_with_agent():
        if step % given.every == 0 or step == config.steps:
            agent = load_agent(files.agent_at(step))
            for limit in (3, 5):
                numbers = row(agent, wide.with_team_limit(limit), given.steps, given.envs)
                values = {"step": step, "limit": limit, **numbers}
                cells = [f"{values[name]:{COLUMNS[name] or ','}}" for name in COLUMNS]
                print("  ".join(f"{cell:>10}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
