import dataclasses
from collections.abc import Iterator

import pytest

from dropin.core import registry


def _registered(kind: registry.Registry, spec) -> Iterator[str]:
    """Register a spec for the time of a test."""
    kind.add(spec.name, spec, "a test")
    yield spec.name
    del kind._items[spec.name], kind._sources[spec.name]


@pytest.fixture
def own_learner() -> Iterator[str]:
    """The name of a registered learner that is not the paper's."""
    spec = dataclasses.replace(registry.learners["ql"], name="mine", summary="QL by another name")
    yield from _registered(registry.learners, spec)


@pytest.fixture
def own_joint_learner() -> Iterator[str]:
    """The name of a registered learner that is evaluated with partners and is not the paper's."""
    spec = dataclasses.replace(registry.learners["dgn"], name="ours", summary="DGN again")
    yield from _registered(registry.learners, spec)


@pytest.fixture
def own_game() -> Iterator[str]:
    """The name of a registered game that is not the paper's."""
    spec = dataclasses.replace(registry.games["lbf"], name="orchard", gymnasium_id="")
    yield from _registered(registry.games, spec)
