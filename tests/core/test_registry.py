"""Registration by name, and plug-ins that are broken."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dropin.core import registry
from dropin.core.errors import InputError
from dropin.core.specs import AgentSpec, ExperimentSpec, GameSpec, LearnerSpec


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    """What a test registers is forgotten afterwards."""
    known = (registry.games, registry.learners, registry.openness, registry.experiments)
    for each in (*known, registry.agents):
        len(each)
        monkeypatch.setattr(each, "_items", dict(each._items))
        monkeypatch.setattr(each, "_sources", dict(each._sources))
    monkeypatch.setattr(registry, "_types", {})
    registry._broken.cache_clear()
    yield
    registry._broken.cache_clear()


def nothing(*_: Any) -> Any:
    """Stands for a part that no test calls."""


def spec(name: Any = "mine", **parts: Any) -> GameSpec:
    given = {
        "make_game": lambda rules: None,
        "types": lambda rules: {},
        "observer": lambda rules: None,
    }
    return GameSpec(name=name, **{**given, **parts})


def test_what_comes_with_the_package_is_there():
    assert list(registry.games)[:3] == ["lbf", "wolfpack", "fortattack"]
    assert list(registry.learners)[:8] == [
        "gpl-q", "gpl-spi", "ql", "ql-am", "gnn", "gnn-am", "dgn", "maddpg",
    ]  # fmt: skip
    assert {"closed", "churn", "durations", "shooting"} <= set(registry.openness)
    assert "table2" in registry.experiments
    assert "lbf/gpl-q" in registry.agents


def test_a_registered_thing_is_found_by_its_name():
    registry.register_game(spec())
    assert registry.games["mine"].name == "mine"
    registry.register_type("lbf", "T1", nothing)
    assert list(registry.types_of("lbf")) == ["T1"]
    assert registry.types_of("wolfpack") == {}


def test_get_returns_the_default_for_an_unknown_name():
    assert registry.games.get("lbf") is registry.games["lbf"]
    assert registry.games.get("chess") is None
    assert registry.games.get("chess", 3) == 3


def test_a_name_is_given_once():
    registry.register_game(spec())
    with pytest.raises(InputError, match=r"'mine' of .* is registered already, by .*test_registry"):
        registry.register_game(spec())
    with pytest.raises(InputError, match=r"'lbf' of .* registered already, by dropin\.games"):
        registry.register_game(spec("lbf"))
    registry.register_type("lbf", "T1", nothing)
    with pytest.raises(InputError, match="type 'T1' of lbf is registered already"):
        registry.register_type("lbf", "T1", nothing)


@pytest.mark.parametrize("name", ["", " x", "a/b", 3])
def test_names_are_plain_words(name):
    with pytest.raises(InputError, match="cannot be the name of a game"):
        registry.register_game(spec(name))


@pytest.mark.parametrize("name", ["", "gpl-q", "lbf/", "/gpl-q", "lbf/gpl-q/1", "lbf/ gpl-q", 3])
def test_names_of_agents_are_the_game_and_a_word(name):
    with pytest.raises(InputError, match="cannot be the name of a trained agent"):
        registry.register_agent(AgentSpec(name=name, directory=Path("here")))
    with pytest.raises(InputError, match=r"'lbf/gpl-q' of here is registered .*agents.lbf.gpl-q"):
        registry.register_agent(AgentSpec(name="lbf/gpl-q", directory=Path("here")))


@pytest.mark.parametrize("part", ["make_game", "types", "observer"])
def test_a_missing_part_is_named(part):
    with pytest.raises(InputError, match=f"The game 'mine' has no {part}"):
        registry.register_game(spec("mine", **{part: None}))


def test_missing_parts_of_other_specs_are_named():
    with pytest.raises(InputError, match="The learner 'x' has no settings"):
        registry.register_learner(LearnerSpec(name="x", make=nothing))
    with pytest.raises(InputError, match="The experiment 'x' has no grids"):
        registry.register_experiment(ExperimentSpec(name="x", result=nothing))
    with pytest.raises(InputError, match="The agent 'a/b' has no directory"):
        registry.register_agent(AgentSpec(name="a/b"))


@dataclass
class EntryPoint:
    """As importlib.metadata has them."""

    name: str
    value: str
    target: object

    def load(self):
        if isinstance(self.target, Exception):
            raise self.target
        return self.target


def install(monkeypatch, *plugins):
    monkeypatch.setattr(registry, "entry_points", lambda group: list(plugins))
    registry._broken.cache_clear()


def test_a_plug_in_is_loaded_when_its_name_is_asked_for(monkeypatch):
    calls = []

    def register():
        calls.append(1)
        registry.register_game(spec("theirs"))

    install(monkeypatch, EntryPoint("good", "good:register", register))
    registry.games["lbf"]
    assert calls == []
    assert registry.games["theirs"].name == "theirs"
    assert "theirs" in registry.games
    assert calls == [1]


def test_a_plug_in_may_use_what_is_registered_and_leaves_nothing_if_it_fails(monkeypatch):
    def register():
        assert "lbf" in registry.games
        registry.register_game(spec("half"))
        registry.register_type("lbf", "T1", nothing)
        registry.register_agent(AgentSpec(name="lbf/half", directory=Path("here")))
        registry.games["nobodys"]

    install(monkeypatch, EntryPoint("broken", "broken:register", register))
    with pytest.warns(UserWarning, match="'broken' is left out: Unknown game 'nobodys'"):
        assert "half" not in registry.games
    assert registry.types_of("lbf") == {}
    assert "lbf/half" not in registry.agents


def test_a_type_does_not_replace_one_of_the_game():
    with pytest.raises(InputError, match="type 'H1' of lbf is registered already"):
        registry.register_type("lbf", "H1", nothing)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (
            ModuleNotFoundError("No module named 'gone'"),
            "ModuleNotFoundError: No module named 'gone'",
        ),
        (lambda: registry.register_game(spec("lbf")), "'lbf' .*is registered already"),
        (lambda: registry.register_game(spec("half", types=None)), "'half' has no types"),
        (3, "TypeError"),
    ],
)
def test_a_broken_plug_in_is_one_warning_and_harms_nobody(monkeypatch, target, says):
    install(
        monkeypatch,
        EntryPoint("broken", "broken:register", target),
        EntryPoint("good", "good:register", lambda: registry.register_game(spec("theirs"))),
    )
    with pytest.warns(UserWarning, match=f"The plug-in 'broken' is left out: .*{says}"):
        assert registry.games["theirs"].name == "theirs"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert registry.games["lbf"].name == "lbf"
        with pytest.raises(InputError, match=r"Unknown game 'nobodys'.*'broken' .*failed"):
            registry.games["nobodys"]
