"""Every agent under control: a PettingZoo parallel environment whose team is open."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from dropin.core.config import PlainDict, PlainMapping
from dropin.core.errors import InputError, MissingExtraError
from dropin.core.observation import Observation
from dropin.env import AnyEnv, AnyEnvState
from dropin.interop.spaces import (
    action_space,
    check_action,
    make_or_take,
    observation_as_dict,
    observation_space,
)

try:
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
except ImportError:
    raise MissingExtraError("The PettingZoo view", "envs") from None

__all__ = ["LEARNER", "DropinParallelEnv"]

LEARNER = "learner"
"""The name of the agent that is in slot 0 at the start of an episode."""


class DropinParallelEnv(ParallelEnv[str, dict[str, np.ndarray], int]):
    """The game and its openness, without types: every agent needs an action.

    `agents` changes as agents enter and leave. Every newcomer is a new agent with a new name,
    `mate_1`, `mate_2`, ..., or `attacker_1`, ... on the other side of a game that has one; nobody
    returns. An agent that leaves by openness is truncated, one that the game removes is terminated.
    Each agent observes the game from its own slot: the rows of `agents`, `present` and `arrived`
    start with its own.

    Args:
        game: Name of a registered game, or an `AdHocEnv`.
        **settings: Arguments of `dropin.make` besides the name; none if an environment is given.
    """

    metadata = {"name": "dropin_v0", "render_modes": []}  # noqa: RUF012

    def __init__(self, game: str | AnyEnv, **settings: Any):
        self.render_mode = None
        self.env = make_or_take(game, settings)
        horizon = int(self.env.game.horizon)
        max_agents = self.env.team.openness.max_agents_per_episode(self.env.slots, horizon)
        side_names = self.env.game.side_names
        names = [f"{side}_{number}" for side in side_names for number in range(1, max_agents)]
        self.possible_agents = [LEARNER, *names]
        self.agents: list[str] = []
        self._agent_features, _ = self.env.game.features(self.env.team.slots)
        self._observation_space = observation_space(self.env)
        self._action_spaces = {name: action_space(self.env) for name in self.possible_agents}
        self._reset = eqx.filter_jit(self.env.reset)
        self._step = eqx.filter_jit(self.env.step_all)
        self._random = np.random.default_rng()
        self._state: AnyEnvState | None = None
        self._slot_of: dict[str, int] = {}
        self._num_named = [0] * len(side_names)
        """How many agents of each side have been named in this episode."""

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of observations, which is the same for every agent."""
        del agent
        return self._observation_space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of the game's actions."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: PlainDict | None = None
    ) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, PlainDict]]:
        """Start an episode.

        Args:
            seed: Fixes this episode and all later ones; by default the random numbers continue.
            options: Not used.

        Returns:
            The first observation and an empty `info` of every agent.
        """
        del options
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self._state, observation = self._reset(self._next_key())
        self._slot_of, self._num_named = {}, [0] * len(self._num_named)
        self._name_newcomers(np.asarray(observation.present), start=True)
        observations = self._observations(observation, self._slot_of)
        return observations, {name: {} for name in self.agents}

    def step(self, actions: PlainMapping) -> Any:
        """Let all agents act at once.

        Args:
            actions: The action of every agent in `agents`.

        Returns:
            The observations, rewards, terminations, truncations and infos of all agents that acted
            or entered, by name. A newcomer's reward is 0.

        Raises:
            InputError: If an action is missing or is not the number of an action.
        """
        if self._state is None or not self.agents:
            raise RuntimeError("Call reset() before step(): nobody is there.")
        joint = np.zeros(self.env.slots, np.int32)
        for name in self.agents:
            if name not in actions:
                raise InputError(f"There is no action for {name!r}, who is present.")
            joint[self._slot_of[name]] = check_action(self.env, actions[name])
        self._state, step = self._step(
            self._next_key(), self._state, jnp.asarray(joint), auto_reset=False
        )

        final = step.final_observation
        present, arrived = np.asarray(final.present), np.asarray(final.arrived)
        before = dict(self._slot_of)
        left = {name for name, slot in before.items() if not present[slot] or arrived[slot]}
        for name in left:
            del self._slot_of[name]
        if not bool(step.done):  # An agent that enters at the very end never gets to act.
            self._name_newcomers(arrived)
        everybody = [*before, *(name for name in self.agents if name not in before)]

        rewards = dict.fromkeys(everybody, 0.0)
        rewards |= {name: float(step.rewards[slot]) for name, slot in before.items()}
        removed = np.asarray(step.removed)
        terminated = {
            name: bool(step.terminated) or (name in before and bool(removed[before[name]]))
            for name in everybody
        }
        truncated = {
            name: (name in left or bool(step.truncated)) and not terminated[name]
            for name in everybody
        }
        observations = self._observations(final, self._slot_of)
        left_slots = {name: before[name] for name in left}
        observations |= self._observations(final, left_slots, absent=True)
        if bool(step.done):
            self._slot_of = {}
        self.agents = list(self._slot_of)
        return observations, rewards, terminated, truncated, {name: {} for name in everybody}

    def _name_newcomers(self, arrived: np.ndarray, start: bool = False) -> None:
        """Name the agents that have just arrived.

        Args:
            arrived: Which slots they have.
            start: Whether it is the start of an episode, when slot 0 is the learner's.
        """
        for slot in np.flatnonzero(arrived).tolist():
            name = LEARNER
            if slot > 0 or not start:
                side = self.env.sides[slot]
                self._num_named[side] += 1
                name = f"{self.env.game.side_names[side]}_{self._num_named[side]}"
            self._slot_of[name] = slot
        self.agents = list(self._slot_of)

    def _observations(
        self, observation: Observation, slots: Mapping[str, int], absent: bool = False
    ) -> dict[str, dict[str, np.ndarray]]:
        """Return the observation of each agent: its own slot first, the others in a circle.

        Args:
            observation: The observation from slot 0.
            slots: The slot of each agent.
            absent: Whether the agents have left. They see themselves as absent, even if somebody
                else has their slot.
        """
        fields = observation_as_dict(observation)
        observations = {}
        for name, slot in slots.items():
            own = {
                field: value if field == "shared" else np.roll(value, -slot, axis=0)
                for field, value in fields.items()
            }
            if absent:
                own["agents"][0] = [each.absent for each in self._agent_features]
                own["present"][0] = own["arrived"][0] = 0
            observations[name] = own
        return observations

    def _next_key(self) -> PRNGKeyArray:
        return jax.random.key(self._random.integers(2**31))
