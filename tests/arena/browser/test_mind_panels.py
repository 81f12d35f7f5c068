"""The panels show the numbers that the learner itself computes."""

import equinox as eqx
import jax
import numpy as np
import pytest
from browsing import Arena, open_page, value, wait, wait_until

from dropin._xla.random import subkeys
from dropin.agents import load_agent
from dropin.env import make
from dropin.learners.network_policy import NetworkPolicy
from dropin.models.agent_model import action_probs
from dropin.models.coordination import Utilities

AGENT, SEED, STEP = "lbf/gpl-q", 3, 6
"""The state that is looked at: a step of an episode in which three agents are there."""
ROOM = {"game": "lbf", "rules": "paper", "agent": AGENT, "team_limit": 3, "seed": SEED}


@pytest.fixture(scope="module")
def computed():
    """What the learner computes at each step, and what all agents then did."""
    env, policy = make("lbf", rules="paper", team_limit=3), load_agent(AGENT).policy
    assert isinstance(policy, NetworkPolicy)
    act, advance = eqx.filter_jit(policy.act_with_prediction), eqx.filter_jit(env.step)
    key, reset_key = subkeys(jax.random.key(SEED))
    state, observation = eqx.filter_jit(env.reset)(reset_key)
    memory, found = policy.init_memory(env.slots), []
    for _ in range(STEP + 1):
        key, act_key, step_key = subkeys(key, 3)
        action, prediction, memory = act(act_key, observation, memory)
        state, step = advance(step_key, state, action, auto_reset=False)
        found.append((int(action), prediction, np.asarray(step.actions).tolist()))
        observation = step.final_observation
    return found


@pytest.fixture(scope="module")
def panels(arena: Arena, browser):
    """A page on which the step is shown."""
    page = browser.new_page(viewport={"width": 1360, "height": 900})
    open_page(page, arena.open_room(page, **ROOM))
    wait(page, f"room.frames.length > {STEP + 1}")
    page.keyboard.press(" ")
    value(page, f"room.seek({STEP})")
    page.wait_for_timeout(100)
    yield page
    page.close()


def numbers(page, selector: str) -> list[float]:
    """The numbers of cells, as the server has sent them."""
    texts = page.locator(selector).evaluate_all("all => all.map(each => each.dataset.value)")
    return [float(text) for text in texts]


def same(shown, expected, *, digits: int = 4, places: int | None = None) -> bool:
    """Whether numbers are equal but for being rounded for the wire.

    Args:
        shown: What the page shows.
        expected: What was computed.
        digits: Significant digits.
        places: Decimal places instead, if given.
    """
    # A little more than half a unit of the last digit, for numbers at the edge.
    relative, absolute = (
        (0.51 * 10 ** (1 - digits), 1e-7) if places is None else (0, 0.51 * 10**-places)
    )
    return np.allclose(shown, np.asarray(expected).ravel(), rtol=relative, atol=absolute)


def test_values_and_choice_of_every_step(panels, computed):
    # At one step alone the choice could be right by chance.
    assert len({action for action, *_ in computed}) > 1
    for step, (action, prediction, _) in enumerate(computed):
        value(panels, f"room.seek({step})")
        panels.wait_for_timeout(50)
        assert same(numbers(panels, "#values .number"), prediction.q_values)
        texts = panels.locator("#values .number").all_inner_texts()
        assert len({len(text.partition(".")[2]) for text in texts}) == 1, texts
        chosen = panels.locator("#values .value.chosen")
        assert chosen.get_attribute("data-action") == value(panels, f"room.game.actions[{action}]")
    assert value(panels, "room.cursor") == STEP


def test_predictions_beside_what_was_then_done(panels, computed):
    panels.click("#tab-predictions")
    _, prediction, actions = computed[STEP]
    probs = np.asarray(action_probs(prediction.teammate_logits))
    assert same(numbers(panels, "#predictions td:not(.note)"), probs[1:3], places=3)
    rows = panels.locator("#predictions tbody tr")
    for slot in (1, 2):
        row = rows.nth(slot - 1)
        marked = row.locator("td").evaluate_all(
            "all => all.map((each, k) => [k, each.dataset.mark]).filter(([k, mark]) => mark)"
        )
        assert marked == [[actions[slot], "did"]]
        hits = sum(
            int(np.argmax(action_probs(each.teammate_logits)[slot])) == done[slot]
            for _, each, done in computed[:STEP]
        )
        assert row.locator("td.note").inner_text() == f"{hits} of {STEP}"


def test_individual_utilities(panels, computed):
    panels.click("#tab-utilities")
    panels.wait_for_timeout(50)
    _, prediction, _ = computed[STEP]
    assert isinstance(prediction.utilities, Utilities)
    assert same(numbers(panels, "#utilities td"), prediction.utilities.individual[:3], digits=3)


def test_pair_table_and_edges(panels, computed):
    panels.click("#tab-pairs")
    _, prediction, _ = computed[STEP]
    assert isinstance(prediction.utilities, Utilities)
    tables = np.asarray(prediction.utilities.factors.tables())
    panels.select_option("#pair-a", "1")
    panels.select_option("#pair-b", "2")
    wait_until(panels, lambda: "actions of mate 2" in panels.inner_text("#pair-note"))
    assert same(numbers(panels, "#pair-table td"), tables[1, 2])
    pairs = panels.locator("#edge-list .edge").evaluate_all(
        "all => all.map(({ dataset }) => [Number(dataset.a), Number(dataset.b)])"
    )
    weights = numbers(panels, "#edge-list .number")
    edges = {(a, b): weight for (a, b), weight in zip(pairs, weights, strict=True)}
    assert set(edges) == {(0, 1), (0, 2), (1, 2)}
    for (a, b), weight in edges.items():
        assert same([weight], [np.abs(tables[a, b]).mean()], digits=3)
    assert value(panels, "window.dropinArena.board.pair") == [1, 2]
    panels.click("#tab-story")
    panels.wait_for_timeout(100)
    assert value(panels, "window.dropinArena.board.pair") is None


def test_true_types_are_hidden_until_asked(panels):
    panels.click("#tab-types")
    panels.wait_for_timeout(50)
    assert "hidden" in panels.inner_text("#type-legend")
    types = value(panels, "room.frame.agents.slice(1).map((each) => each.type)")
    assert not any(name in panels.inner_text("#team") for name in types)
    panels.check("#types-map")
    panels.wait_for_timeout(50)
    assert all(name in panels.inner_text("#type-legend") for name in types)
    assert all(f"type {name}" in panels.inner_text("#team") for name in types)
    panels.uncheck("#types-team")
    panels.wait_for_timeout(50)
    assert "hidden" in panels.inner_text("#type-legend")


def test_the_story_leads_to_its_steps(panels):
    panels.click("#tab-story")
    wait(panels, "room.frames.some((each) => each.text.length)")
    value(panels, "room.goLive()")
    panels.wait_for_timeout(50)
    entry = panels.locator("#story li").first
    step = int(entry.locator("button").inner_text().removeprefix("step "))
    assert value(panels, f"room.frames[{step}].text.length") > 0
    entry.locator("button").click()
    assert value(panels, "room.cursor") == step


@pytest.mark.slow
def test_panels_say_what_a_learner_lacks(arena: Arena, visitors):
    page = visitors.page()
    open_page(page, arena.open_room(page, game="lbf", agent="H6"))
    page.wait_for_timeout(100)
    assert page.inner_text("#panel-values .excuse") == "H6 has no action values."
    for panel, words in {
        "predictions": "does not predict",
        "utilities": "has no individual utilities",
        "pairs": "has no pairwise utilities",
        "types": "has no type vector",
    }.items():
        page.click(f"#tab-{panel}")
        page.wait_for_timeout(50)
        assert words in page.inner_text(f"#panel-{panel} .excuse")
