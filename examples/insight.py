"""What GPL comes to make of its teammates in Wolfpack, over a run: dropin train wolfpack gpl-q."""

import sys

from dropin.analysis import capture_utilities, correlation, over_training, teammate_utilities
from dropin.cli.show import show_table
from dropin.training.directory import RunDirectory

if len(sys.argv) < 2:
    raise SystemExit("Give the directory of a run of GPL in Wolfpack.")
run, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
env = RunDirectory(run).config().environment()


def look(agent):
    """How utility goes with distance to the prey, and what joint captures are worth."""
    utility, distance = teammate_utilities(agent, env, steps=steps)
    return correlation(utility, distance), capture_utilities(agent, env, steps=steps)


rows = []
for step, (near, surplus) in over_training(run, look).items():
    told = "-" if near is None else f"{near.r:.2f} ({near.low:.2f} to {near.high:.2f})"
    mean = f"{surplus.mean():.3f}" if surplus.size else "-"
    rows.append((f"{step:,}", told, mean, f"{surplus.size}"))
show_table(("step", "utility and distance", "surplus of a capture", "pairs"), rows, numbers=3)
