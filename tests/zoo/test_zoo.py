"""Recipes, cards and weights."""

import hashlib
import os
import signal
from dataclasses import asdict, dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dropin
from dropin.cli import main
from dropin.errors import InputError
from dropin.files import read_arrays, read_json
from dropin.teams import learned
from dropin.teams.learned import weights_path
from dropin.zoo import RECIPES, find
from dropin.zoo.cards import read_card
from dropin.zoo.recipe import Recipe, Score, prepare
from dropin.zoo.replay import Replay


class Counting(eqx.Module):
    total: jax.Array
    steps: jax.Array


@dataclass(frozen=True)
class Tiny(Recipe):
    """Adds up random numbers; can be interrupted at a step."""

    name: ClassVar[str] = "lbf/tiny"
    about: ClassVar[str] = "a sum"
    how: ClassVar[str] = "by adding"

    steps: int = 50
    interrupt_at: ClassVar[int | None] = None

    def start(self, seed):
        return Counting(jax.random.normal(jax.random.key(seed), (3,)), jnp.int32(0))

    def advance(self, state):
        noise = jax.random.normal(jax.random.key(state.steps), (3,))
        after = Counting(state.total + noise, state.steps + 10)
        if int(after.steps) == Tiny.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)
        return after, {"sum": after.total.sum()}

    def weights(self, state):
        return {"total": state.total}

    def scores(self, weights):
        return [Score.of("entries", "sum", weights["total"])]


def test_a_recipe_writes_weights_and_a_card(tmp_path, capsys):
    weights, card = prepare(Tiny(), tmp_path, seed=3)
    arrays, about = read_arrays(weights)
    assert about == {"name": "lbf/tiny", "seed": 3}
    told = read_json(card)
    assert told["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert told["settings"] == {"steps": 50}
    assert told["scores"][0]["mean"] == pytest.approx(arrays["['total']"].mean(), rel=1e-6)
    assert "step 50 of 50" in capsys.readouterr().out
    assert sorted(each.name for each in weights.parent.iterdir()) == [
        "tiny.json",
        "tiny.safetensors",
    ]
    with pytest.raises(InputError, match="exists already"):
        prepare(Tiny(), tmp_path, seed=3)


def test_an_interrupted_recipe_goes_on_to_the_same_bits(tmp_path, monkeypatch, capsys):
    whole, _ = prepare(Tiny(), tmp_path / "whole")
    monkeypatch.setattr(Tiny, "interrupt_at", 30)
    with pytest.raises(KeyboardInterrupt):
        prepare(Tiny(), tmp_path / "parts")
    assert "the same command goes on" in capsys.readouterr().out
    with pytest.raises(InputError, match="another recipe or seed"):
        prepare(Tiny(), tmp_path / "parts", seed=1)
    monkeypatch.setattr(Tiny, "interrupt_at", None)
    parts, _ = prepare(Tiny(), tmp_path / "parts")
    assert "goes on from step 30" in capsys.readouterr().out
    assert parts.read_bytes() == whole.read_bytes()


def test_the_replay_holds_the_last_steps_and_samples_all_of_them():
    replay = Replay.like({"x": jnp.zeros((2,), jnp.int32)}, length=3)
    for number in range(5):
        replay = replay.add({"x": jnp.array([number, 10 + number])})
    some = replay.sample(jax.random.key(0), 300)
    assert set(some["x"].tolist()) == {2, 3, 4, 12, 13, 14}
    early = Replay.like({"x": jnp.zeros((1,), jnp.int32)}, length=3).add({"x": jnp.array([7])})
    assert set(early.sample(jax.random.key(0), 50)["x"].tolist()) == {7}


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_weights_that_fit_their_card(name):
    card = read_card(name)
    assert card is not None
    assert card["name"] == name
    weights = weights_path(name)
    if card["sha256"] is None:
        assert not weights.exists()
    else:
        assert card["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
        assert weights.stat().st_size < 400 * 1024
    assert card["settings"] == asdict(find(name).load())


def scores(name):
    return {(each["what"], each["who"]): each for each in read_card(name)["scores"]}


@pytest.mark.parametrize(
    ("name", "better", "worse"),
    [
        ("lbf/H5", "H5", "random"),
        ("wolfpack/prey", "random", "learned"),
        ("wolfpack/H5", "H5, its likeliest action", "the most common action"),
        ("wolfpack/H5", "H5", "H1"),
        ("wolfpack/H6", "H6", "H1"),
    ],
)
def test_the_cards_tell_of_a_clear_difference(name, better, worse):
    """More captures of random prey than of learned ones, and so on."""
    told = scores(name)
    kinds = {what for what, who in told if who == better}
    assert kinds
    for what in kinds:
        if (what, worse) in told:
            assert told[what, better]["low"] > told[what, worse]["high"]


def test_missing_and_damaged_weights_name_the_recipe(tmp_path, monkeypatch):
    path = tmp_path / "H5.safetensors"
    monkeypatch.setattr(learned, "weights_path", lambda name: path)
    learned.learned.cache_clear()
    try:
        with pytest.raises(InputError, match="dropin zoo train lbf/H5 --install"):
            dropin.make("lbf")
        data = bytearray(weights_path("lbf/H5").read_bytes())
        data[-5] ^= 1
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"damaged.*dropin zoo train lbf/H5 --install"):
            dropin.make("lbf")
        path.write_bytes(weights_path("wolfpack/prey").read_bytes())
        with pytest.raises(InputError, match="something else"):
            dropin.make("lbf")
    finally:
        learned.learned.cache_clear()


def test_weights_are_read_only_when_they_are_needed(monkeypatch):
    monkeypatch.setattr(learned, "weights_path", pytest.fail)
    learned.learned.cache_clear()
    pool = dropin.make("lbf", types=["H4", "H6"]).team.pool
    assert pool.names == ("H4", "H6")


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


def test_the_command_refuses_what_there_is_not(capsys):
    assert run("zoo", "train", "wolfpack/pray") == 2
    assert "did you mean 'wolfpack/prey'" in capsys.readouterr().err
    assert run("zoo", "train") == 2
    assert "Give the name of a recipe" in capsys.readouterr().err
    assert run("zoo", "feed") == 2
    assert "Unknown action 'feed'" in capsys.readouterr().err


def test_the_command_trains_and_installs(tmp_path, monkeypatch, capsys):
    from dropin import zoo
    from dropin.zoo import cards

    entry = zoo.Entry("lbf/tiny", "unused", "Tiny")
    monkeypatch.setattr(zoo.Entry, "load", lambda self: Tiny())
    monkeypatch.setitem(RECIPES, "lbf/tiny", entry)
    place = tmp_path / "package"
    monkeypatch.setattr(learned, "weights_path", lambda name: place / "w.safetensors")
    monkeypatch.setattr(cards, "card_path", lambda name: place / "card.json")
    main(["zoo", "train", "lbf/tiny", "--directory", str(tmp_path / "zoo"), "--install"])
    out = capsys.readouterr().out
    assert "entries" in out
    assert "is installed in place of w.safetensors" in out
    assert "is installed in place of card.json" in out
    assert read_json(place / "card.json")["name"] == "lbf/tiny"
    other = ["zoo", "train", "lbf/tiny", "--directory", str(tmp_path / "zoo"), "--install"]
    assert run(*other, "--seed", "1") == 2
    assert "is of seed 0" in capsys.readouterr().err
    assert np.isfinite(read_arrays(place / "w.safetensors")[0]["['total']"]).all()


@pytest.mark.slow
def test_a_recipe_remakes_its_weights_as_good_as_the_card_says(tmp_path):
    """The same recipe and seed once more; every score within the interval on the card."""
    name = "wolfpack/H5"
    _, card = prepare(find(name).load(), tmp_path)
    told = scores(name)
    for each in read_json(card)["scores"]:
        kept = told[each["what"], each["who"]]
        assert kept["low"] <= each["mean"] <= kept["high"]
