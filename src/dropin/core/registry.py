"""Everything that is known by a name: games, types, openness, learners, agents and experiments.

What comes with the package and what plug-ins add is registered by the same calls. A plug-in is a
pip package with an entry point in the group `dropin.plugins` that names a function without
arguments; the function calls `register_game`, `register_learner` and so on. Plug-ins are loaded
when a name is not found among the registered ones, or when all names are listed.
"""

import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dropin.core.errors import InputError, shown, unknown

if TYPE_CHECKING:
    from dropin.core.specs import (
        AgentSpec,
        ExperimentSpec,
        GameSpec,
        LearnerSpec,
        OpennessFactory,
    )
    from dropin.teams.types import Type

__all__ = [
    "PLUGIN_GROUP",
    "agents",
    "experiments",
    "failed_plugins",
    "games",
    "learners",
    "load_plugins",
    "openness",
    "register_agent",
    "register_experiment",
    "register_game",
    "register_learner",
    "register_openness",
    "register_type",
    "types_of",
]

_MOST_NAMED = 10
"""Plug-ins that failed which a message names, at most."""
PLUGIN_GROUP = "dropin.plugins"
"""The entry-point group in which plug-ins announce themselves."""

_LONGEST_REASON = 500
"""Characters of an error of a plug-in that a message repeats."""
Item = TypeVar("Item")


class Registry(Mapping[str, Item], Generic[Item]):
    """Named things of one kind.

    Args:
        kind: What the things are, for messages.
        builtin: The module that registers what comes with the package; imported on first use.
        words: How many words a name has, with a slash between them.
    """

    def __init__(self, kind: str, builtin: str, words: int = 1):
        self.kind, self._builtin, self._words = kind, builtin, words
        self._items: dict[str, Item] = {}
        self._sources: dict[str, str] = {}

    def add(self, name: str, item: Item, source: str) -> None:
        """Make `item` known as `name`.

        Args:
            name: The name; it has to be free.
            item: The thing itself.
            source: Where it comes from, for messages.

        Raises:
            InputError: If the name is empty or taken.
        """
        words = name.split("/") if isinstance(name, str) else []
        if len(words) != self._words or any(not each or each != each.strip() for each in words):
            raise InputError(f"{name!r} cannot be the name of a {self.kind}.")
        if name in self._items:
            raise InputError(
                f"The {self.kind} {name!r} of {source} is registered already, by"
                f" {self._sources[name]}."
            )
        self._items[name], self._sources[name] = item, source

    def __getitem__(self, name: str) -> Item:
        """Return the thing called `name`; plug-ins are loaded if it is not known yet.

        Raises:
            InputError: If the name is unknown; the message suggests the nearest known one.
        """
        self.load_builtin()
        if not isinstance(name, str):
            raise unknown(self.kind, name, self._items)
        if name not in self._items:
            load_plugins()
        if name not in self._items:
            raise InputError(f"{unknown(self.kind, name, self._items)}{failed_plugins()}")
        return self._items[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return the thing called `name`, or `default` if the name is unknown."""
        return self._all().get(name, default)

    def __contains__(self, name: object) -> bool:
        """Return whether the name is known, in the package or in a plug-in."""
        return name in self._all()

    def __iter__(self) -> Iterator[str]:
        """Iterate over all names, those of plug-ins last."""
        return iter(self._all())

    def __len__(self) -> int:
        """Return how many things there are."""
        return len(self._all())

    def _all(self) -> dict[str, Item]:
        self.load_builtin()
        load_plugins()
        return self._items

    def load_builtin(self) -> None:
        """Register what comes with the package, if that has not been done."""
        importlib.import_module(self._builtin)

    def snapshot(self) -> tuple[dict[str, Item], dict[str, str]]:
        """Return what is registered now, for `restore`."""
        return dict(self._items), dict(self._sources)

    def restore(self, snapshot: tuple[dict[str, Item], dict[str, str]]) -> None:
        """Forget what was registered after a snapshot."""
        self._items, self._sources = snapshot


games: "Registry[GameSpec]" = Registry("game", "dropin.games")
learners: "Registry[LearnerSpec]" = Registry("learner", "dropin.learners")
openness: "Registry[OpennessFactory]" = Registry("openness", "dropin.games")
agents: "Registry[AgentSpec]" = Registry("trained agent", "dropin.zoo.agents", words=2)
experiments: "Registry[ExperimentSpec]" = Registry("experiment", "dropin.experiments")
_types: dict[str, dict[str, Callable[[], "Type"]]] = {}
_loading: list[str] = []
"""The name of the plug-in that is being loaded, if there is one."""


def register_game(spec: "GameSpec") -> None:
    """Make a game known by its name, in every command and function.

    Raises:
        InputError: If a part of the spec is missing or the name is taken.
    """
    spec.validate()
    games.add(spec.name, spec, _origin(spec.make_game))


def register_type(game: str, name: str, make: "Callable[[], Type]") -> None:
    """Add a type of teammate to a game's pool of named types.

    It can be chosen by its name; the default pool of the game stays as it is.

    Args:
        game: Name of the game.
        name: Name of the type.
        make: A function that returns the type; called when the type is wanted.

    Raises:
        InputError: If the name is taken.
    """
    own = _types.setdefault(game, {})
    games.load_builtin()
    spec = games.snapshot()[0].get(game)
    if name in own or (spec is not None and _in_pool(spec, name)):
        raise InputError(f"The type {name!r} of {game} is registered already.")
    own[name] = make


def register_openness(name: str, make: "OpennessFactory") -> None:
    """Make an openness known by its name, as in `dropin.make("lbf", openness="closed")`.

    Args:
        name: The name; it has to be free.
        make: `(rules, game, slots, **parameters) -> Openness`; its keyword-only arguments are the
            parameters that data can give, as in `{"kind": "churn", "probability": 0.1}`.
    """
    openness.add(name, make, _origin(make))


def register_learner(spec: "LearnerSpec") -> None:
    """Make a learner known by its name, in every command and function.

    Raises:
        InputError: If a part of the spec is missing or the name is taken.
    """
    spec.validate()
    learners.add(spec.name, spec, _origin(spec.make))


def register_agent(spec: "AgentSpec") -> None:
    """Make a trained agent known by its name, wherever the path of an agent can be given.

    Raises:
        InputError: If a part of the spec is missing or the name is taken.
    """
    spec.validate()
    agents.add(spec.name, spec, _origin(spec.directory))


def register_experiment(spec: "ExperimentSpec") -> None:
    """Make an experiment known to `dropin reproduce`.

    Raises:
        InputError: If a part of the spec is missing or the name is taken.
    """
    spec.validate()
    experiments.add(spec.name, spec, _origin(spec.result))


def types_of(game: str) -> "Mapping[str, Callable[[], Type]]":
    """Return the types that `register_type` has added to a game, by name."""
    load_plugins()
    return _types.get(game, {})


def _in_pool(spec: "GameSpec", name: str) -> bool:
    """Return whether a type of this name comes with a game, under any of its rules."""
    return any(name in spec.types(rules) for rules in spec.rules)


def load_plugins() -> None:
    """Load all installed plug-ins, once. One that fails is a warning that names it."""
    if not _loading:
        _broken()


def failed_plugins() -> str:
    """Return which plug-ins failed to load and why, as the end of a message; empty if none did."""
    failed = () if _loading else _broken()
    more = len(failed) - _MOST_NAMED
    named = [*failed[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]
    return f" (Not loaded: {'; '.join(named)}.)" if failed else ""


@cache
def _broken() -> tuple[str, ...]:
    """Load the plug-ins; return what is wrong with those that failed.

    A plug-in that fails leaves nothing behind. What comes with the package is registered first, so
    that no plug-in can take its names.
    """
    failed = []
    registries: tuple[Registry[Any], ...] = (games, learners, openness, agents, experiments)
    for plugin in sorted(entry_points(group=PLUGIN_GROUP), key=lambda each: each.name):
        for each in registries:
            each.load_builtin()
        before: list[Any] = [each.snapshot() for each in registries]
        types = {game: dict(own) for game, own in _types.items()}
        _loading.append(plugin.name)
        try:
            plugin.load()()
        except (Exception, SystemExit) as error:
            for each, snapshot in zip(registries, before, strict=True):
                each.restore(snapshot)
            _types.clear()
            _types.update(types)
            reason = _reason(error)
            name = f"plug-in {shown(plugin.name)}"
            failed.append(f"the {name} ({plugin.value[:_LONGEST_REASON]}) failed: {reason}")
            warnings.warn(f"The {name} is left out: {reason}.", stacklevel=2)
        finally:
            _loading.clear()
    return tuple(failed)


def _reason(error: BaseException) -> str:
    """Return in one line why a plug-in failed, without a full stop."""
    text = " ".join(str(error).split()).rstrip(".")[:_LONGEST_REASON]
    if isinstance(error, InputError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _origin(thing: Any) -> str:
    """Return the plug-in that is being loaded, a path, or the module that defines something."""
    if _loading:
        return f"the plug-in {_loading[0]!r}"
    if isinstance(thing, Path):
        return str(thing)
    while isinstance(thing, partial):
        thing = thing.func
    return getattr(thing, "__module__", None) or type(thing).__module__
