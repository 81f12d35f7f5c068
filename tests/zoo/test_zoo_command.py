"""The command `dropin zoo`."""

import re

import numpy as np
import pytest
from tiny_recipe import Tiny

from dropin import zoo
from dropin.cli import main
from dropin.core import registry
from dropin.core.files import read_arrays, read_json
from dropin.zoo import RECIPES, cards


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def test_the_command_lists_everything(capsys):
    main(["zoo", "list"])
    out = capsys.readouterr().out
    for name in (*RECIPES, *registry.agents):
        assert f"\n{name} " in out
        assert f"{name} has no card" not in out
    assert "return with heuristic teammates, rules paper" in out
    assert "2.52 to 2.82" in out
    assert "return at team limit 5, rules reference" in out
    assert "Watch an agent: dropin play lbf --agent lbf/gpl-q" in out


@pytest.mark.parametrize("name", [*RECIPES, *registry.agents])
def test_the_command_shows_everything_on_a_card(name, capsys):
    main(["zoo", "show", name])
    out = capsys.readouterr().out
    card = cards.read_card(name)
    assert card is not None
    assert out.startswith(f"{name}: {card['summary']}\n{card['method']}\n")
    assert f" {card['seed']}\n" in re.sub(" +\n", "\n", out)
    assert str(card["sha256"]) in out
    for each in card["measurements"]:
        assert f"{each['low']:.2f} to {each['high']:.2f}" in out
    if name in registry.agents:
        assert card["command"] in out
        assert "settings.training.learning_rate" in out


def test_the_command_refuses_what_there_is_not(capsys):
    assert run("zoo", "train", "wolfpack/pray") == 2
    assert "did you mean 'wolfpack/prey'" in capsys.readouterr().err
    assert run("zoo", "train") == 2
    assert "Give the name of a recipe" in capsys.readouterr().err
    assert run("zoo", "train", "lbf/gplq") == 2
    assert "did you mean 'lbf/gpl-q'" in capsys.readouterr().err
    assert run("zoo", "show", "../cards/lbf/H5") == 2
    assert "Unknown name '../cards/lbf/H5'" in capsys.readouterr().err
    assert run("zoo", "show") == 2
    assert "Give a name: lbf/gpl-q" in capsys.readouterr().err
    assert run("zoo", "train", "lbf/H5", "--run", "somewhere") == 2
    assert "--run is for trained agents only" in capsys.readouterr().err
    assert run("zoo", "feed") == 2
    assert "Unknown action 'feed'" in capsys.readouterr().err


def test_the_command_trains_and_installs(tmp_path, monkeypatch, capsys):
    package = tmp_path / "package"
    monkeypatch.setattr(zoo, "RECIPES", {**RECIPES, "lbf/tiny": Tiny})
    monkeypatch.setattr(Tiny, "weights_path", package / "w.safetensors")
    monkeypatch.setattr(cards, "card_path", lambda name: package / "card.json")
    command = ["zoo", "train", "lbf/tiny", "--directory", str(tmp_path / "zoo"), "--install"]
    main(command)
    out = capsys.readouterr().out
    assert "entries" in out
    assert "is installed in place of w.safetensors" in out
    assert "is installed in place of card.json" in out
    assert read_json(package / "card.json")["name"] == "lbf/tiny"
    assert np.isfinite(read_arrays(package / "w.safetensors")[0]["['total']"]).all()
    main(command)
    assert "step 50" not in capsys.readouterr().out
    assert run(*command, "--seed", "1") == 2
    assert "is of seed 0" in capsys.readouterr().err
