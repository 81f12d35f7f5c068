"""Teammates for level-based foraging."""
