"""Every agent under control: a PettingZoo parallel environment whose team is open."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dropin.adhoc import EnvState, Observation, make
from dropin.errors import InputError, MissingExtraError
from dropin.interop.spaces import action_space, as_dict, check_action, observation_space

try:
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
except ImportError:
    raise MissingExtraError("The PettingZoo view", "envs") from None

LEARNER = "learner"


class DropinParallelEnv(ParallelEnv[str, dict[str, np.ndarray], int]):
    """The game and its openness, without types.

    `agents` changes as agents come and go. Whoever enters is a new agent with a new name, `mate_1`,
    `mate_2`, ..., or `attacker_1`, ... on the other side of a game that has one: nobody returns. An
    agent that has to leave is truncated, one that the game takes out is terminated. Everybody
    observes the game from its own place: its own row comes first, `present` and `arrived`
    likewise.
    """

    metadata = {"name": "dropin_v0", "render_modes": []}  # noqa: RUF012

    def __init__(self, game: str, **settings: Any):
        self.render_mode = None
        self.env = make(game, **settings)
        most = self.env.team.openness.most_agents(self.env.slots, int(self.env.game.horizon))
        names = [f"{member}_{k}" for member in self.env.game.members for k in range(1, most)]
        self.possible_agents = [LEARNER, *names]
        self.agents: list[str] = []
        self._agent_features, _ = self.env.game.features(self.env.slots)
        self._observation_space = observation_space(self.env)
        self._action_spaces = {name: action_space(self.env) for name in self.possible_agents}
        self._reset = eqx.filter_jit(self.env.reset)
        self._step = eqx.filter_jit(self.env.step_all)
        self._random = np.random.default_rng()
        self._state: EnvState | None = None
        self._slot_of: dict[str, int] = {}
        self._named = [0] * len(self.env.game.members)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The same for everybody."""
        del agent
        return self._observation_space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The game's actions."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, dict[str, Any]]]:
        """Start an episode."""
        del options
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self._state, observation = self._reset(self._next_key())
        self._slot_of, self._named = {}, [0] * len(self._named)
        self._welcome(np.asarray(observation.present), start=True)
        return self._observed(observation, self._slot_of), {name: {} for name in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        """Let everybody present act at once."""
        if self._state is None or not self.agents:
            raise RuntimeError("Call reset() before step(): nobody is there.")
        joint = np.zeros(self.env.slots, np.int32)
        for name in self.agents:
            if name not in actions:
                raise InputError(f"There is no action for {name!r}, who is present.")
            joint[self._slot_of[name]] = check_action(self.env, actions[name])
        self._state, step = self._step(
            self._next_key(), self._state, jnp.asarray(joint), restart=False
        )

        present, arrived = np.asarray(step.final.present), np.asarray(step.final.arrived)
        before = dict(self._slot_of)
        left = {name for name, slot in before.items() if not present[slot] or arrived[slot]}
        for name in left:
            del self._slot_of[name]
        if not bool(step.done):  # Whoever enters at the very end never gets to act.
            self._welcome(arrived)
        everybody = [*before, *(name for name in self.agents if name not in before)]

        rewards = dict.fromkeys(everybody, 0.0)
        rewards |= {name: float(step.rewards[slot]) for name, slot in before.items()}
        out = np.asarray(step.out)
        terminated = {
            name: bool(step.terminated) or (name in before and bool(out[before[name]]))
            for name in everybody
        }
        truncated = {
            name: (name in left or bool(step.truncated)) and not terminated[name]
            for name in everybody
        }
        observed = self._observed(step.final, self._slot_of)
        observed |= self._observed(step.final, {name: before[name] for name in left}, gone=True)
        if bool(step.done):
            self._slot_of = {}
        self.agents = list(self._slot_of)
        return observed, rewards, terminated, truncated, {name: {} for name in everybody}

    def _welcome(self, arrived: np.ndarray, start: bool = False) -> None:
        """Name those who have just arrived; the learner is who has slot 0 at the start."""
        for slot in np.flatnonzero(arrived).tolist():
            name = LEARNER
            if slot > 0 or not start:
                side = self.env.sides[slot]
                self._named[side] += 1
                name = f"{self.env.game.members[side]}_{self._named[side]}"
            self._slot_of[name] = slot
        self.agents = list(self._slot_of)

    def _observed(
        self, observation: Observation, slots: dict[str, int], gone: bool = False
    ) -> dict[str, dict[str, np.ndarray]]:
        """The observation of each agent: its own slot first, the others after it in a circle.

        Those who are gone see themselves absent, even if somebody has taken their slot.
        """
        whole = as_dict(observation)
        views = {}
        for name, slot in slots.items():
            view = {
                field: value if field == "shared" else np.roll(value, -slot, axis=0)
                for field, value in whole.items()
            }
            if gone:
                view["agents"][0] = [each.absent for each in self._agent_features]
                view["present"][0] = view["arrived"][0] = 0
            views[name] = view
        return views

    def _next_key(self) -> jax.Array:
        return jax.random.key(self._random.integers(2**31))
