"""Hand-made states of each game as scenes."""

import json
from dataclasses import replace
from typing import Any

import fortattack_states
import jax
import jax.numpy as jnp
import numpy as np
import wolfpack_states
from lbf_states import make_state

from dropin._xla.random import StepRNG
from dropin.core.observation import TimeStep
from dropin.env import AnyEnv, EnvState, make
from dropin.games.fortattack.state import NOTHING, SHOOT
from dropin.games.lbf.game import LOAD, NONE, NORTH
from dropin.games.wolfpack.state import LEFT, STAY
from dropin.render.scene import scene_of


def scene_after(env: AnyEnv, before: Any, actions: list[int], openness: Any = ()) -> dict:
    """Return the scene that a step of the game leads to, as a reader of JSON gets it."""
    game: Any = env.game
    if env.game.name == "wolfpack":  # The prey stay where they are.
        after, outcome = game.apply_actions(before, jnp.array(actions), jnp.array([STAY, STAY]))
    else:
        after, outcome = game.step(StepRNG(jax.random.key(0)), before, jnp.array(actions))
    nothing: Any = None
    step = TimeStep(
        observation=nothing,
        final_observation=nothing,
        rewards=outcome.rewards,
        shaping=outcome.shaping,
        terminated=outcome.terminated,
        truncated=outcome.truncated,
        actions=jnp.array(actions),
        acted=before.present,
        removed=before.present & ~after.present,
        type_changed=jnp.zeros_like(before.present),
        events=outcome.events,
    )
    return scene_of_state(env, after, step, state_of(env, before), openness)


def state_of(env: AnyEnv, game: Any, openness: Any = ()) -> EnvState[Any]:
    first, _ = env.reset(jax.random.key(0))
    return replace(first, game=game, openness=openness)


def scene_of_state(env, game, step=None, previous=None, openness=()) -> dict:
    on_host = jax.tree.map(np.asarray, (state_of(env, game, openness), step, previous))
    return json.loads(json.dumps(scene_of(env)(jax.tree.map(np.asarray, env), *on_host)))


def test_objects_and_agents_of_level_based_foraging():
    env = make("lbf", team_limit=3, types=["H1"])
    before = make_state([[1, 1, 2], None, [4, 5, 1]], [[1, 2, 2], [7, 7, 3]])
    shown = scene_of_state(env, before)
    assert shown == {
        "kind": "grid",
        "rows": 8,
        "columns": 8,
        "items": [
            {"kind": "object", "id": 10, "row": 1, "column": 2, "level": 2},
            {"kind": "object", "id": 63, "row": 7, "column": 7, "level": 3},
        ],
        "agents": [
            {"slot": 0, "row": 1, "column": 1, "level": 2},
            {"slot": 2, "row": 4, "column": 5, "level": 1},
        ],
        "marks": [],
    }
    after = scene_after(env, before, [LOAD, NONE, NORTH])
    assert [item["id"] for item in after["items"]] == [63], "an object keeps its id"
    assert after["agents"][1] == {"slot": 2, "row": 3, "column": 5, "level": 1}
    assert after["marks"] == [
        {"kind": "collected", "row": 1, "column": 2, "level": 2, "slots": [0]}
    ]


def test_prey_and_captures_of_wolfpack():
    env = make("wolfpack", team_limit=3, types=["H1"])
    before = wolfpack_states.state([(2, 2), None, (3, 5)], [(3, 3), (9, 0)], facing=[1, 2])
    shown = scene_of_state(env, before)
    prey = {"kind": "prey", "captured": False}
    assert shown["items"] == [
        {**prey, "id": 0, "row": 3, "column": 3, "facing": 1},
        {**prey, "id": 1, "row": 9, "column": 0, "facing": 2},
    ]
    assert [each["slot"] for each in shown["agents"]] == [0, 2]
    # One goes down beside the prey, the other left.
    after = scene_after(env, before, [2, STAY, LEFT])
    assert after["agents"] == [
        {"slot": 0, "row": 3, "column": 2},
        {"slot": 2, "row": 3, "column": 4},
    ]
    assert [item["captured"] for item in after["items"]] == [True, False]
    assert after["marks"] == [{"kind": "captured", "row": 3, "column": 3, "slots": [0, 2]}]


def test_fort_lasers_and_waiting_agents_of_fortattack():
    env = make("fortattack", team_limit=2, types=["G2", "A1"])
    down, up = fortattack_states.DOWN, fortattack_states.UP
    before = fortattack_states.state(
        [(0.0, 0.5, down), (-0.6, 0.8, 0.0)],
        [(0.0, 0.1, up), (0.7, -0.9, up)],
        present=[True, True, True, False],
    )
    shown = scene_of_state(env, before, openness=np.array([0, 0, 0, 12]))
    assert (shown["kind"], shown["width"], shown["height"], shown["radius"]) == (
        "plane", 1.6, 2.0, 0.05,
    )  # fmt: skip
    assert shown["fort"] == {"x": 0.0, "y": 1.0, "r": 0.3}
    assert shown["agents"][0] == {"slot": 0, "x": 0.0, "y": 0.5, "heading": 4.712}
    assert shown["agents"][3] == {"slot": 3, "alive": False, "waiting": 12}
    assert shown["lasers"] == []
    after = scene_after(env, before, [SHOOT, SHOOT, NOTHING, NOTHING], np.array([0, 0, 40, 11]))
    assert after["agents"][2] == {"slot": 2, "alive": False, "waiting": 40}
    # The apex is on the rim of the agent, where it was when it shot.
    shot = {"reach": 0.8, "half_angle": 0.393}
    assert after["lasers"] == [
        {"slot": 0, "x": 0.0, "y": 0.45, "heading": 4.712, **shot, "hits": [2]},
        {"slot": 1, "x": -0.55, "y": 0.8, "heading": 0.0, **shot},
    ]


def test_without_known_waiting_times_there_are_none():
    env = make("fortattack", team_limit=2, types=["G2", "A1"], openness="closed")
    rows = [(0.0, 0.5, 0.0), (-0.6, 0.8, 0.0)]
    game = fortattack_states.state(rows, rows, present=[True, True, True, False])
    shown = scene_of_state(env, game, openness=())
    assert shown["agents"][3] == {"slot": 3, "alive": False, "waiting": None}
