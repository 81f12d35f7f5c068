"""How a trained agent of the zoo is made from a run, and what its card says."""

import json
from dataclasses import replace

import pytest
import tiny

import dropin
from dropin.cli import main
from dropin.core.errors import InputError
from dropin.core.files import file_checksum, read_json
from dropin.training.config import EvaluationConfig, run_config
from dropin.zoo import AGENT_RECIPES, agent_recipe, agents, cards
from dropin.zoo.agent_recipe import (
    FRESH_SEED,
    agent_config,
    check_finished,
    fresh_seed,
    make_agent_card,
)

NAME = "lbf/gpl-q"
SETTINGS = {name: value for name, value in tiny.RUN.items() if name != "report"}


def small_config(name, seed=0):
    """Return settings like those of the recipe, of a run that takes a second."""
    game, learner = AGENT_RECIPES[name]
    small = {**SETTINGS, "types": tuple(SETTINGS["types"]), "rules": "reference", "seed": seed}
    return run_config(game, learner, **small)


@pytest.fixture
def _small(monkeypatch):
    monkeypatch.setattr(agent_recipe, "agent_config", small_config)
    monkeypatch.setattr(agent_recipe, "TEAM_LIMITS", (3,))
    monkeypatch.setattr(agent_recipe, "EPISODES", 80)


def zoo_train(directory, *more):
    """Run the command; return its exit code."""
    try:
        main(["zoo", "train", NAME, "--directory", str(directory), *map(str, more)])
    except SystemExit as stop:
        return stop.code
    return 0


def test_agents_are_trained_as_in_the_paper():
    for name, steps in {NAME: 6_400_000, "fortattack/gpl-spi": 16_000_000}.items():
        config = agent_config(name, 3)
        assert f"{config.game}/{config.learner}" == name
        assert (config.steps, config.seed, config.rules) == (steps, 3, "reference")
        assert (config.team_limit, config.evaluation.team_limits) == (3, (5,))


def test_the_seed_of_a_card_is_fresh():
    config = agent_config(NAME)
    assert fresh_seed(config) == FRESH_SEED
    own = replace(config, seed=FRESH_SEED, evaluation=EvaluationConfig(seed=FRESH_SEED + 1))
    assert fresh_seed(own) == FRESH_SEED + 2


@pytest.mark.usefixtures("_small")
def test_the_command_trains_measures_and_installs(tmp_path, monkeypatch, capsys):
    package, directory = tmp_path / "package", tmp_path / "zoo"
    monkeypatch.setattr(agents, "agent_directory", lambda name: package / name)
    monkeypatch.setattr(cards, "card_path", lambda name: package / "cards" / f"{name}.json")
    assert zoo_train(directory, "--install") == 0
    run, card = directory / NAME, read_json(directory / f"{NAME}.json")
    out = capsys.readouterr().out
    assert "return at team limit 3, rules reference" in out
    assert "is installed in place of agent.safetensors" in out
    for name in ("agent.safetensors", "run.json"):
        assert (package / NAME / name).read_bytes() == (run / name).read_bytes()
    assert len(list((package / NAME).iterdir())) == 2
    assert read_json(package / "cards" / f"{NAME}.json") == card

    assert (card["name"], card["seed"], card["settings"]["steps"]) == (NAME, 0, 120)
    assert card["sha256"] == file_checksum(run / "agent.safetensors")
    env = small_config(NAME).make_env()
    for measured, who in zip(card["measurements"], (dropin.load_agent(run), "random"), strict=True):
        again = dropin.evaluate(who, env, episodes=80, seed=FRESH_SEED).estimate()
        assert (measured["mean"], measured["n"]) == (again.mean, 80)
        assert measured["policy"] in ("gpl-q, greedy", "random")

    # A finished run, which is measured already, is only copied.
    monkeypatch.setattr(agent_recipe, "make_agent_card", None)
    assert zoo_train(directory, "--run", run, "--install") == 0
    # A card of another agent is not overwritten.
    other = tmp_path / "other"
    tiny.run(other, rules="reference", seed=1)
    capsys.readouterr()
    assert zoo_train(directory, "--run", other) == 2
    assert "gpl-q.json is of another agent: remove it" in capsys.readouterr().err


@pytest.mark.usefixtures("_small")
def test_a_run_that_is_not_the_recipes_or_not_finished_gets_no_card(tmp_path, capsys):
    run = tmp_path / "run"
    tiny.run(run, rules="reference", seed=4, steps=80)
    with pytest.raises(InputError, match=r"run is no run for lbf/gpl-q: steps: 120, not 80\."):
        make_agent_card(NAME, run)
    kept = read_json(run / "run.json")
    kept["config"]["steps"] = 120
    (run / "run.json").write_text(json.dumps(kept))
    with pytest.raises(InputError, match=r"is at step 80 of 120: dropin train --resume .*run"):
        make_agent_card(NAME, run)
    with pytest.raises(InputError, match="learner: gpl-spi, not gpl-q"):
        check_finished("lbf/gpl-spi", run)
    with pytest.raises(InputError, match="is not the directory of a run"):
        check_finished(NAME, tmp_path)
    assert zoo_train(tmp_path / "zoo", "--run", run) == 2
    assert "is at step 80 of 120" in capsys.readouterr().err
    assert not (tmp_path / "zoo").exists()
