"""Several runs at once, each in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

AUTOGROUP = Path("/proc/self/autogroup")

CHILD = """
import os, sys
from pathlib import Path
from queue import Queue
from dropin.training.parallel import _Worker

sys.executable = {sleeper!r}
os.nice(7)
worker = _Worker("a run", (), 0, Queue())
print(Path(f"/proc/{{worker.process.pid}}/autogroup").read_text())
worker.process.kill()
"""


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="this system has no autogroups")
def test_a_lowered_priority_holds_for_the_sessions_of_workers(tmp_path: Path) -> None:
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 60\n")
    sleeper.chmod(0o700)
    printed = subprocess.run(
        [sys.executable, "-c", CHILD.format(sleeper=str(sleeper))],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert printed.strip().endswith("nice 7")
