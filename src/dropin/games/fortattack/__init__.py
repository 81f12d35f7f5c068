"""FortAttack: guards keep attackers from a fort on a plane; both sides shoot (paper: section 5.1).

| module | content |
|---|---|
| `game`, `state` | the rules: states, actions, rewards |
| `physics` | how agents move |
| `observer` | what each agent sees |
| `types` | the pool of types of guards and attackers |
| `scripted`, `learned` | the types themselves: G1, G4 and G6 are networks, the others scripts |
| `openness` | how long agents that are hit stay away |
| `render` | pictures, terminal text and sentences |
| `scene` | states for a web page |
"""

from dropin.core.specs import GameSpec
from dropin.games.fortattack import render, scene
from dropin.games.fortattack.game import FortAttack, make_game
from dropin.games.fortattack.observer import make_observer
from dropin.games.fortattack.openness import Shooting, make_openness
from dropin.games.fortattack.state import State, StepEvents
from dropin.games.fortattack.types import has_shared_type, make_types

__all__ = ["SPEC", "FortAttack", "Shooting", "State", "StepEvents", "make_openness"]

SPEC = GameSpec(
    name="fortattack",
    title="FortAttack",
    summary="guard a fort on a plane against attackers; both sides shoot",
    gymnasium_id="FortAttack",
    make_game=make_game,
    types=make_types,
    observer=make_observer,
    openness=make_openness,
    shared_type=has_shared_type,
    renderer=render,
    scene=scene.scene,
    run_defaults={
        "steps": 16_000_000,
        "training": {
            "learning_rate": 1e-4,
            "epsilon": {"initial": 1.0, "final": 0.05, "num_steps": 8_000_000},
            "temperature": {"initial": 1.0, "final": 0.01, "num_steps": 8_000_000},
        },
    },
    episode_length=60,
    relative_cost=1 / 0.28,
)
"""Everything that belongs to FortAttack."""
