import jax.numpy as jnp
import numpy as np
import pytest
from jax.core import Tracer

from dropin._xla import compile as compile_module
from dropin._xla.compile import OPTIONS, compiled


@pytest.fixture
def options(monkeypatch):
    """Set the compiler options, for functions that are compiled afterwards."""

    def use(given):
        monkeypatch.setattr(compile_module, "OPTIONS", given)
        compile_module.compiler_options.cache_clear()

    yield use
    compile_module.compiler_options.cache_clear()


def scaled(array, factor, name="double"):
    """Return the array times a factor."""
    return array * factor + (1 if name == "more" else 0)


def test_the_compiled_function_gives_the_same_results_and_keeps_its_name():
    fast = compiled(scaled)
    assert fast(jnp.arange(3), 2, name="more").tolist() == [1, 3, 5]
    assert (fast.__name__, fast.__doc__) == (scaled.__name__, scaled.__doc__)


def test_compilations_are_counted():
    def own(array, factor, name="double"):  # Functions that are equal share their programs.
        return scaled(array, factor, name)

    fast = compiled(own)
    assert fast.compilations() == 0
    fast(jnp.arange(3), 2)
    fast(jnp.arange(3) + 7, 2)
    assert fast.compilations() == 1
    fast(jnp.arange(4), 2)  # another shape
    assert fast.compilations() == 2
    fast(jnp.arange(3), 2, name="more")  # another static argument
    assert fast.compilations() == 3
    fast(jnp.arange(3), 2)
    assert fast.compilations() == 3


@pytest.mark.parametrize(
    ("donate", "deleted"),
    [("none", (False, False)), ("all-except-first", (False, True)), ("all", (True, True))],
)
def test_donated_arguments_are_given_up(donate, deleted):
    def swap(a, b):
        return b + 1, a + 1

    arrays = jnp.zeros(1000), jnp.ones(1000)
    results = compiled(swap, donate=donate)(*arrays)
    assert tuple(each.is_deleted() for each in arrays) == deleted
    assert np.array_equal(results[0], np.full(1000, 2.0))


def test_options_reach_the_compiler(options, tmp_path):
    options({"xla_dump_to": str(tmp_path), "xla_dump_hlo_as_text": True})

    def dumped_program(array):
        return array * 3

    compiled(dumped_program)(jnp.arange(3))
    assert any("dumped_program" in path.name for path in tmp_path.iterdir())


def test_options_that_the_compiler_does_not_know_are_left_out(options):
    options({"xla_no_such_option": True, "xla_cpu_multi_thread_eigen": False})
    assert compile_module.compiler_options(quick=False) == {"xla_cpu_multi_thread_eigen": False}
    assert compiled(scaled)(jnp.arange(3), 2).tolist() == [0, 2, 4]


def test_arithmetic_has_one_thread():
    assert compile_module.compiler_options(quick=False)["xla_cpu_multi_thread_eigen"] is False
    assert compile_module.compiler_options(quick=False).items() <= OPTIONS.items()


def test_nothing_is_compiled_before_the_first_call():
    calls = []

    def function(array):
        calls.append(array)
        return array

    fast = compiled(function)
    assert not calls
    fast(jnp.arange(3))
    fast(jnp.arange(3))
    assert len(calls) == 1
    assert isinstance(calls[0], Tracer)


def test_quick_programs_are_compiled_by_the_older_emitters_where_they_exist():
    options = compile_module.compiler_options(quick=True)
    assert options.get("xla_cpu_use_fusion_emitters", False) is False
    assert options.items() <= compile_module.QUICK_OPTIONS.items()
    assert compiled(lambda x: x + 1, quick=True)(jnp.float32(1)) == 2
