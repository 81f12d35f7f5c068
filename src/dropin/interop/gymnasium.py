"""The learner's view as a Gymnasium environment.

Importing this module registers an id for every registered game, such as `dropin/LBF-v0`,
`dropin/Wolfpack-v1` and `dropin/FortAttack-v0`; those of plug-ins are included. `gymnasium.make`
passes its keywords on to `dropin.make`:

>>> import gymnasium
>>> import dropin.interop.gymnasium
>>> env = gymnasium.make("dropin/LBF-v0", team_limit=5, rules="reference")
"""

import io
import re
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from dropin.core import registry
from dropin.core.config import PlainDict
from dropin.core.errors import MissingExtraError, unknown
from dropin.core.specs import GameSpec
from dropin.env import AnyEnv, AnyEnvState
from dropin.interop.spaces import (
    action_space,
    check_action,
    make_or_take,
    observation_as_dict,
    observation_space,
)
from dropin.render.picture import picture, renderer_of, type_names

try:
    import gymnasium
except ImportError:
    raise MissingExtraError("The Gymnasium view", "envs") from None

__all__ = ["DropinEnv", "gymnasium_id", "register_ids"]


class DropinEnv(gymnasium.Env[dict[str, np.ndarray], Any]):
    """An ad hoc environment for one learner.

    The observation is a dictionary: `agents` [slot, feature], `shared`, `present` and `arrived`
    [slot], and `sides` [slot] in games with two sides. Slot 0 is the learner. There is no automatic
    reset.

    `info` holds the joint action of the step (`actions`), which agents `acted`, the part of the
    reward that is `shaping`, and the `types` of the agents, None for the learner and for empty
    slots. A learner is not meant to see the types.

    Args:
        game: Name of a registered game, or an `AdHocEnv`.
        render_mode: `rgb_array` (needs the extra `plot`), `ansi` for coloured text, or None.
        **settings: Arguments of `dropin.make` besides the name; none if an environment is given.
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, game: str | AnyEnv, render_mode: str | None = None, **settings: Any):
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise unknown("render mode", render_mode, self.metadata["render_modes"])
        self.render_mode = render_mode
        self.env = make_or_take(game, settings)
        self.observation_space = observation_space(self.env)
        self.action_space = action_space(self.env)
        self._reset = eqx.filter_jit(self.env.reset)
        self._step = eqx.filter_jit(self.env.step)
        self._state: AnyEnvState | None = None

    def reset(
        self, *, seed: int | None = None, options: PlainDict | None = None
    ) -> tuple[dict[str, np.ndarray], PlainDict]:
        """Start an episode.

        Args:
            seed: Fixes this episode and all later ones; by default the random numbers continue.
            options: Not used.

        Returns:
            The first observation, and `info` with the `types`.
        """
        super().reset(seed=seed, options=options)
        self._state, observation = self._reset(self._next_key())
        return observation_as_dict(observation), {"types": self._types(self._state)}

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, PlainDict]:
        """Take the learner's action; the others act by their types.

        Returns:
            The observation, the reward, whether the episode terminated, whether it was truncated,
            and `info`.

        Raises:
            InputError: If it is not the number of an action.
        """
        number = check_action(self.env, action)
        if self._state is None:
            raise RuntimeError("Call reset() before the first step().")
        self._state, step = self._step(
            self._next_key(), self._state, jnp.int32(number), auto_reset=False
        )
        info = {
            "actions": np.asarray(step.actions),
            "acted": np.asarray(step.acted),
            "shaping": float(step.shaping[0]),
            "types": self._types(self._state),
        }
        return (
            observation_as_dict(step.final_observation),
            float(step.reward),
            bool(step.terminated),
            bool(step.truncated),
            info,
        )

    def render(self) -> Any:
        """Return the state as an array of pixels or as text, as the render mode says."""
        if self._state is None or self.render_mode is None:
            return None
        if self.render_mode == "rgb_array":
            return np.asarray(picture(self.env, self._state))
        from rich.console import Console

        text = io.StringIO()
        console = Console(file=text, force_terminal=True, color_system="truecolor")
        console.print(renderer_of(self.env).text(self.env, self._state))
        return text.getvalue()

    def _next_key(self) -> PRNGKeyArray:
        return jax.random.key(self.np_random.integers(2**31))

    def _types(self, state: AnyEnvState) -> list[str | None]:
        """Return the type of each agent; None for the learner and for empty slots."""
        present = np.asarray(state.game.present).tolist()
        pairs = zip(type_names(self.env, state)[1:], present[1:], strict=True)
        return [None, *(name if here else None for name, here in pairs)]


def gymnasium_id(spec: GameSpec) -> str:
    """Return the id of a game, as `dropin/LBF-v0`.

    A game without a `gymnasium_id` has one made from its name: `two-rooms` is `dropin/TwoRooms-v0`.
    """
    words = re.split(r"[^A-Za-z0-9]+", spec.name)
    name = spec.gymnasium_id or "".join(word[:1].upper() + word[1:] for word in words)
    return f"dropin/{name}-v{spec.version}"


def register_ids() -> None:
    """Register every game that has no Gymnasium id yet.

    This is done when the module is imported; call it again after `register_game`. A game whose id
    is taken or cannot be used is left out with a warning that names it.
    """
    for name, spec in registry.games.items():
        new = gymnasium_id(spec)
        taken = gymnasium.registry.get(new)
        if taken is not None and taken.kwargs.get("game") == name:
            continue
        try:
            if taken is not None:
                raise gymnasium.error.Error(f"{new} is the id of {taken.kwargs.get('game')!r}")
            gymnasium.register(
                id=new,
                entry_point="dropin.interop.gymnasium:DropinEnv",
                kwargs={"game": name},
            )
        except gymnasium.error.Error as error:
            warnings.warn(f"The game {name!r} has no Gymnasium id: {error}", stacklevel=2)


register_ids()
