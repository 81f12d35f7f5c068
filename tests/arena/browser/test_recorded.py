"""An episode that a person has played is recorded, and plays again in the page as it was."""

from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from browsing import Arena, open_page, serve, value, wait, wait_until

from dropin.arena.episodes import load_episodes
from dropin.arena.hub import Hub, Options
from dropin.core.errors import InputError

serving = contextmanager(serve)
AGENT = "lbf/gpl-q"
ROOM = {"game": "lbf", "rules": "paper", "agent": AGENT, "team_limit": 3, "seed": 3}
KEYS = ("ArrowUp", "ArrowLeft", " ", "ArrowDown", "ArrowRight", " ")
STATES = """room.frames.map(({ scene, rewards, actions, score, mind, entered, left }) =>
  JSON.stringify({ scene, rewards, actions, score, mind, entered, left }))"""
"""All that the page knows of the states, but for the ids of people."""


def play(arena: Arena, visitors, directory: Path) -> tuple[Path, list[str]]:
    """Play mate 1 for a while, and go on to the next episode; return the file and the states."""
    page = visitors.page()
    open_page(page, arena.open_room(page, **ROOM))
    page.click("#play")
    wait(page, "!room.playing")
    page.click("#team [data-take='1']")
    page.click("#take-confirm")
    wait(page, "room.mySlot === 1")
    for key in KEYS:
        length = value(page, "room.frames.length")
        page.keyboard.press(key)
        wait(page, f"room.frames.length > {length}")
    page.click("#release")
    wait(page, "room.mySlot === null")
    # Slower than this test, so that nothing follows what is compared.
    value(page, "room.send({ type: 'pause' })")
    wait(page, "!room.playing")
    states = value(page, STATES)
    page.close()
    (room,) = arena.hub.rooms.values()
    room.close("The test goes on.")
    wait_until(visitors.page(), lambda: not arena.hub.rooms, "the end of the room")
    (path,) = directory.iterdir()
    return path, states


def forced_lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if '"forced":{"1":' in line]


@pytest.mark.slow
def test_a_recorded_episode_plays_in_the_page_as_it_was(browser, visitors, tmp_path):
    options = Options(room={"agent": AGENT}, record=tmp_path / "episodes")
    with serving(Hub(options)) as arena:
        path, states = play(arena, visitors, tmp_path / "episodes")
    (episode,) = load_episodes(path)
    assert episode.complete
    assert episode.is_person[:, 1].sum() == len(forced_lines(path)) == len(KEYS)

    with serving(Hub(Options(room={"agent": AGENT}, replay=path))) as arena:
        page = visitors.page()
        open_page(page, arena.address)
        assert page.locator("#replay-note").is_visible()
        page.locator("#speed").focus()
        page.keyboard.press("End")
        wait(page, f"room.frames.length === {len(states)}")
        assert value(page, STATES) == states
        rewards = value(page, "room.frames.slice(1).map((each) => each.rewards)")
        shown = [[each or 0.0 for each in row] for row in rewards]
        np.testing.assert_allclose(shown, episode.rewards, rtol=1e-3)
        played = value(page, "room.frames.map((each) => each.agents[1].person !== null)")
        assert played[:-1] == (episode.is_person[:, 1]).tolist()
        page.click("#team [data-take='1']")
        page.get_by_text("This is a recording: nobody can join it.").wait_for()
        assert page.locator("#take-dialog").is_hidden()
        page.close()

    line = forced_lines(path)[0]
    number = line.split('"forced":{"1":')[1][0]
    changed = line.replace(f'"forced":{{"1":{number}', f'"forced":{{"1":{(int(number) + 1) % 6}')
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(path.read_text().replace(line, changed))
    with pytest.raises(InputError, match=r"wrong\.jsonl, line \d+, is damaged"):
        load_episodes(wrong)
