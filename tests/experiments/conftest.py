import pytest

from dropin import learners
from dropin.learners import Entry


@pytest.fixture
def own_learner(monkeypatch) -> str:
    """The name of a learner in the catalogue that is not the paper's."""
    entry = Entry("mine", "QL by another name", "dropin.learners.ql", (("agent_model", False),))
    monkeypatch.setitem(learners.LEARNERS, entry.name, entry)
    return entry.name
