"""The training loop: compiled chunks of about a second, and what Python does between them."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dropin._xla.cache import use_cache
from dropin.agents import Agent, AgentPolicy, load_agent, save_agent
from dropin.core import registry
from dropin.core.arrays import zeros_like
from dropin.core.config import PlainDict
from dropin.core.errors import InputError, StoppedError
from dropin.core.metrics import Metrics, to_row
from dropin.env import AnyEnv
from dropin.evaluation.evaluate import LEGACY_ENVS, LEGACY_EPISODES, legacy_means, run_episodes
from dropin.evaluation.statistics import estimate
from dropin.training.chunk import NonFinite, RunState, train_chunk
from dropin.training.config import (
    PARTNERS,
    EvaluationConfig,
    RunConfig,
    TrainConfig,
    default_run_directory,
    run_config,
)
from dropin.training.reporters import Reporter, screen_reporter
from dropin.training.run_directory import DEFAULT_KEEP, Keep, RunDirectory, check_keep

__all__ = ["interruptible", "resume_run", "train"]

_FIRST_COLUMNS = ("episodes", "return", "unshaped_return", "team_size", "value_loss")
PAPER_LIMIT = 5
"""The largest team limit of the paper's tests."""


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
    run = Run(files, config, None if isinstance(game, str) else game, keep)
    reporter = screen_reporter(report)
    if resume:
        files.check_same(config)
        files.check_resumable()
        files.check_versions()
    else:
        files.create(config, keep)
    return _finish(run, reporter)


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
    config = files.config()
    if config.custom_env and env is None:
        raise InputError(f"{files.path} was started with an environment object: give it again.")
    files.check_resumable()
    files.check_versions()
    return _finish(Run(files, config, env, keep), screen_reporter(report), wait)


def _finish(run: "Run", reporter: Reporter, wait: float = 0.0) -> Agent:
    """Take a run to its end."""
    files = run.files
    use_cache()
    hint = f"Continue with: dropin train --resume {files.path}"
    with files.locked(wait), reporter, interruptible() as interrupted:
        try:
            run.keep = files.keep(run.keep)
            if files.steps():
                run.restore()
            else:
                reporter.say("Compiling, which takes a while if it was not done before ...")
                run.begin(reporter)
            done = run.train(reporter, interrupted)
        except OSError as error:
            raise StoppedError(
                f"The run stopped, since {error.filename or files.path} cannot be written:"
                f" {error.strerror}. {hint}"
            ) from None
        if not done:
            reporter.say(f"Saved at step {run.step:,}. {hint}")
            raise KeyboardInterrupt
    return load_agent(files.agent)


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


def _evaluation_envs(config: RunConfig, limits: Sequence[int]) -> dict[int, AnyEnv]:
    """Make the environments in which a run is evaluated, by team limit.

    They have as many slots as the largest limit. Limits above the paper's have slots of their own:
    how many agents exist besides those present may depend on the number of slots.
    """
    usual = max((limit for limit in limits if limit <= PAPER_LIMIT), default=0)
    wide = {slots: config.make_env(slots=slots) for slots in {max(usual, x) for x in limits}}
    return {limit: wide[max(usual, limit)].with_team_limit(limit) for limit in limits}


class Run:
    """A run in memory, together with its files."""

    state: RunState

    def __init__(self, files: RunDirectory, config: RunConfig, env: AnyEnv | None, keep: Keep):
        check_keep(keep)
        self.files, self.config = files, config
        self.keep: Keep = keep
        self.learner = registry.learners[config.learner].make(config.settings, config.training)
        self.env = config.make_env() if env is None else env
        limits = sorted({config.team_limit, *config.evaluation.team_limits})
        self.evaluation_envs = _evaluation_envs(config, limits) if env is None else {
            limit: env.with_team_limit(limit) for limit in limits
        }  # fmt: skip
        self.num_updates = config.num_updates(config.steps)
        self.log_every = config.num_updates(config.log_every)
        self.checkpoint_every = config.num_updates(config.checkpoint_every)

    @property
    def updates(self) -> int:
        """Number of updates so far."""
        return int(self.state.updates)

    @property
    def step(self) -> int:
        """Environment steps so far, all environments together."""
        return self.updates * self.config.steps_per_update

    def _init(self) -> RunState:
        key = jax.random.key(self.config.seed)
        return RunState(self.learner.init(key, self.env), jnp.int32(0))

    def begin(self, reporter: Reporter) -> None:
        """Make the first state, evaluate it and save it."""
        # A run that was killed before its first checkpoint starts anew.
        self.files.metrics.clear()
        self.files.evaluation.clear()
        with ThreadPoolExecutor(1) as pool:
            # Another thread compiles the training program meanwhile: a chunk without updates.
            blank = zeros_like(eqx.filter_eval_shape(self._init))
            compiling = pool.submit(train_chunk, (self.env, self.learner, jnp.int32(0)), blank)
            self.state = self._init()
            self.evaluate(reporter)
            compiling.result()
        self.save(evaluated=True)

    def restore(self) -> None:
        """Read the state of the latest good checkpoint."""
        self.state, _ = self.files.restore(eqx.filter_eval_shape(self._init))
        save_agent(self.agent(), self.files.agent, step=self.step)

    def agent(self) -> Agent:
        """Return the agent that has been learned so far."""
        policy = self.learner.policy(self.state.train_state)
        return Agent(policy, self.config.learner, self.config.settings)

    def save(self, *, evaluated: bool) -> None:
        """Write a checkpoint."""
        keep = self.keep or DEFAULT_KEEP
        self.files.save(self.state, self.agent(), self.step, keep, evaluated=evaluated)

    def evaluate(self, reporter: Reporter) -> None:
        """Evaluate the agent at every team limit, with all kinds of teammates, in every mode."""
        agent = self.agent()
        for teammates in self.config.evaluation.teammates:
            for limit, wide in self.evaluation_envs.items():
                env = wide
                if teammates == PARTNERS:
                    env = wide.with_types([agent.as_type(self.env.game)])
                for mode in agent.policy.modes:
                    row = {"step": self.step, "team_limit": limit, "teammates": teammates}
                    row |= {"mode": mode, **self._measure(env, AgentPolicy(agent, mode))}
                    self.files.evaluation.append(row)
                    reporter.evaluation(row)

    def _measure(self, env: AnyEnv, policy: AgentPolicy) -> PlainDict:
        """Return the returns and metrics of a policy."""
        how = self.config.evaluation
        played = run_episodes(
            env, policy, num_envs=how.num_envs, episodes=how.episodes, seed=how.seed
        )
        mean, unshaped = estimate(played.returns), played.unshaped
        legacy = None
        if how.num_envs >= LEGACY_ENVS and how.episodes >= LEGACY_EPISODES:
            legacy = float(np.mean(legacy_means(played.returns, played.ends)))
        return {
            "episodes": played.returns.size,
            "mean_return": mean.mean,
            "ci_low": mean.low,
            "ci_high": mean.high,
            "legacy_mean_return": legacy,
            "unshaped_mean_return": None if unshaped is None else float(np.mean(unshaped)),
            **played.metrics,
        }

    def _check_finite(self, found: NonFinite, updates: int) -> None:
        """Raise `StoppedError` if something was not finite."""
        for what, number in (
            (f"The state of the agent in slot {int(found.slot)}", int(found.state)),
            ("A loss", int(found.metric)),
        ):
            if number < updates:
                last = self.files.steps()[-1]
                raise StoppedError(
                    f"{what} was not a finite number at step"
                    f" {number * self.config.steps_per_update:,}; the run stopped there. The"
                    f" checkpoint of step {last:,} is the last good one:"
                    f" {self.files.checkpoint(last)}."
                )

    def train(self, reporter: Reporter, interrupted: Callable[[], bool]) -> bool:
        """Train to the end, or until interrupted; then the state is saved.

        Returns:
            Whether the run is done.
        """
        config = self.config
        reporter.begin(
            f"{config.learner} in {config.game}, seed {config.seed}",
            self.step,
            self.num_updates * config.steps_per_update,
        )
        while self.updates < self.num_updates:
            before = self.updates
            ends = [(before // each + 1) * each for each in (self.log_every, self.checkpoint_every)]
            number = min(*ends, self.num_updates) - before
            fixed = (self.env, self.learner, jnp.int32(number))
            self.state, metrics, nonfinite = train_chunk(fixed, self.state)
            self._check_finite(nonfinite, before + number)
            self._log(metrics, reporter)
            if self.updates % self.checkpoint_every == 0 or self.updates == self.num_updates:
                self.evaluate(reporter)
                self.save(evaluated=True)
            elif interrupted():
                self.save(evaluated=False)
            if interrupted() and self.updates < self.num_updates:
                return False
        return True

    def _log(self, metrics: Metrics, reporter: Reporter) -> None:
        """Write a row of metrics."""
        values = to_row(metrics)
        if not self.env.game.has_shaping:
            values.pop("unshaped_return", None)
        # Compiled code returns dictionaries in the order of their names.
        first = [name for name in _FIRST_COLUMNS if name in values]
        row = {"step": self.step, **{name: values[name] for name in first}, **values}
        self.files.metrics.append(row)
        reporter.metrics(row)
