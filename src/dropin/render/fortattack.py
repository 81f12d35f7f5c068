"""How FortAttack looks."""

from typing import Any

import numpy as np
from rich.text import Text

from dropin.adhoc import AdHoc, EnvState, TimeStep
from dropin.games.fortattack.game import ATTACKER
from dropin.render.grid import NEW, agent_mark, grid_text, together
from dropin.render.picture import Canvas, Names

UNIT = 5.0
"""Cells for each unit of the plane."""
SIDE = 1.6
"""Columns beside the plane, for those who wait."""
FORT, FORT_RIM = "#cfe0ea", "#7aa0b5"
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
    wide, tall = _size(env)
    game: Any = env.game
    state: Any = now.game

    def at(x: float, y: float) -> tuple[float, float]:
        return (tall - y) * UNIT - 0.5, (x + wide) * UNIT - 0.5

    angles = np.linspace(np.pi, 2 * np.pi, 40)
    radius = float(game.fort)
    rim = [at(radius * np.cos(each), tall + radius * np.sin(each)) for each in angles]
    canvas.polygon(rim, FORT, FORT_RIM)
    canvas.polygon([at(-wide, tall), at(wide, tall), at(wide, -tall), at(-wide, -tall)], "", "#999")
    here, arrived = np.asarray(state.present), np.asarray(now.arrived)
    fired = np.zeros(len(here), bool) if step is None else np.asarray(step.happened.fired)
    places = np.stack([state.x, state.y, state.heading], axis=1)
    for slot in np.flatnonzero(here & fired).tolist():
        colour = _colour(slot, env.sides[slot])
        corners = [at(*corner) for corner in _laser(game, *places[slot])]
        canvas.polygon(corners, LASERS[colour], colour)
    for slot in np.flatnonzero(here).tolist():
        x, y, heading = places[slot].tolist()
        _agent(canvas, at, game, slot, env.sides[slot], (x, y, heading), names[slot], arrived[slot])
    _bench(canvas, env, now, names, 2 * wide * UNIT)


def _laser(game: Any, x: float, y: float, heading: float) -> list[tuple[float, float]]:
    """The corners of a laser's triangle."""
    radius, length, half = float(game.radius), float(game.laser), float(game.laser_angle) / 2
    apex = x + radius * np.cos(heading), y + radius * np.sin(heading)
    far = [
        (apex[0] + length * np.cos(heading + turn), apex[1] + length * np.sin(heading + turn))
        for turn in (half, -half)
    ]
    return [apex, *far]


def _colour(slot: int, side: int) -> str:
    return LEARNER if slot == 0 else ATTACKERS if side == ATTACKER else GUARDS


def _agent(
    canvas: Canvas,
    at: Any,
    game: Any,
    slot: int,
    side: int,
    place: tuple[float, float, float],
    name: str,
    arrived: bool,
) -> None:
    x, y, heading = place
    radius = float(game.radius)
    row, column = at(x, y)
    nose = at(x + 1.5 * radius * np.cos(heading), y + 1.5 * radius * np.sin(heading))
    colour = _colour(slot, side)
    if arrived:
        canvas.ring(row, column, 1.5 * radius * UNIT, NEW)
    canvas.stroke(row, column, *nose, colour)
    canvas.disc(row, column, radius * UNIT, colour)
    if slot == 0:
        canvas.ring(row, column, radius * UNIT, "#1b1b1b")
    canvas.caption(row + 2.0 * radius * UNIT, column, name, colour)


def _bench(canvas: Canvas, env: AdHoc, now: EnvState, names: Names, edge: float) -> None:
    """Those who wait, with the steps left, beside their end of the plane."""
    state: Any = now.game
    seats = np.asarray(env.game.seats(env.team.slots, env.team.limit))
    away = np.flatnonzero(seats & ~np.asarray(state.present)).tolist()
    wait = np.asarray(now.openness) if np.ndim(now.openness) == 1 else None
    rows, _ = board(env)
    for side in (0, 1):
        slots = [slot for slot in away if env.sides[slot] == side]
        for number, slot in enumerate(slots):
            row = number + 0.2 if side == 0 else rows - 1.2 - number
            column, colour = edge + SIDE / 2 - 0.5, _colour(slot, side)
            canvas.disc(row, column, 0.3, colour)
            left = "" if wait is None else str(int(wait[slot]))
            canvas.caption(row, column, left, "white")
            canvas.caption(row + 0.45, column, names[slot], colour)


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
