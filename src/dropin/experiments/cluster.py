"""Training runs on a Ray cluster.

Each run is a task of its own, which continues elsewhere when its node dies. Runs are stored in a
directory that all nodes share, so a task is only told where its run is, and the driver reads from
the same files how far it has come.
"""

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from dropin.core.config import PlainDict
from dropin.core.errors import InputError, MissingExtraError, StorageError
from dropin.training.parallel import board_for, raise_failures, show_state
from dropin.training.reporters import Board, Pace, Reporter
from dropin.training.run_directory import RunDirectory
from dropin.training.tables import read_table

if TYPE_CHECKING:
    from ray import ObjectRef

__all__ = ["run_on_ray", "train_in"]

PASSED_ON = (
    "JAX_PLATFORMS",
    "XLA_FLAGS",
    "JAX_ENABLE_X64",
    "JAX_DEFAULT_MATMUL_PRECISION",
    "DROPIN_CACHE",
    "JAX_COMPILATION_CACHE_DIR",
)
"""Environment variables of the driver that decide the bits of a run, or how fast it starts."""
LOCK_TIMEOUT = 180.0
"""Seconds until the file system has released the lock of a run whose node died."""
STORAGE_TIMEOUT = 600.0
"""Seconds that a run waits for its directory to come back, without getting any further."""
POLL_SECONDS = 1.0
"""Seconds between two looks at the files of the runs."""


def train_in(path: str) -> None:
    """Train the run in a directory to its end; this is what a task of the cluster does.

    A shared directory may be gone for a while, or full. Then the run waits, and continues from its
    latest checkpoint.

    Args:
        path: The run's directory.

    Raises:
        InputError: If the run cannot be trained.
        StoppedError: If it had to stop, or if its files did not come back.
    """
    from dropin.training.loop import resume_run

    files = RunDirectory(path)
    patience = _Patience()
    while True:
        try:
            resume_run(path, report="none", wait=LOCK_TIMEOUT)
            return
        except (StorageError, InputError) as error:
            # What is wrong with a directory that has just gone, or just come back, is not believed
            # before it is seen a second time.
            if not patience.is_left(files, believed=isinstance(error, InputError)):
                raise
        while not files.exists and patience.is_left(files, believed=False):
            time.sleep(POLL_SECONDS)


class _Patience:
    """How long a run may still be tried that gets no further."""

    def __init__(self) -> None:
        self._reached, self._since, self._doubted = -1, time.monotonic(), False

    def is_left(self, files: RunDirectory, *, believed: bool) -> bool:
        """Return whether to try again, after a moment.

        Args:
            files: The run's directory.
            believed: Whether what happened is not about the storage, if it happens twice while the
                directory is there.
        """
        steps = files.steps() if files.exists else []
        if steps and steps[-1] > self._reached:
            self._reached, self._since, self._doubted = steps[-1], time.monotonic(), False
        if believed and files.exists:
            if self._doubted:
                return False
            self._doubted = True
        time.sleep(POLL_SECONDS)
        return time.monotonic() - self._since < STORAGE_TIMEOUT


def run_on_ray(runs: Mapping[str, Path], address: str | None = None, report: str = "auto") -> None:
    """Train runs on a Ray cluster, one task each.

    The tasks end when this process ends; if it is started again, runs continue from their latest
    checkpoints.

    Args:
        runs: The directories of the runs, by name.
        address: The address of the cluster; one on this machine is started if it is not given.
        report: How to report progress: `auto`, `lines`, `json` or `none`.

    Raises:
        MissingExtraError: If Ray is not installed.
        StoppedError: If some runs failed, once all others are done.
    """
    try:
        import ray
    except ImportError:
        raise MissingExtraError("Running on Ray", "cluster") from None

    variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    ray.init(
        address=address or "local",
        runtime_env={"env_vars": variables},
        include_dashboard=False if address is None else None,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    try:
        # A process for each run: compiled programs and their memory are of no use to the next.
        # A task is retried without limit if its node or process dies, but never if it fails.
        task = ray.remote(num_cpus=1, max_retries=-1, max_calls=1)(train_in)
        pending = {task.remote(str(path.resolve())): name for name, path in runs.items()}
        _watch(ray, pending, runs, report)
    finally:
        ray.shutdown()


def _watch(
    ray: ModuleType, pending: "dict[ObjectRef[None], str]", runs: Mapping[str, Path], report: str
) -> None:
    """Report the progress of tasks until all have ended."""
    failed: dict[str, str] = {}
    board = board_for(report)
    monitors = {name: _Monitor(name, path) for name, path in runs.items()}
    with board:
        for name in runs:
            show_state(board, name, "waiting")
        while pending:
            ended, _ = ray.wait(list(pending), timeout=POLL_SECONDS)
            for task in ended:
                name = pending.pop(task)
                try:
                    ray.get(task)
                except ray.exceptions.RayError as error:
                    failed[name] = _reason(error)
                show_state(board, name, f"failed: {failed[name]}" if name in failed else "done")
            for name in pending.values():
                monitors[name].show(board)
    raise_failures(failed, len(runs))


def _reason(error: Exception) -> str:
    """Return in one line why a task failed."""
    cause = getattr(error, "cause", None) or error
    return str(cause).strip().splitlines()[-1]


class _Monitor:
    """Follows a run by its files."""

    def __init__(self, name: str, path: Path):
        self.name, self.files = name, RunDirectory(path)
        self.step = self._latest().get("step", 0.0)
        self.steps = self.files.config().steps
        self.pace: Pace | None = None

    def _latest(self) -> PlainDict:
        """Return the latest row of metrics; nothing while there is none."""
        try:
            rows = read_table(self.files.metrics.path)
        except OSError:  # The shared directory is gone; it may come back.
            return {}
        return {name: float(value) if value else "" for name, value in (rows or [{}])[-1].items()}

    def show(self, board: Reporter) -> None:
        """Update the run's row on a board if there are new metrics."""
        if not isinstance(board, Board):
            return
        row = self._latest()
        if row.get("step", self.step) == self.step:
            return
        self.step = row["step"]
        self.pace = self.pace or Pace(self.steps)
        rate, left = self.pace.update(int(self.step))
        row["step"] = int(self.step)
        board.show(self.name, rate=rate, left=left, steps=self.steps, state="", **row)
