"""The same files on one core and on two, with other settings of the user, and at another start."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
import tiny

import dropin
from dropin._xla.compile import compiled
from dropin.core import registry
from dropin.core.errors import InputError
from dropin.training.loop import resume_run
from dropin.training.parallel import cores

PROGRAM = """
import os, sys

os.sched_setaffinity(0, map(int, sys.argv[2].split(",")))

import tiny
from dropin.core import registry

replay = {"replay_capacity": 16, "batch_size": 4}
for name, spec in registry.learners.items():
    has_replay = hasattr(spec.default_settings("lbf"), "batch_size")
    settings = {**tiny.SIZES, **(replay if has_replay else {})}
    others = {key: value for key, value in tiny.RUN.items() if key not in tiny.SETTINGS}
    others |= {"steps": 40, "checkpoint_every": 20, "log_every": 20, **settings}
    tiny.train("lbf", name, directory=f"{sys.argv[1]}/{name}", **others)
"""
TESTS = Path(__file__).parent.parent


def train_all(directory: Path, core_list: str, **environment: str) -> dict[str, bytes]:
    """Train every learner in one process; return all files of all runs but `run.json`."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {environment.pop('XLA_FLAGS', '')}".strip()
    paths = f"{TESTS.parent / 'src'}{os.pathsep}{TESTS}"
    environment = {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": paths, **environment}
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(directory), core_list], env=environment, check=True
    )
    files = [each for each in directory.rglob("*") if each.is_file()]
    return {
        str(each.relative_to(directory)): each.read_bytes()
        for each in files
        if each.name not in ("run.json", ".lock")
    }


@pytest.mark.slow
@pytest.mark.skipif(len(cores()) < 2, reason="needs two cores")
def test_every_learner_gives_the_same_files_on_one_core_and_on_two(tmp_path):
    one, two = cores()[:2]
    found = train_all(tmp_path / "one", str(one))
    assert {Path(each).parts[0] for each in found} == set(registry.learners)
    again = train_all(
        tmp_path / "two",
        f"{one},{two}",
        XLA_FLAGS="--xla_cpu_multi_thread_eigen=true",
        OMP_NUM_THREADS="2",
    )
    assert found.keys() == again.keys()
    assert [name for name in found if found[name] != again[name]] == []


def test_64_bit_numbers_are_refused_in_one_sentence():
    sentence = "JAX is set to 64-bit numbers, and Dropin computes with 32-bit ones: unset"
    double = compiled(lambda x: 2 * x)
    env = dropin.make("lbf", types=["H6"])
    with jax.enable_x64(True):
        with pytest.raises(InputError, match=sentence):
            dropin.make("lbf")
        with pytest.raises(InputError, match=sentence):
            double(1)
        with pytest.raises(InputError, match=sentence):
            dropin.evaluate("random", env, episodes=80)


def test_another_precision_of_products_is_noted_and_resuming_without_it_warns(tmp_path):
    with jax.default_matmul_precision("bfloat16"):
        tiny.run(tmp_path / "run", steps=40)
    with pytest.warns(UserWarning, match="JAX_DEFAULT_MATMUL_PRECISION: bfloat16, not None"):
        resume_run(tmp_path / "run", report="none")
