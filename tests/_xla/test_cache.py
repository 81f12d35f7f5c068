import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import jax
import jaxlib.utils
import pytest

from dropin._xla import cache
from dropin._xla.cache import CACHE_VARIABLE, use_cache

SETTINGS = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")


@pytest.fixture(autouse=True)
def no_cache(monkeypatch, tmp_path):
    """Start without a cache in JAX or the environment, in another home directory."""
    before = {name: jax.config.values[name] for name in SETTINGS}
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def configured():
    directory = jax.config.values["jax_compilation_cache_dir"]
    return None if directory is None else Path(directory)


def test_the_cache_is_in_the_users_cache_directory(tmp_path):
    directory = use_cache()
    expected = tmp_path / "home" / ".cache" / "dropin"
    assert directory == expected / f"jaxlib-{version('jaxlib')}-{platform.machine()}"
    assert configured() == directory
    assert directory is not None
    assert directory.is_dir()


def test_the_users_cache_directory_can_be_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    directory = use_cache()
    assert directory is not None
    assert directory.parent == tmp_path / "xdg" / "dropin"


def test_another_directory_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "chosen"))
    directory = use_cache()
    assert directory is not None
    assert directory.parent == tmp_path / "chosen"
    assert configured() == directory


def test_each_version_of_jaxlib_and_each_machine_has_a_directory(monkeypatch):
    def directory_for(jaxlib, machine):
        monkeypatch.setattr(cache, "version", {"jaxlib": jaxlib}.__getitem__)
        monkeypatch.setattr(platform, "machine", lambda: machine)
        jax.config.update("jax_compilation_cache_dir", None)
        return use_cache()

    cases = [("9.9.1", "x86_64"), ("9.9.2", "x86_64"), ("9.9.1", "arm64")]
    assert len({directory_for(*case) for case in cases}) == len(cases)


@pytest.mark.parametrize("value", ["off", "OFF", "0", "no"])
def test_the_cache_can_be_switched_off(value, tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, value)
    assert use_cache() is None
    assert configured() is None
    assert not (tmp_path / "home").exists()


def test_a_cache_that_jax_has_already_is_kept(tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    assert use_cache() == configured() == tmp_path / "own"
    assert not (tmp_path / "home").exists()


def test_without_a_place_to_write_there_is_no_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))
    assert use_cache() is None
    assert configured() is None


PROGRAM = """
import jax
from dropin._xla.cache import use_cache
use_cache()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
print(jax.jit(lambda x: x * 2)(jax.numpy.ones(3)).sum())
"""


def test_reading_from_the_cache_prints_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    for _ in ("written", "read"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
        )
        assert (done.stdout, done.stderr) == ("6.0\n", "")
    assert list(tmp_path.glob("*/*-cache"))


@pytest.mark.parametrize(("asked", "expected"), [(None, [3]), ("1", [3]), ("0", []), ("2", [])])
def test_xla_is_silent_with_a_cache_unless_asked(asked, expected, monkeypatch):
    levels = []
    monkeypatch.setattr(jaxlib.utils, "absl_set_min_log_level", levels.append)
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    if asked is not None:
        monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", asked)
    use_cache()
    assert levels == expected
