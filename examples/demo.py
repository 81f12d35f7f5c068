"""What `make demo` shows of the runs it has trained: a table, learning curves and a replay."""

import sys
from pathlib import Path

import dropin
from dropin.agents import load_policy
from dropin.cli.show import show_table
from dropin.evaluation.statistics import estimate
from dropin.plots.curves import draw_curves, read_curves
from dropin.render.episode import record_episode
from dropin.render.picture import save_gif
from dropin.training.run_directory import RunDirectory, runs_in

runs = Path(sys.argv[1] if len(sys.argv) > 1 else "demo/runs")
files = [RunDirectory(each) for each in runs_in(runs)]
if not files:
    raise SystemExit(f"There is no run in {runs}: make demo trains two.")
env = files[0].config().make_env()


def score(*policies):
    """Return the mean return over the episodes of all policies."""
    return estimate([dropin.evaluate(each, env, episodes=320).returns for each in policies])


scores = {
    "random": score("random"),
    "untrained GPL-Q": score(*(each.checkpoint(0) for each in files)),
    "trained GPL-Q": score(*(each.agent for each in files)),
}
rows = [(name, f"{each.mean:.2f}", each.interval, str(each.n)) for name, each in scores.items()]
show_table(("policy", "mean return", "95 % interval", "episodes"), rows, numbers=3)

draw_curves(
    read_curves([each.path for each in files]),
    runs.parent / "learning_curve.png",
    reference_lines={"random": scores["random"].mean},
    title="lbf",
)
frames = record_episode(env, load_policy(files[0].agent, env), seed=2)
save_gif(env, frames, runs.parent / "replay.gif", seconds=0.25)
print(f"{runs.parent}/learning_curve.png and {runs.parent}/replay.gif")
