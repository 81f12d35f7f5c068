"""The command `dropin zoo`."""

import numpy as np
import pytest
from tiny_recipe import Tiny

from dropin import zoo
from dropin.cli import main
from dropin.core.files import read_arrays, read_json
from dropin.zoo import RECIPES, cards


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def test_the_command_lists_everything(capsys):
    main(["zoo", "list"])
    out = capsys.readouterr().out
    for name in RECIPES:
        assert f"\n{name} " in out
        assert f"{name} has no card" not in out
    assert "return with heuristic teammates, rules paper" in out
    assert "2.52 to 2.82" in out


def test_the_command_refuses_what_there_is_not(capsys):
    assert run("zoo", "train", "wolfpack/pray") == 2
    assert "did you mean 'wolfpack/prey'" in capsys.readouterr().err
    assert run("zoo", "train") == 2
    assert "Give the name of a recipe" in capsys.readouterr().err
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
