"""Training from start to end: one run, or several that train together in this process."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from dropin._xla.cache import use_cache
from dropin.agents import Agent, load_agent
from dropin.core.errors import InputError, StoppedError, StorageError
from dropin.env import AnyEnv
from dropin.training.config import (
    EvaluationConfig,
    RunConfig,
    TrainConfig,
    default_run_directory,
    run_config,
)
from dropin.training.reporters import Reporter, screen_reporter
from dropin.training.run_directory import Keep, RunDirectory, runs_in
from dropin.training.runs import Runs
from dropin.training.sets_of_runs import create_runs, differences_of_runs

__all__ = ["interruptible", "resume_run", "resume_together", "train", "train_together"]


def train(
    game: str | AnyEnv,
    learner: str,
    *,
    directory: str | Path | None = None,
    steps: int | None = None,
    seed: int = 0,
    rules: str | None = None,
    team_limit: int = 3,
    types: Sequence[str] | None = None,
    openness: str | None = None,
    resume: bool = False,
    keep: Keep = None,
    report: str | Reporter = "auto",
    log_every: int | None = None,
    checkpoint_every: int | None = None,
    evaluation: EvaluationConfig | None = None,
    training: TrainConfig | None = None,
    **settings: Any,
) -> Agent:
    """Train a learner in a game.

    Args:
        game: Name of a registered game, or an environment.
        learner: Name of a registered learner.
        directory: Where the run's files go; by default a directory below `runs`, named after the
            run.
        steps: Environment steps, all parallel environments together; by default the paper's.
        seed: The same seed gives the same run.
        rules: As in `dropin.make`.
        team_limit: As in `dropin.make`.
        types: Names of types, as in `dropin.make`.
        openness: Name of a registered openness, as in `dropin.make`.
        resume: Whether to continue a run of the same settings from its latest checkpoint.
        keep: Number of checkpoints to keep (3 by default), "all", or "agents" for three
            checkpoints and the agent of every one.
        report: How to report progress: "auto", "lines", "json", "none", or a reporter.
        log_every: Environment steps between two rows of metrics.
        checkpoint_every: Environment steps between two checkpoints.
        evaluation: How to evaluate at every checkpoint.
        training: Settings of the loop; by default the paper's for the game.
        **settings: Settings of the learner, or `game_settings`, a dictionary of fields of the game
            that differ from its rules.

    Returns:
        The trained agent.

    Raises:
        InputError: If something is unknown or does not fit.
        StoppedError: If the run had to stop; the message says how to continue.
    """
    config = run_config(
        game,
        learner,
        steps=steps,
        seed=seed,
        rules=rules,
        team_limit=team_limit,
        types=None if types is None else tuple(types),
        openness=openness,
        log_every=log_every,
        checkpoint_every=checkpoint_every,
        evaluation=evaluation,
        training=training,
        **settings,
    )
    files = RunDirectory(directory or default_run_directory(config))
    runs = Runs([files], [config], None if isinstance(game, str) else game, keep)
    reporter = screen_reporter(report)
    if resume:
        files.check_same(config)
        files.check_resumable()
        files.check_versions()
    else:
        files.create(config, keep)
    return _finish(runs, reporter)[0]


def train_together(
    game: str | AnyEnv,
    learner: str,
    seeds: Sequence[int],
    *,
    directory: str | Path | None = None,
    types: Sequence[str] | None = None,
    keep: Keep = None,
    report: str | Reporter = "auto",
    **settings: Any,
) -> list[Agent]:
    """Train several seeds of a learner in this process, as one program, for accelerators.

    Each seed is a run with a directory of its own. Its results are those of `train` to rounding.

    Args:
        game: Name of a registered game, or an environment.
        learner: Name of a registered learner.
        seeds: The seeds.
        directory: The directory that holds those of the runs, `seed-0` and so on; by default one
            below `runs`.
        types: As in `train`.
        keep: As in `train`.
        report: As in `train`. A reporter gets all rows, with the name of the run in `run`.
        **settings: All other arguments of `train`, but for `seed` and `resume`.

    Returns:
        The trained agents, in the order of the seeds.

    Raises:
        InputError: If something is unknown or does not fit.
        StoppedError: If the runs had to stop; the message says how to continue.
    """
    if not seeds or len(set(seeds)) < len(seeds) or "seed" in settings:
        raise InputError("Give the seeds of the runs in `seeds`, at least one and each once.")
    settings["types"] = None if types is None else tuple(types)
    configs = [run_config(game, learner, seed=seed, **settings) for seed in seeds]
    whole = Path(directory) if directory else default_run_directory(configs[0]).parent
    files = [RunDirectory(whole / f"seed-{seed}") for seed in seeds]
    runs = Runs(files, configs, None if isinstance(game, str) else game, keep)
    reporter = screen_reporter(report)
    create_runs([each.path for each in files], configs, keep)
    return _finish(runs, reporter)


def resume_run(
    directory: str | Path,
    *,
    env: AnyEnv | None = None,
    keep: Keep = None,
    report: str | Reporter = "auto",
    wait: float = 0.0,
) -> Agent:
    """Continue a run from its latest checkpoint to its end; the same bits as without a pause.

    Args:
        directory: The run's directory.
        env: The environment, if the run was started with an environment object.
        keep: Number of checkpoints to keep; by default as before.
        report: As in `train`.
        wait: Seconds to wait for another process that trains there.

    Returns:
        The trained agent.
    """
    files = RunDirectory(directory)
    runs = Runs([files], [_resumable(files, env)], env, keep)
    return _finish(runs, screen_reporter(report), wait)[0]


def resume_together(
    directory: str | Path | Sequence[str | Path],
    *,
    env: AnyEnv | None = None,
    keep: Keep = None,
    report: str | Reporter = "auto",
    wait: float = 0.0,
) -> list[Agent]:
    """Continue runs that differ in nothing but their seeds in this process, as one program.

    They continue from the latest checkpoint that all of them have. Runs that were trained together
    before end with the same bits as without a pause.

    Args:
        directory: The directory that holds those of the runs, or the directories of the runs.
        env: The environment, if the runs were started with an environment object.
        keep: Number of checkpoints to keep; by default as before.
        report: As in `train_together`.
        wait: Seconds to wait for another process that trains there.

    Returns:
        The trained agents, in the order of the directories.

    Raises:
        InputError: If there is no run, or the runs differ in more than their seeds or are not at
            the same step.
        StoppedError: If the runs had to stop; the message says how to continue.
    """
    given = isinstance(directory, str | Path)
    paths = runs_in(Path(directory)) if given else [Path(each) for each in directory]
    if not paths:
        raise InputError(f"There is no run in {directory}: a run has a file run.json.")
    files = [RunDirectory(each) for each in paths]
    configs = [_resumable(each, env) for each in files]
    different = differences_of_runs(configs)
    if different:
        raise InputError(
            f"The runs in {paths[0].parent} differ in more than their seeds ({different[0]}):"
            " without --together they are trained one by one."
        )
    return _finish(Runs(files, configs, env, keep), screen_reporter(report), wait)


def _resumable(files: RunDirectory, env: AnyEnv | None) -> RunConfig:
    """Return the settings of a run; raise `InputError` if it cannot be resumed."""
    config = files.config()
    if config.custom_env and env is None:
        raise InputError(f"{files.path} was started with an environment object: give it again.")
    files.check_resumable()
    files.check_versions()
    return config


def _finish(runs: Runs, reporter: Reporter, wait: float = 0.0) -> list[Agent]:
    """Take runs to their end."""
    use_cache()
    hint = f"Continue with: {runs.command}"
    try:
        with ExitStack() as stack:
            for run in runs:
                stack.enter_context(run.files.locked(wait))
            stack.enter_context(reporter)
            interrupted = stack.enter_context(interruptible())
            runs.open(reporter)
            done = runs.train(interrupted)
            if not done:
                reporter.say(f"Saved at step {runs.step:,}. {hint}")
                raise KeyboardInterrupt
    except BrokenPipeError:
        raise StoppedError(f"The run stopped, since nobody reads its reports. {hint}") from None
    except OSError as error:
        raise StorageError(
            f"The run stopped, since {error.filename or runs.path} cannot be read or written:"
            f" {error.strerror}. {hint}"
        ) from None
    return [load_agent(run.files.agent) for run in runs]


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Note Ctrl-C (or SIGTERM) instead of raising it; a second one interrupts at once.

    Yields:
        A function that returns whether there was an interrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        if noted:
            raise KeyboardInterrupt
        noted.append(number)

    before = {each: signal.signal(each, note) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(noted)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
