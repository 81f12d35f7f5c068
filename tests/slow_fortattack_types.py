"""The types of FortAttack, one agent after another, in plain Python and NumPy.

Written from what the types are said to do; it shares no code with what it checks. Chance comes in
as two numbers in [0, 1), so that a choice is a function of them. Of those who learned it gets the
weights.
"""

from math import cos, hypot, pi, sin
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from slow_fortattack import (
    DOWN,
    LEFT,
    NOTHING,
    RIGHT,
    SHOOT,
    TURN_MINUS,
    TURN_PLUS,
    UP,
    SlowFortAttack,
)

WEIGHTS = Path(__file__).parent.parent / "src" / "dropin" / "games" / "fortattack" / "weights"
GUARDS, ATTACKERS = ("G1", "G2", "G3", "G4", "G6"), ("A1", "A2")
WILD = {"G2": 0.05, "G3": 0.05, "A1": 0.3, "A2": 0.3}  # how often scripts do anything
POSTS = {"G2": (0.3, 0.8), "G3": (0.8, 0.0)}  # share of the width, angle of the outermost
BOLD = 0.3  # how often attackers take a shot that would hit
COLUMNS = np.linspace(-0.85, 0.85, 7)


def networks(untrained):
    """The weights of the types that have a network; those of G1 are in no file."""
    trained = {name: load_file(WEIGHTS / f"{name}.safetensors") for name in ("G4", "G6")}
    return {"G1": untrained} | trained


class Types:
    """What agents of each type do in a game."""

    def __init__(self, game: SlowFortAttack, weights: dict[str, dict[str, np.ndarray]]):
        self.game = game
        self.nets = {
            name: {key: each.astype(float) for key, each in some.items()}
            for name, some in weights.items()
        }

    def action(self, name: str, slot: int, uniform: tuple[float, float]) -> int:
        """What the agent in a slot does if it is of this type."""
        if name in self.nets:
            return self._drawn(self.numbers(name, slot), uniform[0])
        if uniform[0] < WILD[name]:
            return int(uniform[0] / WILD[name] * 8)
        if name in POSTS:
            return self._flash(slot, *POSTS[name])
        if self._targets(slot) and uniform[1] < BOLD:
            return SHOOT
        return self._walk(slot, self._sneak(slot) if name == "A1" else self._deceive(slot))

    # Scripts.

    def _side(self, slot: int, own: bool) -> list[int]:
        """Those of the agent's side but itself, or of the other side, who are there."""
        game = self.game
        return [
            other
            for other in range(game.slots)
            if game.present[other] and other != slot
            and (game.is_guard(other) == game.is_guard(slot)) == own
        ]  # fmt: skip

    def _targets(self, slot: int) -> list[int]:
        return [other for other in self._side(slot, False) if self.game.in_triangle(slot, other)]

    def _rank(self, slot: int) -> float:
        """The middle of the agent's equal share of [-1, 1], by slot."""
        mates = self._side(slot, True)
        return -1 + (2 * sum(mate < slot for mate in mates) + 1) / (len(mates) + 1)

    def _go(self, slot: int, x: float, y: float) -> int:
        game = self.game
        right = x - (game.x[slot] + 0.3 * game.vx[slot])
        up = y - (game.y[slot] + 0.3 * game.vy[slot])
        if abs(right) < 0.06 and abs(up) < 0.06:
            return NOTHING
        if abs(right) > abs(up):
            return RIGHT if right > 0 else LEFT
        return UP if up > 0 else DOWN

    def _flash(self, slot: int, wide: float, fan: float) -> int:
        game = self.game
        rank = self._rank(slot)
        x, y = rank * wide * game.width, game.height - game.fort_radius - 0.15
        if hypot(x - game.x[slot], y - game.y[slot]) > 0.12:
            return self._go(slot, x, y)
        off = 1.5 * pi + fan * rank - game.heading[slot]
        if abs(sin(off)) > 0.15 * cos(off):
            return TURN_PLUS if sin(off) > 0 else TURN_MINUS
        return SHOOT

    def _sneak(self, slot: int) -> float:
        """The column with most room to guards, less what it is away from the agent's own."""
        game = self.game
        own = 0.85 * self._rank(slot) * game.width
        guards = self._side(slot, False)

        def score(column: float) -> float:
            room = min([0.6] + [abs(game.x[guard] - column) for guard in guards])
            return room - 0.6 * abs(column - own)

        return max(COLUMNS * game.width, key=score)

    def _deceive(self, slot: int) -> float:
        """The side of most, or the other for who is farthest from it."""
        game = self.game
        mates = self._side(slot, True)
        side = 1 if game.x[slot] + sum(game.x[mate] for mate in mates) >= 0 else -1
        last = all(side * game.x[mate] >= side * game.x[slot] for mate in mates)
        return 0.85 * game.width * (-side if mates and last else side)

    def _walk(self, slot: int, column: float) -> int:
        game = self.game
        to_fort = hypot(game.x[slot], game.height - game.y[slot])
        high = game.y[slot] > game.height - game.fort_radius - 0.1
        if high or to_fort < game.fort_radius + 0.3:
            return self._go(slot, 0.0, game.height)
        return self._go(slot, column, game.y[slot] + 0.15)

    # Networks.

    def numbers(self, name: str, slot: int) -> np.ndarray:
        """What a network says of each action."""
        net = self.nets[name]
        parts = [np.array(self._own(slot))]
        for layer, own in (("mate", True), ("opponent", False)):
            weight, bias = net[f"{layer}.weight"], net[f"{layer}.bias"]
            most = np.zeros(len(bias))
            for other in self._side(slot, own):
                most = np.maximum(most, self._other(slot, other) @ weight + bias)
            parts.append(most)
        x = np.concatenate(parts)
        for number in range(3):
            layer = f"decide.layers[{number}]"
            x = x if number == 0 else np.maximum(x, 0)
            x = x @ net[f"{layer}.weight"] + net[f"{layer}.bias"]
        return x

    def _turned(self, slot: int, x: float, y: float) -> tuple[float, float]:
        """A vector as ahead and left of an agent."""
        cosine, sine = cos(self.game.heading[slot]), sin(self.game.heading[slot])
        return x * cosine + y * sine, y * cosine - x * sine

    def _own(self, slot: int) -> list[float]:
        game = self.game
        x, y, heading = game.x[slot], game.y[slot], game.heading[slot]
        ahead, left = self._turned(slot, -x, game.height - y)
        return [
            x / game.width, y / game.height, cos(heading), sin(heading),
            game.vx[slot], game.vy[slot], ahead, left, hypot(x, game.height - y),
            game.fort_radius,
        ]  # fmt: skip

    def _other(self, slot: int, other: int) -> np.ndarray:
        game = self.game
        dx, dy = game.x[other] - game.x[slot], game.y[other] - game.y[slot]
        angle = game.heading[other] - game.heading[slot]
        faster = game.vx[other] - game.vx[slot], game.vy[other] - game.vy[slot]
        against = game.is_guard(slot) != game.is_guard(other)
        return np.array([
            *self._turned(slot, dx, dy), hypot(dx, dy), cos(angle), sin(angle),
            *self._turned(slot, *faster), against and game.in_triangle(slot, other),
            against and game.in_triangle(other, slot), game.height - game.y[other],
        ], dtype=float)  # fmt: skip

    @staticmethod
    def _drawn(numbers: np.ndarray, uniform: float) -> int:
        """An action by the softmax."""
        shares = np.exp(numbers - numbers.max())
        up_to = np.cumsum(shares / shares.sum())
        return min(int(np.searchsorted(up_to, uniform, side="right")), len(numbers) - 1)


class SlowTeams:
    """The whole environment: the game with everybody but the learner acting by a type."""

    def __init__(self, rules: str, size: int, weights: dict[str, dict[str, np.ndarray]], seed=0):
        self.game = SlowFortAttack(rules, size, size, seed)
        self.types = Types(self.game, weights)
        self.random = np.random.default_rng(seed + 1)
        self._cast()

    def _draw(self, slot: int) -> str:
        return str(self.random.choice(GUARDS if self.game.is_guard(slot) else ATTACKERS))

    def _cast(self) -> None:
        self.names = [self._draw(slot) for slot in range(self.game.slots)]
        if self.game.rules == "reference":  # one type for each side
            guards = self.game.guards
            self.names = [self.names[0]] * guards + [self.names[-1]] * (self.game.slots - guards)

    def step(self, action: int) -> tuple[float, bool]:
        """The learner's action; its reward, and whether the episode ended."""
        game, actions = self.game, [action]
        for slot in range(1, game.slots):
            here = game.present[slot]
            uniform = tuple(self.random.random(2))
            actions.append(self.types.action(self.names[slot], slot, uniform) if here else NOTHING)
        rewards, over = game.step(actions)
        for slot in game.open_process():
            if game.rules == "paper":
                self.names[slot] = self._draw(slot)
        if over:
            game.reset()
            self._cast()
        return rewards[0], over
