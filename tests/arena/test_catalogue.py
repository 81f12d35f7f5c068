"""What can be chosen, with the real games."""

import re
import shutil

import pytest

from dropin.arena.catalogue import Catalogue, describe_env
from dropin.arena.keys import default_action, keys_of
from dropin.core import registry
from dropin.core.errors import InputError
from dropin.env import make


@pytest.fixture(scope="module")
def catalogue():
    return Catalogue()


def test_all_games_can_be_chosen_with_keys_for_every_action(catalogue):
    games = {each["name"]: each for each in catalogue.describe()["games"]}
    assert set(games) == set(registry.games)
    for name, each in games.items():
        game = make(name).game
        assert each["actions"] == list(game.actions)
        assert set(each["keys"].values()) == set(range(len(game.actions)))
        assert each["actions"][each["default_action"]] in ("none", "stay", "nothing")
        assert each["rules"][0] == each["default_rules"]
        types = {kind["name"]: kind for kind in each["types"]}
        for kind in make(name).team.pool.types:
            assert types[kind.name]["summary"] == kind.summary
            assert types[kind.name]["side"] == kind.side
    assert "scripted" in games["lbf"]["openness"]
    assert "scripted" not in games["fortattack"]["openness"]
    assert games["fortattack"]["sides"] == ["mate", "attacker"]


def test_arrows_move():
    assert keys_of(("none", "north", "south"))["ArrowUp"] == 1
    assert keys_of(("up", "right", "stay"))["d"] == 1
    assert keys_of(("nothing", "turn left", "shoot"))[" "] == 2
    assert keys_of(tuple(map(str, range(20))))["9"] == 9
    assert default_action(("left", "right")) == 0


def test_trained_agents_have_what_the_page_shows(catalogue):
    agents = {each["id"]: each for each in catalogue.describe()["agents"]}
    assert set(agents) == set(registry.agents)
    gpl = agents["lbf/gpl-q"]
    assert (gpl["game"], gpl["learner"], gpl["rules"]) == ("lbf", "gpl-q", "reference")
    for name, each in catalogue.agents.items():  # What runs say is what the agents are.
        assert agents[name]["modes"] == list(each.agent.policy.modes)
        assert agents[name]["learner"] == each.agent.learner
        assert agents[name]["game"] == each.agent.interface.game
    assert re.search(r"GPL-Q, seed \d+, [\d.]+ M steps", gpl["title"])
    assert set(gpl["score"]) <= {"3", "5"}


def test_a_trained_agent_plays_by_the_rules_of_its_training(catalogue):
    config = catalogue.room_config({"agent": "lbf/gpl-q"})
    assert (config.game, config.rules) == ("lbf", "reference")
    assert catalogue.room_config({"agent": "lbf/gpl-q", "rules": "paper"}).rules == "paper"
    assert catalogue.room_config({}).agent == "random"
    assert catalogue.default_agent(None) == "lbf/gpl-q"
    assert catalogue.default_agent("nothing") == "random"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"game": "chess"}, "Unknown game 'chess'"),
        ({"rules": "house"}, "Unknown rules 'house'"),
        ({"types": ["H77"]}, "Unknown type 'H77'"),
        ({"openness": "ajar"}, "Unknown openness 'ajar'"),
        ({"team_limit": 10}, "at most 9"),
        ({"team_limit": 1}, "too small"),
        ({"agent": "lbf/gpl-r"}, "Unknown agent 'lbf/gpl-r'.*did you mean 'lbf/gpl-q'"),
        ({"agent": "/etc/passwd"}, "Unknown agent"),
        ({"agent": "../../run"}, "Unknown agent"),
        ({"agent": "lbf/gpl-q", "game": "wolfpack"}, "was trained in 'lbf'"),
        ({"agent": "lbf/gpl-q", "mode": "sampled"}, "no distribution"),
        ({"openness": "scripted", "schedule": [[3, "leaves", 8]]}, "slot 8"),
        ({"game": "fortattack", "openness": "scripted"}, "teams without opponents"),
        ({"seed": -1}, "seed"),
        ({"clock": {"kind": "real_time", "tick_ms": 10}}, "10 ms"),
        ({"clock": 5}, "group of settings"),
        ({"game": 5}, "not a text|Unknown game"),
        ({"agent": ["a"]}, "not a text"),
    ],
)
def test_what_cannot_be_chosen_is_one_sentence(catalogue, values, says):
    with pytest.raises(InputError, match=says):
        catalogue.room_config(values)


def test_agents_of_the_command_line_are_known_by_an_id(tmp_path):
    directory = tmp_path / "runs" / "seed 0"
    shutil.copytree(registry.agents["lbf/gpl-q"].directory, directory)
    catalogue = Catalogue([str(directory), "H3"])
    assert catalogue.default_agent(None) == "runs/seed-0"
    assert catalogue.add_agent(directory) == "runs/seed-0"
    config = catalogue.room_config({"agent": "runs/seed-0"})
    assert (config.game, config.rules) == ("lbf", "reference")
    with pytest.raises(InputError, match="There is no file"):
        Catalogue(["no/where"])


def test_rooms_with_the_same_team_share_what_is_compiled(catalogue):
    one = catalogue.room_config({"agent": "random", "seed": 1, "clock": {"kind": "turns"}})
    two = catalogue.room_config({"agent": "random", "seed": 2, "on_leave": "leave"})
    prepared = catalogue.prepare(one)
    assert catalogue.prepare(two) is prepared
    moment = prepared.simulation.reset(0)
    assert moment.frame["agents"][0]["slot"] == 0
    assert prepared.game == describe_env(one.make_env())
