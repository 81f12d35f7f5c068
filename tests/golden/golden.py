"""Checksums of what the library computes, to see that a change of the code changes no number.

    python tests/golden/golden.py record    # write values.json
    python tests/golden/golden.py check     # compare with it; exit code 1 where they differ

Checksums ignore the names of arrays and columns, so they survive a renaming. Programs are compiled
with hardly any optimisation: what is compared is the arithmetic, not the compiler.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# With more cores XLA splits some loops, which changes the last bits of sums.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)

import jax
import jax.numpy as jnp
import numpy as np

VALUES = Path(__file__).parent / "values.json"
ROOT = Path(__file__).parent.parent.parent
GAMES = ("lbf", "wolfpack", "fortattack")
JOINT = ("dgn", "maddpg")
LEARNERS = ("gpl-q", "gpl-spi", "ql", "ql-am", "gnn", "gnn-am", "dgn", "maddpg")
RULES = ("paper", "reference")
RECIPES = {
    "lbf/H5": {"num_envs": 8, "updates_per_chunk": 2},
    "wolfpack/prey": {"num_envs": 4, "batch_size": 8, "replay_rows": 16, "updates_per_chunk": 6},
    "wolfpack/H5": {"num_envs": 4, "updates_per_chunk": 3},
    "wolfpack/H6": {"num_envs": 4, "batch_size": 8, "replay_rows": 16, "updates_per_chunk": 6},
    "fortattack/G4": {"num_envs": 8, "rollout_length": 6, "updates_per_chunk": 2},
    "fortattack/G6": {"num_envs": 8, "rollout_length": 6, "updates_per_chunk": 2},
}


def checksum(tree: Any) -> str:
    """A hash of all arrays of a pytree, whatever their names and order."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype")]
    rows = []
    for leaf in leaves:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            continue
        array = np.ascontiguousarray(leaf)
        rows.append(f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}")
    return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()[:16]


def numbers(path: Path) -> str:
    """A hash of the cells of a CSV file that hold numbers, row by row."""
    rows = []
    for line in path.read_text().splitlines()[1:]:
        cells = []
        for cell in line.split(","):
            try:
                cells.append(repr(float(cell)))
            except ValueError:
                continue
        rows.append(" ".join(sorted(cells)))
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


def run(game: str, learner: str, rules: str) -> dict[str, str]:
    """A short run: the weights, what training reported and the evaluations."""
    import dropin

    with tempfile.TemporaryDirectory() as directory:
        agent: Any = dropin.train(
            game,
            learner,
            directory=Path(directory) / "run",
            rules=rules,
            seed=3,
            steps=6 * 4 * 4,
            log_every=3 * 4 * 4,
            checkpoint_every=6 * 4 * 4,
            training=dropin.TrainConfig(num_envs=4),
            evaluation=dropin.EvaluationConfig(
                team_limits=(5,),
                num_envs=3,
                episodes=2,
                teammates=("strangers", "partners") if learner in JOINT else ("strangers",),
            ),
            report="none",
        )
        files = Path(directory) / "run"
        return {
            "weights": checksum(agent.policy.network),
            "metrics": numbers(files / "metrics.csv"),
            "evaluation": numbers(files / "evaluation.csv"),
        }


def rollout(game: str, rules: str) -> dict[str, str]:
    """Steps of open teams that have every type of the game in their pool."""
    import equinox as eqx

    import dropin

    env = dropin.make(game, rules=rules, team_limit=4, slots=5)

    @eqx.filter_jit
    def play(env: Any, key: Any) -> Any:
        first, key = jax.random.split(key)
        states, seen = jax.vmap(env.reset)(jax.random.split(first, 24))

        def step(states: Any, key: Any) -> Any:
            acting, key = jax.random.split(key)
            actions = jax.random.randint(acting, (24,), 0, len(env.game.actions))
            states, result = jax.vmap(env.step)(jax.random.split(key, 24), states, actions)
            seen = result.observation
            return states, (
                result.actions, result.rewards, result.done, seen.agents, seen.shared,
                seen.present, seen.arrived,
            )  # fmt: skip

        _, steps = jax.lax.scan(step, states, jax.random.split(key, 120))
        return seen.agents, steps

    return {"steps": checksum(play(env, jax.random.key(7)))}


def recipe(name: str) -> dict[str, str]:
    """The first updates of a recipe of the zoo."""
    from dataclasses import replace

    from dropin.zoo import make_recipe

    made = replace(make_recipe(name), **RECIPES[name])
    state, metrics = made.train_chunk(made.init(5))
    return {"state": checksum(state), "told": checksum(list(metrics.values()))}


def page() -> dict[str, str]:
    """The numbers of a page that is drawn from the runs that are kept."""
    from dropin.cli import main

    with tempfile.TemporaryDirectory() as directory:
        main(
            ["reproduce", "table2", "--rules", "reference", "--seeds", "2", "--draw",
             "--use", str(ROOT / "docs" / "results" / "learning"), "--directory", directory,
             "--report", "none"]
        )  # fmt: skip
        found = json.loads((Path(directory) / "table2" / "table2.json").read_text())["numbers"]
    return {"numbers": hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]}


def tasks() -> dict[str, Callable[[], dict[str, str]]]:
    """Everything that is compared, by name."""
    runs = {
        f"run {game} {learner} {rules}": partial(run, game, learner, rules)
        for learner in LEARNERS
        for game in GAMES
        for rules in RULES
    }
    rollouts = {
        f"rollout {game} {rules}": partial(rollout, game, rules)
        for game in GAMES
        for rules in RULES
    }
    recipes = {f"recipe {name}": partial(recipe, name) for name in RECIPES}
    return {"page table2": page, **rollouts, **recipes, **runs}


def main() -> int:
    """Record or check; the exit code is 1 if something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=("record", "check"))
    parser.add_argument("only", nargs="*", help="words that the names of the tasks contain")
    parser.add_argument("--part", default="0/1", help="every n-th task from the k-th on, as 0/2")
    given = parser.parse_args()
    part, parts = map(int, given.part.split("/"))
    chosen = [name for name in tasks() if all(word in name.split() for word in given.only)]
    known = json.loads(VALUES.read_text()) if VALUES.exists() else {}
    different = 0
    for name in chosen[part::parts]:
        found = tasks()[name]()
        jax.clear_caches()  # Programs of many tasks together need too many memory maps.
        if given.action == "record":
            known = json.loads(VALUES.read_text()) if VALUES.exists() else {}
            known[name] = found
            VALUES.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
            print(f"{name}: recorded", flush=True)
        else:
            odd = [each for each in found if found[each] != known.get(name, {}).get(each)]
            different += bool(odd)
            print(f"{name}: {'DIFFERENT in ' + ', '.join(odd) if odd else 'equal'}", flush=True)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
