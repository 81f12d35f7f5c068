"""The corridor: gates that open only if two agents stand at them at the same time.

| module | content |
|---|---|
| `game` | the rules: states, actions, rewards |
| `observer` | what each teammate sees |
| `types` | the pool of teammate types |
| `openness` | when teammates are replaced |
| `render` | pictures, terminal text and sentences |
"""

from dropin import GameSpec
from dropin_corridor.corridor import render
from dropin_corridor.corridor.game import Corridor, State, StepEvents, make_game
from dropin_corridor.corridor.observer import make_observer
from dropin_corridor.corridor.openness import make_relay
from dropin_corridor.corridor.types import make_types

__all__ = ["SPEC", "Corridor", "State", "StepEvents"]

SPEC = GameSpec(
    name="corridor",
    title="The corridor",
    summary="open gates; each takes two agents at the same time",
    rules={"standard": "9 cells and 3 gates", "long": "17 cells and 5 gates"},
    make_game=make_game,
    types=make_types,
    observer=make_observer,
    openness=make_relay,
    renderer=render,
    run_defaults={
        "steps": 320_000,
        "checkpoint_every": 32_000,
        "training": {
            "learning_rate": 1e-3,
            "target_update_rate": 1e-2,
            "epsilon": {"initial": 1.0, "final": 0.05, "num_steps": 160_000},
        },
    },
    episode_length=25,
    relative_cost=0.7,
)
