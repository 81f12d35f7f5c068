import jax
import jax.numpy as jnp
import numpy as np

from dropin.arena.packing import Packing

TREE = {
    "key": jax.random.key(7),
    "numbers": (jnp.arange(6.0).reshape(2, 3), jnp.float32(-0.0)),
    "flags": jnp.array([True, False]),
    "nothing": jnp.zeros((0, 4), jnp.int32),
    "small": jnp.array([200], jnp.uint8),
    "more": jnp.array([7, 8]),
}


def test_a_tree_survives_packing():
    packing = Packing(jax.eval_shape(lambda: TREE))
    packed = jax.jit(packing.pack)(TREE)
    assert sorted(str(vector.dtype) for vector in packed) == [
        "bool", "float32", "int32", "uint32", "uint8",
    ]  # fmt: skip
    again = jax.jit(packing.unpack)(packed)
    for one, two in zip(*map(jax.tree.leaves, (TREE, again)), strict=True):
        assert (one.dtype, one.shape) == (two.dtype, two.shape)
    assert jax.random.uniform(again["key"]) == jax.random.uniform(TREE["key"])
    assert np.signbit(again["numbers"][1])
    on_host = packing.unpack(tuple(np.asarray(vector) for vector in packed))
    assert on_host["numbers"][0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert on_host["flags"].tolist() == [True, False]
    assert on_host["key"].tolist() == jax.random.key_data(TREE["key"]).tolist()
    assert np.shares_memory(on_host["more"], np.asarray(packed[-1])) or on_host["more"][1] == 8


def test_a_tree_without_leaves_is_nothing():
    packing = Packing(())
    assert packing.pack(()) == ()
    assert packing.unpack(()) == ()
