"""The tasks of the benchmark: what a learner is trained with, and what it is tested with.

A task is data: an entry of a TOML file. Those of the package are in `task_files`; files of
your own have the same format.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from dropin.core import registry
from dropin.core.config import Checked, PlainDict, PlainMapping, from_dict, not_none, to_dict
from dropin.core.errors import InputError, did_you_mean, unknown
from dropin.core.reading import first_repeated, parse_toml, read_file
from dropin.core.specs import check_rules
from dropin.env import AnyEnv, make
from dropin.experiments.type_diversity import type_names
from dropin.teams.openness import MIN_TEAM_SIZE
from dropin.training.evaluator import PAPER_LIMIT

__all__ = ["KINDS", "Kind", "Task", "builtin_tasks", "check_tasks", "read_tasks", "select_tasks"]

Kind = Literal["standard", "strangers", "crowd", "turnover", "turncoat", "script", "own"]
"""What is different in the test; `own` is for tasks of your own that are none of the others."""
KINDS: tuple[Kind, ...] = (
    "standard", "strangers", "crowd", "turnover", "turncoat", "script", "own",
)  # fmt: skip
MAX_BYTES = 2**20
"""Size of a file of tasks, at most."""
_DIRECTORY = Path(__file__).parent / "task_files"
_NOT_MEASURED = ("kind", "summary")
"""Fields of a task that decide neither training nor the test."""


@dataclass(frozen=True)
class Task(Checked):
    """A task of the benchmark: a game, how to train in it and how to test."""

    name: str
    """The game and a name of its own, as `lbf/standard`."""
    version: int
    """Raised when anything below changes, so that older records are not compared with new ones."""
    kind: Kind
    summary: str
    """What the task is about, a sentence."""
    game: str
    rules: str
    """The preset of the game."""
    steps: int
    """The budget: environment steps of training, all parallel environments together."""
    seed: int
    """The seed of the test's episodes. No run may be trained or evaluated with it."""
    game_version: int = field(default=0, metadata={"least": 0})
    """The `GameSpec.version` that the task is for."""
    train_types: tuple[str, ...] | None = None
    """What teammates are drawn from in training; None means all types."""
    test_types: tuple[str, ...] | None = None
    """What they are drawn from in the test, newcomers included."""
    disjoint: bool = False
    """Whether no type of the learner's teammates may be in training and in the test."""
    train_limit: int = field(default=3, metadata={"least": MIN_TEAM_SIZE})
    """The team limit of training."""
    test_limits: tuple[int, ...] = (3, 5)
    """The team limits of the test."""
    train_openness: str | PlainMapping | None = None
    """The openness of training, as `dropin.make` takes it; None means that of the rules."""
    test_openness: str | PlainMapping | None = None
    """The openness of the test."""
    test_type_changes: PlainMapping | None = None
    """How agents change their type while they are present, as `dropin.make` takes it."""
    episodes: int = 800
    """Episodes of the test at each limit."""
    episodes_per_type: int = field(default=0, metadata={"least": 0})
    """Further episodes with teammates of each test type alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("name", "summary", "game", "rules"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                raise InputError(f"The {name} {getattr(self, name)!r} is not a text.")
        if not isinstance(self.disjoint, bool):
            raise InputError(f"disjoint is {self.disjoint!r}, but it has to be true or false.")
        self._check_limits()
        check_rules(self.rules, registry.games[self.game].rules)
        self._check_types()
        for name in ("train_openness", "test_openness", "test_type_changes"):
            _check_process(name, getattr(self, name))
        if isinstance(self.test_type_changes, str):
            raise InputError('test_type_changes is a table, as { kind = "turncoat", ... }.')
        if self.episodes_per_type and self.test_type_changes is not None:
            raise InputError("With test_type_changes there are no episodes_per_type: leave it out.")

    def __hash__(self) -> int:
        # Tables of parameters have no hash of their own.
        return hash(self.identity)

    def _check_limits(self) -> None:
        limits = self.test_limits
        if not limits:
            raise InputError("There are no test_limits: give at least one team limit.")
        for limit in limits:
            if isinstance(limit, bool) or not isinstance(limit, int):
                raise InputError(f"The team limit {limit!r} is not a whole number.")
            if limit < MIN_TEAM_SIZE:
                raise InputError(
                    f"Team limit {limit} is too small: a team has at least {MIN_TEAM_SIZE} agents."
                )
        if (twice := first_repeated(limits)) is not None:
            raise InputError(f"Team limit {twice} is given twice.")

    def _check_types(self) -> None:
        known = type_names(self.game, self.rules)
        for name in ("train_types", "test_types"):
            given: tuple[str, ...] | None = getattr(self, name)
            if given is None:
                continue
            if not given:
                raise InputError(f"{name} is empty: leave it out for all types.")
            for each in given:
                if each not in known:
                    raise unknown(f"type of {self.game}", each, known)
            if (twice := first_repeated(given)) is not None:
                raise InputError(f"{name} names {twice} twice.")
        both = [each for each in self.train_types or known if each in (self.test_types or known)]
        if self.disjoint and both:
            raise InputError(
                f"The task is disjoint, but {', '.join(both)} can be met in training and in the"
                " test."
            )

    @property
    def identity(self) -> str:
        """A hash of everything that decides training and the test."""
        values = {name: each for name, each in to_dict(self).items() if name not in _NOT_MEASURED}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]

    def met_in_training(self, types: Sequence[str] | None) -> list[str]:
        """Return the types of the test that an agent has met, but should not have.

        Args:
            types: What the agent's teammates were drawn from in training; None means all types.
        """
        known = type_names(self.game, self.rules)
        met, allowed = types or known, self.train_types or known
        return [each for each in self.test_types or known if each in met and each not in allowed]

    def make_test_env(self, limit: int) -> AnyEnv:
        """Make the environment of the test.

        All tasks of a game have the same pool, of which only the types of the test are drawn, and
        limits up to the paper's have the same number of slots: so tasks share compiled programs.

        Args:
            limit: The team limit, one of `test_limits`.
        """
        if limit not in self.test_limits:
            raise unknown(f"team limit of {self.name}", limit, map(str, self.test_limits))
        default = registry.games[self.game].types(self.rules)
        added = [each for each in self.test_types or () if each not in default]
        options = not_none(
            types=[*default, *added] if added else None,
            openness=self.test_openness,
            type_changes=self.test_type_changes,
        )
        slots = max(limit, PAPER_LIMIT)
        env = make(self.game, rules=self.rules, team_limit=limit, slots=slots, **options)
        own = [each.name for each in env.team.pool.types if each.side == env.sides[0]]
        return env.restricted_to(self.test_types or own)

    def check(self) -> None:
        """Raise `InputError` if the game has changed, or the environments cannot be made."""
        version = registry.games[self.game].version
        if self.game_version != version:
            raise InputError(
                f"{self.name} is for version {self.game_version} of {self.game}, and this is"
                f" version {version}, whose returns cannot be compared with it."
            )
        try:
            options = not_none(types=self.train_types, openness=self.train_openness)
            make(self.game, rules=self.rules, team_limit=self.train_limit, **options)
            for limit in self.test_limits:
                self.make_test_env(limit)
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None


def _check_process(name: str, value: object) -> None:
    """Raise `InputError` if an openness or a change of types is not a name or a table."""
    if value is None or isinstance(value, str):
        return
    if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
        raise InputError(f"{name} is {value!r}, but it has to be a table with a kind.")
    for path, each in _leaves(value, name):
        if isinstance(each, float) and not math.isfinite(each):
            raise InputError(f"{path} is {each}, but it has to be a finite number.")


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield all plain values within a value, with where they are."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _leaves(each, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each, path)
    else:
        yield path, value


def read_tasks(path: Path) -> list[Task]:
    """Read a file of tasks.

    Args:
        path: A TOML file: settings for all tasks, then a table `[[task]]` for each.

    Raises:
        InputError: If something is missing, unknown or cannot be used.
    """
    values = parse_toml(read_file(path, MAX_BYTES), path)
    entries = values.pop("task", None)
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path} has no tasks: each is a table that starts with [[task]].")
    tasks: list[Task] = []
    for number, entry in enumerate(entries, 1):
        where = f"{path}, task {entry.get('name', number) if isinstance(entry, dict) else number}"
        try:
            tasks.append(_task({**values, **entry}))
        except (InputError, TypeError) as error:
            raise InputError(f"{where}: {error}") from None
    _check_names(tasks, str(path))
    return tasks


def _task(values: PlainDict) -> Task:
    """Return the task with these fields; the name of its game is put before its own."""
    missing = [
        name
        for name in ("name", "version", "kind", "summary", "game", "rules", "steps", "seed")
        if name not in values
    ]
    if missing:
        raise InputError(f"It has no {missing[0]}.")
    if "/" in str(values["name"]):
        raise InputError(f"The name {values['name']!r} holds a slash: the game is added to it.")
    return from_dict(Task, {**values, "name": f"{values['game']}/{values['name']}"})


def _check_names(tasks: Sequence[Task], place: str) -> None:
    """Raise `InputError` if two tasks have one name."""
    if (twice := first_repeated(task.name for task in tasks)) is not None:
        raise InputError(f"{place}: there are two tasks called {twice}.")


@cache
def builtin_tasks() -> tuple[Task, ...]:
    """Return the tasks of the package."""
    return tuple(task for path in sorted(_DIRECTORY.glob("*.toml")) for task in read_tasks(path))


def select_tasks(names: Sequence[str] = ()) -> list[Task]:
    """Return the tasks that are asked for, each once.

    Args:
        names: Names of tasks (`lbf/standard`), of games (`lbf`, all tasks of the game) or TOML
            files with tasks of your own; all tasks of the package if there are none.

    Raises:
        InputError: If there is no such task, or a file cannot be used.
    """
    known = {task.name: task for task in builtin_tasks()}
    games = list(dict.fromkeys(task.game for task in known.values()))
    chosen: list[Task] = [] if names else list(known.values())
    for name in names:
        if name.endswith(".toml"):
            own = read_tasks(Path(name))
            check_tasks(own)
            chosen += own
        elif name in games:
            chosen += [task for task in known.values() if task.game == name]
        elif name in known:
            chosen.append(known[name])
        else:
            raise InputError(
                f"Unknown task {name!r}: it can be a game ({', '.join(games)}), a task that"
                f" `dropin benchmark tasks` lists, or a TOML file"
                f"{did_you_mean(name, [*games, *known])}"
            )
    once: list[Task] = []
    for task in chosen:
        if task not in once:
            once.append(task)
    _check_names(once, "The chosen tasks")
    return once


def check_tasks(tasks: Sequence[Task]) -> None:
    """Raise `InputError` if the environments of some task cannot be made.

    Args:
        tasks: The tasks.
    """
    for task in tasks:
        task.check()
