"""Watching: each game, the time line, and running again from an earlier step."""

from itertools import combinations
from math import hypot

import pytest
from browsing import open_page, value, wait

from dropin.agents import agent_policy, load_agent
from dropin.env import make
from dropin.policies import make_policy
from dropin.render.episode import record_episode

AGENT = "lbf/gpl-q"
"""One learner for nearly all tests: what is compiled for it is shared."""
COLOURS = """() => {
  const canvas = document.getElementById("board");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let k = 0; k < data.length; k += 4) {
    seen.add((data[k] << 16) | (data[k + 1] << 8) | data[k + 2]);
  }
  return seen.size;
}"""
"""How many colours are on the board: an empty one has two or three."""


def hurry(page):
    """As fast as the server goes."""
    page.locator("#speed").focus()
    page.keyboard.press("End")


def pause(page):
    page.click("#play")
    wait(page, "!room.playing")


@pytest.mark.parametrize(
    "game",
    [
        "lbf",
        pytest.param("wolfpack", marks=pytest.mark.slow),
        pytest.param("fortattack", marks=pytest.mark.slow),
    ],
)
def test_an_episode_is_the_one_that_python_plays(arena, visitors, game):
    page, types = visitors.page(), {"wolfpack": "H2", "fortattack": "G4"}
    agent = types.get(game, AGENT)
    config = {"game": game, "rules": "paper", "agent": agent, "team_limit": 3, "seed": 5}
    open_page(page, arena.open_room(page, **config))
    hurry(page)
    wait(page, "room.last.done && room.episode === 0")
    pause(page)
    env = make(game, rules="paper", team_limit=3)
    trained = game not in types
    policy = agent_policy(load_agent(agent), env) if trained else make_policy(env, agent)
    frames = list(record_episode(env, policy, 5))
    assert value(page, "room.frames.length") == len(frames)
    assert value(page, "room.last.score") == pytest.approx(frames[-1].score, rel=1e-3)
    assert page.inner_text("#fact-return").replace("−", "-") == f"{frames[-1].score:.3g}"
    assert page.evaluate(COLOURS) > 10
    assert "The episode is over" in page.inner_text("#episode-over")
    entries = value(page, "room.frames.reduce((sum, each) => sum + each.entered.length, 0)")
    assert entries == sum(int(frame.state.arrived.sum()) for frame in frames[1:])


def test_the_first_page_shows_a_trained_learner_at_once(arena, visitors):
    page = visitors.page()
    open_page(page, f"{arena.address}/")
    assert "/r/" in page.url
    wait(page, "room.frames.length > 2")
    assert page.inner_text("#room-title") == "Level-based foraging"
    assert "GPL-Q" in page.inner_text("#room-agent")
    assert page.locator("#values .value.chosen").count() == 1


def test_the_time_line_is_scrubbed_with_mouse_and_keyboard(arena, visitors):
    page = visitors.page()
    open_page(page, arena.open_room(page, game="lbf", agent=AGENT, seed=1))
    hurry(page)
    wait(page, "room.frames.length > 8")
    pause(page)
    box = page.locator("#seek").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + box["height"] / 2)
    cursor, last = value(page, "room.cursor"), value(page, "room.frames.length - 1")
    assert 0 < cursor < last
    page.wait_for_timeout(50)
    assert page.inner_text("#seek-readout") == f"step {cursor} of {last}"
    page.keyboard.press("ArrowLeft")
    assert value(page, "room.cursor") == cursor - 1
    page.keyboard.press("Home")
    assert value(page, "room.cursor") == 0
    page.locator("#board").focus()
    page.keyboard.press("ArrowRight")
    assert value(page, "room.cursor") == 1
    page.keyboard.press("End")
    assert value(page, "room.live")


def test_an_episode_runs_again_from_an_earlier_step(arena, visitors):
    page = visitors.page()
    open_page(page, arena.open_room(page, game="lbf", agent=AGENT, seed=2))
    hurry(page)
    wait(page, "room.frames.length > 8")
    pause(page)
    before = value(page, "room.frames.slice(0, 9).map((each) => JSON.stringify(each.scene))")
    value(page, "room.seek(4)")
    page.click("#run-from-here")
    wait(page, "room.frames.length === 5")
    assert value(page, "room.live")
    for length in range(6, 10):
        page.click("#step-forward")
        wait(page, f"room.frames.length === {length}")
    after = value(page, "room.frames.map((each) => JSON.stringify(each.scene))")
    assert after == before


def test_restart_and_next_episode(arena, visitors):
    page = visitors.page()
    open_page(page, arena.open_room(page, game="lbf", agent=AGENT, seed=7))
    wait(page, "room.frames.length > 3")
    pause(page)
    first = value(page, "JSON.stringify(room.frames[0].scene)")
    page.click("#restart")
    wait(page, "room.frames.length === 1")
    assert value(page, "JSON.stringify(room.frames[0].scene)") == first
    page.click("#next-episode")
    wait(page, "room.seed === 8 && room.frames.length === 1")
    assert value(page, "JSON.stringify(room.frames[0].scene)") != first
    page.wait_for_timeout(50)
    assert page.inner_text("#fact-seed") == "8"


def test_agents_in_one_cell_do_not_hide_one_another(arena, visitors):
    page = visitors.page()
    open_page(page, arena.open_room(page, game="lbf", agent="lbf/gpl-q"))
    for together in (2, 3, 5, 9):
        alone, *others = value(
            page,
            f"""(() => {{
              const {{ board }} = window.dropinArena;
              const agents = [{{ slot: 20, row: 5, column: 6 }}];
              for (let slot = 0; slot < {together}; slot += 1)
                agents.push({{ slot, row: 1, column: 2 }});
              const scene = {{ ...room.frame.scene, agents, items: [] }};
              const places = [...board.painter.positions(scene).values()];
              return places
                .map((place) => board.painter.pixels(scene, board.size, place))
                .toSorted((a, b) => b.radius - a.radius);
            }})()""",
        )
        cell = value(page, "window.dropinArena.board.size.width / room.frame.scene.columns")
        assert (alone["x"], alone["y"]) == (6.5 * cell, 5.5 * cell)
        assert len(others) == together
        for one, other in combinations(others, 2):
            distance = hypot(one["x"] - other["x"], one["y"] - other["y"])
            assert distance > one["radius"] + other["radius"]
        for each in others:  # They stay within the cell.
            for at, start in ((each["x"], 2 * cell), (each["y"], cell)):
                assert start <= at - each["radius"] < at + each["radius"] <= start + cell
