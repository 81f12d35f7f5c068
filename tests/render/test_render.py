import numpy as np
import pytest
from PIL import Image

from dropin.adhoc import make
from dropin.players import player
from dropin.render.episode import record
from dropin.render.picture import CELL, HEADER, colour_of, looks_of, picture, save_gif
from dropin.render.story import story
from dropin.teams.openness import Scripted


@pytest.fixture(scope="module")
def env():
    script = Scripted([1, 2], [(3, "leaves", 1), (4, "enters", 1)])
    return make("lbf", rules="reference", team_limit=3, openness=script, horizon=6)


@pytest.fixture(scope="module")
def moments(env):
    return list(record(env, player(env, "H6"), seed=0))


def test_a_recording_ends_with_the_last_state(moments):
    assert [int(each.state.game.time) for each in moments] == list(range(7))
    assert moments[-1].step is None
    assert all(each.step is not None for each in moments[:-1])


def test_the_picture_shows_everybody_where_they_stand(env, moments):
    state = moments[0].state
    pixels = np.asarray(picture(env, state))
    assert pixels.shape == (8 * CELL + HEADER, 8 * CELL, 3)
    for slot in range(3):
        row, column, _ = np.asarray(state.game.agents[slot])
        # A point inside the disc, away from the number and the name.
        at = pixels[row * CELL + HEADER + CELL // 2 - 4, column * CELL + CELL // 2 - 17]
        wanted = [int(colour_of(slot)[k : k + 2], 16) for k in (1, 3, 5)]
        assert np.abs(at.astype(int) - wanted).max() < 25


def test_newcomers_are_marked_once(env, moments):
    gold = np.array([0xE0, 0xA1, 0x00])
    marked = []
    for moment in moments:
        pixels = np.asarray(picture(env, moment.state)).astype(int)
        marked.append((np.abs(pixels - gold).max(axis=-1) < 12).sum())
    assert marked[0] > marked[4] > 0
    assert marked[1] == marked[2] == marked[3] == marked[5] == 0


def test_a_gif_has_a_picture_for_every_state(env, moments, tmp_path):
    path = tmp_path / "folder" / "episode.gif"
    save_gif(env, moments, path)
    with Image.open(path) as gif:
        assert gif.n_frames == 7
    assert [file.name for file in path.parent.iterdir()] == ["episode.gif"]


def test_the_text_has_the_same_grid(env, moments):
    state = moments[0].state
    lines = looks_of(env).text(env, state).plain.splitlines()
    assert len(lines) == 8
    for mark, slot in (("@", 0), ("b", 1), ("c", 2)):
        row, column, level = np.asarray(state.game.agents[slot])
        assert lines[row][3 * column : 3 * column + 3] == f" {mark}{level}"
    for row, column, level in np.asarray(state.game.objects):
        assert lines[row][3 * column : 3 * column + 3] == f" *{level}"


def test_the_story_tells_who_came_went_and_collected(env, moments):
    told = story(env, moments)
    assert told[0].startswith("Start: the learner, level ")
    assert any(line.startswith("Step 3: mate 1 (") and line.endswith("leaves.") for line in told)
    assert any(line.startswith("Step 4: mate 1 (") and line.endswith("enters.") for line in told)
    paid = sum(float(each.step.reward) for each in moments[:-1])
    assert told[-1] == f"The episode ends after 6 steps; the learner's return is {paid:g}."
    taken = [np.asarray(each.step.happened.collected).any(axis=0) for each in moments[:-1]]
    assert sum("collect" in line for line in told) == np.sum(taken)


def test_wolfpack_is_drawn_with_captures_and_told():
    env = make("wolfpack", team_limit=3, types=["H4"], horizon=60)
    moments = list(record(env, player(env, "H4"), seed=1))
    captures = [each for each in moments if np.asarray(each.state.game.captured).any()]
    assert captures
    dark = np.array([0x8C, 0x1C, 0x13])

    def crossed(moment):
        pixels = np.asarray(picture(env, moment.state)).astype(int)
        return (np.abs(pixels - dark).max(axis=-1) < 12).sum()

    calm = next(each for each in moments if not np.asarray(each.state.game.captured).any())
    assert crossed(captures[0]) > 100 > crossed(calm) == 0
    rows = looks_of(env).text(env, captures[0].state).plain.split()
    assert len(rows) == 100
    assert {"@", "b", "c", "x"} <= set(rows)
    told = story(env, moments)
    assert any(line.endswith("a prey.") and " capture" in line for line in told)
    assert told[0].startswith("Start: the learner, in row ")
