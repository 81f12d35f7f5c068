import os
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from dropin.core.arrays import from_arrays, to_arrays
from dropin.core.errors import InputError
from dropin.core.files import checksum, read_arrays, read_json, write, write_arrays

ARRAYS = {"a": np.arange(6, dtype=np.int32).reshape(2, 3), "b": np.array([0.5, np.nan], np.float32)}
ABOUT = {"kind": "test", "list": [1, 2]}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "arrays.safetensors"
    write_arrays(path, ARRAYS, ABOUT)
    return path


def test_arrays_come_back(path):
    arrays, about = read_arrays(path)
    assert about == ABOUT
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_every_flipped_bit_is_noticed(path):
    """One in every byte of the file."""
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :])
        try:
            arrays, about = read_arrays(path)
        except InputError:
            continue
        # A flip in the layout of the header (as a space between two fields) changes nothing.
        assert about == ABOUT
        assert all(np.array_equal(arrays[k], v, equal_nan=True) for k, v in ARRAYS.items())


def test_every_truncation_is_noticed(path):
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(InputError, match="damaged"):
            read_arrays(path)


@given(data=st.binary(max_size=500))
def test_random_bytes_are_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("random") / "file"
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        read_arrays(path)


def test_a_pickle_is_not_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "trapped"),))

    path = tmp_path / "agent.safetensors"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InputError, match="damaged"):
        read_arrays(path)
    assert not (tmp_path / "trapped").exists()


def test_missing_files_and_directories_are_named(tmp_path):
    for read in (read_arrays, read_json):
        with pytest.raises(InputError, match="no file"):
            read(tmp_path / "nothing")
        with pytest.raises(InputError, match="cannot be read"):
            read(tmp_path)


def test_a_write_that_fails_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dropin.core.files.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(path, b"new")
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


class Tree(eqx.Module):
    weight: jax.Array
    key: jax.Array
    parts: tuple
    name: str = eqx.field(static=True)


def test_a_tree_comes_back_in_every_bit():
    tree = Tree(
        jnp.float32([1.5, -0.0]), jax.random.key(3), (jnp.int32(4), {"x": jnp.ones(2)}), "t"
    )
    blank = eqx.filter_eval_shape(lambda: tree)
    again = from_arrays(blank, to_arrays(tree), "file")
    assert eqx.tree_equal(again, tree)
    assert again.name == "t"
    assert sorted(to_arrays(tree)) == ["key", "parts[0]", "parts[1]['x']", "weight"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda arrays: arrays.pop("weight"), "lacks array 'weight'"),
        (lambda arrays: arrays.update(more=np.ones(2)), "unknown array 'more'"),
        (
            lambda arrays: arrays.update(weight=np.ones(3, np.float32)),
            r"\(3,\), not float32 \(2,\)",
        ),
        (lambda arrays: arrays.update(weight=np.ones(2)), "float64"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, says):
    tree = Tree(jnp.ones(2), jax.random.key(3), (), "t")
    arrays = to_arrays(tree)
    change(arrays)
    with pytest.raises(InputError, match=says):
        from_arrays(tree, arrays, "file")


def test_a_description_that_is_no_json_is_refused(tmp_path):
    described = "[" * 100_000
    metadata = {"dropin": f"{checksum({}, described)} {described}"}
    (tmp_path / "f").write_bytes(safetensors.numpy.save({}, metadata))
    with pytest.raises(InputError, match="damaged or not a file of Dropin"):
        read_arrays(tmp_path / "f")
