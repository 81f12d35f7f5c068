"""The programs in examples/, as a reader would run them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SAYS = {
    "batch.py": r"25600 steps of a random learner, mean reward 0\.\d+\nteams of 2 to 5 agents",
    "gymnasium_loop.py": r"episode 4: \d+ steps, return \d+, team of [23] to 3 agents",
    "own_type.py": r"teammates H6: mean return .*\nteammates H6 and escort: mean return",
    "scripted_team.py": r"Start: the learner, (.|\n)*The episode ends after \d+ steps",
}


def test_every_example_is_tested():
    assert sorted(SAYS) == sorted(path.name for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs_and_says_something(name):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / name)],
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
