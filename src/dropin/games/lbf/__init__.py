"""Level-based foraging: agents and objects with levels on a grid (paper: section 5.1).

| module | content |
|---|---|
| `game` | the rules: states, actions, rewards |
| `observer` | what each teammate sees |
| `types` | the pool of teammate types |
| `heuristics`, `learned` | the types themselves: H5 is learned, the others are heuristics |
| `openness` | when teammates leave and return |
| `render` | pictures, terminal text and sentences |
| `scene` | states for a web page |
"""

from dropin.core.specs import GameSpec
from dropin.games.lbf import render, scene
from dropin.games.lbf.game import LBF, State, StepEvents, make_game
from dropin.games.lbf.observer import make_observer
from dropin.games.lbf.openness import make_openness
from dropin.games.lbf.types import make_types

__all__ = ["LBF", "SPEC", "State", "StepEvents"]

SPEC = GameSpec(
    name="lbf",
    title="Level-based foraging",
    summary="collect objects on a grid; many take more than one agent's level",
    gymnasium_id="LBF",
    make_game=make_game,
    types=make_types,
    observer=make_observer,
    openness=make_openness,
    renderer=render,
    scene=scene.scene,
    episode_length=30,
    relative_cost=1.0,
)
