"""The programs in examples/, as a reader would run them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

from dropin.training.loop import train

ROOT = Path(__file__).resolve().parent.parent

SAYS = {
    "batch.py": r"25600 steps of a random learner, mean reward 0\.\d+\nteams of 2 to 5 agents",
    "demo.py": r"random +0\.\d+(.|\n)*untrained GPL-Q(.|\n)*trained GPL-Q(.|\n)*replay.gif",
    "foreign_policy.py": r"lbf/standard, 2 episodes: \d\.\d\d\n.*results\.json",
    "gymnasium_loop.py": r"episode 4: \d+ steps, return \d+, team of [23] to 3 agents",
    "insight.py": r"utility and distance(.|\n)*\n120 +-?\d\.\d+ \(",
    "own_type.py": r"teammates H6: mean return .*\nteammates H6 and escort: mean return",
    "scripted_team.py": r"Start: the learner, (.|\n)*The episode ends after \d+ steps",
}


def test_every_example_is_tested():
    assert sorted(SAYS) == sorted(path.name for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=pytest.mark.slow if name in ("demo.py", "insight.py", "batch.py") else ()
        )
        for name in SAYS
    ],
)
def test_an_example_runs_and_says_something(name, tmp_path):
    arguments = []
    if name == "demo.py":  # It shows runs that `make demo` has trained.
        for seed in (0, 1):
            tiny.run(tmp_path / "runs" / f"seed-{seed}", seed=seed, keep=None)
        arguments = [str(tmp_path / "runs")]
    if name == "insight.py":  # It looks at a run that somebody has trained.
        settings = tiny.RUN | {"types": ["H2"], "keep": "agents"}
        train("wolfpack", "gpl-q", directory=tmp_path / "run", **settings)
        arguments = [str(tmp_path / "run"), "20"]
    if name == "foreign_policy.py":
        arguments = [str(tmp_path / "foreign")]
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / name), *arguments],
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.search(SAYS[name], done.stdout), done.stdout


@pytest.mark.parametrize("name", SAYS)
def test_an_example_is_short(name):
    assert len((ROOT / "examples" / name).read_text().splitlines()) <= 48
