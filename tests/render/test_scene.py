"""Games without a scene of their own are shown as a table."""

import json

import jax
import jax.numpy as jnp
import numpy as np
from matrix_game import State, matrix_game

from dropin.arena.simulation import Simulation
from dropin.env import make
from dropin.games.lbf import scene as lbf_scene
from dropin.policies import RandomPolicy
from dropin.render.scene import scene_of


def test_a_game_that_is_not_registered_is_a_table_of_features():
    env = matrix_game()
    sim = Simulation(env, RandomPolicy())
    moment = sim.reset(0)
    table = {"kind": "table", "columns": ["role"], "rows": [[0.0], [1.0]], "shared": {"one": 1.0}}
    assert moment.frame["scene"] == table
    after = sim.step(moment, {0: 2, 1: 0})
    assert after.done
    assert after.frame["rewards"] == [5.0, 5.0]
    assert after.frame["text"] == [
        f"{name} gets a reward of 5" for name in ("the learner", "mate 1")
    ]


def test_an_absent_agent_has_no_row():
    env = matrix_game()
    state, _ = env.reset(jax.random.key(0))
    object.__setattr__(state, "game", State(jnp.array([True, False])))
    shown = scene_of(env)(env, jax.tree.map(np.asarray, state))
    assert json.loads(json.dumps(shown))["rows"] == [[0.0], None]


def test_a_registered_game_has_the_scene_of_its_spec():
    assert scene_of(make("lbf")) is lbf_scene.scene
