"""What `make demo` shows of the runs it has trained: a table, learning curves and a replay."""

import sys
from pathlib import Path

import dropin
from dropin.agents import load_player
from dropin.cli.show import show_table
from dropin.evaluation.statistics import estimate
from dropin.render.curves import curves, draw
from dropin.render.episode import record
from dropin.render.picture import save_gif
from dropin.training.directory import RunDirectory, runs_in

runs = Path(sys.argv[1] if len(sys.argv) > 1 else "demo/runs")
files = [RunDirectory(each) for each in runs_in(runs)]
if not files:
    raise SystemExit(f"There is no run in {runs}: make demo trains two.")
rules, team_limit = files[0].config().rules, files[0].config().team_limit
env = dropin.make("lbf", rules=rules, team_limit=team_limit)


def score(*players):
    """The mean over the episodes of all of them."""
    return estimate([dropin.evaluate(who, env, episodes=320).returns for who in players])


scores = {
    "random": score("random"),
    "untrained GPL-Q": score(*(each.checkpoint(0) for each in files)),
    "trained GPL-Q": score(*(each.agent for each in files)),
}
rows = [(name, f"{each.mean:.2f}", each.interval, str(each.n)) for name, each in scores.items()]
show_table(("player", "mean return", "95 % interval", "episodes"), rows, numbers=3)

levels = {"random": scores["random"].mean}
draw(
    curves([each.path for each in files]),
    runs.parent / "learning_curve.png",
    levels=levels,
    title="lbf",
)
moments = list(record(env, load_player(files[0].agent, env), seed=2))
save_gif(env, moments, runs.parent / "replay.gif", seconds=0.25)
print(f"{runs.parent}/learning_curve.png and {runs.parent}/replay.gif")
