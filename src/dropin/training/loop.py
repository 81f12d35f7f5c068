"""Training: compiled chunks of about a second, and what Python does between them."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dropin.adhoc import AdHoc
from dropin.agents import Agent, AgentPlayer, load_agent, save_agent
from dropin.compilation import use_cache
from dropin.errors import InputError, StoppedError
from dropin.evaluation.evaluate import LEGACY_ENVS, LEGACY_EPISODES, legacy_means, run_episodes
from dropin.evaluation.statistics import estimate
from dropin.learners import find
from dropin.training import joint
from dropin.training import update as alone
from dropin.training.chunk import Alarm, RunState, TrainConfig
from dropin.training.config import (
    EvaluationConfig,
    RunConfig,
    default_directory,
    run_config,
)
from dropin.training.directory import (
    KEPT,
    Keep,
    RunDirectory,
    agent_of,
    check_keep,
    metrics_row,
)
from dropin.training.reporters import Reporter, on_screen
from dropin.training.table import AMONG, EXTRA_LOSS, PARTNERS, STRANGERS

PAPER_LIMIT = 5
"""The largest team limit of the paper's tests."""


def train(
    game: str | AdHoc,
    learner: str,
    *,
    directory: str | Path | None = None,
    steps: int | None = None,
    seed: int = 0,
    rules: str = "paper",
    team_limit: int = 3,
    types: tuple[str, ...] | list[str] | None = None,
    resume: bool = False,
    keep: Keep = None,
    report: str | Reporter = "auto",
    log_every: int = 6_400,
    checkpoint_every: int = 160_000,
    evaluation: EvaluationConfig | None = None,
    training: TrainConfig | None = None,
    **settings: Any,
) -> Agent:
    """Train a learner in a game and return the agent; all files go to `directory`.

    The game is a name, made with `rules`, `team_limit` and `types` as by `dropin.make`, or an
    environment. `settings` are fields of the learner's settings, or `changes`, a dictionary of
    fields of the game that differ from its rules; `training` are the settings of the loop.
    Those that are not given, the number of steps among them, are the paper's for the game.
    `keep` is the number of checkpoints that are kept, or "all"; 3 if not given, which with "agents"
    are kept besides the agent of every one. With `resume` a run of the same settings goes on from
    its latest checkpoint. Without a directory it is named after the run, in `runs`.
    """
    config = run_config(
        game,
        learner,
        steps=steps,
        seed=seed,
        rules=rules,
        team_limit=team_limit,
        types=None if types is None else tuple(types),
        log_every=log_every,
        checkpoint_every=checkpoint_every,
        evaluation=evaluation or EvaluationConfig(),
        training=training,
        **settings,
    )
    files = RunDirectory(directory or default_directory(config))
    run = Run(files, config, None if isinstance(game, str) else game, keep)
    reporter = on_screen(report)
    if resume:
        files.check_same(config)
        files.check_versions()
    else:
        files.create(config, keep)
    return _finish(run, reporter)


def resume_run(
    directory: str | Path,
    *,
    env: AdHoc | None = None,
    keep: Keep = None,
    report: str | Reporter = "auto",
    wait: float = 0.0,
) -> Agent:
    """Go on with a run from its latest checkpoint, to its end; the same bits as without a pause.

    `env` is the environment, if the run was started with one that has no name. `keep` is as it was
    if not given. `wait` is how many seconds to wait for another process that trains there.
    """
    files = RunDirectory(directory)
    config = files.config()
    if config.own_environment and env is None:
        raise InputError(f"{files.path} was started with an environment of its own: give it again.")
    files.check_versions()
    return _finish(Run(files, config, env, keep), on_screen(report), wait)


def _finish(run: "Run", reporter: Reporter, wait: float = 0.0) -> Agent:
    """Take a run to its end."""
    files = run.files
    use_cache()
    how_to_go_on = f"Go on with: dropin train --resume {files.path}"
    with files.locked(wait), reporter, interruptible() as interrupted:
        try:
            run.keep = files.keep(run.keep)
            if files.steps():
                run.restore()
            else:
                run.begin(reporter)
            done = run.go(reporter, interrupted)
        except OSError as error:
            raise StoppedError(
                f"The run stopped, since {error.filename or files.path} cannot be written:"
                f" {error.strerror}. {how_to_go_on}"
            ) from None
        if not done:
            reporter.say(f"Saved at step {run.step:,}. {how_to_go_on}")
            raise KeyboardInterrupt
    return load_agent(files.agent)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C (or SIGTERM) is noted and asked for; a second one interrupts at once."""
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


def _arenas(config: RunConfig, limits: Sequence[int]) -> dict[int, AdHoc]:
    """The environments in which a run is evaluated.

    They have as many slots as the largest limit. Limits above the paper's have slots of their own:
    how many agents there are besides those in play may depend on the slots.
    """
    usual = max((limit for limit in limits if limit <= PAPER_LIMIT), default=0)
    wide = {slots: config.environment(slots=slots) for slots in {max(usual, x) for x in limits}}
    return {limit: wide[max(usual, limit)].with_limit(limit) for limit in limits}


class Run:
    """A run in memory, together with its files."""

    state: RunState

    def __init__(self, files: RunDirectory, config: RunConfig, env: AdHoc | None, keep: Keep):
        check_keep(keep)
        self.files, self.config = files, config
        self.keep: Keep = keep
        self.env = config.environment() if env is None else env
        limits = sorted({config.team_limit, *config.evaluation.team_limits})
        self.arenas = _arenas(config, limits) if env is None else {
            limit: env.with_limit(limit) for limit in limits
        }  # fmt: skip
        self.meets = self.env.interface
        self.joint = find(config.learner).joint
        self.trainer: Any = joint if self.joint else alone
        self.total = config.updates(config.steps)
        self.log_every = config.updates(config.log_every)
        self.checkpoint_every = config.updates(config.checkpoint_every)

    @property
    def updates(self) -> int:
        """Updates so far."""
        return int(self.state.updates)

    @property
    def step(self) -> int:
        """Steps of all environments so far."""
        return self.updates * self.config.steps_per_update

    def _start(self) -> RunState:
        building, playing = jax.random.split(jax.random.key(self.config.seed))
        kind = import_module(find(self.config.learner).module).LEARNER
        learner = kind(self.meets, self.config.settings, key=building)
        return self.trainer.start(self.env, learner, self.config.training, playing)

    def begin(self, reporter: Reporter) -> None:
        """The first state, evaluated and saved."""
        self.state = self._start()
        # A run that was killed before its first checkpoint starts anew.
        ratios = list(self.env.game.ratios)
        self.files.metrics.create(ratios + [EXTRA_LOSS] * self.joint)
        self.files.evaluation.create(ratios + [AMONG] * self.joint)
        self.evaluate(reporter)
        self.save(evaluated=True)

    def restore(self) -> None:
        """The state of the latest good checkpoint."""
        self.state, _ = self.files.restore(eqx.filter_eval_shape(self._start))
        save_agent(self.agent(), self.files.agent, step=self.step)

    def agent(self) -> Agent:
        """The learner as it is now."""
        return agent_of(self.config, self.state, self._exploration()[1])

    def _exploration(self) -> tuple[float, float]:
        step, config = jnp.int32(self.step), self.config.training
        return float(config.epsilon(step)), float(config.temperature(step))

    def save(self, *, evaluated: bool) -> None:
        """Write a checkpoint."""
        keep = self.keep or KEPT
        self.files.save(self.state, self.agent(), self.step, keep, evaluated=evaluated)

    def evaluate(self, reporter: Reporter) -> None:
        """Play at every team limit, by every policy that the learner has.

        Those who were trained together also play among partners.
        """
        agent, how = self.agent(), self.config.evaluation
        policies = ("greedy", "sampled") if agent.learner.config.soft else ("greedy",)
        arenas = [(limit, STRANGERS, arena) for limit, arena in self.arenas.items()]
        if self.joint:
            partners = [agent.as_type(self.env.game)]
            arenas += [
                (limit, PARTNERS, arena.among(partners)) for limit, arena in self.arenas.items()
            ]
        for limit, among, arena in arenas:
            for policy in policies:
                who = AgentPlayer(agent, policy)
                played = run_episodes(
                    arena, who, envs=how.envs, episodes=how.episodes, seed=how.seed
                )
                mean, plain = estimate(played.returns), played.unshaped
                legacy: Any = ""
                if how.envs >= LEGACY_ENVS and how.episodes >= LEGACY_EPISODES:
                    legacy = float(np.mean(legacy_means(played.returns, played.ends)))
                row = {
                    "step": self.step,
                    "team_limit": limit,
                    "policy": policy,
                    "episodes": played.returns.size,
                    "mean": mean.mean,
                    "low": mean.low,
                    "high": mean.high,
                    "legacy": legacy,
                    "unshaped": "" if plain is None else float(np.mean(plain)),
                    **({AMONG: among} if self.joint else {}),
                    **played.ratios,
                }
                self.files.evaluation.append(row)
                reporter.evaluation(row)

    def _check(self, alarm: Alarm, updates: int) -> None:
        """Raise `StoppedError` if something was not finite."""
        for what, number in (
            (f"The place of the agent in slot {int(alarm.slot)}", int(alarm.game)),
            ("The loss", int(alarm.loss)),
        ):
            if number < updates:
                last = self.files.steps()[-1]
                raise StoppedError(
                    f"{what} was not a number at step {number * self.config.steps_per_update:,};"
                    f" the run stopped there. The checkpoint of step {last:,} is the last good one:"
                    f" {self.files.checkpoint(last)}."
                )

    def go(self, reporter: Reporter, interrupted: Callable[[], bool]) -> bool:
        """Train to the end, or until interrupted; then the state is saved. Whether it is done."""
        config = self.config
        reporter.begin(
            f"{config.learner} in {config.game}, seed {config.seed}",
            self.step,
            self.total * config.steps_per_update,
        )
        while self.updates < self.total:
            before = self.updates
            ends = [(before // each + 1) * each for each in (self.log_every, self.checkpoint_every)]
            number = min(*ends, self.total) - before
            epsilon, temperature = self._exploration()
            self.state, totals, alarm = self.trainer.advance(
                (self.env, config.training, jnp.int32(number)), self.state
            )
            self._check(alarm, before + number)
            row = metrics_row(
                self.step,
                number,
                totals,
                self.env.game,
                epsilon,
                temperature,
                predicts=self.state.learner.agent is not None,
                joint=self.joint,
            )
            self.files.metrics.append(row)
            reporter.metrics(row)
            if self.updates % self.checkpoint_every == 0 or self.updates == self.total:
                self.evaluate(reporter)
                self.save(evaluated=True)
            elif interrupted():
                self.save(evaluated=False)
            if interrupted() and self.updates < self.total:
                return False
        return True
