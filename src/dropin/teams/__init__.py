"""Teams: pools of types, and the openness by which teammates come and go."""
