"""G6 of FortAttack: guards that learn against both types of attackers."""

from dataclasses import dataclass
from typing import ClassVar

from dropin.games.fortattack.state import State
from dropin.zoo.batched_env import BatchedEnv
from dropin.zoo.fortattack_ppo import TeamRecipe, idle_type, training_env

__all__ = ["Ensemble"]


@dataclass(frozen=True)
class Ensemble(TeamRecipe):
    """PPO of all guards together, against A1 and A2."""

    name: ClassVar[str] = "fortattack/G6"
    summary: ClassVar[str] = "guards that learned against both types of attackers"
    method: ClassVar[str] = "PPO of all guards together, against A1 and A2 in equal shares"

    steps: int = 3_000_000

    def make_env(self) -> BatchedEnv[State]:
        """Return environments with attackers of both types."""
        return training_env([idle_type("guard"), "A1", "A2"], self.num_envs)
