"""Learners: one module an algorithm. This catalogue imports none of them."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dropin.errors import unknown


@dataclass(frozen=True)
class Entry:
    """A learner in the catalogue."""

    name: str
    about: str
    module: str
    settings: tuple[tuple[str, str | bool], ...]
    """What sets it apart from others of the same module, or cannot be otherwise."""
    joint: bool = False
    """Whether it is trained with all of its side under control."""

    def config(self, game: str = "", **changes: Any) -> Any:
        """Its settings for a game, with changes."""
        module = import_module(self.module)
        return module.CONFIG(**(module.SIZES.get(game, {}) | dict(self.settings) | changes))

    @property
    def kind(self) -> type[Any]:
        """The class of its settings."""
        return import_module(self.module).CONFIG


LEARNERS = {
    entry.name: entry
    for entry in (
        Entry(
            "gpl-q",
            "graph-based policy learning, epsilon-greedy",
            "dropin.learners.gpl",
            (("policy", "q"),),
        ),
        Entry(
            "gpl-spi",
            "graph-based policy learning, Boltzmann policy",
            "dropin.learners.gpl",
            (("policy", "spi"),),
        ),
        Entry(
            "ql",
            "Q-learning on the features of all agents side by side",
            "dropin.learners.ql",
            (("agent_model", False),),
        ),
        Entry(
            "ql-am",
            "QL that is also told what the others are predicted to do",
            "dropin.learners.ql",
            (("agent_model", True),),
        ),
        Entry(
            "gnn",
            "Q-learning by attention over type vectors",
            "dropin.learners.gnn",
            (("agent_model", False),),
        ),
        Entry(
            "gnn-am",
            "GNN that is also told what the others are predicted to do",
            "dropin.learners.gnn",
            (("agent_model", True),),
        ),
        Entry(
            "dgn",
            "graph convolution by attention, trained together with partners of its own",
            "dropin.learners.dgn",
            (("agent_model", False), ("target", "policy")),
            joint=True,
        ),
        Entry(
            "maddpg",
            "actors with a common critic, trained together with partners of its own",
            "dropin.learners.maddpg",
            (("agent_model", False), ("target", "policy")),
            joint=True,
        ),
    )
}


def find(name: str) -> Entry:
    """The catalogue's entry for a learner."""
    if name not in LEARNERS:
        raise unknown("learner", name, LEARNERS)
    return LEARNERS[name]
