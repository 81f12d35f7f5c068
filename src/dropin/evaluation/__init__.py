"""Evaluation: how well a player does, at any team limit and with any pool."""
