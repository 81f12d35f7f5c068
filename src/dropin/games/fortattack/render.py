"""Pictures, terminal text and sentences of FortAttack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from dropin.core.observation import TimeStep
from dropin.games.drawing import (
    INK,
    NEWCOMER,
    PAPER,
    Canvas,
    Names,
    agent_mark,
    grid_text,
    join_names,
)
from dropin.games.fortattack.game import FortAttack
from dropin.games.fortattack.state import ATTACKER, GUARD, State

if TYPE_CHECKING:
    from dropin.env import AnyEnv, AnyEnvState

__all__ = ["board_size", "describe_agent", "describe_events", "draw", "text"]

CELLS_PER_UNIT = 5.0
"""Cells of the canvas per unit of length of the plane."""
BENCH_WIDTH = 1.6
"""Cells beside the plane, for agents that wait."""
FORT, FORT_RIM, WALL = "#cfe0ea", "#7aa0b5", "#9a968c"
GUARDS, ATTACKERS, LEARNER = "#3a7d44", "#b5402a", "#1d6fa5"
LASERS = {GUARDS: "#d5ead8", ATTACKERS: "#f4d8d1", LEARNER: "#d3e5f1"}
"""The colour of a laser by the colour of the agent."""
ARROWS = "→↗↑↖←↙↓↘"
"""Headings in terminal text, counterclockwise in eighths of a full turn."""
TEXT_ROWS = 20
"""Height of the plane in terminal text."""


def board_size(env: AnyEnv) -> tuple[float, float]:
    """Return the rows and columns of the plane and of the bench beside it, in cells."""
    half_width, half_height = _half_size(env)
    return 2 * half_height * CELLS_PER_UNIT, 2 * half_width * CELLS_PER_UNIT + BENCH_WIDTH


def draw(
    canvas: Canvas,
    env: AnyEnv,
    state: AnyEnvState,
    names: Names,
    step: TimeStep | None = None,
) -> None:
    """Draw the fort, agents with their headings, the lasers of the next step, and waiting agents.

    Args:
        canvas: Where to draw.
        env: The environment.
        state: Its state.
        names: What to call the agent in each slot.
        step: The step that follows the state, if it is known.
    """
    plane = _Plane(canvas, env)
    plane.draw_ground()
    game_state: State = state.game
    poses = np.stack([game_state.x, game_state.y, game_state.heading], axis=1).tolist()
    if step is not None:
        for slot in np.flatnonzero(step.events.fired).tolist():
            plane.draw_laser(slot, *poses[slot])
    for slot in np.flatnonzero(game_state.present).tolist():
        arrived = bool(state.arrived[slot])
        plane.draw_agent(slot, *poses[slot], name=names[slot], arrived=arrived)
    plane.draw_bench(state, names)


class _Plane:
    """The plane on a canvas."""

    def __init__(self, canvas: Canvas, env: AnyEnv):
        self.canvas, self.env = canvas, env
        self.game = _fortattack(env)
        self.half_width, self.half_height = _half_size(env)
        self.agent_radius = float(self.game.agent_radius)

    def cell(self, x: float, y: float) -> tuple[float, float]:
        """Return the row and column of a position."""
        row = (self.half_height - y) * CELLS_PER_UNIT - 0.5
        return row, (x + self.half_width) * CELLS_PER_UNIT - 0.5

    def colour(self, slot: int) -> str:
        """Return the colour of the agent in a slot."""
        return _colour(slot, self.env.sides[slot])

    def draw_ground(self) -> None:
        """Draw the walls and the fort."""
        right, top = self.half_width, self.half_height
        corners = (-right, top), (right, top), (right, -top), (-right, -top)
        self.canvas.polygon([self.cell(*corner) for corner in corners], PAPER, WALL)
        angles, radius = np.linspace(np.pi, 2 * np.pi, 40), float(self.game.fort_radius)
        x, y = radius * np.cos(angles), radius * np.sin(angles)
        rim = [self.cell(*point) for point in zip(x, self.half_height + y, strict=True)]
        self.canvas.polygon(rim, FORT, FORT_RIM)

    def draw_laser(self, slot: int, x: float, y: float, heading: float) -> None:
        """Draw the triangle that a shot covers."""
        length, half_angle = float(self.game.laser_length), float(self.game.laser_angle) / 2
        apex_x = x + self.agent_radius * np.cos(heading)
        apex_y = y + self.agent_radius * np.sin(heading)
        far_corners = [
            (apex_x + length * np.cos(heading + turn), apex_y + length * np.sin(heading + turn))
            for turn in (half_angle, -half_angle)
        ]
        corners = [self.cell(*corner) for corner in ((apex_x, apex_y), *far_corners)]
        colour = self.colour(slot)
        self.canvas.polygon(corners, LASERS[colour], colour)

    def draw_agent(
        self, slot: int, x: float, y: float, heading: float, *, name: str, arrived: bool
    ) -> None:
        """Draw a disc with a nose; the learner has a dark rim and newcomers a bright ring."""
        row, column = self.cell(x, y)
        ahead = 1.6 * self.agent_radius
        nose = self.cell(x + ahead * np.cos(heading), y + ahead * np.sin(heading))
        size, colour = self.agent_radius * CELLS_PER_UNIT, self.colour(slot)
        if arrived:
            self.canvas.ring(row, column, 1.5 * size, NEWCOMER)
        self.canvas.stroke(row, column, *nose, colour)
        self.canvas.disc(row, column, size, colour)
        if slot == 0:
            self.canvas.ring(row, column, size, INK)
        behind = 2 * self.agent_radius
        caption = self.cell(x - behind * np.cos(heading), y - behind * np.sin(heading))
        self.canvas.caption(*caption, name, colour)

    def draw_bench(self, state: AnyEnvState, names: Names) -> None:
        """Draw the waiting agents, with the steps left, next to their end of the plane."""
        team = self.env.team
        usable_slots = np.asarray(self.game.usable_slots(team.slots, team.limit))
        absent = np.flatnonzero(usable_slots & ~np.asarray(state.game.present)).tolist()
        # Only the state of `Shooting` is a waiting time per slot.
        shape = np.shape(state.openness)
        wait = np.asarray(state.openness) if shape == usable_slots.shape else None
        rows, columns = board_size(self.env)
        for side in (GUARD, ATTACKER):
            own = [slot for slot in absent if self.env.sides[slot] == side]
            for place, slot in enumerate(own):
                row = place + 0.2 if side == GUARD else rows - 1.2 - place
                column, colour = columns - BENCH_WIDTH / 2 - 0.5, self.colour(slot)
                self.canvas.disc(row, column, 0.3, colour)
                self.canvas.caption(row, column, "" if wait is None else f"{wait[slot]}", "white")
                self.canvas.caption(row + 0.45, column, names[slot], colour)


def text(env: AnyEnv, state: AnyEnvState) -> Text:
    """Return the plane as terminal text.

    `@` is the learner, `b`, `c`, ... are the others, each with an arrow for its heading; `#` is the
    fort. Attackers are red, newcomers have a bright background. Agents that wait are not shown.
    """
    half_width, half_height = _half_size(env)
    game_state: State = state.game
    columns = round(TEXT_ROWS * half_width / half_height)

    def cell_of(x: float, y: float) -> tuple[int, int]:
        row = np.clip((half_height - y) / (2 * half_height) * TEXT_ROWS, 0, TEXT_ROWS - 1)
        column = np.clip((x + half_width) / (2 * half_width) * columns, 0, columns - 1)
        return int(row), int(column)

    cells: dict[tuple[int, int], tuple[str, str]] = {}
    fort_radius = float(_fortattack(env).fort_radius)
    for row in range(TEXT_ROWS):
        for column in range(columns):
            x = (column + 0.5) / columns * 2 * half_width - half_width
            y = half_height - (row + 0.5) / TEXT_ROWS * 2 * half_height
            if np.hypot(x, half_height - y) < fort_radius:
                cells[row, column] = ("#", FORT_RIM)
    for slot in np.flatnonzero(game_state.present).tolist():
        eighth = round(float(game_state.heading[slot]) / (np.pi / 4)) % 8
        mark, style = agent_mark(slot, ARROWS[eighth], bool(state.arrived[slot]))
        # The style is "bold COLOUR", then the background of newcomers.
        _, _, *background = style.split(" ")
        colour = _colour(slot, env.sides[slot])
        at = cell_of(float(game_state.x[slot]), float(game_state.y[slot]))
        cells[at] = (mark, " ".join([f"bold {colour}", *background]))
    return grid_text(TEXT_ROWS, columns, cells)


def describe_events(state: State, step: TimeStep, names: Names) -> list[str]:
    """Return sentences, without a full stop, on who shot whom and whether the fort fell.

    Args:
        state: The state of the game before the step.
        step: The step.
        names: What to call the agent in each slot.
    """
    del state
    sentences = []
    hits = np.asarray(step.events.hits)
    for victim in np.flatnonzero(hits.any(axis=0)).tolist():
        shooters = [names[slot] for slot in np.flatnonzero(hits[:, victim]).tolist()]
        sentences.append(f"{join_names(shooters, 'shoot')} {names[victim]}")
    if bool(step.events.fort_fell):
        sentences.append("the fort falls")
    return sentences


def describe_agent(state: State, slot: int) -> str:
    """Return where the agent in a slot is."""
    return f"at ({float(state.x[slot]):.2f}, {float(state.y[slot]):.2f})"


def _colour(slot: int, side: int) -> str:
    """Return the colour of the learner, a guard or an attacker."""
    return LEARNER if slot == 0 else ATTACKERS if side == ATTACKER else GUARDS


def _fortattack(env: AnyEnv) -> FortAttack:
    """Return the environment's game, which has to be FortAttack."""
    if not isinstance(env.game, FortAttack):
        raise TypeError(f"This is the renderer of FortAttack, not of {type(env.game).__name__}.")
    return env.game


def _half_size(env: AnyEnv) -> tuple[float, float]:
    """Return half of the width and of the height of the plane."""
    game = _fortattack(env)
    return float(game.half_width), float(game.half_height)
