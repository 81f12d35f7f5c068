from itertools import pairwise

import equinox as eqx
import jax
import numpy as np
import pytest
from PIL import Image

from dropin.core.errors import InputError
from dropin.env import make
from dropin.games.drawing import CELL, HEADER, agent_colour
from dropin.policies import make_policy
from dropin.render.episode import record_episode
from dropin.render.picture import picture, renderer_of, save_gif
from dropin.render.story import tell_story
from dropin.teams.scripted import Scripted


@pytest.fixture(scope="module")
def env():
    openness = Scripted([1, 2], [(3, "leaves", 1), (4, "enters", 1)])
    return make("lbf", rules="reference", team_limit=3, openness=openness, horizon=6)


@pytest.fixture(scope="module")
def frames(env):
    return list(record_episode(env, make_policy(env, "H6"), seed=0))


def test_a_recording_ends_with_the_last_state(frames):
    assert [int(each.state.game.time) for each in frames] == list(range(7))
    assert frames[-1].step is None
    assert all(each.step is not None for each in frames[:-1])
    rewards = [float(each.step.reward) for each in frames[:-1]]
    assert [each.score for each in frames] == np.cumsum([0, *rewards]).tolist()


def test_a_recording_is_of_one_episode_and_of_the_policy(env, frames):
    """The state after each step is the next one, and the learner does what the policy says."""
    policy, step = make_policy(env, "H6"), eqx.filter_jit(env.step)
    key, _ = jax.random.split(jax.random.key(0))
    memory = policy.init_memory(env.slots)
    for now, after in pairwise(frames):
        key, act_key, step_key = jax.random.split(key, 3)
        observation = env._observe(now.state)
        action, memory = policy.act(act_key, env, now.state, observation, memory)
        assert int(now.step.actions[0]) == int(action)
        state, _ = step(step_key, now.state, action, auto_reset=False)
        assert eqx.tree_equal(state, after.state)


def test_an_empty_recording_has_no_gif(env, tmp_path):
    with pytest.raises(InputError, match="at least one frame"):
        save_gif(env, [], tmp_path / "episode.gif")


def test_the_picture_shows_everybody_where_they_stand(env, frames):
    state = frames[0].state
    pixels = np.asarray(picture(env, state))
    assert pixels.shape == (8 * CELL + HEADER, 8 * CELL, 3)
    for slot in range(3):
        row, column, _ = np.asarray(state.game.agents[slot])
        # A point inside the disc, away from the number and the name.
        at = pixels[row * CELL + HEADER + CELL // 2 - 4, column * CELL + CELL // 2 - 17]
        wanted = [int(agent_colour(slot)[k : k + 2], 16) for k in (1, 3, 5)]
        assert np.abs(at.astype(int) - wanted).max() < 25


def test_newcomers_are_marked_once(env, frames):
    gold = np.array([0xE0, 0xA1, 0x00])
    marked = []
    for frame in frames:
        pixels = np.asarray(picture(env, frame.state)).astype(int)
        marked.append((np.abs(pixels - gold).max(axis=-1) < 12).sum())
    assert marked[0] > marked[4] > 0
    assert marked[1] == marked[2] == marked[3] == marked[5] == 0


def test_a_gif_has_a_picture_for_every_state(env, frames, tmp_path):
    path = tmp_path / "folder" / "episode.gif"
    save_gif(env, frames, path)
    with Image.open(path) as gif:
        assert getattr(gif, "n_frames", 1) == 7
    assert [file.name for file in path.parent.iterdir()] == ["episode.gif"]


def test_the_text_has_the_same_grid(env, frames):
    state = frames[0].state
    lines = renderer_of(env).text(env, state).plain.splitlines()
    assert len(lines) == 8
    for mark, slot in (("@", 0), ("b", 1), ("c", 2)):
        row, column, level = np.asarray(state.game.agents[slot])
        assert lines[row][3 * column : 3 * column + 3] == f" {mark}{level}"
    for row, column, level in np.asarray(state.game.objects):
        assert lines[row][3 * column : 3 * column + 3] == f" *{level}"


def test_the_story_tells_who_came_went_and_collected(env, frames):
    sentences = tell_story(env, frames)
    assert sentences[0].startswith("Start: the learner, level ")
    left = [line for line in sentences if line.endswith("leaves.")]
    assert [line.partition(" (")[0] for line in left] == ["Step 3: mate 1"]
    entered = [line for line in sentences if line.endswith("enters.")]
    assert [line.partition(" (")[0] for line in entered] == ["Step 4: mate 1"]
    score = sum(float(each.step.reward) for each in frames[:-1])
    assert sentences[-1] == f"The episode ends after 6 steps; the learner's return is {score:g}."
    taken = [np.asarray(each.step.events.collected).any(axis=0) for each in frames[:-1]]
    assert sum("collect" in line for line in sentences) == np.sum(taken)


def test_wolfpack_is_drawn_with_captures_and_told():
    env = make("wolfpack", team_limit=3, types=["H4"], horizon=60)
    frames = list(record_episode(env, make_policy(env, "H4"), seed=1))
    captures = [each for each in frames if np.asarray(each.state.game.captured).any()]
    assert captures
    dark = np.array([0x8C, 0x1C, 0x13])

    def crossed(frame):
        pixels = np.asarray(picture(env, frame.state)).astype(int)
        return (np.abs(pixels - dark).max(axis=-1) < 12).sum()

    calm = next(each for each in frames if not np.asarray(each.state.game.captured).any())
    assert crossed(captures[0]) > 100 > crossed(calm) == 0
    rows = renderer_of(env).text(env, captures[0].state).plain.split()
    assert len(rows) == 100
    assert {"@", "b", "c", "x"} <= set(rows)
    sentences = tell_story(env, frames)
    assert any(line.endswith("a prey.") and " capture" in line for line in sentences)
    assert sentences[0].startswith("Start: the learner, in row ")
