"""The cards: they fit the recipes and the weights, and what they claim is so."""

import hashlib
from dataclasses import asdict
from itertools import product

import numpy as np
import pytest
from scipy import stats

import dropin
from dropin.agents import agent_policy
from dropin.core import registry
from dropin.core.files import read_json
from dropin.core.specs import RULES
from dropin.evaluation.evaluate import run_episodes
from dropin.games.wolfpack import make_recurrent_prey
from dropin.policies import TypePolicy
from dropin.zoo import AGENT_RECIPES, RECIPES, make_recipe
from dropin.zoo.cards import read_card
from dropin.zoo.fortattack_matches import (
    ATTACKER_TYPES,
    BEHAVIOUR_QUANTITIES,
    GUARD_TYPES,
    play_matches,
)
from dropin.zoo.lbf_h5 import HEURISTICS
from dropin.zoo.recipe import run_recipe
from dropin.zoo.wolfpack_captures import count_captures
from dropin.zoo.wolfpack_prey_search import MEASURED_EPISODES, PreySearch
from dropin.zoo.wolfpack_table import ACTION_SHARES, TABLE, is_match, measure_row, share_distance

FALL = "forts that fall, against {}, rules {}"
CAPTURES = "captures in 200 steps by three"


def read(name):
    """Read a card, which has to be there."""
    card = read_card(name)
    assert card is not None
    return card


def measured(card, quantity, policy=None):
    """Return a measurement; by default of the policy that the card is about."""
    policy = policy or card.partition("/")[2]
    (found,) = [
        each
        for each in read(card)["measurements"]
        if (each["quantity"], each["policy"]) == (quantity, policy)
    ]
    return found


def everything():
    """Yield the name of the card and every measurement on it."""
    for name in RECIPES:
        for each in read(name)["measurements"]:
            yield name, each


@pytest.mark.parametrize("name", RECIPES)
def test_a_card_fits_its_recipe_and_weights(name):
    card, recipe = read(name), make_recipe(name)
    assert (card["name"], card["summary"], card["method"]) == (
        recipe.name,
        recipe.summary,
        recipe.method,
    )
    assert card["settings"] == asdict(recipe)
    if card["sha256"] is None:
        assert not recipe.weights_path.exists()
    else:
        assert card["sha256"] == hashlib.sha256(recipe.weights_path.read_bytes()).hexdigest()
        assert recipe.weights_path.stat().st_size < 1024 * 1024


def test_every_measurement_is_consistent():
    """The mean is in the middle of its interval, and there are as many values as were taken."""
    rows = list(everything())
    assert len(rows) > 100
    for name, each in rows:
        assert each["low"] <= each["mean"] <= each["high"]
        middle = (each["low"] + each["high"]) / 2
        assert middle == pytest.approx(each["mean"], abs=1e-9)
        if each["quantity"].startswith("share"):
            assert 0 <= each["mean"] <= 1
        if name == "lbf/H5":
            assert each["n"] == 800
        elif each["quantity"].startswith("screened distance"):
            recipe = make_recipe(name)
            assert isinstance(recipe, PreySearch)
            assert each["n"] == recipe.num_checkpoints
        elif each["policy"] == "with memory":
            assert each["n"] == MEASURED_EPISODES
        elif not name.startswith("fortattack") or each["quantity"].startswith("forts"):
            assert each["n"] == 200
        else:
            opponents = ATTACKER_TYPES if "/G" in name else GUARD_TYPES
            assert 0.9 * 200 * len(opponents) < each["n"] <= 200 * len(opponents)


def test_intervals_of_yes_or_no_follow_from_the_mean():
    """By Student's t: the variance of ones and zeros is that of their mean."""
    shares = [each for _, each in everything() if each["quantity"].startswith("forts")]
    assert len(shares) == 2 * 2 * len(GUARD_TYPES) * len(ATTACKER_TYPES)
    for each in shares:
        p, n = each["mean"], each["n"]
        assert p * n == pytest.approx(round(p * n), abs=1e-4)
        error = np.sqrt(p * (1 - p) / (n - 1))
        assert each["high"] - p == pytest.approx(stats.t.ppf(0.975, n - 1) * error, abs=1e-4)


def test_cards_that_measured_the_same_agree():
    for guard, attacker, rules in product(GUARD_TYPES, ATTACKER_TYPES, RULES):
        ours = measured(f"fortattack/{guard}", FALL.format(attacker, rules))
        theirs = measured(f"fortattack/{attacker}", FALL.format(guard, rules))
        assert {**ours, "quantity": "", "policy": ""} == {**theirs, "quantity": "", "policy": ""}
    for name in ("H1", "H4"):
        assert measured("wolfpack/H5", CAPTURES, name) == measured("wolfpack/H6", CAPTURES, name)
    for name in ("H2", "H4"):
        ours = measured("wolfpack/H6", CAPTURES, name)
        theirs = measured("wolfpack/prey", f"{CAPTURES} {name}", "learned")
        assert [ours[key] for key in ("mean", "low", "high", "n")] == [
            theirs[key] for key in ("mean", "low", "high", "n")
        ]


def differences():
    """Yield (quantity, the card and policy with more of it, those with less of it)."""
    for rules in RULES:
        quantity = f"return with heuristic teammates, rules {rules}"
        yield quantity, ("lbf/H5", "H5"), ("lbf/H5", "random")
        for attacker in ATTACKER_TYPES:
            for guard in ("G4", "G6"):
                fall = FALL.format(attacker, rules)
                yield fall, ("fortattack/G1", "G1"), (f"fortattack/{guard}", guard)
        for guard, other in product(("G4", "G6"), ("G1", "G2", "G3")):
            hits = f"share of shots that hit, rules {rules}"
            yield hits, (f"fortattack/{guard}", guard), (f"fortattack/{other}", other)
        spread = f"spread over the width, rules {rules}"
        for other in ("G1", "G2", "G3", "G6"):
            yield spread, ("fortattack/G4", "G4"), (f"fortattack/{other}", other)
    for hunter in ("H2", "H4"):
        quantity = f"{CAPTURES} {hunter}"
        yield quantity, ("wolfpack/prey", "random"), ("wolfpack/prey", "learned")
        slow = "learned, without random actions"
        yield quantity, ("wolfpack/prey", "learned"), ("wolfpack/prey", slow)
    predicted = "share of H4's actions on held-out states"
    best = "H5, its likeliest action"
    yield predicted, ("wolfpack/H5", best), ("wolfpack/H5", "the most common action")
    yield CAPTURES, ("wolfpack/H5", "H5"), ("wolfpack/H5", "H1")
    yield CAPTURES, ("wolfpack/H6", "H6"), ("wolfpack/H6", "H1")
    yield CAPTURES, ("wolfpack/H6", "H6"), ("wolfpack/H6", "H2")


@pytest.mark.parametrize(("quantity", "more", "less"), list(differences()))
def test_the_cards_show_a_clear_difference(quantity, more, less):
    """More captures of random prey than of learned ones, and so on."""
    (more_card, more_policy), (less_card, less_policy) = more, less
    high = measured(more_card, quantity, more_policy)
    low = measured(less_card, quantity, less_policy)
    assert high["low"] > low["high"]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_the_prey_are_captured_as_often_as_those_of_the_authors(row):
    """Within the uncertainty of what was measured in the authors' program, or 20 %."""
    captures = measured("wolfpack/recurrent-prey", row.quantity, "with memory")
    assert is_match(row, captures["mean"])


def test_the_prey_take_each_action_about_as_often_as_those_of_the_authors():
    shares = np.array(
        [
            measured("wolfpack/recurrent-prey", f"share of the action {action}", "with memory")
            for action in ACTION_SHARES
        ]
    )
    means = np.array([each["mean"] for each in shares])
    assert means.sum() == pytest.approx(1)
    # At most a quarter of all actions would have to be other ones.
    assert share_distance(means) < 0.25


def check_again(values, card, quantity, policy=None):
    """Compare new values with the card: four standard errors of the difference are allowed."""
    on_card = measured(card, quantity, policy)
    values = np.asarray(values, np.float64).ravel()
    assert values.size > 20
    card_error = (on_card["high"] - on_card["low"]) / 2 / stats.t.ppf(0.975, on_card["n"] - 1)
    # The spread of one value is also known from the card; a small sample may show none.
    new_error = max(values.std(ddof=1), card_error * np.sqrt(on_card["n"])) / np.sqrt(values.size)
    assert abs(values.mean() - on_card["mean"]) < 4 * np.hypot(card_error, new_error)


def test_lbf_h5_still_does_as_its_card_says():
    env = dropin.make("lbf", rules="paper", types=HEURISTICS)
    h5 = dropin.make("lbf", rules="paper", types=["H5"]).team.pool.types[0]
    policy = TypePolicy(h5, env.team.pool.observer)
    returns = run_episodes(env, policy, num_envs=32, episodes=3, seed=5).returns
    check_again(returns, "lbf/H5", "return with heuristic teammates, rules paper")


def test_wolfpack_prey_still_do_as_their_card_says():
    captures = count_captures(["H2"], episodes=40, seed=5)
    check_again(captures, "wolfpack/prey", f"{CAPTURES} H2", "learned")


def test_wolfpack_prey_with_memory_still_do_as_their_card_says():
    captures = measure_row(TABLE[1], make_recurrent_prey(), episodes=40, seed=5).captures
    check_again(captures.sum(axis=1), "wolfpack/recurrent-prey", TABLE[1].quantity, "with memory")


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_the_whole_table_of_the_prey_measured_again(row):
    """With other episodes: as the card says, and a match but for the error of the mean."""
    captures = measure_row(row, make_recurrent_prey(), episodes=400, seed=6).captures.sum(axis=1)
    check_again(captures, "wolfpack/recurrent-prey", row.quantity, "with memory")
    error = captures.std(ddof=1) / np.sqrt(captures.size)
    assert abs(captures.mean() - row.captures) <= row.tolerance + 2 * error


def test_fortattack_g4_still_does_as_its_card_says():
    matches = play_matches("G4", "A2", rules="reference", episodes=40, seed=5)
    fall = FALL.format("A2", "reference")
    check_again(matches.fort_fell, "fortattack/G4", fall)
    check_again(matches.fort_fell, "fortattack/A2", FALL.format("G4", "reference"))


AGENTS = [name for name in AGENT_RECIPES if name in registry.agents]
QUICK = "lbf/gpl-q"


@pytest.mark.parametrize(
    "name",
    [name if name == QUICK else pytest.param(name, marks=pytest.mark.slow) for name in AGENTS],
)
def test_trained_agents_still_do_as_their_cards_say(name):
    agent = dropin.load_agent(name)
    for limit in (3,) if name == QUICK else (3, 5):
        env = dropin.make(agent.interface.game, rules="reference", team_limit=limit)
        for mode in agent.policy.modes:
            policy = agent_policy(agent, env, mode)
            returns = run_episodes(env, policy, num_envs=32, episodes=5, seed=5).returns
            quantity = f"return at team limit {limit}, rules reference"
            check_again(returns, name, quantity, f"{agent.learner}, {mode}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["H5", "H6"])
def test_wolfpack_hunters_still_do_as_their_cards_say(name):
    captures = count_captures([name], episodes=60, seed=5)
    check_again(captures, f"wolfpack/{name}", CAPTURES)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["G4", "G6"])
def test_guards_of_fortattack_behave_as_their_cards_say(name):
    """Against both types of attackers together, as on the card."""
    played = [play_matches(name, other, "paper", episodes=60, seed=5) for other in ATTACKER_TYPES]
    for quantity, field in BEHAVIOUR_QUANTITIES.items():
        values = np.concatenate([getattr(each.guards, field) for each in played])
        finite = values[np.isfinite(values)]
        check_again(finite, f"fortattack/{name}", f"{quantity}, rules paper")


@pytest.mark.slow
def test_a_recipe_remakes_its_weights_as_good_as_the_card_says(tmp_path):
    """Train once more with the same seed; every measurement is within the interval on the card."""
    name = "wolfpack/H5"
    _, card = run_recipe(make_recipe(name), tmp_path)
    for each in read_json(card)["measurements"]:
        on_card = measured(name, each["quantity"], each["policy"])
        assert on_card["low"] <= each["mean"] <= on_card["high"]
