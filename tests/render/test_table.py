"""Games without a renderer of their own."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lbf_states import make_state
from matrix_game import matrix_game
from PIL import Image

from dropin.core import registry
from dropin.env import make
from dropin.games.drawing import NEWCOMER, NEWCOMER_GROUND, Canvas
from dropin.games.lbf import SPEC, render
from dropin.policies import make_policy
from dropin.render.episode import record_episode
from dropin.render.picture import picture, renderer_of, save_gif
from dropin.render.story import tell_story
from dropin.render.table import FeatureTable

AGENTS = [[1, 2, 3], None, [7, 0, 2]]
OBJECTS = [[2, 2, 1], [5, 6, 2]]


class Recorder(Canvas):
    """Notes what is written."""

    def __init__(self, rows: float, columns: float):
        super().__init__(rows, columns)
        self.size = (rows, columns)
        self.written: dict[tuple[int, int], str] = {}
        self.discs: list[tuple[float, str]] = []

    def caption(self, row: float, column: float, text: str, colour: str) -> None:
        assert -0.5 <= row < self.size[0] - 0.5
        assert -0.5 <= column < self.size[1] - 0.5
        # Cells of a table are 0.6 high and 1.8 wide.
        place = round((row + 0.5) / 0.6 - 0.5), round((column + 0.5) / 1.8 - 0.5)
        assert place not in self.written
        self.written[place] = text

    def disc(self, row: float, column: float, radius: float, colour: str) -> None:
        self.discs.append((round((row + 0.5) / 0.6 - 0.5), colour))


@pytest.fixture(scope="module")
def env():
    return make("lbf", rules="reference", team_limit=3, types=["H6"])


@pytest.fixture(scope="module")
def state(env):
    first, _ = env.reset(jax.random.key(0))
    arrived = jnp.array([False, False, True])
    return replace(first, game=make_state(AGENTS, OBJECTS), arrived=arrived)


def test_a_game_has_its_own_renderer_if_it_is_registered_with_one(env, monkeypatch):
    assert renderer_of(env) is render
    assert isinstance(renderer_of(matrix_game()), FeatureTable)
    monkeypatch.setitem(registry.games._items, "lbf", replace(SPEC, renderer=None))
    assert isinstance(renderer_of(env), FeatureTable)


def test_the_text_is_a_table_of_features(env, state):
    text = FeatureTable(env).text(env, state)
    lines = [line.split() for line in text.plain.splitlines()]
    assert lines[:4] == [
        ["row", "column", "level"],
        ["@", "1", "2", "3"],
        ["-", "-", "-", "-"],
        ["c", "7", "0", "2"],
    ]
    shared = [line.rsplit(maxsplit=1) for line in text.plain.splitlines()[4:]]
    assert [name.strip() for name, _ in shared] == [each.name for each in env.game.features(3)[1]]
    assert [value for _, value in shared] == ["2", "2", "1", "5", "6", "2", "-1", "-1", "0"]
    # Numbers are below their names, and only the newcomer has a bright background.
    header, first, *_ = text.plain.splitlines()
    assert [first[header.index(name) + len(name) - 1] for name in ("row", "column", "level")] == [
        "1", "2", "3",
    ]  # fmt: skip
    bright = [text.plain[span.start] for span in text.spans if NEWCOMER_GROUND in str(span.style)]
    assert bright == ["c"]


def test_the_picture_is_the_same_table(env, state):
    table = FeatureTable(env)
    _, step = eqx.filter_jit(env.step)(jax.random.key(0), state, jnp.int32(1), auto_reset=False)
    canvas = Recorder(*table.board_size(env))
    table.draw(canvas, env, state, ["learner", "H6", "H6"], step)
    rows = [[canvas.written.get((row, column), "") for column in range(5)] for row in range(8)]
    acts = env.game.actions[int(step.actions[2])]
    assert rows == [
        ["", "row", "column", "level", "action"],
        ["learner", "1", "2", "3", "north"],
        ["-", "-", "-", "-", "-"],
        ["H6", "7", "0", "2", acts],
        [each.name for each in env.game.features(3)[1][:5]],
        ["2", "2", "1", "5", "6"],
        [*(each.name for each in env.game.features(3)[1][5:]), ""],
        ["2", "-1", "-1", "0", ""],
    ]
    assert canvas.discs == [(3, NEWCOMER)]


def test_an_environment_of_ones_own_game_is_shown(tmp_path):
    env = matrix_game()
    frames = list(record_episode(env, make_policy(env, "first"), seed=0))
    image = np.asarray(picture(env, frames[0].state))
    assert image.std() > 0
    save_gif(env, frames, tmp_path / "episode.gif")
    with Image.open(tmp_path / "episode.gif") as gif:
        assert getattr(gif, "n_frames", 1) == len(frames) == 2
    assert tell_story(env, frames) == [
        "Start: the learner, role 0; mate 1 (first), role 1.",
        "Step 1: the learner gets a reward of 1.",
        "Step 1: mate 1 (first) gets a reward of 1.",
        "The episode ends after 1 step; the learner's return is 1.",
    ]
