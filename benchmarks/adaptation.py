"""Whether the types of FortAttack demand adaptation.

For each pair of a guard type and an attacker type a learner is trained by PPO with teammates and
attackers of these types alone, under the rules `reference` with team limit 3. Then each learner
plays with every pair. If one way of playing were good everywhere, the learner that was trained with
a pair would do no better there than the others.

    python benchmarks/adaptation.py DIRECTORY [--steps 1000000] [--episodes 640]

What has been trained is kept in the directory; the same command continues.
"""

import argparse
import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import ClassVar

import jax
import numpy as np

import dropin
from dropin._xla.cache import use_cache
from dropin.core.arrays import from_arrays
from dropin.core.files import read_arrays
from dropin.env import AnyEnv
from dropin.evaluation.evaluate import run_episodes
from dropin.games.fortattack.learned import FighterNetwork, LearnedFighter
from dropin.policies import TypePolicy
from dropin.zoo.batched_env import BatchedEnv
from dropin.zoo.fortattack_matches import ATTACKER_TYPES, GUARD_TYPES
from dropin.zoo.fortattack_ppo import TeamRecipe
from dropin.zoo.recipe import Measurement, run_recipe

PAIRS = tuple(product(GUARD_TYPES, ATTACKER_TYPES))


def make_env(guard: str, attacker: str) -> AnyEnv:
    """Make an environment with teammates of one type and attackers of one type."""
    return dropin.make("fortattack", rules="reference", types=[guard, attacker])


@dataclass(frozen=True)
class Response(TeamRecipe):
    """Trains the learner's slot alone."""

    summary: ClassVar[str] = "a learner among others of one type a side"
    method: ClassVar[str] = "PPO"
    learning: ClassVar = (range(1),)

    guard: str = ""
    attacker: str = ""

    def make_env(self) -> BatchedEnv:
        """Make the environments to train in."""
        return BatchedEnv.from_envs([make_env(self.guard, self.attacker)], self.num_envs)

    def measure(self, params: FighterNetwork) -> list[Measurement]:
        """Measure the return where it was trained."""
        values = returns(params, self.guard, self.attacker, 64)
        return [Measurement.from_values("return", self.name, values)]


def returns(network: FighterNetwork, guard: str, attacker: str, episodes: int) -> np.ndarray:
    """Return the returns of a learner with this policy among a pair of types."""
    env = make_env(guard, attacker)
    policy = TypePolicy(LearnedFighter("learner", "", network), env.team.pool.observer)
    played = run_episodes(env, policy, num_envs=64, episodes=-(-episodes // 64), seed=7)
    return np.asarray(played.returns).reshape(-1)


def trained(directory: Path, steps: int, guard: str, attacker: str) -> FighterNetwork:
    """Return the learner of a pair, from the directory if it is there."""
    name = f"{guard}-{attacker}"
    recipe = type(name, (Response,), {"name": name})(steps=steps, guard=guard, attacker=attacker)
    path = directory / f"{name}.safetensors"
    if not path.exists():
        run_recipe(recipe, directory)
    template = jax.eval_shape(lambda: FighterNetwork(key=jax.random.key(0)))
    return from_arrays(template, read_arrays(path)[0], path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--episodes", type=int, default=640)
    options = parser.parse_args()
    use_cache()
    nets = {pair: trained(options.directory, options.steps, *pair) for pair in PAIRS}
    table = {
        f"{'-'.join(mine)} in {'-'.join(pair)}": returns(net, *pair, options.episodes).mean()
        for pair in PAIRS
        for mine, net in nets.items()
    }
    (options.directory / "returns.json").write_text(
        json.dumps({name: float(value) for name, value in table.items()}, indent=2) + "\n"
    )
    show(np.array(list(table.values())).reshape(len(PAIRS), len(PAIRS)), options)


def show(met: np.ndarray, options: argparse.Namespace) -> None:
    """Print a table: rows are learners, columns where they play."""
    names = ["-".join(pair) for pair in PAIRS]
    print(
        f"FortAttack, reference, limit 3: mean returns of {options.episodes} episodes; rows: where"
        f"\nit was trained ({options.steps:,} steps of PPO, seed 0), columns: where it plays"
    )
    print(" " * 8 + "".join(f"{name:>8}" for name in names))
    for name, row in zip(names, met.T, strict=True):
        print(f"{name:>8}" + "".join(f"{value:8.2f}" for value in row))
    own = np.diag(met)
    others = (met.sum(axis=1) - own) / (len(names) - 1)
    everywhere = met.mean(axis=0)
    print(f"\nmean of those who play where they were trained   {own.mean():6.2f}")
    print(f"mean of those who were trained elsewhere         {others.mean():6.2f}")
    best = names[int(everywhere.argmax())]
    print(f"best single learner over all pairs, {best:<13}{everywhere.max():6.2f}")
    first = [names[int(k)] for k in met.argmax(axis=1)]
    print("best in each pair: " + ", ".join(f"{a}: {b}" for a, b in zip(names, first, strict=True)))


if __name__ == "__main__":
    main()
