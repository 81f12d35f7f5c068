"""Lists of similar rows as columns: a frame that names every field once instead of in every row.

With nine agents a side, most of a frame would be names of fields.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dropin.core.config import PlainDict

__all__ = ["from_table", "pack_frame", "to_table", "unpack_frame"]

_ROWS, _COLUMNS = "of", "table"


def to_table(rows: Sequence[Mapping[str, Any]]) -> PlainDict:
    """Return rows as a table.

    Args:
        rows: Dictionaries; what a row lacks is None.

    Returns:
        `of`, the number of rows, and `table`, the columns by name. A column whose values are all
        the same is that value alone, unless it is a list.

    >>> to_table([{"slot": 0, "side": 0}, {"slot": 1, "side": 0}])
    {'of': 2, 'table': {'slot': [0, 1], 'side': 0}}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _shorten([row.get(name) for row in rows]) for name in names}
    return {_ROWS: len(rows), _COLUMNS: columns}


def _shorten(values: list[Any]) -> Any:
    first = values[0]
    if isinstance(first, list | tuple | dict):
        return values
    # As texts: True is 1 and 0.0 is -0.0 for Python, but not for a browser.
    text = repr(first)
    return first if all(repr(each) == text for each in values) else values


def from_table(table: Mapping[str, Any]) -> list[PlainDict]:
    """Return the rows of a table.

    Args:
        table: What `to_table` returned.

    >>> from_table({"of": 2, "table": {"slot": [0, 1], "side": 0}})
    [{'slot': 0, 'side': 0}, {'slot': 1, 'side': 0}]
    """
    columns = table[_COLUMNS].items()
    return [
        {name: column[k] if isinstance(column, list) else column for name, column in columns}
        for k in range(table[_ROWS])
    ]


def pack_frame(frame: PlainDict) -> PlainDict:
    """Return a frame with its agents, and the lists of its scene, as tables.

    Args:
        frame: The frame; its scene may be missing.
    """
    return _change_lists(frame, _is_rows, to_table)


def unpack_frame(frame: PlainDict) -> PlainDict:
    """Return the frame of a message with rows again.

    Args:
        frame: What `pack_frame` returned.
    """
    return _change_lists(frame, _is_table, from_table)


def _change_lists(
    frame: PlainDict, applies: Callable[[Any], bool], change: Callable[[Any], Any]
) -> PlainDict:
    def changed(value: Any) -> Any:
        return change(value) if applies(value) else value

    scene = {name: changed(value) for name, value in frame.get("scene", {}).items()}
    return {**frame, "agents": changed(frame["agents"])} | ({"scene": scene} if scene else {})


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {_ROWS, _COLUMNS}
