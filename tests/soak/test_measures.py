import contextlib
import socket
import subprocess
import sys
import tempfile
import threading

import numpy as np
import pytest

from soak.measures import Slope, fit_slope, judge_end, judge_slope, read


def growing(rate: float, noise: float, number: int = 60) -> list[float]:
    """Readings that rise at first and then by `rate` a cycle, with a few that are far off."""
    rng = np.random.default_rng(0)
    cycles = np.arange(number)
    values = 1000 + 5000 * (1 - np.exp(-cycles / 3)) + rate * cycles
    values += noise * rng.normal(size=number)
    values[number - 5] += 1000 * noise
    return values.tolist()


@pytest.mark.parametrize(("rate", "verdict"), [(0, "kept"), (1, "kept"), (9, "broken")])
def test_a_leak_is_found_in_noisy_readings(rate, verdict):
    slope = fit_slope(growing(rate, noise=5))
    assert slope.low <= rate <= slope.high
    assert judge_slope(slope, limit=4) == verdict


def test_few_or_noisy_readings_leave_it_open():
    assert judge_slope(fit_slope(growing(0, noise=1, number=6)), limit=4) == "open"
    assert judge_slope(fit_slope([7.0]), limit=4) == "open"
    assert judge_slope(Slope(3, 1, 5, 100), limit=4) == "open"


def test_the_slope_is_the_median_of_all_pairs():
    values = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 5.0, 3.0]  # The second half is 0, 1, 5, 3.
    assert fit_slope(values).value == np.median([1, 5 / 2, 1, 4, 1, -2])


@contextlib.contextmanager
def a_thread():
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    yield
    end.set()
    thread.join()


@contextlib.contextmanager
def a_child():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield
        process.communicate(b"\n")


@pytest.mark.parametrize(
    ("name", "leak"),
    [
        ("handles", socket.socket),
        ("threads", a_thread),
        ("children", a_child),
        ("files", tempfile.NamedTemporaryFile),
    ],
)
def test_what_is_left_behind_is_counted(name, leak, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first = read()
    with leak():
        during = read()
        assert getattr(during, name) == getattr(first, name) + 1
        assert judge_end(name, first, during) == "broken"
    assert judge_end(name, first, read()) == "kept"


def test_memory_and_arrays_are_counted():
    import jax.numpy as jnp

    first = read()
    held = jnp.ones(2**22)  # 16 MiB
    held.block_until_ready()
    during = read()
    assert during.arrays == first.arrays + 1
    assert 2**13 < during.memory - first.memory < 2**16
