"""Whether two versions compute the same updates, to rounding: losses and weights, update by update.

The older version is a checkout of the repository that draws the same random numbers. Commit ef6b0c7
is the last one before outputs recorded while acting came to be replayed for the gradient:

    git worktree add ../dropin-before ef6b0c7
    python benchmarks/agreement.py --before ../dropin-before [--updates 40]

Printed are the largest relative differences in all updates: of each loss to its value, of each
weight to the largest weight of its array; and how many updates it takes until one of them is above
the tolerance. If that happens, the exit code is 1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
LEARNERS = ("gpl-q", "gpl-spi", "ql", "ql-am", "gnn", "gnn-am", "dgn", "maddpg")
CASES = [("lbf", learner) for learner in LEARNERS] + [
    (game, learner) for game in ("wolfpack", "fortattack") for learner in ("gpl-q", "gpl-spi")
]
TOLERANCE = 1e-4


def run(game: str, learner: str, updates: int, path: Path) -> None:
    """Do some updates in whichever version is imported; write losses and weights to a file."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import dropin
    from dropin.core import registry
    from dropin.core.metrics import to_row
    from dropin.learners.config import TrainConfig
    from dropin.training.chunk import RunState, train_chunk

    env = dropin.make(game, rules="reference", team_limit=3)
    spec = registry.learners[learner]
    made = spec.make(spec.default_settings(game), TrainConfig())
    state = RunState(made.init(jax.random.key(0), env), jnp.int32(0))
    losses: list[dict[str, float]] = []
    arrays: dict[str, Any] = {}
    for number in range(updates):
        state, metrics, _ = train_chunk((env, made, jnp.int32(1)), state)
        row = to_row(metrics)
        losses.append({name: float(row[name] or 0) for name in row if name.endswith("loss")})
        weights = jax.tree.leaves(eqx.filter(state.train_state.network, eqx.is_inexact_array))
        arrays |= {f"{number} {index}": np.asarray(each) for index, each in enumerate(weights)}
    np.savez(path, losses=np.array(json.dumps(losses)), **arrays)


def compare(game: str, learner: str, updates: int, before: Path) -> list[tuple[float, float]]:
    """Return the largest relative difference of losses and of weights after each update."""
    with tempfile.TemporaryDirectory() as folder:
        found: list[Any] = []
        for number, checkout in enumerate((before, ROOT)):
            path = Path(folder) / f"{number}.npz"
            subprocess.run(
                [sys.executable, __file__, "--run", game, learner, str(updates), str(path)],
                env=os.environ | {"PYTHONPATH": str(checkout / "src"), "JAX_PLATFORMS": "cpu"},
                check=True,
            )
            found.append(dict(np.load(path)))
    losses = [json.loads(str(each.pop("losses"))) for each in found]
    rows = []
    for number in range(updates):
        old, new = (each[number] for each in losses)
        by_loss = max(abs(old[name] - new[name]) / max(abs(old[name]), 1e-9) for name in old)
        by_weight = max(
            float(np.max(np.abs(array - found[1][name])) / np.max(np.abs(array)))
            for name, array in found[0].items()
            if name.startswith(f"{number} ")
        )
        rows.append((by_loss, by_weight))
    return rows


def main() -> None:
    """Compare all learners in LBF, and GPL in the other games."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path, help="a checkout of the older version")
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        game, learner, updates, path = given.run
        run(game, learner, int(updates), Path(path))
        return
    if given.before is None:
        parser.error("--before has to name a checkout of the older version")
    print(f"largest relative differences in {given.updates} updates, rules reference, limit 3;")
    print(f"number of updates until one of them is above {TOLERANCE:.0e}")
    print("game        learner   losses     weights    updates")
    apart = False
    for game, learner in CASES:
        rows = compare(game, learner, given.updates, given.before)
        losses, weights = (max(column) for column in zip(*rows, strict=True))
        within = [max(row) <= TOLERANCE for row in rows]
        apart = apart or not all(within)
        until = "never" if all(within) else within.index(False)
        print(f"{game:<11} {learner:<9} {losses:<10.1e} {weights:<10.1e} {until}", flush=True)
    sys.exit(apart)


if __name__ == "__main__":
    main()
