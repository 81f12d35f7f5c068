"""Rows survive being sent as columns."""

import json

from hypothesis import given
from hypothesis import strategies as st

from dropin.arena.tables import from_table, pack_frame, to_table, unpack_frame

VALUES = st.none() | st.booleans() | st.integers(0, 2) | st.floats(0, 1) | st.lists(st.integers())
NAMES = ("slot", "x", "hits")
ROWS = st.lists(st.fixed_dictionaries(dict.fromkeys(NAMES, VALUES)), min_size=1, max_size=6)


def as_json(value: object) -> str:
    """A text in which 1, 1.0 and true differ, as they do in a message."""
    return json.dumps(value, sort_keys=True)


@given(ROWS)
def test_rows_survive(rows):
    assert as_json(from_table(json.loads(json.dumps(to_table(rows))))) == as_json(rows)


def test_a_value_that_is_missing_is_none():
    table = to_table([{"slot": 0, "x": 1.5}, {"slot": 1, "waiting": 3}])
    assert from_table(table)[1] == {"slot": 1, "x": None, "waiting": 3}


@given(ROWS, ROWS)
def test_a_frame_survives(agents, items):
    scene = {"kind": "grid", "size": [3, 4], "items": items, "marks": [], "fort": {"x": 0.5}}
    frame = {"step": 3, "agents": agents, "scene": scene}
    assert as_json(unpack_frame(json.loads(json.dumps(pack_frame(frame))))) == as_json(frame)


def test_names_and_what_all_share_are_written_once():
    rows = [{"slot": slot, "side": 0, "present": True} for slot in range(9)]
    assert to_table(rows) == {
        "of": 9,
        "table": {"slot": list(range(9)), "side": 0, "present": True},
    }


def test_values_that_only_python_takes_for_equal_are_kept():
    for values in ([True, 1], [0, False], [0.0, -0.0], [1, 1.0]):
        rows = [{"x": value} for value in values]
        assert as_json(from_table(to_table(rows))) == as_json(rows)
