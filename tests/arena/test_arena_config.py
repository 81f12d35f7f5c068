"""Settings of rooms: checked when made, and by the environment they make."""

import pytest
from arena_rooms import room, untrained

from dropin.arena.config import Clock, RoomConfig, is_own_policy
from dropin.core.config import from_dict, to_dict
from dropin.core.errors import InputError
from dropin.teams.openness import Closed
from dropin.teams.scripted import Scripted


def test_a_room_makes_its_environment():
    config = RoomConfig("lbf", rules="reference", team_limit=4, types=("H1", "H3"))
    env = config.make_env()
    assert env.team.pool.names == ("H1", "H3")
    assert int(env.team.limit) == env.slots == 4
    assert isinstance(RoomConfig("lbf", openness="closed").make_env().team.openness, Closed)
    scripted = RoomConfig("lbf", openness="scripted", schedule=((2, "leaves", 1),)).make_env()
    assert isinstance(scripted.team.openness, Scripted)
    assert scripted.team.openness.initial_slots == (1, 2)
    assert is_own_policy(env, "H3")
    assert is_own_policy(env, "random")
    assert not is_own_policy(env, "H2")


def test_a_room_survives_json():
    config = room(
        "lbf", openness="scripted", initial_slots=(1, 2), schedule=((2, "leaves", 1),),
        clock=Clock("turns", limit_ms=500), on_leave="leave", seed=7,
    )  # fmt: skip
    assert from_dict(RoomConfig, to_dict(config)) == config


def test_the_policy_is_a_type_or_a_trained_agent():
    config = room("lbf")
    env, agent = config.make_env(), untrained(config)
    assert config.make_policy(env, agent).agent is agent  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(InputError, match="Unknown type 'lbf/nobody'"):
        room("lbf", agent="lbf/nobody").make_policy(env)
    with pytest.raises(InputError, match="no distribution to sample from"):
        room("lbf", mode="sampled").make_policy(env, agent)
    with pytest.raises(InputError, match="trained in 'lbf'"):
        room("wolfpack").make_policy(room("wolfpack").make_env(), agent)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"team_limit": 1}, "team limit 1 is too small"),
        ({"team_limit": "3"}, "'3' is not a whole number"),
        ({"seed": -1}, "seed -1 is too small"),
        ({"seed": 2**31}, "too large"),
        ({"mode": "clever"}, "Unknown mode 'clever'"),
        ({"on_leave": "stay"}, "Unknown on leave 'stay'"),
        ({"agent": None}, "The agent None is not a text"),
        ({"types": "H1"}, "'H1' is not a list"),
        ({"types": (1,)}, "is not a list in which each is a text"),
        ({"schedule": ((1, "leaves", 1),)}, "Only a scripted openness has a schedule"),
        (
            {"openness": "scripted", "schedule": ((1, "leaves"),)},
            "each is a list of a whole number, a text, a whole number",
        ),
        (
            {"openness": "scripted", "schedule": (("1", "leaves", 1),)},
            "each is a list of a whole number, a text",
        ),
        ({"openness": "scripted", "initial_slots": (True,)}, "each is a whole number"),
        (
            {"openness": "scripted", "schedule": tuple((n, "leaves", 1) for n in range(1, 300))},
            "299 entries, but at most 200",
        ),
        ({"clock": "quick"}, "not a group of settings"),
    ],
)
def test_wrong_settings_get_one_sentence(values, says):
    with pytest.raises(InputError, match=says):
        RoomConfig(**{"game": "lbf", **values})


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"game": "chess"}, "Unknown game 'chess'"),
        ({"rules": "house"}, "Unknown rules 'house'"),
        ({"types": ("H99",)}, "Unknown type 'H99'"),
        ({"types": ()}, "The pool is empty"),
        ({"openness": "open"}, "Unknown openness 'open': it can be rules, closed, scripted"),
        ({"openness": "scripted", "schedule": ((1, "hides", 1),)}, "'hides'"),
        ({"openness": "scripted", "initial_slots": (9,)}, "names slot 9"),
    ],
)
def test_what_the_game_does_not_have_gets_one_sentence(values, says):
    with pytest.raises(InputError, match=says):
        RoomConfig(**{"game": "lbf", **values}).make_env()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"kind": "slow"}, "Unknown kind 'slow'"),
        ({"tick_ms": 149}, "149 ms is not within 150 to 500 ms"),
        ({"tick_ms": 501}, "501 ms is not within"),
        ({"limit_ms": 0}, "limit ms 0 is too small"),
        ({"limit_ms": 10**7}, "too long"),
    ],
)
def test_wrong_clocks_get_one_sentence(values, says):
    with pytest.raises(InputError, match=says):
        Clock(**values)
