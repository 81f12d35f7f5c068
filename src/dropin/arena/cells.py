"""Cells of exported tables that a table calculator does not take for formulas."""

__all__ = ["safe_cell"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a cell begins with that is taken for a formula, also in the wide form of East Asia."""


def safe_cell(value: object) -> object:
    """Return a value as a cell; a text that would be taken for a formula gets a quote before it.

    Args:
        value: The value of the cell.
    """
    if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA):
        return f"'{value}"
    return value
