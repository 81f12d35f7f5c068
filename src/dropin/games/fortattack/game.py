"""The rules of FortAttack."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dropin._xla.materialize import materialize
from dropin._xla.random import StepRNG
from dropin.core.arrays import IntScalar, Mask
from dropin.core.errors import InputError
from dropin.core.metrics import Mean
from dropin.games.base import Feature, StepOutcome, as_float, as_int, make_preset
from dropin.games.fortattack.physics import move
from dropin.games.fortattack.state import (
    ATTACKER,
    FULL_TURN,
    GUARD,
    SHOOT,
    Geometry,
    State,
    StepEvents,
)

__all__ = ["SPAWN_HEADING", "FortAttack", "make_game"]

SPAWN_HEADING = (1.5 * np.pi, 0.5 * np.pi)
"""The heading of a newcomer, by side: guards look down, attackers up."""


def _setting(convert: Callable[[object], Array], default: object) -> Any:
    """Return a field of a run-time parameter: a static type checker cannot follow converters."""
    return eqx.field(converter=convert, default=default)


class FortAttack(eqx.Module):
    """Guards keep attackers from a fort on a plane (section 5.1, appendix B.3 of the paper).

    The learner is a guard. The fort is a disc in the middle of the upper wall.

    **Observation.** `agents` [slot, 8]: x, y, cosine and sine of the heading, velocity along x and
    y, 1 for a guard, 1 for an attacker. With `heading_encoding="angle"` the heading is one number
    and there are 7 columns. Nothing is scaled; rows of absent agents are -1. `shared` [0]: nothing.

    **Actions.** 0 nothing, 1 right, 2 left, 3 up, 4 down (thrust along an axis), 5 turn left,
    6 turn right, 7 shoot.

    **Step.** First all shots are fired at once: every opponent whose centre is in the triangle of
    a laser is hit and vanishes, so two agents can hit each other. Then the others move: thrust,
    contact with other agents and the soft walls accelerate them, damping slows them down. Nothing
    in a step is random.

    **Reward** [slot]. `hit_reward` for hitting, once per shot; minus `hit_reward` for being hit;
    minus `shot_cost` for each shot; `victory_reward` for the guards and minus `victory_reward` for
    the attackers when time is up, the reverse when the fort falls.

    **Termination.** An attacker's centre is within the fort, time is up (`horizon` steps: the
    guards have won, so this is no truncation), or the learner is hit, unless `ends_with_learner`
    is false. Episodes are never truncated.
    """

    num_attackers: int | None = eqx.field(static=True, default=None)
    """Number of attackers; None: `fewer_attackers` fewer than the team limit."""
    fewer_attackers: int = eqx.field(static=True, default=0)
    """How many attackers fewer than guards there are; unused if `num_attackers` is given."""
    heading_encoding: str = eqx.field(static=True, default="vector")
    """How headings are observed: as cosine and sine ("vector") or as an angle ("angle")."""
    horizon: Int[Array, ""] = _setting(as_int, 200)
    """Number of steps for which the guards have to hold the fort."""
    half_width: Float[Array, ""] = _setting(as_float, 0.8)
    """Distance from the middle of the plane to its left and right walls."""
    half_height: Float[Array, ""] = _setting(as_float, 1.0)
    """Distance from the middle of the plane to its upper and lower walls."""
    fort_radius: Float[Array, ""] = _setting(as_float, 0.3)
    """Radius of the fort."""
    spawn_depth: Float[Array, ""] = _setting(as_float, 0.2)
    """How far from their wall newcomers can be placed, as a fraction of the half height: guards
    below the upper wall, attackers above the lower one."""
    guard_spawn_half_width: Float[Array, ""] = _setting(as_float, 0.4)
    """How far to the left and right of the middle new guards can be placed, in fort radii. New
    attackers can be placed over the full width."""
    agent_radius: Float[Array, ""] = _setting(as_float, 0.05)
    """Radius of an agent."""
    time_step: Float[Array, ""] = _setting(as_float, 0.1)
    """Time that passes in a step."""
    damping: Float[Array, ""] = _setting(as_float, 0.25)
    """Fraction of the velocity that is lost in a step."""
    thrust: Float[Array, ""] = _setting(as_float, 3.0)
    """Acceleration of an agent that moves."""
    max_speed: Float[Array, ""] = _setting(as_float, 3.0)
    """Speed that no agent exceeds."""
    turn_angle: Float[Array, ""] = _setting(as_float, 0.17)
    """Angle of a turn."""
    stiffness: Float[Array, ""] = _setting(as_float, 100.0)
    """Force between two agents, or an agent and a wall, per unit of overlap."""
    laser_length: Float[Array, ""] = _setting(as_float, 0.8)
    """Length of the two equal sides of the laser's triangle, whose apex is on the agent's rim."""
    laser_angle: Float[Array, ""] = _setting(as_float, np.pi / 4)
    """Angle between these two sides."""
    hit_reward: Float[Array, ""] = _setting(as_float, 3.0)
    """Reward for a shot that hits, however many it hits, and the cost of being hit."""
    shot_cost: Float[Array, ""] = _setting(as_float, 0.1)
    """Cost of a shot."""
    victory_reward: Float[Array, ""] = _setting(as_float, 10.0)
    """Reward of a side for taking or keeping the fort; the other side loses as much."""
    ends_with_learner: Bool[Array, ""] = _setting(lambda value: jnp.asarray(value, bool), True)
    """Whether the episode ends when the learner is hit."""

    def __check_init__(self) -> None:
        for name, low in (("num_attackers", 1), ("fewer_attackers", 0), ("horizon", 1)):
            value = getattr(self, name)
            if value is not None and int(value) < low:
                raise InputError(
                    f"FortAttack's {name} is {int(value)}, but it has to be at least {low}."
                )
        if self.heading_encoding not in ("vector", "angle"):
            raise InputError(
                f"FortAttack's heading_encoding is {self.heading_encoding!r}, but it can be"
                " 'vector' or 'angle'."
            )
        for name in (
            "half_width",
            "half_height",
            "fort_radius",
            "agent_radius",
            "time_step",
            "laser_length",
        ):
            value = float(getattr(self, name))
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"FortAttack's {name} is {value:g}, but it has to be above 0.")

    @property
    def name(self) -> str:
        """The name by which the game is registered."""
        return "fortattack"

    @property
    def actions(self) -> Sequence[str]:
        """The names of the actions, in the order of their numbers."""
        return ("nothing", "right", "left", "up", "down", "turn left", "turn right", "shoot")

    @property
    def has_shaping(self) -> bool:
        """No part of the rewards is shaping."""
        return False

    @property
    def side_names(self) -> Sequence[str]:
        """Guards are the learner's mates, the others are attackers."""
        return ("mate", "attacker")

    def sides(self, slots: int) -> tuple[int, ...]:
        """Return the side of every slot: guards, then attackers."""
        return (GUARD,) * slots + (ATTACKER,) * self._attacker_slots(slots)

    def usable_slots(self, slots: int, limit: IntScalar) -> Mask:
        """Return the first slots of each side: `limit` guards, and the attackers that go with them.

        Args:
            slots: Number of slots of the guards.
            limit: Most guards at a time, the learner included.
        """
        guards = np.arange(slots) < limit
        attacker_slots = self._attacker_slots(slots)
        if self.num_attackers is None:
            attacker_limit = limit - self.fewer_attackers
        else:
            attacker_limit = attacker_slots
        attackers = np.arange(attacker_slots) < attacker_limit
        xp: Any = jnp if isinstance(guards, Array) else np
        return xp.concatenate([guards, attackers])

    def _attacker_slots(self, slots: int) -> int:
        """Return the number of slots for attackers beside this many for guards."""
        if self.num_attackers is not None:
            return self.num_attackers
        if slots - self.fewer_attackers < 1:
            raise InputError(
                f"With {self.fewer_attackers} fewer attackers than {slots} guards there is no"
                " attacker left."
            )
        return slots - self.fewer_attackers

    def features(self, slots: int) -> tuple[Sequence[Feature], Sequence[Feature]]:
        """Return the columns of the agent features x; there are no shared features."""
        del slots
        # Walls are soft; the maximum speed bounds how deep an agent gets into them.
        beyond = float(self.max_speed * self.time_step) + 0.5
        max_x, max_y = float(self.half_width) + beyond, float(self.half_height) + beyond
        max_speed = float(self.max_speed)
        if self.heading_encoding == "vector":
            heading = [
                Feature("cosine", "cosine of the heading", -1, 1, -1),
                Feature("sine", "sine of the heading", -1, 1, -1),
            ]
        else:
            heading = [Feature("heading", "heading, an angle from the x-axis", 0, FULL_TURN, -1)]
        return [
            Feature("x", "position, 0 is the middle", -max_x, max_x, -1),
            Feature("y", "position, the fort is up", -max_y, max_y, -1),
            *heading,
            Feature("x speed", "velocity to the right", -max_speed, max_speed, -1),
            Feature("y speed", "velocity upwards", -max_speed, max_speed, -1),
            Feature("guard", "1 if the agent is a guard, else 0", 0, 1, -1),
            Feature("attacker", "1 if the agent is an attacker, else 0", 0, 1, -1),
        ], []

    def validate(self, slots: int) -> None:
        """Accept any number of agents."""
        del slots

    def reset(self, rng: StepRNG, present: Bool[Array, " slot"]) -> State:
        """Return the first state of an episode: guards near the fort, attackers opposite."""
        rows = present.shape[0]
        attackers = self.num_attackers or (rows - self.fewer_attackers) // 2
        zeros = jnp.zeros(rows)
        empty = State(
            x=zeros,
            y=zeros,
            vx=zeros,
            vy=zeros,
            heading=zeros,
            present=jnp.zeros(rows, bool),
            time=jnp.int32(0),
            sides=(GUARD,) * (rows - attackers) + (ATTACKER,) * attackers,
        )
        return self.spawn(rng, empty, present)

    def spawn(self, rng: StepRNG, state: State, entering: Bool[Array, " slot"]) -> State:
        """Place newcomers near the wall of their side, at rest and facing the other side."""
        x_uniform, y_uniform = rng.uniform(2, len(entering))
        attacker = state.is_attacker
        half_width = jnp.where(
            attacker, self.half_width, self.guard_spawn_half_width * self.fort_radius
        )
        y = self.half_height * (1 - self.spawn_depth * y_uniform)
        heading = jnp.where(attacker, SPAWN_HEADING[ATTACKER], SPAWN_HEADING[GUARD])
        return replace(
            state,
            x=jnp.where(entering, half_width * (2 * x_uniform - 1), state.x),
            y=jnp.where(entering, jnp.where(attacker, -y, y), state.y),
            vx=jnp.where(entering, 0.0, state.vx),
            vy=jnp.where(entering, 0.0, state.vy),
            heading=jnp.where(entering, heading, state.heading),
            present=state.present | entering,
        )

    def despawn(self, state: State, leaving: Bool[Array, " slot"]) -> State:
        """Remove agents from the plane."""
        cleared = {
            name: jnp.where(leaving, 0.0, getattr(state, name))
            for name in ("x", "y", "vx", "vy", "heading")
        }
        return replace(state, **cleared, present=state.present & ~leaving)

    def in_laser(self, geometry: Geometry) -> Bool[Array, "slot slot"]:
        """Return whether the laser of each agent covers the centre of each other agent.

        The edge of the triangle belongs to it. Sides are ignored, see `opponents_of`.

        Args:
            geometry: The geometry of a state.

        Returns:
            Entry [a, b]: whether agent b is in the laser of agent a.
        """
        half_angle = self.laser_angle / 2
        ahead = geometry.ahead - self.agent_radius
        return (jnp.abs(geometry.left) <= jnp.tan(half_angle) * ahead) & (
            ahead <= jnp.cos(half_angle) * self.laser_length
        )

    def opponents_of(self, state: State) -> Bool[Array, "slot slot"]:
        """Return the opponents of each agent: entry [a, b] is true if both are present and on
        different sides.
        """
        opposed = jnp.asarray(np.not_equal.outer(state.sides, state.sides))
        return opposed & state.present[:, None] & state.present[None]

    def distance_to_fort(self, state: State) -> Float[Array, " slot"]:
        """Return each agent's distance to the centre of the fort."""
        below = self.half_height - state.y
        return jnp.sqrt(state.x * state.x + below * below)

    def step(
        self, rng: StepRNG, state: State, actions: Int[Array, " slot"]
    ) -> tuple[State, StepOutcome]:
        """Fire all shots, then move everybody who was not hit; the step is deterministic."""
        del rng
        present, geometry = state.present, Geometry.from_state(state)
        fired = present & (actions == SHOOT)
        hits = materialize(fired[:, None] & self.opponents_of(state) & self.in_laser(geometry))
        was_hit = jnp.any(hits, axis=0)
        moving = present & ~was_hit
        after = move(self, self.despawn(state, was_hit), geometry, actions, moving)

        in_fort = self.distance_to_fort(after) < self.fort_radius
        fort_fell = jnp.any(moving & state.is_attacker & in_fort)
        held = after.time >= self.horizon
        guard_victory = self.victory_reward * (
            held.astype(jnp.float32) - fort_fell.astype(jnp.float32)
        )
        rewards = (
            jnp.where(state.is_attacker, -guard_victory, guard_victory)
            + jnp.where(jnp.any(hits, axis=1), self.hit_reward, 0.0)
            - jnp.where(was_hit, self.hit_reward, 0.0)
            - jnp.where(fired, self.shot_cost, 0.0)
        )
        outcome = StepOutcome(
            rewards=jnp.where(present, rewards, 0.0),
            shaping=jnp.zeros(len(actions)),
            terminated=fort_fell | held | (was_hit[0] & self.ends_with_learner),
            truncated=jnp.array(False),
            events=StepEvents(fired, hits, geometry.distance, fort_fell),
        )
        return after, outcome

    def observe(self, state: State) -> tuple[Float[Array, "slot feature"], Float[Array, " shared"]]:
        """Return the agent features x, not scaled, and no shared features."""
        if self.heading_encoding == "vector":
            heading = [jnp.cos(state.heading), jnp.sin(state.heading)]
        else:
            heading = [state.heading]
        attacker = state.is_attacker.astype(jnp.float32)
        columns = [state.x, state.y, *heading, state.vx, state.vy, 1 - attacker, attacker]
        rows = jnp.stack(columns, axis=1)
        return jnp.where(state.present[:, None], rows, -1.0), jnp.zeros(0)

    def metrics(self, events: StepEvents) -> Mapping[str, Mean]:
        """Return the learner's shooting accuracy: the fraction of its shots that hit."""
        hit, fired = jnp.any(events.hits[0]), events.fired[0]
        return {"shooting_accuracy": Mean(hit.astype(jnp.float32), fired.astype(jnp.float32))}


def make_game(rules: str, **settings: object) -> FortAttack:
    """Return FortAttack under the rules `paper` or `reference`.

    Args:
        rules: Name of the preset.
        **settings: Fields of `FortAttack` that differ from the preset.

    Raises:
        InputError: If there is no such field, or a value cannot be used.
    """
    preset: dict[str, object] = {}
    if rules == "reference":
        preset = {
            "heading_encoding": "angle",
            "horizon": 100,
            "half_width": 1.0,
            "half_height": 0.8,
            "fort_radius": 0.15,
        }
    return make_preset(FortAttack, preset, settings)
