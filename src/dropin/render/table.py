"""The renderer of games that have none of their own: the features of each agent as a table."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import PyTree
from rich.text import Text

from dropin.core.observation import TimeStep
from dropin.env import AnyEnv, AnyEnvState
from dropin.games.drawing import INK, NEWCOMER, Canvas, Names, agent_colour, agent_mark

__all__ = ["FeatureTable"]

COLUMN_WIDTH, ROW_HEIGHT = 1.8, 0.6
"""Of the picture, in cells of the canvas."""
MIN_COLUMNS = 3
"""Columns that the picture has at least, so that the line above it fits."""
ABSENT = "-"
"""Stands for the features of an absent agent."""
FAINT = "#9a968c"


class FeatureTable:
    """Shows the states of any game as a table: one row per slot, one column per feature.

    Shared features follow below. It is a `Renderer` for one environment.
    """

    def __init__(self, env: AnyEnv):
        self._game = env.game
        self._agent_features, self._shared_features = env.game.features(env.team.slots)

    def board_size(self, env: AnyEnv) -> tuple[float, float]:
        """Return the rows and columns of the picture, in cells."""
        shared_rows = -(-len(self._shared_features) // self._columns)
        rows = 1 + env.slots + 2 * shared_rows
        return rows * ROW_HEIGHT, self._columns * COLUMN_WIDTH

    @property
    def _columns(self) -> int:
        """Number of columns of the picture: a name, the features, and an action."""
        return max(len(self._agent_features) + 2, MIN_COLUMNS)

    def draw(
        self,
        canvas: Canvas,
        env: AnyEnv,
        state: AnyEnvState,
        names: Names,
        step: TimeStep | None = None,
    ) -> None:
        """Draw the table; newcomers have a bright mark.

        Args:
            canvas: Where to draw.
            env: The environment.
            state: Its state.
            names: What to call the agent in each slot.
            step: The step that follows the state, if it is known: it adds the chosen actions.
        """
        headings = [*(each.name for each in self._agent_features), *(["action"] if step else [])]
        for column, heading in enumerate(headings, start=1):
            canvas.caption(*_cell(0, column), heading, FAINT)
        agents, shared = self._values(state.game)
        present, arrived = np.asarray(state.game.present), np.asarray(state.arrived)
        for slot in range(env.slots):
            colour = agent_colour(slot) if present[slot] else FAINT
            row, column = _cell(slot + 1, 0)
            if arrived[slot]:
                canvas.disc(row, column - COLUMN_WIDTH / 2 + 0.15, 0.08, NEWCOMER)
            canvas.caption(row, column, names[slot] if present[slot] else ABSENT, colour)
            cells = agents[slot] if present[slot] else [ABSENT] * len(self._agent_features)
            if step is not None:
                acts = bool(step.acted[slot])
                cells = [*cells, env.game.actions[int(step.actions[slot])] if acts else ABSENT]
            for index, cell in enumerate(cells, start=1):
                canvas.caption(*_cell(slot + 1, index), cell, INK if present[slot] else FAINT)
        for index, (feature, value) in enumerate(zip(self._shared_features, shared, strict=True)):
            line, column = divmod(index, self._columns)
            row = 1 + env.slots + 2 * line
            canvas.caption(*_cell(row, column), feature.name, FAINT)
            canvas.caption(*_cell(row + 1, column), value, INK)

    def text(self, env: AnyEnv, state: AnyEnvState) -> Text:
        """Return the table as text for the terminal.

        The learner is `@`, others are `b`, `c`, and so on. Newcomers have a bright background.
        """
        agents, shared = self._values(state.game)
        present, arrived = np.asarray(state.game.present), np.asarray(state.arrived)
        names = [each.name for each in self._agent_features]
        columns = [[row[index] for row in agents] for index in range(len(names))]
        widths = [
            max(len(cell) for cell in [name, *column])
            for name, column in zip(names, columns, strict=True)
        ]
        text = Text()
        text.append(f"  {_aligned(names, widths)}\n", "dim")
        for slot in range(env.slots):
            if present[slot]:
                text.append(*agent_mark(slot, "", bool(arrived[slot])))
                text.append(f" {_aligned(agents[slot], widths)}\n")
            else:
                text.append(f"{ABSENT} {_aligned([ABSENT] * len(names), widths)}\n", "dim")
        for feature, value in zip(self._shared_features, shared, strict=True):
            text.append(f"{feature.name}  ", "dim")
            text.append(f"{value}\n")
        return text

    def describe_events(self, state: PyTree, step: TimeStep, names: Names) -> list[str]:
        """Return a sentence, without a full stop, on each reward that is not zero.

        Args:
            state: Not used; only the game itself could read its events.
            step: The step.
            names: What to call the agent in each slot.
        """
        del state
        rewards, acted = np.asarray(step.rewards), np.asarray(step.acted)
        return [
            f"{names[slot]} gets a reward of {rewards[slot]:.3g}"
            for slot in np.flatnonzero(acted & (rewards != 0)).tolist()
        ]

    def describe_agent(self, state: PyTree, slot: int) -> str:
        """Return the features of the agent in a slot, as `row 1, column 2`."""
        values = self._values(state)[0][slot]
        pairs = zip(self._agent_features, values, strict=True)
        return ", ".join(f"{feature.name} {value}" for feature, value in pairs)

    def _values(self, state: PyTree) -> tuple[list[list[str]], list[str]]:
        """Return the formatted features of each slot, and the formatted shared features."""
        agents, shared = (np.asarray(each) for each in self._game.observe(state))
        return [list(_formatted(row)) for row in agents], list(_formatted(shared))


def _formatted(values: np.ndarray) -> Iterator[str]:
    return (f"{value:.3g}" for value in values.tolist())


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _cell(row: int, column: int) -> tuple[float, float]:
    """Return the centre of a cell of the table in the units of the canvas."""
    return (row + 0.5) * ROW_HEIGHT - 0.5, (column + 0.5) * COLUMN_WIDTH - 0.5
