"""Numbers that are not finite, put into every array of a train state in the middle of a chunk."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from jaxtyping import PRNGKeyArray

from dropin.core import registry
from dropin.core.arrays import array_paths, to_bits
from dropin.core.errors import StoppedError
from dropin.core.observation import Interface
from dropin.env import AnyEnv, make
from dropin.learners.config import TrainConfig
from dropin.training.chunk import RunState, train_chunk
from dropin.training.reporters import Reporter
from dropin.training.run_directory import RunDirectory
from dropin.training.runs import Runs

UPDATES, AT = 5, 2
NOWHERE = -1
REPLAY = {"replay_capacity": 16, "batch_size": 4}
TYPES = {"lbf": ["H6"], "fortattack": ["G2", "A1"]}


class State(eqx.Module):
    """A train state, and which array of it gets which value; both are chosen at run time, so that
    one program serves all arrays."""

    own: Any
    place: Any
    value: Any
    updates: Any


@dataclass(frozen=True)
class Spoilt:
    """A learner with one number in its train state spoilt after a few updates."""

    learner: Any

    def update(self, env: AnyEnv, state: State):
        own, metrics = self.learner.update(env, state.own)
        arrays, static = eqx.partition(own, eqx.is_array)
        leaves, structure = jax.tree.flatten(arrays)
        now = state.updates == AT
        for index in places(own):
            leaf = leaves[index]
            spoil = jnp.where(now & (state.place == index), state.value, jnp.float32(0))
            leaves[index] = leaf.at[(0,) * leaf.ndim].add(spoil)
        own = eqx.combine(jax.tree.unflatten(structure, leaves), static)
        return State(own, state.place, state.value, state.updates + 1), metrics


def places(state) -> list[int]:
    """The floating-point arrays among all arrays of a state."""
    paths = array_paths(state)
    return [i for i, (_, leaf) in enumerate(paths) if jnp.issubdtype(leaf.dtype, jnp.floating)]


def bits(tree) -> list[np.ndarray]:
    return [np.asarray(to_bits(leaf)) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def check_every_place(game: str, name: str) -> None:
    env, spec = make(game, types=TYPES[game]), registry.learners[name]
    own = REPLAY if hasattr(spec.default_settings(game), "batch_size") else {}
    settings = spec.default_settings(game, **tiny.SIZES, **own)
    learner = spec.make(settings, TrainConfig(num_envs=2, rollout_length=2))
    first = learner.init(jax.random.key(0), env)

    def run(place, value):
        copy = jax.tree.map(lambda leaf: leaf.copy() if eqx.is_array(leaf) else leaf, first)
        state = State(copy, jnp.int32(place), jnp.float32(value), jnp.int32(0))
        fixed: Any = (env, Spoilt(learner), jnp.int32(UPDATES))
        state, metrics, found = train_chunk(fixed, RunState(state, jnp.int32(0)))
        noticed = min(int(found.metric), int(found.state)) < UPDATES or int(found.leaf) >= 0
        return noticed, bits((state.train_state.own, metrics))

    noticed, clean = run(NOWHERE, 0)
    assert not noticed
    silent = []
    for place in places(first):
        for value in (np.nan, np.inf):
            noticed, found = run(place, value)
            path = array_paths(first)[place][0]
            # What has no influence at all need not be noticed: it is written before it is read.
            if not noticed and any(map(differ, clean, found)) and not impossible(path, value):
                silent.append((path, value))
    assert not silent


def impossible(path: str, value: float) -> bool:
    """The output of an LSTM is a product of a sigmoid and a tanh: within -1 and 1, or NaN."""
    return path.endswith(".hidden") and np.isinf(value)


def differ(one: np.ndarray, two: np.ndarray) -> bool:
    return one.tobytes() != two.tobytes()


def test_whatever_is_not_finite_is_noticed():
    check_every_place("lbf", "gpl-q")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "name"),
    [("fortattack", "ql"), *(("lbf", name) for name in registry.learners if name != "gpl-q")],
)
def test_whatever_is_not_finite_is_noticed_with_every_learner(game, name):
    check_every_place(game, name)


@dataclass(frozen=True)
class SpoiltMoment:
    """A learner whose Adam has an infinite moment after a number of updates."""

    learner: Any
    after: int

    def init(self, key: PRNGKeyArray, env: AnyEnv):
        return self.learner.init(key, env)

    def policy(self, state):
        return self.learner.policy(state)

    def policy_template(self, interface: Interface):
        return self.learner.policy_template(interface)

    def update(self, env: AnyEnv, state):
        state, metrics = self.learner.update(env, state)
        late = jnp.where(state.updates == self.after, jnp.inf, jnp.float32(0))
        moments = state.opt_state[0].nu
        return eqx.tree_at(lambda s: s.opt_state[0].nu, state, moments.at[0].add(late)), metrics


def test_an_infinite_moment_of_adam_stops_the_run_before_it_is_saved(tmp_path):
    """It divides: its weight would never change again, and no loss would tell."""
    path = tmp_path / "run"
    tiny.run(path, steps=40)
    files = RunDirectory(path)
    runs = Runs([files], [files.config()])
    runs.open(Reporter())
    runs.num_updates = runs.updates + 5
    runs.learner = SpoiltMoment(runs.learner, runs.num_updates)
    with pytest.raises(
        StoppedError, match=r"'opt_state\[0\]\.nu' of the train state was not a fin"
    ):
        runs.train(lambda: False)
    assert files.steps()[-1] == 40
