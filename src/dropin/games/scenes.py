"""Scenes: states as small dictionaries that a web page draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from dropin.core.observation import TimeStep

if TYPE_CHECKING:
    from dropin.env import AnyEnv, AnyEnvState

__all__ = ["Scene", "SceneFunction", "grid_scene", "table_scene"]

Scene = dict[str, Any]
"""A state as JSON can hold it. `kind` says how it is drawn: `grid`, `plane` or `table`."""


@runtime_checkable
class SceneFunction(Protocol):
    """How a game tells a web page what a state looks like."""

    def __call__(
        self,
        env: AnyEnv,
        state: AnyEnvState,
        step: TimeStep | None = None,
        previous: AnyEnvState | None = None,
    ) -> Scene:
        """Return a state as a scene.

        Args:
            env: The environment. Its arrays and those of the states may be NumPy arrays.
            state: The state.
            step: The step that led to the state; None at the start of an episode.
            previous: The state before that step.
        """
        ...


def grid_scene(
    rows: int,
    columns: int,
    items: Iterable[Scene],
    agents: Iterable[Scene],
    marks: Iterable[Scene] = (),
) -> Scene:
    """Return a scene on a grid.

    Args:
        rows: Number of rows; row 0 is at the top.
        columns: Number of columns.
        items: What is on the grid besides agents: `kind`, `id` (the same in all states), `row`,
            `column` and, if it has them, `level` and `facing` (0 up, 1 right, 2 down, 3 left).
        agents: The agents that are present: `slot`, `row`, `column` and, if they have one, `level`.
        marks: What happened in the step that led here: `kind`, `row`, `column`, `slots` (who took
            part) and, if it has one, `level`.

    Returns:
        `{"kind": "grid", "rows", "columns", "items", "agents", "marks"}`.
    """
    return {
        "kind": "grid",
        "rows": rows,
        "columns": columns,
        "items": list(items),
        "agents": list(agents),
        "marks": list(marks),
    }


def table_scene(
    columns: Sequence[str],
    rows: Iterable[Sequence[float] | None],
    shared: Mapping[str, float] | None = None,
) -> Scene:
    """Return a scene that is a table of features.

    Args:
        columns: The names of the features of an agent.
        rows: The features of the agent in each slot; None for an absent one.
        shared: The features that belong to no agent, by name.

    Returns:
        `{"kind": "table", "columns", "rows", "shared"}`.
    """
    return {
        "kind": "table",
        "columns": list(columns),
        "rows": [None if row is None else list(row) for row in rows],
        "shared": dict(shared or {}),
    }
