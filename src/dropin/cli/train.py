"""Train, or resume training."""

import re
import shlex
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from dropin.core.config import PlainDict, merge, not_none, parse_settings
from dropin.core.errors import InputError

__all__ = ["train"]

_MOST_SEEDS = 1000


def train(
    game: Annotated[Positional[str | None], arg(metavar="[GAME]")] = None,
    learner: Annotated[Positional[str | None], arg(metavar="[LEARNER]")] = None,
    steps: int | None = None,
    seed: int | None = None,
    seeds: str | None = None,
    together: bool = False,
    rules: str | None = None,
    team_limit: int | None = None,
    types: tuple[str, ...] | None = None,
    openness: str | None = None,
    type_changes: Path | None = None,
    test_limits: tuple[int, ...] | None = None,
    checkpoint_every: int | None = None,
    set: tuple[str, ...] = (),
    directory: Path | None = None,
    resume: Path | None = None,
    keep: str | None = None,
    report: str = "auto",
    tensorboard: bool = False,
    wandb: bool = False,
    core: int | None = None,
    wait: float = 0.0,
) -> None:
    """Train a learner in a game; Ctrl-C saves, --resume continues.

    Args:
        game: Name of the game, see `dropin games`.
        learner: Name of the learner, see `dropin learners`.
        steps: Environment steps, all parallel environments together (the paper's for the game).
        seed: The same seed gives the same run (0 if not given).
        seeds: Several runs, one process on each core: 0..7 or 0,3,5.
        together: Train all seeds in one process, as one program; for accelerators.
        rules: paper (if not given) or reference.
        team_limit: Most agents at a time, the learner included (3 if not given).
        types: Teammates are drawn from these types; from the game's whole pool if not given.
        openness: Name of a registered openness, or a TOML file with a table [openness]; that of the
            rules if not given.
        type_changes: A TOML file with a table [type_changes]: teammates change their type.
        test_limits: Team limits to evaluate at, besides that of training.
        checkpoint_every: Steps between checkpoints (160000 if not given).
        set: Any other setting of run.json, as in settings.rank=3 or training.num_envs=32.
        directory: Where the run's files go; named after the run, in runs, if not given.
        resume: Resume the run, or all runs, in this directory.
        keep: How many checkpoints to keep (3 if not given, or as before with --resume), or all;
            agents for 3 checkpoints and the agent of every one.
        report: auto (a live table in a terminal, lines elsewhere), lines, json or none.
        tensorboard: Log for TensorBoard as well.
        wandb: Log for Weights & Biases as well.
        core: Run on this core alone.
        wait: Seconds to wait for another process that trains in the directory.
    """
    options = not_none(
        game=game,
        learner=learner,
        steps=steps,
        seed=seed,
        rules=rules,
        team_limit=team_limit,
        types=None if types is None else list(types),
        openness=openness,
        type_changes=None if type_changes is None else str(type_changes),
        checkpoint_every=checkpoint_every,
        evaluation=None if test_limits is None else {"team_limits": list(test_limits)},
    )
    changes = merge(options, parse_settings(set))
    keep_rule = _parse_keep(keep)
    if resume is None and (game is None or learner is None):
        raise InputError("Give a game and a learner, as in: dropin train lbf gpl-q")
    _check_seeds(seed, seeds, directory, resume, together=together)
    seed_list = None if seeds is None else _parse_seeds(seeds)

    from dropin.training.parallel import pin, run_all

    if core is not None:
        # Before JAX is imported, which starts a thread for every core it may use.
        pin([core])

    from dropin.training.loop import resume_run, resume_together
    from dropin.training.reporters import check_screen
    from dropin.training.run_directory import runs_in
    from dropin.training.services import check_extras, run_reporter

    check_screen(report)
    check_extras(tensorboard, wandb)
    if resume is not None:
        runs, whole = runs_in(resume), resume
        if not runs:
            raise InputError(f"There is no run in {resume}: a run has a file run.json.")
        _check_same(runs, changes)
    else:
        runs, whole = _create(changes, directory, seed_list, keep_rule)
    if together:
        reporter = run_reporter(report, runs, tensorboard, wandb)
        resume_together(runs, keep=keep_rule, report=reporter, wait=wait)
    elif len(runs) == 1 and seed_list is None:
        reporter = run_reporter(report, runs, tensorboard, wandb)
        resume_run(runs[0], keep=keep_rule, report=reporter, wait=wait)
    else:
        flags = [*["--tensorboard"] * tensorboard, *["--wandb"] * wandb]
        if keep is not None:
            flags += ["--keep", keep]
        jobs = {each.name: ["--resume", str(each), *flags] for each in runs}
        try:
            run_all(jobs, report)
        except KeyboardInterrupt:
            print(f"Continue with: dropin train --resume {shlex.quote(str(whole))}")
            raise
    if report != "json":
        print(f"Done. Draw the learning curve with: dropin plot {shlex.quote(str(whole))}")


def _create(
    changes: PlainDict, directory: Path | None, seed_list: list[int] | None, keep: Any
) -> tuple[list[Path], Path]:
    """Create the directories of new runs; also return the one that holds them all."""
    from dropin.training.config import RunConfig, default_run_directory, run_config
    from dropin.training.sets_of_runs import create_runs

    values = merge(run_config(changes["game"], changes["learner"]).to_dict(), changes)
    configs = [RunConfig.from_dict(values)]
    if seed_list is not None:
        configs = [RunConfig.from_dict({**values, "seed": number}) for number in seed_list]
    whole = directory or default_run_directory(configs[0])
    if seed_list is not None and directory is None:
        whole = whole.parent
    files = [whole if seed_list is None else whole / f"seed-{each.seed}" for each in configs]
    configs[0].make_env(slots=max(configs[0].team_limit, *configs[0].evaluation.team_limits, 0))
    create_runs(files, configs, keep)
    return files, whole


def _check_seeds(
    seed: int | None,
    seeds: str | None,
    directory: Path | None,
    resume: Path | None,
    *,
    together: bool,
) -> None:
    """Raise `InputError` for options that contradict each other on what to train."""
    if seed is not None and seeds is not None:
        raise InputError("Give --seed or --seeds, not both.")
    if resume is not None and (directory is not None or seeds is not None):
        raise InputError(
            "With --resume there is no --directory or --seeds: it resumes all runs there."
        )
    if together and seeds is None and resume is None:
        raise InputError(
            "--together trains several seeds in one process: give them, as in --seeds 0..7"
        )


def _check_same(runs: list[Path], changes: PlainDict) -> None:
    from dropin.training.config import RunConfig
    from dropin.training.run_directory import RunDirectory

    for each in runs:
        files = RunDirectory(each)
        files.check_same(RunConfig.from_dict(merge(files.config().to_dict(), changes)))


def _parse_keep(text: str | None) -> Any:
    if text in (None, "all", "agents"):
        return text
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise InputError(f"--keep {text} is not a number of checkpoints above 0, all or agents.")
    return int(text)


def _parse_seeds(text: str) -> list[int]:
    """Return the seeds that `0..7` or `0,3,5` stands for."""
    span = re.fullmatch(r"([0-9]{1,18})\.\.([0-9]{1,18})", text)
    if span:
        first, last = int(span[1]), int(span[2])
        found = list(range(first, last + 1)) if last - first < _MOST_SEEDS else []
    elif re.fullmatch(r"[0-9]{1,18}(,[0-9]{1,18})*", text):
        found = sorted({int(each) for each in text.split(",")})
    else:
        found = []
    if not found:
        raise InputError(f"--seeds {text} is not a range like 0..7 or a list like 0,3,5.")
    return found
