"""The learner's view as a Gymnasium environment.

Importing this module registers `dropin/LBF-v0`, `dropin/Wolfpack-v0` and `dropin/FortAttack-v0`;
`gymnasium.make` passes its keywords on to `dropin.make`:

>>> import gymnasium
>>> import dropin.interop.gymnasium
>>> env = gymnasium.make("dropin/LBF-v0", team_limit=5, rules="reference")
"""

import io
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dropin.adhoc import EnvState, make
from dropin.errors import MissingExtraError, unknown
from dropin.games import CATALOGUE
from dropin.interop.spaces import action_space, as_dict, check_action, observation_space
from dropin.render.picture import looks_of, picture

try:
    import gymnasium
except ImportError:
    raise MissingExtraError("The Gymnasium view", "envs") from None


class DropinEnv(gymnasium.Env[dict[str, np.ndarray], Any]):
    """An ad hoc environment for one learner.

    The observation is a dictionary: `agents` [slot, feature], `shared`, `present` and `arrived`
    [slot]; slot 0 is the learner. `info` tells the joint action of the step (`actions`), who
    `acted`, which part of the reward is `shaping`, and the `types` of the teammates, None for the
    learner and the absent; a learner is not meant to see them.
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, game: str, render_mode: str | None = None, **settings: Any):
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise unknown("render mode", render_mode, self.metadata["render_modes"])
        self.render_mode = render_mode
        self.env = make(game, **settings)
        self.observation_space = observation_space(self.env)
        self.action_space = action_space(self.env)
        self._reset = eqx.filter_jit(self.env.reset)
        self._step = eqx.filter_jit(self.env.step)
        self._state: EnvState | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed, options=options)
        self._state, observation = self._reset(self._next_key())
        return as_dict(observation), self._types()

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Act once."""
        number = check_action(self.env, action)
        if self._state is None:
            raise RuntimeError("Call reset() before the first step().")
        self._state, step = self._step(
            self._next_key(), self._state, jnp.int32(number), restart=False
        )
        info = {
            "actions": np.asarray(step.actions),
            "acted": np.asarray(step.acted),
            "shaping": float(step.shaping[0]),
        }
        return (
            as_dict(step.final),
            float(step.reward),
            bool(step.terminated),
            bool(step.truncated),
            info | self._types(),
        )

    def render(self) -> Any:
        """The state as an array of pixels, or as text with colours."""
        if self._state is None or self.render_mode is None:
            return None
        if self.render_mode == "rgb_array":
            return np.asarray(picture(self.env, self._state))
        from rich.console import Console

        looks = looks_of(self.env)
        console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor")
        console.print(looks.text(self.env, self._state))
        return console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]

    def _next_key(self) -> jax.Array:
        return jax.random.key(self.np_random.integers(2**31))

    def _types(self) -> dict[str, Any]:
        assert self._state is not None
        names = self.env.team.pool.names
        present = np.asarray(self._state.game.present)
        numbers = np.where(present, np.asarray(self._state.cast.type), -1)
        types = [names[number] if number >= 0 else None for number in numbers]
        return {"types": [None, *types[1:]]}


for entry in CATALOGUE.values():
    gymnasium.register(
        id=f"dropin/{entry.short}-v0",
        entry_point="dropin.interop.gymnasium:DropinEnv",
        kwargs={"game": entry.name},
    )
