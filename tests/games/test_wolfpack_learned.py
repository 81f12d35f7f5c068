"""The learned prey and types of Wolfpack, compared with a slow implementation."""

import equinox as eqx
import jax
import numpy as np
import pytest
import slow_wolfpack
from slow_wolfpack import LEARNED, TYPES, SlowWolfpack
from wolfpack_states import rows_of, state_of

from dropin.games.wolfpack import learned_prey, make_types
from dropin.games.wolfpack.learned import make_h5, make_h6
from dropin.games.wolfpack.prey import RANDOM_ACTION_PROB, observe_patches, q_values

SLOTS, SIZE, NUMBER = 5, 10, 200
PREY = learned_prey()
NETWORKS = {"H5": make_h5().network, "H6": make_h6().network}


def positions(num_prey=2, size=SIZE):
    """Yield games after play in which teammates hunt and prey act at random."""
    random = np.random.default_rng(8)
    for seed in range(NUMBER):
        limit = int(random.integers(2, SLOTS + 1))
        more = {"seed": seed, "size": size, "num_prey": num_prey, "learned": True}
        game = SlowWolfpack("paper", limit, SLOTS, **more)
        for _ in range(int(random.integers(1, 40))):
            game.step(int(random.integers(5)), random.integers(0, 7, num_prey))
        yield game


def stacked(games):
    """Return the fields of the states of all games."""
    return [np.stack(parts) for parts in zip(*map(rows_of, games), strict=True)]


@pytest.fixture(scope="module")
def games():
    """Return positions with enough absent hunters, captured prey and directions among them."""
    made = list(positions())
    hunters, _, facing, captured, _ = stacked(made)
    assert (hunters[..., 0] < 0).sum() > NUMBER
    assert captured.sum() > 10
    assert (np.bincount(facing.ravel(), minlength=4) > NUMBER / 4).all()
    return made


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(None, None, 0))
def patches_and_values(networks, size, rows):
    patches = observe_patches(size, state_of(rows))
    return patches, q_values(networks, patches)


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(None, 0))
def outputs_of_all(network, rows):
    return network(state_of(rows))


def check_prey(games, size):
    patches, values = map(np.asarray, patches_and_values(PREY.networks, size, stacked(games)))
    for k, game in enumerate(games):
        assert np.array_equal(game.learned_prey.patches(game), patches[k])
        assert game.learned_prey.values(game) == pytest.approx(values[k], abs=1e-4)


def test_what_prey_see_and_value(games):
    check_prey(games, SIZE)


def test_what_three_prey_see_and_value_on_a_large_grid():
    check_prey(list(positions(num_prey=3, size=14)), 14)


@pytest.mark.parametrize("name", LEARNED)
def test_the_outputs_of_a_network_for_each_hunter(games, name):
    rows = stacked(games)
    outputs = np.asarray(outputs_of_all(NETWORKS[name], rows))
    softmax = np.asarray(jax.nn.softmax(outputs, axis=-1))
    for k, game in enumerate(games):
        present = rows[0][k, :, 0] >= 0
        assert np.isnan(game.network_outputs(name)[~present]).all()
        assert game.network_outputs(name)[present] == pytest.approx(outputs[k, present], abs=1e-4)
        for slot in np.flatnonzero(present):
            probs = game.distribution(name, int(slot))
            if name == "H5":
                assert probs == pytest.approx(softmax[k, slot], abs=1e-4)
            else:
                assert probs.max() == probs.sum() == 1
                assert outputs[k, slot, probs.argmax()] > outputs[k, slot].max() - 1e-4


def test_the_slow_game_runs_a_network_once_until_somebody_moves(games, monkeypatch):
    game, calls = games[0], []
    run = game.networks["H6"].outputs
    monkeypatch.setattr(
        game.networks["H6"], "outputs", lambda *given: calls.append(given) or run(*given)
    )
    monkeypatch.setattr(game, "last_outputs", {})
    for _ in range(3):
        game.distribution("H6", 0)
    assert len(calls) == 1
    monkeypatch.setattr(game, "facing", [(direction + 1) % 4 for direction in game.facing])
    game.distribution("H6", 0)
    assert len(calls) == 2


def test_all_types_are_in_the_pool():
    assert list(make_types("paper")) == sorted(TYPES + LEARNED)
    games = [SlowWolfpack(team_limit=SLOTS, seed=seed, learned=True) for seed in range(900)]
    drawn = [str(name) for game in games for name in game.types[1:]]
    names, counts = np.unique(drawn, return_counts=True)
    assert names.tolist() == sorted(TYPES + LEARNED)
    assert counts == pytest.approx(400, rel=0.2)
    without = SlowWolfpack(seed=0)
    with pytest.raises(ValueError, match="unknown type"):
        without.distribution("H5", 0)
    with pytest.raises(ValueError, match="given their actions"):
        without.step(0)


def test_prey_choose_before_captured_ones_reappear(monkeypatch):
    monkeypatch.setattr(slow_wolfpack, "RANDOM_ACTION_PROB", 0)
    game = SlowWolfpack(team_limit=SLOTS, seed=3, learned=True)
    taken = []
    act = game.act
    monkeypatch.setattr(game, "act", lambda actions, prey: taken.append(prey) or act(actions, prey))
    random = np.random.default_rng(0)
    before = []
    for _ in range(400):
        before.append([rows_of(game), game.learned_prey.values(game)])
        game.step(int(random.integers(5)))
    captured = sum(rows[3].any() for rows, _ in before)
    assert captured > 3
    for (_, values), actions in zip(before, taken, strict=True):
        assert values.argmax(axis=1).tolist() == actions


def test_slow_prey_act_at_random_as_often_as_those_of_the_zoo():
    assert slow_wolfpack.RANDOM_ACTION_PROB == RANDOM_ACTION_PROB
    assert float(PREY.random_action_prob) == pytest.approx(RANDOM_ACTION_PROB)
    game = SlowWolfpack(seed=1, learned=True)
    best = game.learned_prey.values(game).argmax(axis=1)
    taken = np.array([game.select_prey_actions() for _ in range(3000)])
    assert np.mean(taken != best) == pytest.approx(RANDOM_ACTION_PROB * 6 / 7, abs=0.015)
    assert (np.bincount(taken[:, 0], minlength=7) > 10).all()
