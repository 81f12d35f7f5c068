"""Environments for other libraries: Gymnasium and PettingZoo. Needs the extra `envs`."""

__all__: list[str] = []
