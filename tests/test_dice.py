import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin.dice import Dice, pick, threefry


@pytest.mark.parametrize(
    ("key", "counter", "answer"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_published_answers(key, counter, answer):
    x, y = (jnp.array([word], jnp.uint32) for word in counter)
    assert threefry(jnp.array(key, jnp.uint32), x, y)[:, 0].tolist() == list(answer)


def test_numbers_are_given_once():
    dice = Dice(jax.random.key(0), block=8)
    drawn = np.concatenate([np.ravel(dice.bits(*shape)) for shape in [(3,), (2, 4), (1,), (20,)]])
    assert len(set(drawn.tolist())) == 32


def test_again_repeats_what_is_to_come():
    dice = Dice(jax.random.key(0), block=4)
    dice.bits(3)
    same = dice.again()
    assert dice.bits(6).tolist() == same.bits(6).tolist()
    assert dice.bits(2).tolist() == same.bits(2).tolist()


def test_uniform_numbers_are_uniform():
    numbers = np.asarray(Dice(jax.random.key(1), block=100_000).uniform(100_000))
    assert numbers.min() >= 0
    assert numbers.max() < 1
    counts, _ = np.histogram(numbers, 20, (0, 1))
    assert counts / 5000 == pytest.approx(np.ones(20), abs=0.06)


def test_integers_include_both_ends_and_nothing_else():
    dice = Dice(jax.random.key(2), block=30_000)
    drawn = np.asarray(dice.integers(3, jnp.int32(5), 30_000))
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [3, 4, 5]
    assert counts / 10_000 == pytest.approx(np.ones(3), abs=0.05)


def test_a_key_of_the_dice_is_a_key():
    dice = Dice(jax.random.key(3))
    assert jax.random.uniform(dice.key()) != jax.random.uniform(dice.key())


def test_a_pick_follows_the_chances():
    chances = jnp.array([0.1, 0.0, 0.6, 0.3, 0.0])
    chance = (jnp.arange(1000.0) + 0.5) / 1000
    options = np.asarray(pick(jnp.broadcast_to(chances, (1000, 5)), chance))
    assert np.bincount(options, minlength=5).tolist() == [100, 0, 600, 300, 0]
    # A number just below one never lands on an option that is impossible.
    third = jnp.array([1 / 3, 1 / 3, 1 / 3, 0.0, 0.0], jnp.float32)
    assert int(pick(third, jnp.float32(1 - 2**-24))) == 2
