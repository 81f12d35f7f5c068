"""Learners: one module an algorithm."""
