import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dropin._xla.random import (
    StepRNG,
    categorical,
    sample_categorical,
    split,
    subkeys,
    threefry,
    uniform,
    uniform_to_index,
)

KEY = jax.random.key(7)
ALMOST_ONE = np.float32(1 - 2**-24)
"""The largest number that `StepRNG.uniform` gives."""


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


def test_no_numbers_can_be_asked_for():
    rng = StepRNG(jax.random.key(0))
    assert rng.uniform(0, 3).shape == (0, 3)
    assert rng.used == 0


def test_each_number_is_handed_out_once():
    rng = StepRNG(jax.random.key(0), block=8)
    drawn = np.concatenate([np.ravel(rng.bits(*shape)) for shape in [(3,), (2, 4), (), (20,)]])
    assert len(set(drawn.tolist())) == rng.used == 32


def test_numbers_do_not_depend_on_how_they_are_asked_for():
    together = StepRNG(jax.random.key(0), block=8).bits(30)
    rng = StepRNG(jax.random.key(0), block=8)
    pieces = [rng.bits(5), rng.bits(2, 10), rng.bits(), rng.bits(4)]
    assert np.array_equal(np.concatenate([np.ravel(each) for each in pieces]), together)


@pytest.mark.parametrize("used", [0, 3, 8, 21])
def test_a_source_can_skip_numbers(used):
    rng = StepRNG(jax.random.key(0), block=8)
    rng.bits(used)
    skipping = StepRNG(jax.random.key(0), block=8, used=used)
    assert skipping.used == used
    assert np.array_equal(skipping.bits(11), rng.bits(11))


def test_numbers_are_the_same_under_vmap():
    keys = jax.random.split(jax.random.key(0), 3)
    batched = jax.vmap(lambda key: StepRNG(key, block=6).bits(4, 2))(keys)
    for key, numbers in zip(keys, batched, strict=True):
        assert np.array_equal(StepRNG(key, block=6).bits(4, 2), numbers)


def test_numbers_of_different_keys_are_independent():
    # Also keys that differ in a single bit, and the numbers that `jax.random` draws from a key.
    keys = [jax.random.key(seed) for seed in (0, 1, 2, 2**31)]
    keys += list(jax.random.split(jax.random.key(0), 2))
    keys.append(StepRNG(keys[0]).key())
    rows = [np.asarray(StepRNG(key, block=20_000).uniform(20_000)) for key in keys]
    rows.append(np.asarray(jax.random.uniform(keys[0], (20_000,))))
    correlations = np.corrcoef(rows)[np.triu_indices(len(rows), 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(20_000)
    first, second = (np.asarray(StepRNG(key, block=20_000).bits(20_000)) for key in keys[:2])
    shared = np.intersect1d(first, second)
    assert len(shared) < 5  # 20000^2 / 2^32 = 0.1 are expected.


def test_numbers_differ_from_the_keys_that_jax_splits_off():
    key = jax.random.key(0)
    words = np.ravel(jax.random.key_data(jax.random.split(key, 100)))
    assert not set(words.tolist()) & set(StepRNG(key).bits(200).tolist())


def test_uniform_numbers_have_the_moments_of_the_uniform_distribution():
    number = 100_000
    numbers = np.asarray(StepRNG(jax.random.key(1), block=1000).uniform(number), np.float64)
    assert numbers.min() >= 0
    assert numbers.max() <= ALMOST_ONE
    for power in range(1, 5):
        error = np.sqrt(1 / (2 * power + 1) - 1 / (power + 1) ** 2) / np.sqrt(number)
        assert np.mean(numbers**power) == pytest.approx(1 / (power + 1), abs=4 * error)
    for lag in (1, 2, 500, 1000):  # Blocks of 1000 have two halves.
        assert abs(np.corrcoef(numbers[lag:], numbers[:-lag])[0, 1]) < 4 / np.sqrt(number)
    counts, _ = np.histogram(numbers, 20, (0, 1))
    assert counts / 5000 == pytest.approx(np.ones(20), abs=0.06)


def test_every_bit_is_set_half_of_the_time():
    bits = np.asarray(StepRNG(jax.random.key(5), block=1000).bits(20_000))
    shares = [np.mean((bits >> place) & 1) for place in range(32)]
    assert shares == pytest.approx(np.full(32, 0.5), abs=4.5 * 0.5 / np.sqrt(20_000))


def test_integers_include_both_ends_and_nothing_else():
    rng = StepRNG(jax.random.key(2), block=30_000)
    drawn = np.asarray(rng.integers(3, jnp.int32(5), 30_000))
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [3, 4, 5]
    assert counts / 10_000 == pytest.approx(np.ones(3), abs=0.05)


def test_keys_can_be_used_with_jax_and_differ():
    rng = StepRNG(jax.random.key(3))
    assert jax.random.uniform(rng.key()) != jax.random.uniform(rng.key())
    assert rng.used == 4


@given(number=st.integers(1, 2**20), uniform=st.integers(0, 2**24 - 1))
def test_an_index_is_the_integer_part_of_the_scaled_number(number, uniform):
    index = int(uniform_to_index(jnp.float32(uniform * 2**-24), jnp.int32(number)))
    exact = uniform * number // 2**24
    # The product is rounded to 24 bits, which may take it up to the next integer.
    assert index in (exact, exact + 1)
    assert 0 <= index < number
    if number & (number - 1) == 0:
        assert index == exact


def slow_sample(probs, uniform):
    """The first option at which the running sum exceeds the number, else the last possible one."""
    total = np.float32(0)
    for option, prob in enumerate(probs):
        total = np.float32(total + prob)
        if uniform < total:
            return option
    return max((option for option, prob in enumerate(probs) if prob > 0), default=0)


weights = st.lists(st.sampled_from([0, 0, 1, 2, 3, 7, 100]), min_size=5, max_size=5).filter(any)


@given(
    rows=st.lists(weights, min_size=3, max_size=3),
    numbers=st.lists(st.integers(0, 2**24 - 1), min_size=3, max_size=3),
)
def test_sampling_agrees_with_a_search_through_the_running_sum(rows, numbers):
    probs = np.array([np.float32(row) / np.float32(sum(row)) for row in rows], np.float32)
    drawn = np.array(numbers, np.float32) * np.float32(2**-24)
    for samples in (drawn, np.full(3, ALMOST_ONE), np.zeros(3, np.float32)):
        options = np.asarray(sample_categorical(jnp.asarray(probs), jnp.asarray(samples)))
        expected = [slow_sample(row, each) for row, each in zip(probs, samples, strict=True)]
        assert options.tolist() == expected
        assert np.all(probs[np.arange(3), options] > 0)


def test_options_are_drawn_as_often_as_their_probabilities_say():
    probs = jnp.array([0.1, 0.0, 0.6, 0.3, 0.0])
    samples = (jnp.arange(1000.0) + 0.5) / 1000
    options = np.asarray(sample_categorical(jnp.broadcast_to(probs, (1000, 5)), samples))
    assert np.bincount(options, minlength=5).tolist() == [100, 0, 600, 300, 0]


def test_an_impossible_option_is_not_drawn_if_the_sum_is_below_one():
    third = jnp.array([0.0, 0.3, 0.3, 0.3, 0.0], jnp.float32)
    assert int(sample_categorical(third, jnp.float32(ALMOST_ONE))) == 3
    assert int(sample_categorical(third, jnp.float32(0))) == 1


@pytest.mark.parametrize("shape", [1, 3, (2, 16), (4, 3, 2)])
def test_split_returns_the_keys_of_jax(shape):
    for split_keys in (split, jax.jit(split, static_argnums=1)):
        ours, theirs = split_keys(KEY, shape), jax.random.split(KEY, shape)
        assert ours.shape == theirs.shape
        assert bool(jnp.all(jax.random.key_data(ours) == jax.random.key_data(theirs)))


@pytest.mark.parametrize("number", [1, 2, 5])
def test_subkeys_are_the_keys_of_jax_one_by_one(number):
    for get in (subkeys, jax.jit(subkeys, static_argnums=1)):
        ours, theirs = get(KEY, number), jax.random.split(KEY, number)
        assert len(ours) == number
        for one, other in zip(ours, theirs, strict=True):
            assert one.shape == ()
            assert jax.random.key_data(one).tolist() == jax.random.key_data(other).tolist()


def test_subkeys_compile_nothing(caplog):
    key = jax.random.key(11)
    with jax.log_compiles():
        first, second = subkeys(key)
    assert "Compiling" not in caplog.text
    assert jax.random.key_data(first).tolist() != jax.random.key_data(second).tolist()


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.3, 0.3), (2.0, 5.0)])
def test_uniform_returns_the_numbers_of_jax(low, high):
    for shape in ((), (7,), (3, 5)):
        ours = jax.jit(lambda key, shape=shape: uniform(key, shape, low, high))(KEY)
        assert bool(jnp.all(ours == jax.random.uniform(KEY, shape, minval=low, maxval=high)))


def test_categorical_returns_the_options_of_jax():
    logits = jax.random.normal(jax.random.key(5), (200, 6))
    assert bool(jnp.all(categorical(KEY, logits) == jax.random.categorical(KEY, logits)))


def test_keys_of_another_generator_are_split_by_jax():
    key = jax.random.key(0, impl="rbg")
    assert split(key, 3).dtype == key.dtype
    assert bool(jnp.all(uniform(key, (4,)) == jax.random.uniform(key, (4,))))


def test_splitting_needs_no_loop():
    text = jax.jit(lambda key: jax.random.key_data(split(key, (4, 16)))).lower(KEY).as_text()
    assert "while" not in text
