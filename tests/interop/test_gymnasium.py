import os
import subprocess
import sys
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from matrix_game import matrix_game

import dropin
from dropin.core import registry
from dropin.core.errors import InputError
from dropin.games.lbf import SPEC
from dropin.interop.gymnasium import DropinEnv, gymnasium_id, register_ids


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
    steps, done, terminated = 0, False, False
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


@pytest.mark.slow
def test_wolfpack_passes_the_check_and_reports_shaping():
    env = gymnasium.make("dropin/Wolfpack-v1", rules="reference", render_mode="rgb_array")
    check_env(env.unwrapped)
    env.reset(seed=0)
    steps = [env.step(number % 5) for number in range(200)]
    assert [truncated for _, _, _, truncated, _ in steps] == [False] * 199 + [True]
    assert all(env.observation_space.contains(observation) for observation, *_ in steps)
    shaping = np.array([info["shaping"] for *_, info in steps])
    unshaped = np.array([float(reward) for _, reward, *_ in steps]) - shaping
    assert shaping.any()
    # Rewards for captures and penalties are multiples of a half.
    assert unshaped * 2 == pytest.approx(np.round(unshaped * 2), abs=1e-5)


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
    episodes = []
    for seed in (5, 5, 6):
        first, _ = env.reset(seed=seed)
        episodes.append([first["agents"], *(env.step(0)[0]["agents"] for _ in range(10))])
    assert np.array_equal(episodes[0], episodes[1])
    assert not np.array_equal(episodes[0], episodes[2])
    env.reset()  # Without a seed the random numbers go on.
    assert not np.array_equal(episodes[2][1:], [env.step(0)[0]["agents"] for _ in range(10)])


def test_both_ways_to_render():
    env = make(render_mode="ansi")
    env.reset(seed=0)
    text = env.render()
    assert isinstance(text, str)
    assert "@" in text
    assert "\x1b[" in text
    env = make(render_mode="rgb_array")
    env.reset(seed=0)
    pixels = env.render()
    assert isinstance(pixels, np.ndarray)
    assert (pixels.dtype, pixels.ndim) == (np.uint8, 3)


@pytest.mark.parametrize("action", [-1, 6, 2.5, "north", [1]])
def test_an_action_out_of_range_is_refused(action):
    env = make().unwrapped
    env.reset(seed=0)
    with pytest.raises(InputError, match="Action"):
        env.step(action)


def test_other_mistakes_are_named():
    with pytest.raises(InputError, match="Unknown render mode"):
        DropinEnv("lbf", render_mode="human3d")
    with pytest.raises(InputError, match="Team limit 9"):
        make(team_limit=9, slots=5)
    with pytest.raises(RuntimeError, match="reset"):
        make().unwrapped.step(0)


def test_an_environment_can_be_given_as_an_object():
    """It plays as the one that is made by name does."""
    settings = {"rules": "reference", "team_limit": 4, "types": ["H6"], "horizon": 12}
    by_name, by_object = DropinEnv("lbf", **settings), DropinEnv(dropin.make("lbf", **settings))
    assert by_object.observation_space == by_name.observation_space
    first, second = (env.reset(seed=2) for env in (by_name, by_object))
    np.testing.assert_equal(first, second)
    for number in range(12):
        np.testing.assert_equal(by_name.step(number % 6), by_object.step(number % 6))


def test_a_game_of_ones_own_passes_the_check():
    env = DropinEnv(matrix_game(), render_mode="rgb_array")
    check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=0)
    assert observation["agents"].tolist() == [[0.0], [1.0]]
    _, reward, terminated, truncated, info = env.step(2)
    assert (reward, terminated, truncated) == (5.0, True, False)
    assert info["types"] == [None, "first"]
    assert env.render().shape[2] == 3


def test_settings_together_with_an_object_are_refused():
    with pytest.raises(InputError, match="so team_limit, size cannot be set"):
        DropinEnv(matrix_game(), team_limit=5, size=3)
    with pytest.raises(InputError, match="3 is neither the name of a game nor an AdHocEnv"):
        DropinEnv(3)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def plug_in(monkeypatch):
    """Return a function that registers copies of LBF under other names, until the test is over."""
    monkeypatch.setattr(registry.games, "_items", dict(registry.games._items))
    ids = set(gymnasium.registry)

    def register(name, **changes):
        registry.register_game(replace(SPEC, **{"name": name, "gymnasium_id": ""} | changes))

    yield register
    for each in set(gymnasium.registry) - ids:
        del gymnasium.registry[each]


def test_the_games_of_plug_ins_get_ids(plug_in):
    plug_in("corridor")
    plug_in("two_rooms-b")
    plug_in("maze", gymnasium_id="BigMaze", version=2)
    register_ids()
    register_ids()  # Nothing happens to those that have an id.
    names = {"corridor": "Corridor-v0", "two_rooms-b": "TwoRoomsB-v0", "maze": "BigMaze-v2"}
    for game, name in names.items():
        assert gymnasium_id(registry.games[game]) == f"dropin/{name}"
        assert gymnasium.spec(f"dropin/{name}").kwargs == {"game": game}
    env = gymnasium.make("dropin/Corridor-v0", team_limit=4, types=["H6"])
    assert env.reset(seed=0)[0]["present"].tolist() == [1] * 4


def test_a_plug_in_whose_id_cannot_be_used_is_left_out_with_a_warning(plug_in):
    plug_in("thief", gymnasium_id="LBF")
    plug_in("broken", gymnasium_id="not an id")
    plug_in("good")
    with pytest.warns(UserWarning, match="has no Gymnasium id") as caught:
        register_ids()
    assert ["thief" in str(each.message) for each in caught] == [True, False]
    assert "'broken'" in str(caught[1].message)
    assert gymnasium.spec("dropin/LBF-v0").kwargs == {"game": "lbf"}
    assert gymnasium.spec("dropin/Good-v0").kwargs == {"game": "good"}


def test_a_plug_in_that_fails_does_not_keep_the_view_from_being_imported(tmp_path):
    """A package with an entry point that raises is installed, next to the games of Dropin."""
    (tmp_path / "failing.py").write_text("def register():\n    raise KeyError('colour')\n")
    info = tmp_path / "failing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: failing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dropin.plugins]\nfailing = failing:register\n")
    program = (
        "import gymnasium, dropin.interop.gymnasium\n"
        "print(gymnasium.spec('dropin/LBF-v0').kwargs['game'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "lbf\n"
    assert "The plug-in 'failing' is left out: KeyError: 'colour'" in done.stderr
