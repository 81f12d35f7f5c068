"""Openness by shooting: agents that are hit wait, the longer the closer the shot was."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.games.base import as_float
from dropin.games.fortattack.game import FortAttack
from dropin.games.fortattack.state import StepEvents
from dropin.teams.kinds import check_number

__all__ = ["Shooting", "make_openness"]


class Shooting(eqx.Module):
    """Agents leave only by being hit, and return after a waiting time.

    An agent with a waiting time of w steps re-enters at the end of the w-th step after the one in
    which it was hit; with w = 0 it re-enters at the end of that same step.
    """

    max_waiting_time: Float[Array, ""] = eqx.field(converter=as_float, default=80.0)
    """Steps to wait after a shot from distance 0."""
    zero_wait_distance: Float[Array, ""] = eqx.field(converter=as_float, default=0.95)
    """Distance from which on there is no waiting time; below it the time is linear."""
    sums_hits: bool = eqx.field(static=True, default=False)
    """Whether the times of several shots are summed and the fraction dropped, as in the authors'
    program. Otherwise the closest shot counts, and the time is rounded."""
    max_shot_distance: float = eqx.field(static=True, default=0.85)
    """Largest distance from which a shot can hit. It bounds how often agents can return, see
    `max_agents_per_episode`."""

    def __check_init__(self) -> None:
        for name in ("max_waiting_time", "zero_wait_distance"):
            value = float(getattr(self, name))
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"Shooting's {name} is {value:g}, but it has to be above 0.")

    def validate(self, sides: tuple[int, ...], limit: int) -> None:
        """Raise `InputError` if there are no opponents, since nobody would ever be hit."""
        del limit
        if not any(sides):
            raise InputError("Shooting is for games with opponents.")

    def max_agents_per_episode(self, slots: int, horizon: int) -> int:
        """Return a bound: everybody is always hit at once, from the largest distance possible.

        Args:
            slots: Number of slots.
            horizon: Number of steps of an episode.
        """
        farthest = jnp.float32([[self.max_shot_distance]])
        shortest = int(self.waiting_time(farthest, jnp.array([[True]]))[0])
        return 1 + (slots - 1) * (1 + horizon // max(shortest, 1))

    def waiting_time(
        self, distance: Float[Array, "slot victim"], hits: Bool[Array, "slot victim"]
    ) -> Int[Array, " victim"]:
        """Return the number of steps that each victim has to wait.

        Args:
            distance: Distance between each two agents when the shots were fired.
            hits: Which agent hit which.
        """
        fraction = jnp.where(hits, jnp.maximum(1 - distance / self.zero_wait_distance, 0.0), 0.0)
        if self.sums_hits:
            total = jnp.sum(fraction, axis=0)
            return jnp.floor(self.max_waiting_time * total).astype(jnp.int32)
        return jnp.round(self.max_waiting_time * jnp.max(fraction, axis=0)).astype(jnp.int32)

    def reset(
        self, rng: StepRNG, usable_slots: Bool[Array, " slot"]
    ) -> tuple[Int[Array, " slot"], Bool[Array, " slot"]]:
        """Start an episode with both sides complete.

        Returns:
            The number of steps that each agent still has to wait, and who is present.
        """
        del rng
        return jnp.zeros(len(usable_slots), jnp.int32), usable_slots

    def step(
        self,
        rng: StepRNG,
        state: Int[Array, " slot"],
        present: Bool[Array, " slot"],
        usable_slots: Bool[Array, " slot"],
        events: StepEvents,
    ) -> tuple[Int[Array, " slot"], Bool[Array, " slot"], Bool[Array, " slot"]]:
        """Let agents that were hit wait, and agents that have waited long enough re-enter.

        Args:
            rng: Unused.
            state: The number of steps that each agent still has to wait.
            present: Who is still present after the game's step.
            usable_slots: Which slots may be occupied.
            events: The game's record of the step.

        Returns:
            The next state, which agents leave (none: the game removes agents that are hit), and
            which enter.
        """
        del rng
        waiting_time = self.waiting_time(events.distance, events.hits)
        wait = jnp.where(events.was_hit, waiting_time, jnp.maximum(state - 1, 0))
        return wait, jnp.zeros_like(present), usable_slots & ~present & (wait == 0)


_MAX_WAITING, _MIN_DISTANCE, _MAX_DISTANCE = 1e6, 1e-3, 1e3


def make_openness(
    rules: str,
    game: FortAttack,
    slots: int,
    *,
    max_waiting_time: float = 80.0,
    zero_wait_distance: float = 0.95,
    sums_hits: bool | None = None,
) -> Shooting:
    """Return the openness of the rules.

    Args:
        rules: Name of the preset.
        game: The game, whose laser bounds the distance of a shot.
        slots: Unused.
        max_waiting_time: Steps to wait after a shot from distance 0.
        zero_wait_distance: Distance from which on there is no waiting time.
        sums_hits: Whether the times of several shots are summed; by default as the rules say.
    """
    del slots
    if sums_hits is not None and not isinstance(sums_hits, bool):
        raise InputError(f"The sums_hits {sums_hits!r} cannot be used: it is true or false.")
    if not isinstance(game, FortAttack):
        raise InputError("Shooting is for FortAttack.")
    half_angle = float(game.laser_angle) / 2
    along = float(game.agent_radius) + float(game.laser_length) * np.cos(half_angle)
    farthest = float(np.hypot(along, float(game.laser_length) * np.sin(half_angle)))
    return Shooting(
        check_number("max_waiting_time", max_waiting_time, 1e-3, _MAX_WAITING),
        check_number("zero_wait_distance", zero_wait_distance, _MIN_DISTANCE, _MAX_DISTANCE),
        rules == "reference" if sums_hits is None else sums_hits,
        farthest,
    )
