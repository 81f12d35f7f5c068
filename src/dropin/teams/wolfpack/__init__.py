"""Teammates and prey for Wolfpack."""
