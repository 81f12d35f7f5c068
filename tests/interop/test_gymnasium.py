import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import dropin.interop.gymnasium
from dropin.errors import InputError


def make(**settings):
    return gymnasium.make("dropin/LBF-v0", **settings)


@pytest.mark.parametrize("team_limit", [3, 5])
def test_gymnasiums_own_check_passes(rules, team_limit):
    env = make(rules=rules, team_limit=team_limit, render_mode="rgb_array")
    check_env(env.unwrapped)


def test_an_episode_is_played(rules):
    env = make(rules=rules, team_limit=5)
    observation, info = env.reset(seed=1)
    assert observation["present"].tolist() == [1] * 5
    assert len(info["types"]) == 5
    done = steps = 0
    while not done:
        observation, reward, terminated, truncated, info = env.step(steps % 6)
        assert env.observation_space.contains(observation)
        assert isinstance(reward, float)
        assert info["actions"][0] == steps % 6
        absent = observation["present"] == 0
        assert (observation["agents"][absent] == [-1, -1, 0]).all()
        assert [name is None for name in info["types"]][1:] == absent[1:].tolist()
        assert info["types"][0] is None
        done, steps = terminated or truncated, steps + 1
    assert steps == 50 or terminated


def test_wolfpack_passes_the_check_and_tells_shaping_apart():
    env = gymnasium.make("dropin/Wolfpack-v0", rules="reference", render_mode="rgb_array")
    check_env(env.unwrapped)
    env.reset(seed=0)
    told = [env.step(step % 5) for step in range(200)]
    assert [step[3] for step in told] == [False] * 199 + [True]
    assert all(env.observation_space.contains(step[0]) for step in told)
    plain = [step[1] - step[4]["shaping"] for step in told]
    assert any(step[4]["shaping"] != 0 for step in told)
    assert np.array(plain) * 2 == pytest.approx(np.round(np.array(plain) * 2), abs=1e-5)


def test_fortattack_passes_the_check_and_shows_both_sides(rules):
    env = gymnasium.make("dropin/FortAttack-v0", rules=rules, render_mode="rgb_array")
    check_env(env.unwrapped)
    observation, info = env.reset(seed=0)
    assert observation["agents"].shape == (6, 8 if rules == "paper" else 7)
    assert observation["shared"].shape == (0,)
    assert [name[0] for name in info["types"][1:]] == ["G", "G", "A", "A", "A"]
    done = False
    while not done:
        observation, _, done, truncated, _ = env.step(7)
        assert env.observation_space.contains(observation)
        assert not truncated


def test_a_seed_repeats_the_episode():
    env = make()
    seen = []
    for _ in range(2):
        env.reset(seed=5)
        seen.append([env.step(0)[0]["agents"] for _ in range(10)])
    assert np.array_equal(*seen)


def test_both_ways_to_render():
    env = make(render_mode="ansi")
    env.reset(seed=0)
    text = env.render()
    assert "@" in text
    assert "\x1b[" in text
    env = make(render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().dtype == np.uint8


@pytest.mark.parametrize("action", [-1, 6, 2.5, "north", [1]])
def test_an_action_out_of_range_is_refused(action):
    env = make().unwrapped
    env.reset(seed=0)
    with pytest.raises(InputError, match="Action"):
        env.step(action)


def test_other_mistakes_are_named():
    with pytest.raises(InputError, match="Unknown render mode"):
        dropin.interop.gymnasium.DropinEnv("lbf", render_mode="human3d")
    with pytest.raises(InputError, match="Team limit 9"):
        make(team_limit=9, slots=5)
    with pytest.raises(RuntimeError, match="reset"):
        make().unwrapped.step(0)
