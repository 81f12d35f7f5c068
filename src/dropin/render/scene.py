"""The scene of any game: its own, or the table of features."""

import equinox as eqx
import numpy as np

from dropin.core import registry
from dropin.core.observation import TimeStep
from dropin.env import AnyEnv, AnyEnvState
from dropin.games.scenes import Scene, SceneFunction, table_scene

__all__ = ["FeatureScene", "scene_of"]


def scene_of(env: AnyEnv) -> SceneFunction:
    """Return the function that turns states of an environment's game into scenes.

    A game that is not registered, or is registered without a scene, is shown as its table of
    features.
    """
    name = env.game.name
    scene = registry.games[name].scene if name in registry.games else None
    return FeatureScene(env) if scene is None else scene


class FeatureScene:
    """Shows the states of any game as a table, see `dropin.games.scenes.table_scene`.

    Args:
        env: The environment.
    """

    def __init__(self, env: AnyEnv):
        agents, shared = env.game.features(env.team.slots)
        self._agent_features = [each.name for each in agents]
        self._shared_features = [each.name for each in shared]
        self._observe = eqx.filter_jit(env.game.observe)

    def __call__(
        self,
        env: AnyEnv,
        state: AnyEnvState,
        step: TimeStep | None = None,
        previous: AnyEnvState | None = None,
    ) -> Scene:
        """Return the features of a state as a table.

        Args:
            env: Not used.
            state: The state.
            step: Not used; only the game itself could read its events.
            previous: Not used.
        """
        del env, step, previous
        agents, shared = (np.asarray(each) for each in self._observe(state.game))
        present = np.asarray(state.game.present).tolist()
        rows = [
            [_short(value) for value in row] if here else None
            for here, row in zip(present, agents.tolist(), strict=True)
        ]
        values = [_short(value) for value in shared.tolist()]
        return table_scene(
            self._agent_features, rows, dict(zip(self._shared_features, values, strict=True))
        )


def _short(value: float) -> float:
    """Return a number with few digits."""
    return float(f"{value:.4g}")
