"""What has to be said of a game, a learner or an experiment to make it known by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from dropin.core.errors import InputError, unknown

if TYPE_CHECKING:
    from jaxtyping import Array, Int, PRNGKeyArray, PyTree

    from dropin.core.metrics import Metrics
    from dropin.core.observation import Interface, Observation
    from dropin.env import AnyEnv
    from dropin.experiments.results import CompletedRuns, ExperimentResult
    from dropin.experiments.runs import Grid, Options
    from dropin.games.drawing import Renderer
    from dropin.games.scenes import SceneFunction
    from dropin.teams.openness import Openness
    from dropin.teams.pool import Observer
    from dropin.teams.types import Type

__all__ = [
    "RULES",
    "AgentSpec",
    "ExperimentSpec",
    "GameSpec",
    "LearnedPolicy",
    "Learner",
    "LearnerSpec",
    "OpennessFactory",
    "check_rules",
]

RULES = {
    "paper": "the text of the paper",
    "reference": "the authors' released program, for comparing with published numbers",
}
"""The presets of the games that come with the package."""


def check_rules(rules: str, allowed: Mapping[str, str] = RULES) -> None:
    """Raise `InputError` for rules that do not exist.

    Args:
        rules: The name of a preset.
        allowed: The presets of the game.
    """
    if rules not in allowed:
        raise unknown("rules", rules, allowed)


@runtime_checkable
class OpennessFactory(Protocol):
    """Makes the openness of a team.

    Keyword-only arguments after these three are parameters, each with a default.
    """

    def __call__(self, rules: str, game: Any, slots: int) -> Openness:
        """Return the openness of a team.

        Args:
            rules: Name of a preset of the game.
            game: The game.
            slots: Number of slots of the learner's team.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class _Spec:
    """A base of specs: everything without a default has to be given."""

    name: str
    """The name by which it is known everywhere."""

    def validate(self) -> None:
        """Raise `InputError` if a part is missing."""
        for each in fields(self):
            if getattr(self, each.name) is None and not each.metadata.get("optional"):
                kind = type(self).__name__.removesuffix("Spec").lower()
                raise InputError(f"The {kind} {self.name!r} has no {each.name}.")


@dataclass(frozen=True, kw_only=True)
class GameSpec(_Spec):
    """A game with everything that belongs to it.

    Only `name`, `make_game`, `types` and `observer` are needed; a game without a renderer is shown
    as its table of features.
    """

    title: str = ""
    """What the game is called in a sentence."""
    summary: str = ""
    """What it is about, in one line."""
    version: int = 0
    """Raised when a change of the rules, the types or the prey makes returns incomparable. Runs
    store it, and Gymnasium ids end with it."""
    gymnasium_id: str = ""
    """The `LBF` of `dropin/LBF-v0`; made from the name if it is empty."""
    rules: Mapping[str, str] = field(default_factory=lambda: RULES)
    """The named presets of the game and its team, the default one first."""
    make_game: Callable[..., Any] = None  # pyright: ignore[reportAssignmentType]
    """`(rules, **settings) -> Game`: the game under these rules, with any of its fields changed."""
    types: Callable[[str], Mapping[str, Callable[[], Type]]] = None  # pyright: ignore[reportAssignmentType]
    """`rules -> {name: make_type}`: the default pool. A type is made when it is wanted."""
    observer: Callable[[str], Observer] = None  # pyright: ignore[reportAssignmentType]
    """`rules -> observer`: what each agent sees, for its type to act on."""
    openness: OpennessFactory | None = field(default=None, metadata={"optional": True})
    """The default openness; without one, teams are closed."""
    shared_type: Callable[[str], bool] = lambda rules: False  # noqa: ARG005
    """`rules -> bool`: whether a side has one type for a whole episode."""
    renderer: Renderer | None = field(default=None, metadata={"optional": True})
    """How a state looks, as a picture and as text."""
    scene: SceneFunction | None = field(default=None, metadata={"optional": True})
    """How a state looks in the browser; without one, it is shown as its table of features."""
    run_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Settings of a training run that differ from the usual ones, in the shape of `run.json`."""
    episode_length: int = 100
    """Steps of a typical episode, for estimates of how long a run takes."""
    relative_cost: float = 1.0
    """Time of a training step relative to level-based foraging, for the same estimates."""


@runtime_checkable
class LearnedPolicy(Protocol):
    """A policy that a learner has learned: a pytree of weights that can act."""

    @property
    def interface(self) -> Interface:
        """The game's features and actions that the policy was trained for."""
        ...

    @property
    def modes(self) -> Sequence[str]:
        """How it can choose actions: `greedy`, and `sampled` if there is a distribution."""
        ...

    def init_memory(self, slots: int) -> PyTree:
        """Return the memory at the start of an episode."""
        ...

    def act(
        self, key: PRNGKeyArray, observation: Observation, memory: PyTree, mode: str = "greedy"
    ) -> tuple[Int[Array, ""], PyTree]:
        """Return an action and the memory to pass in with the next observation.

        Args:
            key: A random key, used for nothing else.
            observation: What the agent observes.
            memory: What `init_memory` or the last call returned.
            mode: One of `modes`.
        """
        ...


@runtime_checkable
class Learner(Protocol):
    """A learning algorithm with its settings: three pure functions over a train state.

    The train state is any pytree. `jit` is applied by the training loop.
    """

    def init(self, key: PRNGKeyArray, env: AnyEnv) -> PyTree:
        """Return the train state before the first update.

        Args:
            key: A random key, used for nothing else.
            env: The environment to learn in.
        """
        ...

    def update(self, env: AnyEnv, state: PyTree) -> tuple[PyTree, Metrics]:
        """Return the train state after one update, and named metrics of it.

        An update takes `training.rollout_length` steps in each of `training.num_envs` environments.

        Args:
            env: The environment to learn in.
            state: The train state.
        """
        ...

    def policy(self, state: PyTree) -> LearnedPolicy:
        """Return the policy that has been learned so far."""
        ...

    def policy_template(self, interface: Interface) -> LearnedPolicy:
        """Return a policy of the right shapes with any weights, to load stored weights into."""
        ...


@dataclass(frozen=True, kw_only=True)
class LearnerSpec(_Spec):
    """A learner with its settings."""

    summary: str = ""
    """What it is, in one line."""
    settings: type[Any] = None  # pyright: ignore[reportAssignmentType]
    """The dataclass of its settings."""
    make: Callable[[Any, Any], Learner] = None  # pyright: ignore[reportAssignmentType]
    """`(settings, training) -> Learner`; `training` is a `TrainConfig`."""
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By game, settings that differ from the defaults of the dataclass."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Settings that make it this learner and cannot be changed."""
    evaluate_with: Sequence[str] = ("strangers",)
    """Whom it is evaluated with: `strangers` (types), `partners` (agents like itself), or both."""
    steps_per_second: float = 15_000.0
    """Training speed in level-based foraging on one core, for estimates of how long a run takes."""

    def default_settings(self, game: str = "", **changes: Any) -> Any:
        """Return the settings for a game, with changes.

        Args:
            game: Name of the game.
            **changes: Settings that differ from the defaults.
        """
        return self.settings(**{**self.defaults.get(game, {}), **self.fixed, **changes})


@dataclass(frozen=True, kw_only=True)
class AgentSpec(_Spec):
    """A trained agent that comes with a package. Its name is `game/name`, as `lbf/gpl-q`."""

    directory: Path = None  # pyright: ignore[reportAssignmentType]
    """The run that made it: a directory with its `run.json` and `agent.safetensors`."""
    card: Path | None = field(default=None, metadata={"optional": True})
    """A JSON file that says how it was made and how well it does."""


@dataclass(frozen=True, kw_only=True)
class ExperimentSpec(_Spec):
    """An experiment: the runs it needs, and what is made of them."""

    title: str = ""
    """What it shows, in a few words."""
    source: str = ""
    """Where it is in the paper."""
    grids: Callable[[Options], Mapping[str, Grid]] = None  # pyright: ignore[reportAssignmentType]
    """`options -> {name: grid}`: the runs that it needs."""
    result: Callable[[CompletedRuns], ExperimentResult] = None  # pyright: ignore[reportAssignmentType]
    """Turns the finished runs into tables, charts and sentences."""
    needs_agents: bool = False
    """Whether it needs the agent of every checkpoint, not only the returns."""
    in_all: bool = True
    """Whether `dropin reproduce all` includes it."""
