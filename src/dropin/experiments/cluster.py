"""Runs on a Ray cluster: one task each, which goes on elsewhere when its node dies.

Runs are kept in a directory that all nodes share. So a task is only told where its run is, and the
driver sees from the same files how far it has come.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dropin.errors import MissingExtraError
from dropin.training.directory import RunDirectory
from dropin.training.many import board_for, raise_failures, tell
from dropin.training.reporters import Board, Pace, Reporter
from dropin.training.table import read_table

PASSED_ON = ("JAX_PLATFORMS", "XLA_FLAGS", "DROPIN_CACHE", "JAX_COMPILATION_CACHE_DIR")
"""Environment variables of the driver that decide the bits of a run, or how fast it begins."""
PATIENCE = 180.0
"""Seconds until the file system has given up the lock of a run whose node died."""
EVERY = 1.0
"""Seconds between two looks at the files."""


def train_at(path: str) -> None:
    """Take the run in a directory to its end: what a task does."""
    from dropin.training.loop import resume_run

    resume_run(path, report="none", wait=PATIENCE)


def run_on_ray(runs: Mapping[str, Path], address: str | None = None, report: str = "auto") -> None:
    """Take all runs to their end; those that fail are named in the end, the others go on.

    Without an address a cluster of this machine is started. When this process ends, so do its
    tasks; started again, runs go on from their latest checkpoints.
    """
    try:
        import ray
    except ImportError:
        raise MissingExtraError("Running on Ray", "cluster") from None

    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    ray.init(
        address=address or "local",
        runtime_env={"env_vars": passed},
        include_dashboard=False if address is None else None,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    try:
        # A process for each run, since programs and their memory are of no use for the next.
        # Ray begins a task again if its node or process dies, however often; never if it fails.
        task = ray.remote(num_cpus=1, max_retries=-1, max_calls=1)(train_at)
        waiting = {task.remote(str(path.resolve())): name for name, path in runs.items()}
        _watch(ray, waiting, runs, report)
    finally:
        ray.shutdown()


def _watch(ray: Any, waiting: dict[Any, str], runs: Mapping[str, Path], report: str) -> None:
    failed: dict[str, str] = {}
    board = board_for(report)
    looks = {name: _Look(name, path) for name, path in runs.items()}
    with board:
        for name in runs:
            tell(board, name, "waiting")
        while waiting:
            over, _ = ray.wait(list(waiting), timeout=EVERY)
            for each in over:
                name = waiting.pop(each)
                try:
                    ray.get(each)
                except ray.exceptions.RayError as error:
                    failed[name] = _reason(error)
                tell(board, name, f"failed: {failed[name]}" if name in failed else "done")
            for name in waiting.values():
                looks[name].show(board)
    raise_failures(failed, len(runs))


def _reason(error: Any) -> str:
    """Why a task failed, in a line."""
    cause = getattr(error, "cause", None) or error
    return str(cause).strip().splitlines()[-1]


class _Look:
    """How far a run has come, by its files."""

    def __init__(self, name: str, path: Path):
        self.name, self.files = name, RunDirectory(path)
        self.step = self._last().get("step", 0.0)
        self.pace: Pace | None = None

    def _last(self) -> dict[str, Any]:
        rows = read_table(self.files.metrics.path)
        return {name: float(value) if value else "" for name, value in (rows or [{}])[-1].items()}

    def show(self, board: Reporter) -> None:
        """Tell a table, if there is something new."""
        if not isinstance(board, Board):
            return
        row = self._last()
        if row.get("step", 0.0) == self.step:
            return
        self.step, steps = row["step"], self.files.config().steps
        self.pace = self.pace or Pace(steps)
        rate, left = self.pace.tell(int(self.step))
        row["step"] = int(self.step)
        board.show(self.name, rate=rate, left=left, steps=steps, state="", **row)
