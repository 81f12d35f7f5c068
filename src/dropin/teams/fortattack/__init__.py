"""Both sides of FortAttack: their types, and openness by shooting."""
