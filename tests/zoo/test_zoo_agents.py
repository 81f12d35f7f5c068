"""The trained agents of the package: each has its run, its weights and a card that fits both."""

import equinox as eqx
import jax
import pytest

import dropin
from dropin.agents import load_policy
from dropin.core import registry
from dropin.core.files import file_checksum, read_json
from dropin.training.run_directory import RunDirectory
from dropin.zoo import AGENT_RECIPES
from dropin.zoo.agent_recipe import EPISODES, TEAM_LIMITS, check_finished
from dropin.zoo.agents import agent_directory
from dropin.zoo.cards import card_path, read_card

NAMES = [name for name in AGENT_RECIPES if name in registry.agents]
HOME = agent_directory(NAMES[0]).parent.parent


def test_every_agent_has_a_card_and_every_card_an_agent():
    directories = {f"{each.parent.parent.name}/{each.parent.name}" for each in HOME.glob("*/*/*")}
    cards = {name for name in AGENT_RECIPES if card_path(name).exists()}
    assert set(NAMES) == directories == cards
    for name in NAMES:
        assert registry.agents[name].card == card_path(name)


def test_there_is_nothing_but_weights_and_settings_and_not_much_of_it():
    files = [each for each in HOME.glob("*/**/*") if each.is_file() and each.suffix != ".pyc"]
    assert {each.name for each in files} == {"agent.safetensors", "run.json"}
    assert sum(each.stat().st_size for each in files) < 10 * 2**20


@pytest.mark.parametrize("name", NAMES)
def test_a_card_fits_its_run_and_weights(name):
    card, run = read_card(name), agent_directory(name)
    assert card is not None
    config = check_finished(name, run)
    assert (card["name"], f"{config.game}/{config.learner}") == (name, name)
    assert card["settings"] == config.to_dict()
    assert card["versions"] == read_json(run / "run.json")["versions"]
    assert (card["seed"], card["rules"]) == (config.seed, config.rules)
    assert card["game_version"] == registry.games[config.game].version
    assert card["sha256"] == file_checksum(RunDirectory(run).agent)
    assert card["measured"]["seed"] not in (config.seed, config.evaluation.seed)
    assert card["command"] == f"dropin zoo train {name} --seed {config.seed}"


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_is_measured_in_all_its_modes_and_better_than_chance(name):
    card, agent = read_card(name), dropin.load_agent(name)
    assert card is not None
    measured = {(each["quantity"], each["policy"]): each for each in card["measurements"]}
    for limit in TEAM_LIMITS:
        quantity = f"return at team limit {limit}, rules reference"
        chance = measured[quantity, "random"]
        for mode in agent.policy.modes:
            own = measured[quantity, f"{agent.learner}, {mode}"]
            assert own["n"] == chance["n"] == EPISODES
            assert own["low"] <= own["mean"] <= own["high"]
            assert own["low"] > chance["high"]


def test_an_agent_by_its_name_acts_as_its_file_everywhere():
    env = dropin.make("lbf", rules="reference")
    file = agent_directory("lbf/gpl-q") / "agent.safetensors"
    by_name, by_file = (load_policy(each, env) for each in ("lbf/gpl-q", file))
    assert eqx.tree_equal(by_name, by_file)
    state, observation = eqx.filter_jit(env.reset)(jax.random.key(3))
    memory = by_name.init_memory(env.slots)
    actions = [
        int(each.act(jax.random.key(4), env, state, observation, memory)[0])
        for each in (by_name, by_file)
    ]
    assert actions[0] == actions[1]
