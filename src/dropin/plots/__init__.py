"""Statistics as pictures: learning curves, charts of lines and heat maps (extra `plot`)."""
