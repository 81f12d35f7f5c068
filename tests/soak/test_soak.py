"""A share of `make soak`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent


@pytest.mark.slow
def test_nothing_is_left_behind_after_some_hours_of_use():
    """To be sure of a slope takes more cycles than these: it may be open, but not broken."""
    places = [TESTS.parent / "src", TESTS, TESTS / "arena", TESTS / "experiments"]
    ended = subprocess.run(
        [sys.executable, "-m", "soak", "--minutes", "0", "--cycles", "16", "--rooms", "3"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in (0, 2), ended.stdout + ended.stderr
    assert "48 rooms opened, played and closed; 48 episodes recorded" in ended.stdout
    assert "broken" not in ended.stdout
