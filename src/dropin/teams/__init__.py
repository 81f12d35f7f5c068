"""Teams: openness, pools and the base of types; nothing of a single game."""
