"""The rules of FortAttack."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dropin.dice import Dice
from dropin.errors import InputError
from dropin.games.base import Feature, Outcome, with_changes
from dropin.games.fortattack.state import ATTACKER, GUARD, Geometry, Happened, State
from dropin.settle import settle

NOTHING, RIGHT, LEFT, UP, DOWN, TURN_LEFT, TURN_RIGHT, SHOOT = range(8)
FULL_TURN = 2 * np.pi
FACING = (1.5 * np.pi, 0.5 * np.pi)
"""The heading of newcomers: guards look down, attackers up."""


def _int(value: object) -> Int[Array, "..."]:
    return jnp.asarray(value, jnp.int32)


def _float(value: object) -> Float[Array, "..."]:
    return jnp.asarray(value, jnp.float32)


def _number(default: float) -> Any:
    return eqx.field(converter=_float, default=default)


class FortAttack(eqx.Module):
    """FortAttack (paper: section 5.1, appendix B.3). The learner is a guard.

    Actions: 0 nothing, 1 right, 2 left, 3 up, 4 down (thrust), 5 turn left, 6 turn right,
    7 shoot.

    Step: everybody inside the laser of an opponent who shoots is hit and vanishes, all at once,
    so that two can hit each other. Then the others move: thrust, contacts between agents and the
    soft walls accelerate them, damping slows them down. The fort falls when an attacker is within
    it.

    Rewards of a guard: the fort falls, it is hit, it hits, it shoots, the guards hold out until
    the end. Attackers get the opposite for the fort and the same for shots.

    End: the fort falls, the learner is hit, or time is up, which is a victory and no cut.
    """

    name: ClassVar[str] = "fortattack"

    attackers: int | None = eqx.field(static=True, default=None)
    """How many attackers there are; None: as many as guards, or fewer."""
    fewer: int = eqx.field(static=True, default=0)
    """So many attackers fewer than the team limit says, if their number is not given."""
    heading: str = eqx.field(static=True, default="vector")
    """How headings are observed: as cosine and sine ("vector") or as an "angle"."""
    horizon: Int[Array, ""] = eqx.field(converter=_int, default=200)
    """Steps after which the guards have held out."""
    half_width: Float[Array, ""] = _number(0.8)
    """The plane reaches so far to the left and right of its middle."""
    half_height: Float[Array, ""] = _number(1.0)
    """And so far up and down; the fort is in the middle of the upper wall."""
    fort: Float[Array, ""] = _number(0.3)
    """The radius of the fort."""
    band: Float[Array, ""] = _number(0.2)
    """Newcomers are placed within so much of the half height of their wall: guards of the upper
    one, attackers of the lower one."""
    spread: Float[Array, ""] = _number(0.4)
    """New guards are within so many radii of the fort of the middle, new attackers anywhere."""
    radius: Float[Array, ""] = _number(0.05)
    """Of an agent."""
    time_step: Float[Array, ""] = _number(0.1)
    """The time of a step."""
    damping: Float[Array, ""] = _number(0.25)
    """The part of the speed that is lost in a step."""
    thrust: Float[Array, ""] = _number(3.0)
    """The acceleration of an agent that moves."""
    top_speed: Float[Array, ""] = _number(3.0)
    """No agent is faster."""
    turn: Float[Array, ""] = _number(0.17)
    """The angle of a turn."""
    stiffness: Float[Array, ""] = _number(100.0)
    """Of agents and walls: the force for each unit that they overlap."""
    laser: Float[Array, ""] = _number(0.8)
    """The length of the two sides of the laser's triangle, which starts at the agent's rim."""
    laser_angle: Float[Array, ""] = _number(np.pi / 4)
    """The angle between them."""
    hit: Float[Array, ""] = _number(3.0)
    """The reward for a shot that hits, once for all who are hit, and what it costs to be hit."""
    shot: Float[Array, ""] = _number(0.1)
    """What a shot costs."""
    victory: Float[Array, ""] = _number(10.0)
    """What a side gets that takes or keeps the fort, and the other loses."""
    ends_with_learner: Bool[Array, ""] = eqx.field(
        converter=lambda value: jnp.asarray(value, bool), default=True
    )
    """Whether the episode ends when the learner is hit."""

    def __check_init__(self) -> None:
        for name, low in (("attackers", 1), ("fewer", 0), ("horizon", 1)):
            value = getattr(self, name)
            if value is not None and int(value) < low:
                raise InputError(
                    f"FortAttack's {name} is {int(value)}, but it has to be at least {low}."
                )
        if self.heading not in ("vector", "angle"):
            raise InputError(
                f"FortAttack's heading is {self.heading!r}, but it can be 'vector' or 'angle'."
            )
        for name in ("half_width", "half_height", "fort", "radius", "time_step", "laser"):
            value = float(getattr(self, name))
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"FortAttack's {name} is {value:g}, but it has to be above 0.")

    @property
    def actions(self) -> Sequence[str]:
        """The names of the actions, in the order of their numbers."""
        return ("nothing", "right", "left", "up", "down", "turn left", "turn right", "shoot")

    @property
    def shaped(self) -> bool:
        """No part of the rewards is shaping."""
        return False

    @property
    def members(self) -> Sequence[str]:
        """The learner's mates are guards."""
        return ("mate", "attacker")

    def sides(self, slots: int) -> tuple[int, ...]:
        """Guards, then attackers."""
        return (GUARD,) * slots + (ATTACKER,) * self._attackers(slots)

    def seats(self, slots: int, limit: Int[Array, ""]) -> Bool[Array, " slot"]:
        """The first of either side."""
        guards = jnp.arange(slots) < limit
        number = self._attackers(slots)
        most = limit - self.fewer if self.attackers is None else number
        return jnp.concatenate([guards, jnp.arange(number) < most])

    def _attackers(self, slots: int) -> int:
        """The slots for attackers."""
        number = slots - self.fewer if self.attackers is None else self.attackers
        if number < 1:
            raise InputError(f"With {self.fewer} fewer than {slots} there is no attacker left.")
        return number

    def features(self, slots: int) -> tuple[Sequence[Feature], Sequence[Feature]]:
        """The columns of x; nothing is shared."""
        del slots
        # Walls are soft: nobody is faster than the top speed, which bounds how deep one gets.
        beyond = float(self.top_speed * self.time_step) + 0.5
        wide, tall = float(self.half_width) + beyond, float(self.half_height) + beyond
        fast = float(self.top_speed)
        if self.heading == "vector":
            heading = [
                Feature("cosine", "cosine of the agent's heading", -1, 1, -1),
                Feature("sine", "sine of the agent's heading", -1, 1, -1),
            ]
        else:
            heading = [Feature("heading", "heading, an angle from the x-axis", 0, FULL_TURN, -1)]
        return [
            Feature("x", "place of the agent, 0 is the middle", -wide, wide, -1),
            Feature("y", "place of the agent, the fort is up", -tall, tall, -1),
            *heading,
            Feature("x speed", "speed to the right", -fast, fast, -1),
            Feature("y speed", "speed upwards", -fast, fast, -1),
            Feature("guard", "1 if the agent is a guard, else 0", 0, 1, -1),
            Feature("attacker", "1 if the agent is an attacker, else 0", 0, 1, -1),
        ], []

    def check(self, slots: int) -> None:
        """Any number of agents fits."""
        del slots

    def start(self, dice: Dice, present: Bool[Array, " slot"]) -> State:
        """Guards near the fort, attackers at the other end."""
        rows = present.shape[0]
        attackers = self.attackers or (rows - self.fewer) // 2
        nothing = jnp.zeros(rows)
        nobody = State(
            x=nothing,
            y=nothing,
            vx=nothing,
            vy=nothing,
            heading=nothing,
            present=jnp.zeros(rows, bool),
            time=jnp.int32(0),
            sides=(GUARD,) * (rows - attackers) + (ATTACKER,) * attackers,
        )
        return self.enter(dice, nobody, present)

    def enter(self, dice: Dice, state: State, entering: Bool[Array, " slot"]) -> State:
        """Newcomers get a place near their wall, at rest, and look at the other."""
        across, deep = dice.uniform(2, len(entering))
        attacker = state.attacker
        wide = jnp.where(attacker, self.half_width, self.spread * self.fort)
        y = self.half_height * (1 - self.band * deep)
        heading = jnp.where(attacker, FACING[ATTACKER], FACING[GUARD])
        return replace(
            state,
            x=jnp.where(entering, wide * (2 * across - 1), state.x),
            y=jnp.where(entering, jnp.where(attacker, -y, y), state.y),
            vx=jnp.where(entering, 0.0, state.vx),
            vy=jnp.where(entering, 0.0, state.vy),
            heading=jnp.where(entering, heading, state.heading),
            present=state.present | entering,
        )

    def leave(self, state: State, leaving: Bool[Array, " slot"]) -> State:
        """Leavers vanish from the plane."""
        gone = {
            name: jnp.where(leaving, 0.0, getattr(state, name))
            for name in ("x", "y", "vx", "vy", "heading")
        }
        return replace(state, **gone, present=state.present & ~leaving)

    def in_laser(self, geometry: Geometry) -> Bool[Array, "slot slot"]:
        """Whether b's centre is in the triangle that a's laser covers, or on its rim."""
        half = self.laser_angle / 2
        ahead = geometry.ahead - self.radius
        return (jnp.abs(geometry.left) <= jnp.tan(half) * ahead) & (
            ahead <= jnp.cos(half) * self.laser
        )

    def opposed(self, state: State) -> Bool[Array, "slot slot"]:
        """Who can hit whom: those present on different sides."""
        against = jnp.asarray(np.not_equal.outer(state.sides, state.sides))
        return against & state.present[:, None] & state.present[None]

    def to_fort(self, state: State) -> Float[Array, " slot"]:
        """The distance of everybody to the middle of the fort."""
        below = self.half_height - state.y
        return jnp.sqrt(state.x * state.x + below * below)

    def step(self, dice: Dice, state: State, actions: Int[Array, " slot"]) -> tuple[State, Outcome]:
        """Shots, then movement; nothing is left to chance."""
        del dice
        present, geometry = state.present, Geometry.of(state)
        fired = present & (actions == SHOOT)
        hits = settle(fired[:, None] & self.opposed(state) & self.in_laser(geometry))
        shot = jnp.any(hits, axis=0)
        moving = present & ~shot
        after = self._move(self.leave(state, shot), geometry, actions, moving)

        fallen = jnp.any(moving & state.attacker & (self.to_fort(after) < self.fort))
        held = after.time >= self.horizon
        stakes = self.victory * (held.astype(jnp.float32) - fallen.astype(jnp.float32))
        rewards = (
            jnp.where(state.attacker, -stakes, stakes)
            + jnp.where(jnp.any(hits, axis=1), self.hit, 0.0)
            - jnp.where(shot, self.hit, 0.0)
            - jnp.where(fired, self.shot, 0.0)
        )
        outcome = Outcome(
            rewards=jnp.where(present, rewards, 0.0),
            shaping=jnp.zeros(len(actions)),
            terminated=fallen | held | (shot[0] & self.ends_with_learner),
            truncated=jnp.array(False),
            happened=Happened(fired, hits, geometry.apart, fallen),
        )
        return after, outcome

    def _move(
        self,
        state: State,
        geometry: Geometry,
        actions: Int[Array, " slot"],
        moving: Bool[Array, " slot"],
    ) -> State:
        """Where everybody is a step later, having been in this geometry."""
        touching = moving[:, None] & moving[None] & (geometry.apart > 0)
        overlap = jnp.maximum(2 * self.radius - geometry.apart, 0.0)
        away = jnp.where(touching, self.stiffness * overlap / geometry.apart, 0.0)
        force_x = -jnp.sum(away * geometry.dx, axis=1)
        force_y = -jnp.sum(away * geometry.dy, axis=1)
        force_x += self._wall(state.x, self.half_width) + self._along(actions, RIGHT, LEFT)
        force_y += self._wall(state.y, self.half_height) + self._along(actions, UP, DOWN)

        vx = (1 - self.damping) * state.vx + self.time_step * force_x
        vy = (1 - self.damping) * state.vy + self.time_step * force_y
        speed = jnp.sqrt(vx * vx + vy * vy)
        slower = jnp.where(speed > self.top_speed, self.top_speed / speed, 1.0)
        vx, vy = jnp.where(moving, slower * vx, 0.0), jnp.where(moving, slower * vy, 0.0)

        turn = jnp.where(actions == TURN_LEFT, self.turn, 0.0)
        turn = jnp.where(actions == TURN_RIGHT, -self.turn, turn)
        heading = state.heading + jnp.where(moving, turn, 0.0)
        heading = jnp.where(heading < 0, heading + FULL_TURN, heading)
        heading = jnp.where(heading >= FULL_TURN, heading - FULL_TURN, heading)
        return replace(
            state,
            x=state.x + self.time_step * vx,
            y=state.y + self.time_step * vy,
            vx=vx,
            vy=vy,
            heading=heading,
            time=state.time + 1,
        )

    def _wall(self, place: Float[Array, " slot"], half: Float[Array, ""]) -> Float[Array, " slot"]:
        """The force of the two walls across an axis on whoever overlaps them."""
        above = jnp.maximum(place + self.radius - half, 0.0)
        below = jnp.maximum(-half - (place - self.radius), 0.0)
        return self.stiffness * (below - above)

    def _along(self, actions: Int[Array, " slot"], plus: int, minus: int) -> Float[Array, " slot"]:
        """The thrust along an axis."""
        return jnp.where(
            actions == plus, self.thrust, jnp.where(actions == minus, -self.thrust, 0.0)
        )

    def observe(self, state: State) -> tuple[Float[Array, "slot feature"], Float[Array, " shared"]]:
        """Agent features x as they are, not scaled; there are no shared features."""
        if self.heading == "vector":
            heading = [jnp.cos(state.heading), jnp.sin(state.heading)]
        else:
            heading = [state.heading]
        attacker = state.attacker.astype(jnp.float32)
        kind = [1 - attacker, attacker]
        rows = jnp.stack([state.x, state.y, *heading, state.vx, state.vy, *kind], axis=1)
        return jnp.where(state.present[:, None], rows, -1.0), jnp.zeros(0)

    @property
    def ratios(self) -> Sequence[str]:
        """How many of the learner's shots hit."""
        return ("shooting_accuracy",)

    def counts(self, happened: Happened) -> Float[Array, "ratio 2"]:
        """Whether the learner hit somebody, and whether it shot."""
        hit, fired = jnp.any(happened.hits[0]), happened.fired[0]
        return jnp.stack([hit, fired]).astype(jnp.float32)[None]

    def flaws(self, state: State) -> Bool[Array, " slot"]:
        """Whose place, speed or heading is not finite."""
        return ~jnp.isfinite(state.x + state.y + state.vx + state.vy + state.heading)


def preset(rules: str, **changes: object) -> FortAttack:
    """FortAttack under the rules `paper` or `reference`, with any field changed."""
    differing: dict[str, object] = {}
    if rules == "reference":
        differing = {
            "heading": "angle",
            "horizon": 100,
            "half_width": 1.0,
            "half_height": 0.8,
            "fort": 0.15,
        }
    return with_changes(FortAttack, differing, changes)
