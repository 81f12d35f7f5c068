"""Every experiment from its runs to its page, with runs of a few steps."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from dropin.cli import main

pytestmark = pytest.mark.slow

TINY = (
    "--steps", "64", "--states", "16", "--episodes", "80", "--report", "none",
    "--set", "training.num_envs=2", "evaluation.num_envs=16", "settings.type_hidden_size=8",
    "settings.type_lstm_size=8", "settings.type_vector_size=8",
)  # fmt: skip
PAIR = ("--learners", "gpl-q", "ql", "--seeds", "2")
ARGUMENTS = {
    "summary": ("--games", "lbf", *PAIR),
    "figure2": PAIR,
    "table2": PAIR,
    "figure3a": PAIR,
    "figure3b": ("--seeds", "2"),
    "diversity": ("--games", "lbf", "--seeds", "2"),
    "partners": ("--games", "lbf", "--seeds", "2"),
    "team-of-two": ("--games", "lbf", *PAIR),
    "fixed-types": PAIR,
    "wolfpack-utilities": ("--seeds", "2"),
    "shooting-values": ("--learners", "ql", "gnn", "--seeds", "2"),
    "held-out": ("--games", "lbf", "--split", "H1,H2/H6", "--limits", "2", "4", *PAIR),
}
NUM_ROWS = {
    # The rows of each table but the last, which is that of the runs.
    "summary": [13, 2, 2, 2, 2],
    "figure2": [6],
    "table2": [6, 6],
    "figure3a": [2],
    "figure3b": [4, 4],
    "diversity": [9],
    "partners": [2],
    "team-of-two": [2],
    "fixed-types": [4],
    "wolfpack-utilities": [2],
    "shooting-values": [8],
    "held-out": [4, 4],
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """One for all, so that experiments share their runs."""
    return tmp_path_factory.mktemp("experiments")


def tables(path):
    """The number of rows of every table of a page, and of the columns of each."""
    blocks = [block for block in path.read_text().split("\n\n") if block.startswith("| ")]
    for block in blocks:
        assert len({line.replace("\\|", "").count("|") for line in block.splitlines()}) == 1
    return [len(block.splitlines()) - 2 for block in blocks]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_page_of_an_experiment(directory, name):
    main(["reproduce", name, *ARGUMENTS[name], *TINY, "--directory", str(directory)])
    place = directory / name
    assert tables(place / f"{name}.md")[:-1] == NUM_ROWS[name]
    assert "<table>" in (place / f"{name}.html").read_text()
    page = json.loads((place / f"{name}.json").read_text())
    assert page["missing"] == []
    assert page["numbers"]
    assert page["small"] == "A small version: runs of 64 steps."
    pictures = list(place.glob("*.png"))
    assert len(pictures) == (0 if name in ("held-out", "table2") else 1)
    assert all(each.read_bytes().startswith(b"\x89PNG") for each in pictures)
    numbers_before = page["numbers"]
    main(["reproduce", name, *ARGUMENTS[name], *TINY, "--directory", str(directory), "--draw"])
    assert json.loads((place / f"{name}.json").read_text())["numbers"] == numbers_before


def start(directory, *more):
    command = [sys.executable, "-m", "dropin.cli", "reproduce", "table2", "--games", "lbf", *PAIR,
               *TINY, "--directory", str(directory), *more]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ)


def numbers(directory):
    return json.loads((directory / "table2" / "table2.json").read_text())["numbers"]


def test_a_driver_that_is_killed_and_started_again_gives_the_same_table(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert start(whole).wait() == 0
    generator = random.Random(0)
    for _ in range(3):
        driver = start(cut)
        time.sleep(generator.uniform(2, 25))
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    assert start(cut).wait() == 0
    assert numbers(cut) == numbers(whole)


@pytest.mark.filterwarnings("ignore:os.fork")  # Ray starts its processes so; they use no JAX.
def test_two_nodes_of_a_cluster_one_of_which_dies(tmp_path):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    local, far = tmp_path / "local", tmp_path / "far"
    assert start(local).wait() == 0
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        second = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        driver = start(far, "--on", "ray", "--address", cluster.address)
        until = time.monotonic() + 240
        while len(list(far.glob("runs/*/agents/*"))) < 3:
            assert time.monotonic() < until
            assert driver.poll() is None
            time.sleep(0.2)
        cluster.remove_node(second, allow_graceful=False)
        assert driver.wait() == 0
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert numbers(far) == numbers(local)
