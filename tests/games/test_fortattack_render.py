"""FortAttack in the terminal, in sentences and on a canvas, from states made by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fortattack_states import DOWN, UP, state

from dropin.core import registry
from dropin.env import make
from dropin.games.drawing import NEWCOMER, NEWCOMER_GROUND, Canvas
from dropin.games.fortattack import render
from dropin.games.fortattack.state import NOTHING, SHOOT
from dropin.teams.openness import Closed
from dropin.teams.types import ViewType

LEFT, RIGHT = np.pi, 0.0
NAMES = ("the learner", "mate 1", "mate 2", "attacker 1", "attacker 2", "attacker 3")
IDLE = (
    ViewType("guard", "", lambda view: jnp.int32(0)),
    ViewType("attacker", "", lambda view: jnp.int32(0), side=1),
)
GUARDS = [(0.05, 0.45, DOWN), (-0.75, 0.95, LEFT), (0.75, 0.95, RIGHT)]
ATTACKERS = [(-0.75, -0.95, UP), (0.75, -0.95, 3 * np.pi / 4), (0.05, -0.05, UP)]


@pytest.fixture(scope="module")
def env():
    return make("fortattack", types=IDLE)


@eqx.filter_jit
def first_state(env):
    return env.reset(jax.random.key(0))[0]


@eqx.filter_jit
def advance(env, now, actions):
    return env.step_all(jax.random.key(0), now, actions, auto_reset=False)


def placed(env, here, arrived=(), wait=None):
    """The environment at a state of the game; `wait` are the steps that each slot has to wait."""
    now = first_state(env)
    now = eqx.tree_at(
        lambda each: (each.game, each.arrived),
        now,
        (here, jnp.asarray(np.isin(np.arange(len(here.sides)), arrived))),
    )
    if wait is not None:
        now = eqx.tree_at(lambda each: each.openness, now, jnp.asarray(wait, jnp.int32))
    return now


def stepped(env, here, *shooters):
    """The step in which these slots shoot and all others do nothing."""
    actions = np.where(np.isin(np.arange(len(here.sides)), shooters), SHOOT, NOTHING)
    return advance(env, placed(env, here), jnp.asarray(actions, jnp.int32))[1]


def cells_of(text):
    """The characters and the style of each cell that is not empty, by (row, column)."""
    cells, row, column = {}, 0, 0
    for span in text.spans:
        mark = text.plain[span.start : span.end].strip()
        if mark != "·":
            cells[row, column] = (mark, str(span.style))
        column += 1
        if text.plain[span.end] == "\n":
            row, column = row + 1, 0
    return cells


def agents_in(text):
    return {at: mark for at, (mark, _) in cells_of(text).items() if mark != "#"}


def test_the_game_is_registered_with_this_renderer():
    assert registry.games["fortattack"].renderer is render


def test_the_text_shows_everybody_at_their_place_with_their_heading(env):
    text = render.text(env, placed(env, state(GUARDS, ATTACKERS)))
    lines = text.plain.splitlines()
    assert len(lines) == 20  # 2.0 high, in cells of 0.1
    assert {len(line) for line in lines} == {3 * 16}  # 1.6 wide, three characters a cell
    assert agents_in(text) == {
        (5, 8): "@↓",
        (0, 0): "b←",
        (0, 15): "c→",
        (19, 0): "d↑",
        (19, 15): "e↖",
        (10, 8): "f↑",
    }


def test_the_text_shows_the_fort_as_the_rules_have_it(env):
    def fort(env):
        cells = cells_of(render.text(env, placed(env, state(GUARDS, ATTACKERS))))
        return {at for at, (mark, _) in cells.items() if mark == "#"}

    # A radius of 0.3: the centres of cells are at odd multiples of 0.05.
    assert fort(env) == {
        (row, column)
        for row, reach in ((0, 3), (1, 3), (2, 2))
        for column in range(8 - reach, 8 + reach)
    }
    reference = make("fortattack", types=IDLE, rules="reference")
    # A radius of 0.15: the centres of cells are at multiples of 0.08, of rows 0.04 off them.
    assert fort(reference) == {(row, column) for row in (0, 1) for column in (11, 12, 13)}


def test_the_text_colours_the_learner_guards_and_attackers(env):
    cells = cells_of(render.text(env, placed(env, state(GUARDS, ATTACKERS))))
    colours = {mark[0]: style.split()[1] for mark, style in cells.values() if mark != "#"}
    assert len({colours["@"], colours["b"], colours["d"]}) == 3
    assert colours["b"] == colours["c"]
    assert colours["d"] == colours["e"] == colours["f"]


def test_the_text_marks_newcomers_and_nobody_else(env):
    now = placed(env, state(GUARDS, ATTACKERS), arrived=(2, 4))
    styles = {mark[0]: style for mark, style in cells_of(render.text(env, now)).values()}
    marked = {mark for mark, style in styles.items() if NEWCOMER_GROUND in style}
    assert marked == {"c", "e"}
    unmarked = cells_of(render.text(env, placed(env, state(GUARDS, ATTACKERS))))
    assert not any(NEWCOMER_GROUND in style for _, style in unmarked.values())


def test_the_text_leaves_out_those_who_wait(env):
    here = state(GUARDS, ATTACKERS, present=[True, False, True, True, True, False])
    text = render.text(env, placed(env, here, wait=[0, 5, 0, 0, 0, 7]))
    assert sorted(mark[0] for mark in agents_in(text).values()) == ["@", "c", "d", "e"]


def test_the_text_shows_those_inside_a_wall_at_its_edge(env):
    here = state([(0.95, 1.2, DOWN), *GUARDS[1:]], [(-0.95, -1.2, UP), *ATTACKERS[1:]])
    cells = agents_in(render.text(env, placed(env, here)))
    assert cells[19, 0] == "d↑"
    # The learner and a mate share a cell, in which the later slot is shown.
    assert cells[0, 15] == "c→"


@pytest.mark.parametrize(
    ("shooters", "sentences"),
    [
        ((), []),
        ((1, 2), []),  # they look away
        ((0,), ["the learner shoots attacker 3"]),
        ((5,), ["attacker 3 shoots the learner"]),
        ((0, 5), ["attacker 3 shoots the learner", "the learner shoots attacker 3"]),
    ],
)
def test_the_sentences_say_who_shot_whom(env, shooters, sentences):
    here = state(GUARDS, ATTACKERS)
    step = stepped(env, here, *shooters)
    assert render.describe_events(here, step, NAMES) == sentences


def test_several_shooters_of_one_victim_share_a_sentence_and_several_victims_do_not(env):
    guards = [(0.05, 0.45, DOWN), (-0.05, 0.45, DOWN), (0.75, 0.95, RIGHT)]
    attackers = [(0.0, 0.1, DOWN), (0.03, 0.0, DOWN), (-0.75, -0.95, UP)]
    here = state(guards, attackers)
    assert render.describe_events(here, stepped(env, here, 0, 1), NAMES) == [
        "the learner and mate 1 shoot attacker 1",
        "the learner and mate 1 shoot attacker 2",
    ]


def test_the_sentences_say_when_the_fort_falls(env):
    here = state(GUARDS, [(0.0, 0.85, UP), *ATTACKERS[1:]])
    assert render.describe_events(here, stepped(env, here), NAMES) == ["the fort falls"]
    assert render.describe_events(here, stepped(env, here, 0), NAMES) == [
        "the learner shoots attacker 3",
        "the fort falls",
    ]
    held = state(GUARDS, ATTACKERS, time=199)
    step = stepped(env, held)
    assert bool(step.terminated)
    assert render.describe_events(held, step, NAMES) == []


def test_an_agent_is_described_by_its_place():
    here = state(GUARDS, ATTACKERS)
    assert render.describe_agent(here, 0) == "at (0.05, 0.45)"
    assert render.describe_agent(here, 3) == "at (-0.75, -0.95)"


class Recording(Canvas):
    """A canvas that notes what is drawn on it."""

    def __init__(self):
        self.discs, self.rings, self.polygons, self.captions = [], [], [], []

    def disc(self, row, column, radius, colour):
        self.discs.append((round(row, 3), round(column, 3), colour))

    def ring(self, row, column, radius, colour):
        self.rings.append((round(row, 3), round(column, 3), colour))

    def polygon(self, corners, colour, rim):
        self.polygons.append((corners, colour, rim))

    def stroke(self, row, column, to_row, to_column, ink):
        pass

    def caption(self, row, column, text, colour):
        self.captions.append((round(row, 3), round(column, 3), text))


def drawn(env, now, step=None):
    canvas = Recording()
    render.draw(canvas, env, now, NAMES, step)
    return canvas


def test_those_who_wait_are_drawn_beside_the_plane_with_the_steps_left(env):
    here = state(GUARDS, ATTACKERS, present=[True, False, True, True, False, False])
    canvas = drawn(env, placed(env, here, wait=[0, 5, 0, 0, 12, 7]))
    rows, columns = render.board_size(env)
    assert (rows, columns) == (pytest.approx(10), pytest.approx(8 + 1.6))
    beside = [(row, text) for row, column, text in canvas.captions if column > 8]
    assert [text for _, text in beside] == [
        *("5", "mate 1"),
        *("12", "attacker 2"),
        *("7", "attacker 3"),
    ]
    # Guards wait at the end of the fort, attackers at the other.
    assert [row < 5 for row, _ in beside] == [True] * 2 + [False] * 4
    assert len(canvas.discs) == 6
    assert len(set(canvas.discs)) == 6


def test_no_steps_are_written_where_nobody_returns():
    closed = make("fortattack", types=IDLE, openness=Closed())
    here = state(GUARDS, ATTACKERS, present=[True, False, True, True, True, True])
    beside = [
        text for _, column, text in drawn(closed, placed(closed, here)).captions if column > 8
    ]
    assert beside == ["", "mate 1"]


def test_slots_beyond_the_limit_do_not_wait():
    env = make("fortattack", types=IDLE, team_limit=2, slots=3)
    here = state(GUARDS, ATTACKERS, present=[True, True, False, True, True, False])
    assert all(column < 8 for _, column, _ in drawn(env, placed(env, here)).captions)


def test_newcomers_are_drawn_with_a_ring_and_so_is_the_learner(env):
    canvas = drawn(env, placed(env, state(GUARDS, ATTACKERS), arrived=(2,)))
    learner, mate = canvas.discs[0][:2], canvas.discs[2][:2]
    assert [(at, colour == NEWCOMER) for *at, colour in canvas.rings] == [
        ([*learner], False),
        ([*mate], True),
    ]


def test_lasers_are_those_of_the_step_that_follows(env):
    here = state(GUARDS, ATTACKERS)
    ground = len(drawn(env, placed(env, here)).polygons)
    canvas = drawn(env, placed(env, here), stepped(env, here, 0, 3))
    assert len(canvas.polygons) == ground + 2
    # The learner looks straight down from (0.05, 0.45); a unit is five cells.
    (apex, one, other), *_ = canvas.polygons[ground]
    assert apex == pytest.approx(((1 - 0.4) * 5 - 0.5, 0.85 * 5 - 0.5), abs=1e-5)
    depth, half = 0.8 * np.cos(np.pi / 8) * 5, 0.8 * np.sin(np.pi / 8) * 5
    assert [one[0], other[0]] == pytest.approx([apex[0] + depth] * 2, abs=1e-5)
    assert sorted([one[1], other[1]]) == pytest.approx([apex[1] - half, apex[1] + half], abs=1e-5)


def test_another_game_is_refused_by_name():
    with pytest.raises(TypeError, match="renderer of FortAttack, not of LBF"):
        render.board_size(make("lbf", types=["H6"]))
