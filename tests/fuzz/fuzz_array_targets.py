"""Files of arrays: agents, checkpoints, weights, and the arrays of the benchmark.

`arrays` reads whole files, byte by byte. The others begin where the checksum fits: their inputs are
JSON that says what a file says of itself and in which arrays it differs from a right one.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from fuzz_mutators import mutate_json, mutate_safetensors, sign_safetensors
from fuzz_table import put, target

Arrays = dict[str, np.ndarray]
DTYPES = (
    "bool", "uint8", "int8", "uint32", "int32", "int64", "float16", "float32", "float64",
)  # fmt: skip
MOST_ELEMENTS = 4096
"""Of an array that an input describes: a file of its size has no more."""


# How inputs describe files.


def described(about: Mapping[str, Any], **changes: Any) -> bytes:
    """Return an input: what a file says of itself, and the arrays that are not as in a right one.

    Args:
        about: The description in the file.
        **changes: By name, null for an array that is not there, or [dtype, shape, value].
    """
    return json.dumps({"about": about, "changes": changes}).encode()


def changed(arrays: Arrays, found: Mapping[str, Any]) -> Arrays:
    """Return arrays with the changes that an input describes."""
    made, changes = dict(arrays), found.get("changes")
    for name, change in (changes if isinstance(changes, dict) else {}).items():
        if change is None:
            made.pop(name, None)
            continue
        with suppress(ValueError, TypeError, OverflowError, MemoryError):
            dtype, shape, value = change
            if dtype in DTYPES and 0 <= np.prod(shape, dtype=float) <= MOST_ELEMENTS:
                made[name] = np.full(shape, value, dtype)
    return made


def parsed(data: bytes, path: Path) -> dict[str, Any]:
    """Return what an input describes; nothing if it is something else."""
    from dropin.core.reading import parse_json

    found = parse_json(data, path)
    return found if isinstance(found, dict) else {}


@contextmanager
def stored_in(module: Any, arrays: Arrays, about: object) -> Iterator[None]:
    """Let a module read these arrays and this description from any file."""
    read = module.read_arrays
    module.read_arrays = lambda path: (arrays, about if isinstance(about, dict) else {})
    try:
        yield
    finally:
        module.read_arrays = read


# Whole files.


def _file(arrays: Arrays, about: object) -> bytes:
    metadata = {"dropin": f"x {json.dumps(about)}"}
    return sign_safetensors(safetensors.numpy.save(dict(arrays), metadata))


def tables_of_arrays() -> list[bytes]:
    arrays = {"a": np.arange(6, dtype=np.int32).reshape(2, 3), "b": np.zeros((), np.float32)}
    more = {"x.y": np.ones((2, 0), bool), "k": np.zeros(2, np.uint32), "h": np.ones(3, np.float16)}
    return [_file(arrays, {"kind": "test", "list": [1, 2]}), _file(more, {})]


@target(mutate_safetensors, tables_of_arrays)
def arrays(data: bytes, path: Path) -> None:
    """A safetensors file: agents, checkpoints, weights of types, states of recipes."""
    from dropin.core.files import read_arrays

    put(path, data)
    read, about = read_arrays(path)
    assert all(isinstance(name, str) for name in read)
    assert isinstance(about, dict)


# Agents.


@cache
def small_agent(learner: str = "gpl-q") -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the description of an agent with small networks."""
    import tiny
    from arena_rooms import room

    from dropin.agents import Agent, describe, policy_shapes
    from dropin.core import registry
    from dropin.core.arrays import array_paths

    env, spec = room().make_env(), registry.learners[learner]
    sizes = tiny.SETTINGS if learner.startswith("gpl") else tiny.SIZES
    settings = spec.default_settings("lbf", **sizes)
    policy = policy_shapes(spec, settings, env.interface)
    agent = Agent(policy, spec.name, settings)
    zeros = {name: np.zeros(each.shape, each.dtype) for name, each in array_paths(policy)}
    return zeros, {"kind": "agent", **describe(agent)}


def descriptions() -> list[bytes]:
    _, about = small_agent()
    old = {"format": 1, "learner": "gpl-q", "meets": {"game": "lbf", "agents": ["x"], "shared": [],
           "actions": ["a"], "absent": [0.0], "sides": 1}, "config": {"type_units": 4}}  # fmt: skip
    names = {"policy_arrays": {"a": "a", "b": "b"}}
    values = [
        about, {**about, "kind": "checkpoint", **names}, {**old, "kind": "agent"},
        {**old, "kind": "checkpoint", "temperature": 0.5},
    ]  # fmt: skip
    return [json.dumps(each).encode() for each in values]


@target(mutate_json, descriptions)
def agent_description(data: bytes, path: Path) -> None:
    """What the file of an agent says of it, up to the shapes of its networks."""
    from dropin.agents import read_description
    from dropin.core.reading import parse_json

    found = {"a": np.zeros(2, np.float32), "b": np.zeros((1, 2), np.int32)}
    read_description(found, parse_json(data, path), path)


def agents() -> list[bytes]:
    arrays, about = small_agent()
    first, second, *_ = arrays
    names = {name: name for name in arrays}
    return [
        described(about), described(about, **{first: ["float32", [4], 0.5], second: None}),
        described({**about, "kind": "checkpoint", "step": 3, "policy_arrays": names}),
        described(small_agent("ql")[1], new=["int32", [2, 3], 1]),
    ]  # fmt: skip


SHAPES: dict[str, Any] = {}
"""Shapes of policies by learner, settings and interface: tracing one takes a tenth of a second."""


@target(mutate_json, agents)
def agent_file(data: bytes, path: Path) -> None:
    """An agent or a checkpoint: its description, and whether its arrays fit."""
    from dropin import agents

    trace = agents.policy_shapes

    def shapes(*key: Any) -> Any:
        if repr(key) not in SHAPES:
            SHAPES[repr(key)] = trace(*key)
            if len(SHAPES) > 500:
                SHAPES.pop(next(iter(SHAPES)))
        return SHAPES[repr(key)]

    found = parsed(data, path)
    about = found.get("about")
    ql = isinstance(about, dict) and about.get("learner") == "ql"
    arrays = changed(small_agent("ql" if ql else "gpl-q")[0], found)
    agents.policy_shapes = shapes
    try:
        with stored_in(agents, arrays, about):
            agent = agents.load_agent(path)
    finally:
        agents.policy_shapes = trace
    agent.interface.game.encode()
    repr(agent.settings)


# Checkpoints.


@cache
def _run_state() -> tuple[Any, Arrays]:
    """Return the shapes of the state of a small run, and its arrays."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import tiny
    from arena_rooms import room

    from dropin.core import registry
    from dropin.core.arrays import array_paths, to_bits
    from dropin.training.chunk import RunState

    env, spec = room().make_env(), registry.learners["gpl-q"]
    learner = spec.make(spec.default_settings("lbf", **tiny.SETTINGS), tiny.TRAINING)
    shapes = eqx.filter_eval_shape(
        lambda: RunState(learner.init(jax.random.key(0), env), jnp.int32(0))
    )
    bits = {name: jax.eval_shape(to_bits, leaf) for name, leaf in array_paths(shapes)}
    return shapes, {name: np.zeros(each.shape, each.dtype) for name, each in bits.items()}


def checkpoints() -> list[bytes]:
    _, arrays = _run_state()
    first, second, *_ = arrays
    return [
        described({"kind": "checkpoint", "step": 40}),
        described({"kind": "checkpoint", "step": 40}, **{first: ["float32", [2], 1], second: None}),
        described({"kind": "agent", "step": 1}, **{"policy.a": ["float32", [], 0]}),
    ]


@target(mutate_json, checkpoints)
def checkpoint(data: bytes, path: Path) -> None:
    """The whole state of a run, from which training goes on."""
    from dropin.training import run_directory

    (shapes, arrays), found = _run_state(), parsed(data, path)
    with stored_in(run_directory, changed(arrays, found), found.get("about")):
        state = run_directory.RunDirectory(path).read(40, shapes)
    int(state.updates)


# Weights of types and states of recipes.


def weights_of_types() -> list[bytes]:
    about = {"name": "lbf/H5"}
    changes = {"['w']": ["float32", [3, 2], 1.5], "['b']": None}
    return [described(about), described(about, **changes)]


def _build() -> dict[str, Any]:
    return {"w": np.zeros((2, 3), np.float32), "b": np.zeros(3, np.float32)}


@target(mutate_json, weights_of_types)
def weights(data: bytes, path: Path) -> None:
    """The weights of a learned type."""
    from dropin.core.arrays import to_arrays
    from dropin.teams import weights

    found = parsed(data, path)
    with stored_in(weights, changed(to_arrays(_build()), found), found.get("about")):
        weights.load_weights.__wrapped__(path, "lbf/H5", _build)


def finished_agents() -> list[bytes]:
    return [described({"step": 10**9}), described({"step": 16}), described({})]


@target(mutate_json, finished_agents)
def finished_run(data: bytes, path: Path) -> None:
    """The agent of a run that is to become one of the zoo."""
    from dropin.zoo import agent_recipe

    with stored_in(agent_recipe, {}, parsed(data, path).get("about")):
        f"{agent_recipe._step_of(path):,}"
