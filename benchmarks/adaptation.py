"""Whether the types of FortAttack ask for adaptation.

For each pair of a guard type and an attacker type a learner is trained by PPO, with teammates and
attackers of these types alone, under the rules `reference` with team limit 3. Then each of them
meets every pair. If one way of playing were good in all of them, the learner that was trained in a
pair would do no better there than the others.

    python benchmarks/adaptation.py DIRECTORY [--steps 1000000] [--episodes 640]

What is trained is kept in the directory; the same command goes on.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np

import dropin
from dropin.adhoc import AdHoc
from dropin.compilation import use_cache
from dropin.evaluation.evaluate import run_episodes
from dropin.files import read_arrays
from dropin.players import TypePlayer
from dropin.teams.fortattack.learned import FighterNet, LearnedFighter
from dropin.teams.pool import Pool
from dropin.weights import from_arrays
from dropin.zoo.fights import ATTACKERS, GUARDS
from dropin.zoo.ppo import PPO, Arenas, Learning, Squad
from dropin.zoo.recipe import Score, prepare

PAIRS = tuple(product(GUARDS, ATTACKERS))


def meeting(guard: str, attacker: str) -> AdHoc:
    """An environment with teammates of one type and attackers of one type."""
    return dropin.make("fortattack", rules="reference", types=[guard, attacker])


@dataclass(frozen=True)
class Response(PPO):
    """Only the learner learns."""

    name: ClassVar[str]
    about: ClassVar[str] = "a learner among others of one type a side"
    how: ClassVar[str] = "PPO"

    guard: str = ""
    attacker: str = ""

    def field(self) -> Arenas:
        """The learner's slot is a squad."""
        return Arenas.of([meeting(self.guard, self.attacker)], self.arenas)

    def start(self, seed: int) -> Learning:
        """A squad of one."""
        key, one = jax.random.split(jax.random.key(seed))
        return self.begin((Squad.fresh(0, 1, one),), key)

    def advance(self, state: Learning) -> tuple[Learning, dict[str, Any]]:
        """A chunk of updates."""
        return self.train(state)

    def weights(self, state: Learning) -> FighterNet:
        """The learner's policy."""
        return state.squads[0].policy

    def scores(self, weights: FighterNet) -> list[Score]:
        """What it gets where it was trained."""
        return [Score.of("return", self.name, returns(weights, self.guard, self.attacker, 64))]


def returns(net: FighterNet, guard: str, attacker: str, episodes: int) -> np.ndarray:
    """Of a learner with this policy among a pair of types."""
    env = meeting(guard, attacker)
    who = TypePlayer(Pool([LearnedFighter("learner", "", net)], env.team.pool.look))
    played = run_episodes(env, who, envs=64, episodes=-(-episodes // 64), seed=7)
    return np.asarray(played.returns).reshape(-1)


def trained(directory: Path, steps: int, guard: str, attacker: str) -> FighterNet:
    """A learner for a pair, from the directory if it is there."""
    name = f"{guard}-{attacker}"
    recipe = type(name, (Response,), {"name": name})(steps=steps, guard=guard, attacker=attacker)
    path = directory / f"{name}.safetensors"
    if not path.exists():
        prepare(recipe, directory)
    build: Callable[[], FighterNet] = lambda: FighterNet(key=jax.random.key(0))  # noqa: E731
    return from_arrays(jax.eval_shape(build), read_arrays(path)[0], path)


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
    """Rows are learners, columns where they play."""
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
