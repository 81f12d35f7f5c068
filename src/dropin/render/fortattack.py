"""How FortAttack looks."""

from typing import Any

import numpy as np
from rich.text import Text

from dropin.adhoc import AdHoc, EnvState, TimeStep
from dropin.games.fortattack.state import ATTACKER
from dropin.render.grid import NEW, agent_mark, grid_text, together
from dropin.render.picture import INK, PAPER, Canvas, Names

UNIT = 5.0
"""Cells for each unit of the plane."""
SIDE = 1.6
"""Columns beside the plane, for those who wait."""
FORT, FORT_RIM, WALL = "#cfe0ea", "#7aa0b5", "#9a968c"
GUARDS, ATTACKERS, LEARNER = "#3a7d44", "#b5402a", "#1d6fa5"
LASERS = {"#3a7d44": "#d5ead8", "#b5402a": "#f4d8d1", "#1d6fa5": "#d3e5f1"}
ARROWS = "→↗↑↖←↙↓↘"
ROWS = 20
"""Of the terminal's picture."""


def board(env: AdHoc) -> tuple[float, float]:
    """Rows and columns; those who wait are beside the plane."""
    wide, tall = _size(env)
    return 2 * tall * UNIT, 2 * wide * UNIT + SIDE


def _size(env: AdHoc) -> tuple[float, float]:
    game: Any = env.game
    return float(game.half_width), float(game.half_height)


def draw(
    canvas: Canvas, env: AdHoc, now: EnvState, names: Names, step: TimeStep | None = None
) -> None:
    """The fort, agents with their headings, lasers of those about to shoot, and who waits."""
    plane = _Plane(canvas, env)
    plane.ground()
    state: Any = now.game
    here = np.flatnonzero(state.present).tolist()
    places = np.stack([state.x, state.y, state.heading], axis=1).tolist()
    if step is not None:
        for slot in np.flatnonzero(step.happened.fired).tolist():
            plane.laser(slot, *places[slot])
    for slot in here:
        plane.agent(slot, *places[slot], name=names[slot], arrived=bool(now.arrived[slot]))
    plane.bench(now, names)


class _Plane:
    """The plane on a canvas."""

    def __init__(self, canvas: Canvas, env: AdHoc):
        self.canvas, self.env = canvas, env
        self.game: Any = env.game
        self.wide, self.tall = _size(env)
        self.radius = float(self.game.radius)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Row and column of a place."""
        return (self.tall - y) * UNIT - 0.5, (x + self.wide) * UNIT - 0.5

    def colour(self, slot: int) -> str:
        """Of the learner, its mates and the attackers."""
        return _colour(slot, self.env.sides[slot])

    def ground(self) -> None:
        """The walls and the fort."""
        wide, tall = self.wide, self.tall
        corners = (-wide, tall), (wide, tall), (wide, -tall), (-wide, -tall)
        self.canvas.polygon([self.at(*corner) for corner in corners], PAPER, WALL)
        angles = np.linspace(np.pi, 2 * np.pi, 40)
        x, y = float(self.game.fort) * np.cos(angles), float(self.game.fort) * np.sin(angles)
        rim = [self.at(*place) for place in zip(x, self.tall + y, strict=True)]
        self.canvas.polygon(rim, FORT, FORT_RIM)

    def laser(self, slot: int, x: float, y: float, heading: float) -> None:
        """The triangle that a shot covers."""
        length, half = float(self.game.laser), float(self.game.laser_angle) / 2
        apex = x + self.radius * np.cos(heading), y + self.radius * np.sin(heading)
        far = [
            (apex[0] + length * np.cos(heading + turn), apex[1] + length * np.sin(heading + turn))
            for turn in (half, -half)
        ]
        colour = self.colour(slot)
        self.canvas.polygon([self.at(*each) for each in (apex, *far)], LASERS[colour], colour)

    def agent(
        self, slot: int, x: float, y: float, heading: float, *, name: str, arrived: bool
    ) -> None:
        """A disc with a nose; the learner has a dark rim and newcomers a bright ring."""
        row, column = self.at(x, y)
        ahead = 1.6 * self.radius
        nose = self.at(x + ahead * np.cos(heading), y + ahead * np.sin(heading))
        size, colour = self.radius * UNIT, self.colour(slot)
        if arrived:
            self.canvas.ring(row, column, 1.5 * size, NEW)
        self.canvas.stroke(row, column, *nose, colour)
        self.canvas.disc(row, column, size, colour)
        if slot == 0:
            self.canvas.ring(row, column, size, INK)
        behind = self.at(
            x - 2 * self.radius * np.cos(heading), y - 2 * self.radius * np.sin(heading)
        )
        self.canvas.caption(*behind, name, colour)

    def bench(self, now: EnvState, names: Names) -> None:
        """Those who wait, with the steps left, beside their end of the plane."""
        seats = np.asarray(self.game.seats(self.env.team.slots, self.env.team.limit))
        away = np.flatnonzero(seats & ~np.asarray(now.game.present)).tolist()
        wait = np.asarray(now.openness) if np.shape(now.openness) == seats.shape else None
        rows, columns = board(self.env)
        for side in (0, 1):
            for number, slot in enumerate(each for each in away if self.env.sides[each] == side):
                row = number + 0.2 if side == 0 else rows - 1.2 - number
                column, colour = columns - SIDE / 2 - 0.5, self.colour(slot)
                self.canvas.disc(row, column, 0.3, colour)
                self.canvas.caption(row, column, "" if wait is None else f"{wait[slot]}", "white")
                self.canvas.caption(row + 0.45, column, names[slot], colour)


def _colour(slot: int, side: int) -> str:
    return LEARNER if slot == 0 else ATTACKERS if side == ATTACKER else GUARDS


def text(env: AdHoc, now: EnvState) -> Text:
    """The plane in characters: @ the learner, b, c, ... others, each with an arrow; # the fort.

    Newcomers stand on a bright ground, attackers are red.
    """
    wide, tall = _size(env)
    state: Any = now.game
    columns = round(ROWS * wide / tall)
    cells: dict[tuple[int, int], tuple[str, str]] = {}

    def cell(x: float, y: float) -> tuple[int, int]:
        row = np.clip((tall - y) / (2 * tall) * ROWS, 0, ROWS - 1)
        column = np.clip((x + wide) / (2 * wide) * columns, 0, columns - 1)
        return int(row), int(column)

    radius = float(env.game.fort)  # pyright: ignore[reportAttributeAccessIssue]
    for row in range(ROWS):
        for column in range(columns):
            x = (column + 0.5) / columns * 2 * wide - wide
            y = tall - (row + 0.5) / ROWS * 2 * tall
            if np.hypot(x, tall - y) < radius:
                cells[row, column] = ("#", FORT_RIM)
    for slot in np.flatnonzero(state.present).tolist():
        eighth = round(float(state.heading[slot]) / (np.pi / 4)) % 8
        mark, style = agent_mark(slot, ARROWS[eighth], bool(now.arrived[slot]))
        colour = _colour(slot, env.sides[slot])
        cells[cell(float(state.x[slot]), float(state.y[slot]))] = (
            mark,
            " ".join([f"bold {colour}", *style.split(" ")[2:]]),
        )
    return grid_text(ROWS, columns, cells)


def tell(state: Any, step: TimeStep, names: Names) -> list[str]:
    """Who shot whom in a step, and how it ended."""
    del state
    sentences = []
    hits = np.asarray(step.happened.hits)
    for victim in np.flatnonzero(hits.any(axis=0)).tolist():
        who = [names[slot] for slot in np.flatnonzero(hits[:, victim]).tolist()]
        sentences.append(f"{together(who, 'shoot')} {names[victim]}")
    if bool(step.happened.fallen):
        sentences.append("the fort falls")
    return sentences


def describe(state: Any, slot: int) -> str:
    """An agent in a few words."""
    return f"at ({float(state.x[slot]):.2f}, {float(state.y[slot]):.2f})"
