"""Experiments: the tables and figures of the paper as data, and how to run what they need."""
