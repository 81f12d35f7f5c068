"""Several runs: created together, and compared by their settings."""

from collections.abc import Sequence
from pathlib import Path

from dropin.core.config import PlainDict, differences
from dropin.core.errors import InputError
from dropin.training.config import NOT_IDENTITY, RunConfig
from dropin.training.run_directory import Keep, RunDirectory, runs_in

__all__ = ["create_runs", "differences_of_runs", "runs_of_one_kind"]


def create_runs(
    directories: Sequence[Path], configs: Sequence[RunConfig], keep: Keep = None
) -> list[RunDirectory]:
    """Write the settings of new runs, or of none of them if one of the directories is not free.

    A directory that holds the very settings of its run and nothing else is as free as an empty one:
    a process that was killed here left it.

    Args:
        directories: The directory of each run.
        configs: The settings of each run.
        keep: How many checkpoints to keep.

    Raises:
        InputError: If one of the directories holds anything.
    """
    files = [RunDirectory(each) for each in directories]
    left = [
        (each, config)
        for each, config in zip(files, configs, strict=True)
        if not each.is_just_created(config, keep)
    ]
    for each, _ in left:
        each.check_free()
    for each, config in left:
        each.create(config, keep)
    return files


def runs_of_one_kind(directory: Path) -> list[Path]:
    """Return the runs in a directory, which may differ in nothing but their seeds.

    Settings that do not influence what a run learns may differ as well.

    Raises:
        InputError: If there is no run, or the runs differ in more than their seeds.
    """
    runs = runs_in(directory)
    if not runs:
        raise InputError(f"There is no run in {directory}: a run has a file run.json.")
    different = differences_of_runs([RunDirectory(each).config() for each in runs], NOT_IDENTITY)
    if different:
        raise InputError(
            f"The runs in {directory} differ in more than their seeds ({different[0]}): name"
            " the directory of each kind."
        )
    return runs


def differences_of_runs(configs: Sequence[RunConfig], may_differ: Sequence[str] = ()) -> list[str]:
    """Return how runs differ besides their seeds: the first one from the first that differs.

    Args:
        configs: The settings of the runs.
        may_differ: Settings that may differ as well.
    """

    def kind(config: RunConfig) -> PlainDict:
        values = config.to_dict()
        return {name: each for name, each in values.items() if name not in ("seed", *may_differ)}

    for other in configs[1:]:
        different = differences(kind(configs[0]), kind(other))
        if different:
            return different
    return []
