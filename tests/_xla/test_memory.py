import ctypes
import gc
from pathlib import Path

import jax.numpy as jnp
import pytest

from dropin._xla import compile as compile_module
from dropin._xla.compile import compiled
from dropin._xla.memory import release_memory

STATUS = Path("/proc/self/status")


def resident_kib() -> int:
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@pytest.mark.skipif(
    not STATUS.exists() or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs glibc"
)
def test_freed_memory_is_given_back():
    blocks = [ctypes.create_string_buffer(b"x" * 4000, 4000) for _ in range(25_000)]
    last = ctypes.create_string_buffer(b"x" * 4000, 4000)  # Keeps the end of the heap in use.
    full = resident_kib()
    del blocks
    gc.collect()
    release_memory()
    assert full - resident_kib() > 50_000
    assert last.raw[:1] == b"x"


def test_memory_is_given_back_after_a_program_was_compiled(monkeypatch):
    calls = []
    monkeypatch.setattr(compile_module, "release_memory", lambda: calls.append(1))
    double = compiled(lambda x: x * 2)
    assert double(jnp.arange(3)).tolist() == [0, 2, 4]
    assert len(calls) == 1
    double(jnp.arange(3))
    assert len(calls) == 1
    double(jnp.arange(4))
    assert len(calls) == 2


def test_without_the_function_nothing_happens(monkeypatch):
    def no_library(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", no_library)
    release_memory()
