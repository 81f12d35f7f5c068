"""Wolfpack: hunters that catch prey together on a grid.

| module | what is in it |
|---|---|
| `state`, `game` | the rules: states, actions, rewards |
| `prey` | what prey see; prey that act at random; prey without memory |
| `recurrent_prey` | the prey of both sets of rules, which remember five frames |
| `observer` | what each teammate sees |
| `types` | the pool of teammate types |
| `heuristics`, `learned` | the types themselves: H5 and H6 are learned, the others are heuristics |
| `search` | paths around others, for the heuristics |
| `openness` | when teammates leave and enter |
| `render` | pictures, terminal text and sentences |
| `scene` | states for a web page |
"""

from dropin.core.specs import GameSpec
from dropin.games.wolfpack import render, scene
from dropin.games.wolfpack.game import Wolfpack, make_game
from dropin.games.wolfpack.observer import Observer, View, make_observer
from dropin.games.wolfpack.openness import make_openness
from dropin.games.wolfpack.prey import LearnedPrey, PreyPolicy, RandomPrey, learned_prey
from dropin.games.wolfpack.recurrent_prey import RecurrentPrey, make_recurrent_prey
from dropin.games.wolfpack.state import State, StepEvents
from dropin.games.wolfpack.types import make_types

__all__ = [
    "SPEC",
    "LearnedPrey",
    "Observer",
    "PreyPolicy",
    "RandomPrey",
    "RecurrentPrey",
    "State",
    "StepEvents",
    "View",
    "Wolfpack",
    "learned_prey",
    "make_game",
    "make_observer",
    "make_openness",
    "make_recurrent_prey",
    "make_types",
]

SPEC = GameSpec(
    name="wolfpack",
    title="Wolfpack",
    version=1,  # Since 0.2.0: deterministic prey with memory.
    summary="hunt prey on a grid; a prey is caught by two or more hunters next to it",
    gymnasium_id="Wolfpack",
    make_game=make_game,
    types=make_types,
    observer=make_observer,
    openness=make_openness,
    renderer=render,
    scene=scene.scene,
    episode_length=200,
    relative_cost=1 / 0.7,
)
"""Everything that belongs to Wolfpack, under the name by which it is registered."""
