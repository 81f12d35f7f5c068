"""The trained agents that come with the package: the directory of a run each, without checkpoints.

An agent is registered by its name as soon as its directory is here, see `dropin zoo train`.
"""

from pathlib import Path

from dropin.core.registry import register_agent
from dropin.core.specs import AgentSpec
from dropin.zoo import AGENT_RECIPES
from dropin.zoo.cards import card_path

__all__ = ["agent_directory"]


def agent_directory(name: str) -> Path:
    """Return the directory of an agent in the package, whether it is there or not.

    Args:
        name: `game/name`, one of `AGENT_RECIPES`.
    """
    game, learner = AGENT_RECIPES[name]
    return Path(__file__).parent / game / learner


for _name in AGENT_RECIPES:
    if (agent_directory(_name) / "run.json").exists():
        register_agent(
            AgentSpec(name=_name, directory=agent_directory(_name), card=card_path(_name))
        )
