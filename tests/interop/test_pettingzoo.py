import warnings

import numpy as np
import pytest
from matrix_game import matrix_game
from pettingzoo.test import parallel_api_test

from dropin.core.errors import InputError
from dropin.interop.pettingzoo import DropinParallelEnv
from dropin.teams.scripted import Scripted


@pytest.mark.parametrize(
    ("game", "team_limit"), [("lbf", 3), ("lbf", 5), ("wolfpack", 4), ("fortattack", 2)]
)
def test_pettingzoos_own_check_passes(rules, game, team_limit):
    with warnings.catch_warnings():
        # In an open team not every possible agent appears; PettingZoo warns of it.
        warnings.filterwarnings("ignore", "No agents present but not all possible_agents")
        parallel_api_test(DropinParallelEnv(game, rules=rules, team_limit=team_limit), 1000)


def test_agents_changes_as_agents_come_and_go():
    openness = Scripted([1], [(2, "enters", 2), (3, "leaves", 1), (4, "enters", 1)])
    env = DropinParallelEnv("lbf", team_limit=3, openness=openness, horizon=6)
    env.reset(seed=0)
    teams = [list(env.agents)]
    for _ in range(6):
        _, rewards, terminated, truncated, _ = env.step(dict.fromkeys(env.agents, 0))
        teams.append(list(env.agents))
        if len(teams) == 4:
            assert truncated == {"learner": False, "mate_1": True, "mate_2": False}
            assert set(rewards) == set(truncated) == set(terminated)
    assert teams == [
        ["learner", "mate_1"],
        ["learner", "mate_1"],
        ["learner", "mate_1", "mate_2"],
        ["learner", "mate_2"],
        ["learner", "mate_2", "mate_3"],
        ["learner", "mate_2", "mate_3"],
        [],
    ]
    assert env.possible_agents == ["learner", "mate_1", "mate_2", "mate_3"]


def test_everybody_sees_itself_first():
    env = DropinParallelEnv("lbf", team_limit=3)
    observations, _ = env.reset(seed=3)
    first = [observations[name]["agents"][0].tolist() for name in env.agents]
    assert first == observations["learner"]["agents"].tolist()
    assert np.array_equal(observations["mate_1"]["shared"], observations["learner"]["shared"])


def test_a_leaver_sees_itself_gone_even_if_its_slot_is_taken():
    openness = Scripted([1, 2], [(1, "leaves", 1), (1, "enters", 1)])
    env = DropinParallelEnv("lbf", team_limit=3, openness=openness)
    env.reset(seed=0)
    observations, *_ = env.step(dict.fromkeys(env.agents, 0))
    assert env.agents == ["learner", "mate_2", "mate_3"]
    assert observations["mate_1"]["agents"][0].tolist() == [-1, -1, 0]
    assert observations["mate_1"]["present"][0] == 0
    assert observations["mate_3"]["present"][0] == observations["mate_3"]["arrived"][0] == 1


def test_missing_and_wrong_actions_are_named():
    env = DropinParallelEnv("lbf", team_limit=3)
    with pytest.raises(RuntimeError, match="reset"):
        env.step({})
    env.reset(seed=0)
    with pytest.raises(InputError, match="no action for 'mate_1'"):
        env.step({"learner": 0})
    with pytest.raises(InputError, match="Action 9 is out of range"):
        env.step(dict.fromkeys(env.agents, 9))


def test_both_sides_are_named_and_the_shot_are_terminated():
    env = DropinParallelEnv("fortattack", rules="reference", team_limit=2, laser_length=5.0)
    everybody = ["learner", "mate_1", "attacker_1", "attacker_2"]
    shoot = dict.fromkeys(everybody, 0) | {"mate_1": 7}
    shot, rewards, truncated = [], {}, {}
    for seed in range(30):  # Until the teammate faces somebody.
        env.reset(seed=seed)
        assert env.agents == everybody
        _, rewards, terminated, truncated, _ = env.step(shoot)
        shot = [name for name in everybody if terminated[name]]
        if shot:
            break
    assert shot
    assert set(shot) <= {"attacker_1", "attacker_2"}
    assert not any(truncated.values())
    assert all(rewards[name] == -3 for name in shot)
    assert rewards["mate_1"] == pytest.approx(3 - 0.1)
    assert [name for name in env.agents if name in shoot] == [
        name for name in everybody if name not in shot
    ]


def test_whoever_returns_to_the_first_slot_is_a_new_agent():
    """If an episode goes on without the learner, somebody may enter in slot 0."""
    env = DropinParallelEnv("fortattack", team_limit=2, ends_with_learner=False)
    env.reset(seed=0)
    del env._slot_of["learner"]
    env._name_newcomers(np.arange(env.env.slots) == 0)
    assert env.agents == ["mate_1", "attacker_1", "attacker_2", "mate_2"]
    assert set(env.agents) < set(env.possible_agents)


def test_an_environment_can_be_given_as_an_object():
    env = DropinParallelEnv(matrix_game())
    parallel_api_test(env, 20)
    observations, _ = env.reset(seed=0)
    assert {name: each["agents"].tolist() for name, each in observations.items()} == {
        "learner": [[0.0], [1.0]],
        "mate_1": [[1.0], [0.0]],
    }
    _, rewards, terminated, _, _ = env.step({"learner": 2, "mate_1": 0})
    assert rewards == {"learner": 5.0, "mate_1": 5.0}
    assert all(terminated.values())
    with pytest.raises(InputError, match="so team_limit cannot be set"):
        DropinParallelEnv(matrix_game(), team_limit=3)
