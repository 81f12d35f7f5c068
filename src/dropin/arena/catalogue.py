"""What can be chosen for a room: games, rules, types, openness and agents, all by id."""

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from dropin.agents import Agent, agent_path, load_agent
from dropin.arena.config import (
    CLOSED,
    MAX_TEAM,
    RULES_OPENNESS,
    SCRIPTED,
    RoomConfig,
    is_own_policy,
)
from dropin.arena.keys import default_action, keys_of
from dropin.arena.play import Prepared
from dropin.arena.replay import replay
from dropin.arena.room_recorder import ReplayedTeam, RoomRecorder
from dropin.arena.rounds import Recorder
from dropin.arena.simulation import Simulation
from dropin.core import registry
from dropin.core.config import PlainDict, PlainMapping, from_dict
from dropin.core.errors import InputError, unknown
from dropin.core.specs import GameSpec
from dropin.env import AnyEnv
from dropin.policies import RANDOM
from dropin.training.config import RunConfig
from dropin.training.run_directory import RunDirectory
from dropin.zoo.cards import read_card_file

__all__ = ["Catalogue", "KnownAgent"]

_MOST_SIMULATIONS = 32
"""What was compiled last is kept."""
_DEFAULT_GAME = "lbf"


@dataclass(frozen=True)
class KnownAgent:
    """A trained agent that can be chosen by its id."""

    id: str
    path: Path
    card: Path | None = None

    @cached_property
    def agent(self) -> Agent:
        """The agent itself; it is loaded when it is first needed."""
        return load_agent(self.path)

    @cached_property
    def run(self) -> RunConfig | None:
        """The config of the run that made it, if it is there."""
        files = RunDirectory(self.path)
        return files.config() if files.exists else None

    @property
    def game(self) -> str:
        """The game that it plays."""
        return self.agent.interface.game if self.run is None else self.run.game

    def _modes(self) -> list[str]:
        """Return how it can choose actions; weights are not read if its run says it."""
        is_boltzmann = (
            None if self.run is None else getattr(self.run.settings, "is_boltzmann", None)
        )
        if is_boltzmann is None:
            return list(self.agent.policy.modes)
        return ["greedy", "sampled"] if is_boltzmann else ["greedy"]

    def describe(self) -> PlainDict:
        """Return what browsers are told of the agent."""
        card: PlainMapping = {}
        if self.card is not None and self.card.exists():
            card = read_card_file(self.card)
        run = self.run
        learner = self.agent.learner if run is None else run.learner
        title = learner.upper()
        if run is not None:
            title = f"{title}, seed {run.seed}, {run.steps / 1e6:g} M steps"
        return {
            "id": self.id,
            "game": self.game,
            "learner": learner,
            "title": title,
            "modes": self._modes(),
            "rules": None if run is None else run.rules,
            "team_limit": 3 if run is None else run.team_limit,
            "score": _scores(card),
        }


def _scores(card: PlainMapping) -> dict[str, float]:
    """Return the mean returns of a card by team limit."""
    found = {}
    for each in card.get("measurements", ()):
        limit = re.search(r"team limit (\d+)", each["quantity"])
        if limit and each["policy"] != RANDOM:
            found.setdefault(limit[1], round(each["mean"], 2))
    return found


class Catalogue:
    """What can be chosen, and what was compiled for it.

    Args:
        agents: Trained agents besides those that come with packages: names or paths. Browsers
            choose among them by id; no path comes from a browser.
    """

    def __init__(self, agents: Sequence[str | Path] = ()) -> None:
        self.agents = {
            name: KnownAgent(name, spec.directory, spec.card)
            for name, spec in registry.agents.items()
        }
        self._first = [self.add_agent(each) if _is_trained(each) else str(each) for each in agents]
        self._prepared: OrderedDict[RoomConfig, Prepared] = OrderedDict()
        self._lock = threading.Lock()

    def add_agent(self, agent: str | Path) -> str:
        """Make an agent known that was named on the command line or in a file of a study.

        Args:
            agent: A name, or the path of a file or a run's directory.

        Returns:
            The id by which it is known.
        """
        if str(agent) in self.agents:
            return str(agent)
        path = agent_path(agent)
        for known in self.agents.values():
            if known.path == path:
                return known.id
        words = [each for each in path.with_suffix("").parts[-2:] if each not in ("/", "..", ".")]
        name = re.sub(r"[^A-Za-z0-9_./-]", "-", "/".join(words))
        while name in self.agents:
            name = f"{name}-again"
        self.agents[name] = KnownAgent(name, path)
        self.agents[name].agent  # noqa: B018 - what cannot be loaded is said now
        return name

    def default_agent(self, game: str | None) -> str:
        """Return who plays the learner if nothing is said: the first agent that was given.

        Args:
            game: Name of the game, if it is given.
        """
        if self._first:
            return self._first[0]
        trained = f"{game or _DEFAULT_GAME}/gpl-q"
        return trained if trained in self.agents else RANDOM

    def room_config(self, values: PlainMapping) -> RoomConfig:
        """Read the config of a room and check all of it.

        Args:
            values: Plain values by name; what is missing has its default. Without rules, a trained
                agent plays by those of its training.

        Raises:
            InputError: If something is unknown or does not fit.
        """
        values = dict(values)
        known = self.agents.get(str(values.get("agent")))
        if "game" not in values:
            values["game"] = _DEFAULT_GAME if known is None else known.game
        if known is not None and values.get("rules") is None and known.run is not None:
            values["rules"] = known.run.rules
        config = from_dict(RoomConfig, values)
        env = config.make_env()
        config.make_policy(env, self._agent(config, env))
        return config

    def _agent(self, config: RoomConfig, env: AnyEnv) -> Agent | None:
        """Return the trained agent of a room; None if it is `random` or a type."""
        if config.agent in self.agents:
            return self.agents[config.agent].agent
        if is_own_policy(env, config.agent):
            return None
        pool = env.team.pool.types
        own = [each.name for each in pool if each.side == env.sides[0]]
        fitting = [each.id for each in self.agents.values() if each.game == config.game]
        raise unknown("agent", config.agent, (*fitting, RANDOM, *own))

    def prepare(self, config: RoomConfig) -> Prepared:
        """Make and compile what a room plays. Rooms with the same team share it.

        Args:
            config: The config of the room.
        """
        key = replace(config, seed=0, clock=type(config.clock)(), on_leave="type")
        with self._lock:
            if key in self._prepared:
                self._prepared.move_to_end(key)
                return self._prepared[key]
            env = config.make_env()
            policy = config.make_policy(env, self._agent(config, env))
            simulation = Simulation.prepare(env, policy)
            later = simulation.warm_up_for_people
            prepared = Prepared(simulation, describe_env(env), later=later)
            self._prepared[key] = prepared
            if len(self._prepared) > _MOST_SIMULATIONS:
                self._prepared.popitem(last=False)
            return prepared

    def make_recorder(self, directory: Path, room: str, about: PlainMapping) -> Recorder:
        """Return what writes the episodes of a room to files.

        Args:
            directory: Where the files go.
            room: The id of the room.
            about: Plain values to keep in each file.
        """
        return RoomRecorder(directory, room, about)

    def replay(self, path: Path) -> tuple[RoomConfig, Prepared]:
        """Simulate a recorded episode again, and return it as something to play.

        Args:
            path: The file.

        Raises:
            InputError: If the file is not what happened, or its agent is not known.
        """

        def find(name: str) -> Agent:
            if name not in self.agents:
                raise InputError(
                    f"{path} was recorded with the agent {name!r}, which is not known: give it with"
                    " --agent."
                )
            return self.agents[name].agent

        found = replay(path, find)
        config = replace(found.recording.config, seed=found.recording.header["seed"])
        game = describe_env(found.simulation.env)
        return config, Prepared(ReplayedTeam(found), game, found.people)

    def describe(self) -> PlainDict:
        """Return the games and agents that browsers can choose from."""
        agents = []
        for each in self.agents.values():
            agents.append(each.describe())
        return {
            "games": [_describe_game(each) for each in registry.games.values()],
            "agents": agents,
        }


def _is_trained(agent: str | Path) -> bool:
    """Return whether a word of the command line is a trained agent, not a type or chance."""
    return isinstance(agent, Path) or "/" in agent or Path(agent).exists()


def describe_env(env: AnyEnv) -> PlainDict:
    """Return what the people in a room are told of its game."""
    spec, actions = registry.games[env.game.name], list(env.game.actions)
    return {
        "name": env.game.name,
        "title": spec.title or spec.name,
        "actions": actions,
        "keys": keys_of(actions),
        "default_action": default_action(actions),
        "sides": list(env.sides),
        "side_names": list(env.game.side_names),
        "slots": env.slots,
        "horizon": int(np.asarray(env.game.horizon)),
    }


def _describe_game(spec: GameSpec) -> PlainDict:
    """Return what browsers are told of a game that can be chosen."""
    rules = list(spec.rules)
    game = spec.make_game(rules[0])
    pool = spec.types(rules[0])
    types = {name: make_type() for name, make_type in pool.items()}
    scripted = [SCRIPTED] if len(game.side_names) == 1 else []
    return {
        "name": spec.name,
        "title": spec.title or spec.name,
        "summary": spec.summary,
        "rules": rules,
        "default_rules": rules[0],
        "actions": list(game.actions),
        "keys": keys_of(game.actions),
        "default_action": default_action(game.actions),
        "types": [
            {"name": name, "summary": each.summary, "side": each.side}
            for name, each in types.items()
        ],
        "openness": [RULES_OPENNESS, CLOSED, *scripted, *_other_openness()],
        "max_team_limit": MAX_TEAM,
        "sides": list(game.side_names),
    }


def _other_openness() -> list[str]:
    """Return the names of registered kinds of openness that have no name of their own here."""
    return [name for name in registry.openness if name not in (CLOSED, SCRIPTED, RULES_OPENNESS)]
