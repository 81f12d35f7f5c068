"""A state as a picture, GIF or terminal text; an episode as a story."""

__all__: list[str] = []
