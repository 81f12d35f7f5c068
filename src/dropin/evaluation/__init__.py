"""Evaluation: how well a policy does, at any team limit and with any pool."""
