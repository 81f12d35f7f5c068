"""The prey and the types of Wolfpack that learned, beside a slow implementation."""

import equinox as eqx
import jax
import numpy as np
import pytest
import slow_wolfpack
from slow_wolfpack import LEARNED, TYPES, SlowWolfpack
from wolfpack_states import rows_of

from dropin.games.wolfpack import State
from dropin.teams.wolfpack.learned import by_rewards, imitator
from dropin.teams.wolfpack.pool import types as wolfpack_types
from dropin.teams.wolfpack.prey import STUMBLES, action_values, fleeing, patches

SLOTS, SIZE, NUMBER = 5, 10, 200
PREY = fleeing()
NETS = {"H5": imitator().net, "H6": by_rewards().net}


def positions(prey=2, size=SIZE):
    """Games after random play, in which teammates hunt and prey do anything."""
    random = np.random.default_rng(8)
    for seed in range(NUMBER):
        limit = int(random.integers(2, SLOTS + 1))
        more = {"seed": seed, "size": size, "prey": prey, "learned": True}
        game = SlowWolfpack("paper", limit, SLOTS, **more)
        for _ in range(int(random.integers(1, 40))):
            game.step(int(random.integers(5)), random.integers(0, 7, prey))
        yield game


def stacked(games):
    """The fields of the states of all games."""
    return [np.stack(parts) for parts in zip(*map(rows_of, games), strict=True)]


@pytest.fixture(scope="module")
def games():
    """Enough of everything that matters is among them."""
    made = list(positions())
    hunters, _, facing, captured, _ = stacked(made)
    assert (hunters[..., 0] < 0).sum() > NUMBER
    assert captured.sum() > 10
    assert (np.bincount(facing.ravel(), minlength=4) > NUMBER / 4).all()
    return made


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(None, None, 0))
def seen_and_valued(nets, size, rows):
    seen = patches(size, State(*rows, ()))
    return seen, action_values(nets, seen)


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(None, 0))
def said_of_all(net, rows):
    return net(State(*rows, ()))


def check_prey(games, size):
    seen, valued = map(np.asarray, seen_and_valued(PREY.nets, size, stacked(games)))
    for k, game in enumerate(games):
        assert np.array_equal(game.fleeing.patches(game), seen[k])
        assert game.fleeing.values(game) == pytest.approx(valued[k], abs=1e-4)


def test_what_prey_see_and_value(games):
    check_prey(games, SIZE)


def test_what_three_prey_see_and_value_on_a_large_grid():
    check_prey(list(positions(prey=3, size=14)), 14)


@pytest.mark.parametrize("name", LEARNED)
def test_what_a_network_says_of_each_hunter(games, name):
    rows = stacked(games)
    said = np.asarray(said_of_all(NETS[name], rows))
    likely = np.asarray(jax.nn.softmax(said, axis=-1))
    for k, game in enumerate(games):
        present = rows[0][k, :, 0] >= 0
        assert np.isnan(game.numbers(name)[~present]).all()
        assert game.numbers(name)[present] == pytest.approx(said[k, present], abs=1e-4)
        for slot in np.flatnonzero(present):
            chances = game.distribution(name, int(slot))
            if name == "H5":
                assert chances == pytest.approx(likely[k, slot], abs=1e-4)
            else:
                assert chances.max() == chances.sum() == 1
                assert said[k, slot, chances.argmax()] > said[k, slot].max() - 1e-4


def test_a_network_is_asked_once_until_somebody_moves(games, monkeypatch):
    game, asked = games[0], []
    ask = game.hunting["H6"].numbers
    monkeypatch.setattr(
        game.hunting["H6"], "numbers", lambda *given: asked.append(given) or ask(*given)
    )
    monkeypatch.setattr(game, "known", {})
    for _ in range(3):
        game.distribution("H6", 0)
    assert len(asked) == 1
    monkeypatch.setattr(game, "facing", [(way + 1) % 4 for way in game.facing])
    game.distribution("H6", 0)
    assert len(asked) == 2


def test_all_types_are_in_the_pool():
    assert list(wolfpack_types("paper")) == sorted(TYPES + LEARNED)
    games = [SlowWolfpack(team_limit=SLOTS, seed=seed, learned=True) for seed in range(900)]
    names, counts = np.unique([game.types[1:] for game in games], return_counts=True)
    assert names.tolist() == sorted(TYPES + LEARNED)
    assert counts == pytest.approx(400, rel=0.2)
    without = SlowWolfpack(seed=0)
    with pytest.raises(ValueError, match="unknown type"):
        without.distribution("H5", 0)
    with pytest.raises(ValueError, match="given their actions"):
        without.step(0)


def test_prey_choose_before_those_captured_reappear(monkeypatch):
    monkeypatch.setattr(slow_wolfpack, "STUMBLES", 0)
    game = SlowWolfpack(team_limit=SLOTS, seed=3, learned=True)
    did = []
    act = game.act
    monkeypatch.setattr(game, "act", lambda actions, prey: did.append(prey) or act(actions, prey))
    random = np.random.default_rng(0)
    before = []
    for _ in range(400):
        before.append([rows_of(game), game.fleeing.values(game)])
        game.step(int(random.integers(5)))
    captured = sum(rows[3].any() for rows, _ in before)
    assert captured > 3
    for (_, values), actions in zip(before, did, strict=True):
        assert values.argmax(axis=1).tolist() == actions


def test_prey_stumble_as_often_as_those_of_the_zoo():
    assert slow_wolfpack.STUMBLES == STUMBLES == pytest.approx(float(PREY.stumbles))
    game = SlowWolfpack(seed=1, learned=True)
    best = game.fleeing.values(game).argmax(axis=1)
    did = np.array([game.flee() for _ in range(3000)])
    assert np.mean(did != best) == pytest.approx(STUMBLES * 6 / 7, abs=0.015)
    assert (np.bincount(did[:, 0], minlength=7) > 10).all()
