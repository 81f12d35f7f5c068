"""What GPL learns about its teammates in Wolfpack, over a run of `dropin train wolfpack gpl-q`."""

import sys

from dropin.analysis import capture_utilities, correlation, over_training, teammate_utilities
from dropin.cli.show import show_table
from dropin.training.run_directory import RunDirectory

if len(sys.argv) < 2:
    raise SystemExit("Give the directory of a run of GPL in Wolfpack.")
run, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
env = RunDirectory(run).config().make_env()


def analyse(agent):
    """Correlate utility with distance to the prey; measure what joint captures are worth."""
    utility, distance = teammate_utilities(agent, env, steps=steps)
    return correlation(utility, distance), capture_utilities(agent, env, steps=steps)


rows = []
for step, (found, surplus) in over_training(run, analyse).items():
    r = "-" if found is None else f"{found.r:.2f} ({found.low:.2f} to {found.high:.2f})"
    mean = f"{surplus.mean():.3f}" if surplus.size else "-"
    rows.append((f"{step:,}", r, mean, f"{surplus.size}"))
show_table(("step", "utility and distance", "surplus of a capture", "pairs"), rows, numbers=3)
