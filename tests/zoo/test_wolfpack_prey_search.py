"""The table of captures, and the choice of prey by it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin.games.wolfpack import RandomPrey
from dropin.games.wolfpack.recurrent_prey import init_recurrent_networks
from dropin.games.wolfpack.state import STAY
from dropin.zoo import wolfpack_prey_search
from dropin.zoo.wolfpack_prey_search import PreySearch, SearchState, score_of
from dropin.zoo.wolfpack_recurrent_prey import RecurrentFleeingPrey
from dropin.zoo.wolfpack_table import (
    ACTION_SHARES,
    SCREENED,
    SHARES_ROW,
    TABLE,
    distance,
    is_match,
    measure_row,
    share_distance,
)


class Staying(eqx.Module):
    """The first prey stays, the second turns left."""

    def init_memory(self, num_prey):
        return jnp.zeros(num_prey)

    def act(self, rng, size, state):
        return jnp.array([STAY, 5], jnp.int32), state.memory + 1


def test_actions_of_each_prey_are_counted_in_every_step():
    result = measure_row(TABLE[0], Staying(), episodes=3)
    assert result.captures.shape == (3, 2)
    assert result.actions.shape == (3, 2, 7)
    assert (result.actions[:, 0, STAY] == 200).all()
    assert (result.actions[:, 1, 5] == 200).all()
    assert result.actions.sum() == 3 * 2 * 200


def test_a_learner_that_stays_captures_less_often():
    moving, staying = (measure_row(TABLE[index], RandomPrey(), episodes=24) for index in (1, 2))
    assert staying.captures.sum() < moving.captures.sum()
    assert not np.array_equal(staying.captures, moving.captures)


def test_the_same_seed_gives_the_same_episodes():
    one, two = (measure_row(TABLE[0], RandomPrey(), episodes=8, seed=3) for _ in range(2))
    other = measure_row(TABLE[0], RandomPrey(), episodes=8, seed=4)
    assert np.array_equal(one.actions, two.actions)
    assert not np.array_equal(one.actions, other.actions)


def test_distances_to_the_table():
    theirs = [row.captures for row in TABLE]
    assert distance(theirs) == 0
    # H1 has a tolerance of 0.13, its own uncertainty; H2 of 20 %.
    assert distance([0.54 + 0.26, *theirs[1:]]) == pytest.approx(2)
    assert distance([0.54, 5.46 * 0.7, *theirs[2:]]) == pytest.approx(1.5)
    assert is_match(TABLE[0], 0.54 - 0.13)
    assert not is_match(TABLE[0], 0.54 - 0.14)
    assert is_match(TABLE[1], 5.46 * 1.19)
    assert not is_match(TABLE[1], 5.46 * 1.21)
    shares = np.array(list(ACTION_SHARES.values()))
    shares /= shares.sum()
    assert share_distance(shares) == pytest.approx(0)
    moved = shares + np.array([0.1, 0, -0.1, 0, 0, 0, 0])
    assert share_distance(moved) == pytest.approx(0.1)
    screened = [row.captures for row in SCREENED]
    assert TABLE[SHARES_ROW] in SCREENED
    assert score_of(screened, moved) == pytest.approx(0.1)


def test_the_pair_that_is_closest_to_the_table_is_chosen(monkeypatch):
    """Each network is known by its first bias, and stands for that multiple of the table."""
    multiples = np.array([[0.9, 3.0], [0.2, 1.2], [1.1, 0.5]])
    half = np.array([row.captures / 2 for row in TABLE])
    shares = np.array(list(ACTION_SHARES.values()))
    training = RecurrentFleeingPrey(head_start=0, num_envs=2, steps=6, updates_per_chunk=1)
    recipe = PreySearch(num_trainings=1, num_networks=4, num_finalists=2, training=training)
    assert recipe.num_checkpoints == 3
    assert recipe.steps == 6
    networks = jax.vmap(init_recurrent_networks)(jax.random.split(jax.random.key(0), 3))
    networks = eqx.tree_at(
        lambda net: net.first.bias,
        networks,
        networks.first.bias.at[..., 0].set(jnp.asarray(multiples, jnp.float32)),
    )
    screened = np.array([row.captures / 2 for row in SCREENED])
    state = SearchState(
        train_state=training.init(0),
        networks=networks,
        captures=jnp.asarray(multiples[:, None] * screened[None, :, None], jnp.float32),
        shares=jnp.tile(jnp.asarray(shares, jnp.float32)[None, None], (3, 2, 1)),
        checkpoints=jnp.int32(3),
        seed=jnp.int32(0),
    )
    played = []

    def play(rows, networks, episodes, seed):
        here = np.asarray(networks.first.bias[:, 0], np.float64)
        played.append((len(rows), sorted(here.round(3).tolist())))
        part = half if len(rows) == len(TABLE) else screened
        return part[:, None] * here[None], np.stack([shares / shares.sum()] * 2)

    monkeypatch.setattr(wolfpack_prey_search, "_play", play)
    chosen = recipe.policy_params(state)
    assert sorted(chosen.first.bias[:, 0].tolist()) == pytest.approx([0.9, 1.1])
    # The four closest networks are paired, but for those that were trained as a pair. Of these and
    # the pairs as they were trained the two best play the whole table.
    assert [number for number, _ in played] == [len(SCREENED)] * 5 + [len(TABLE)] * 2
    assert {each for _, pair in played for each in pair} == {0.5, 0.9, 1.1, 1.2}
    assert [0.5, 1.1] not in [pair for _, pair in played]
    measurements = recipe.measure_training(state)
    assert [each.estimate.n for each in measurements] == [3]
