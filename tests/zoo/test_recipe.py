"""Recipes: training, saving, continuing, and what is written."""

import hashlib
import subprocess
import sys
from dataclasses import asdict

import jax
import jax.numpy as jnp
import pytest
from tiny_recipe import Tiny

import dropin
from dropin.core.errors import InputError, StoppedError
from dropin.core.files import read_arrays, read_json
from dropin.core.locks import hold
from dropin.games.lbf import learned
from dropin.teams.weights import load_weights
from dropin.zoo import RECIPES, make_recipe
from dropin.zoo.recipe import make_once, run_recipe


def test_a_recipe_writes_weights_and_a_card(tmp_path, capsys):
    weights, card = run_recipe(Tiny(), tmp_path, seed=3)
    arrays, about = read_arrays(weights)
    assert about == {"name": "lbf/tiny", "seed": 3}
    written = read_json(card)
    assert written["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert written["summary"] == "a sum"
    assert written["method"] == "by adding"
    assert written["settings"] == {"steps": 50}
    (measurement,) = written["measurements"]
    assert measurement["quantity"] == "entries"
    assert measurement["policy"] == "sum"
    assert measurement["mean"] == pytest.approx(arrays["['total']"].mean(), rel=1e-6)
    assert measurement["n"] == 3
    assert "step 50 of 50" in capsys.readouterr().out
    assert sorted(each.name for each in weights.parent.iterdir()) == [
        ".tiny.lock",
        "tiny.doubled.safetensors",
        "tiny.json",
        "tiny.safetensors",
    ]
    doubled, _ = read_arrays(weights.with_name("tiny.doubled.safetensors"))
    assert doubled["['total']"] == pytest.approx(2 * arrays["['total']"])
    with pytest.raises(InputError, match="exists already"):
        run_recipe(Tiny(), tmp_path, seed=3)


def test_an_interrupted_recipe_continues_to_the_same_bits(tmp_path, monkeypatch, capsys):
    whole, _ = run_recipe(Tiny(), tmp_path / "whole")
    monkeypatch.setattr(Tiny, "interrupt_at", 30)
    with pytest.raises(KeyboardInterrupt):
        run_recipe(Tiny(), tmp_path / "parts")
    assert "run the same command to continue" in capsys.readouterr().out
    with pytest.raises(InputError, match="another recipe or seed"):
        run_recipe(Tiny(), tmp_path / "parts", seed=1)
    monkeypatch.setattr(Tiny, "interrupt_at", None)
    parts, _ = run_recipe(Tiny(), tmp_path / "parts")
    assert "continues from step 30" in capsys.readouterr().out
    assert parts.read_bytes() == whole.read_bytes()


def test_what_is_made_once_holds_no_tracers():
    calls = []

    @make_once
    def made(number):
        calls.append(number)
        return jnp.arange(3) + number

    traced = jax.jit(lambda x: x + made(2))(jnp.zeros(3, jnp.int32))
    assert traced.tolist() == made(2).tolist() == [2, 3, 4]
    assert made(5).tolist() == [5, 6, 7]
    assert calls == [2, 5]


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_made_by_its_name(name):
    recipe = make_recipe(name)
    assert recipe.name == name
    assert asdict(recipe)["steps"] == recipe.steps
    game, short = name.split("/")
    assert recipe.weights_path.parts[-4:] == ("games", game, "weights", f"{short}.safetensors")


def test_a_recipe_that_does_not_exist_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'lbf/H5'"):
        make_recipe("lbf/H55")


def test_the_catalogue_imports_no_recipe():
    code = (
        "import sys, dropin.zoo, dropin.zoo.cards; dropin.zoo.cards.read_card('lbf/H5');"
        "heavy = [m for m in sys.modules if m.startswith(('jax', 'dropin.games', 'dropin.zoo.'))];"
        "print(heavy)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert printed.strip() == "['dropin.zoo.cards']"


@pytest.fixture
def lbf_weights(tmp_path, monkeypatch):
    """The file that the weights of lbf/H5 are read from: elsewhere, and missing at first."""
    path = tmp_path / "H5.safetensors"
    monkeypatch.setattr(learned, "WEIGHTS", path)
    load_weights.cache_clear()
    yield path
    load_weights.cache_clear()


def test_missing_and_damaged_weights_name_the_recipe(lbf_weights):
    with pytest.raises(InputError, match="dropin zoo train lbf/H5 --install"):
        dropin.make("lbf")
    data = bytearray(make_recipe("lbf/H5").weights_path.read_bytes())
    data[-5] ^= 1
    lbf_weights.write_bytes(data)
    with pytest.raises(InputError, match=r"damaged.*dropin zoo train lbf/H5 --install"):
        dropin.make("lbf")
    lbf_weights.write_bytes(make_recipe("wolfpack/prey").weights_path.read_bytes())
    with pytest.raises(InputError, match="something else"):
        dropin.make("lbf")


def test_weights_are_read_only_when_they_are_needed(lbf_weights):
    assert not lbf_weights.exists()
    assert dropin.make("lbf", types=["H4", "H6"]).team.pool.names == ("H4", "H6")


def test_a_recipe_killed_between_its_last_files_is_finished(tmp_path, monkeypatch):
    whole, card = run_recipe(Tiny(), tmp_path / "whole")

    def killed(path, value):
        raise SystemError

    with monkeypatch.context() as patched:
        patched.setattr("dropin.zoo.recipe.write_json", killed)
        with pytest.raises(SystemError):
            run_recipe(Tiny(), tmp_path / "parts")
    left = tmp_path / "parts" / "lbf" / ".tiny.safetensors.17.tmp"
    left.touch()
    weights, again = run_recipe(Tiny(), tmp_path / "parts")
    assert weights.read_bytes() == whole.read_bytes()
    assert again.read_bytes() == card.read_bytes()
    assert not left.exists()
    assert not weights.with_suffix(".state.safetensors").exists()


def test_two_processes_cannot_train_a_recipe_in_one_directory(tmp_path):
    (tmp_path / "lbf").mkdir()
    with (
        hold(tmp_path / "lbf" / ".tiny.lock", ""),
        pytest.raises(InputError, match=r"Another process is training lbf/tiny in"),
    ):
        run_recipe(Tiny(), tmp_path)


def test_a_full_disk_stops_a_recipe_with_a_sentence(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("dropin.core.files.os.fsync", full)
        with pytest.raises(StoppedError, match=r"cannot be read or written: No space.* same c"):
            run_recipe(Tiny(), tmp_path)
    run_recipe(Tiny(), tmp_path)
