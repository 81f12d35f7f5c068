"""Files and texts of strangers: what is too large, too deep, no number or no file is refused."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dropin.core.errors import InputError
from dropin.core.reading import MAX_DEPTH, check_plain, parse_json, parse_toml, read_file

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)  # fmt: skip


@given(PLAIN)
def test_what_json_can_hold_comes_back(value):
    assert parse_json(json.dumps(value), "It") == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode(), "It") == value
    check_plain(value)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Expecting value"),
        ("{'a': 1}", "double quotes"),
        (b"\xff{}", "UTF-8"),
        ("[1, 2", "delimiter"),
        ('{"a": 1, "b": 2, "a": 3}', "'a' stands twice"),
        ('{"x": {"a": 1, "a": 1}}', "'a' stands twice"),
        ("NaN", "NaN is no number"),
        ("[-Infinity]", "-Infinity is no number"),
        ("1e999", "too large"),
        (str(2**64), "too large"),
        (str(-(2**63) - 1), "too large"),
        ("9" * 5000, "too large"),
        (nested(MAX_DEPTH + 2), "within one another"),
        (nested(100_000), "within one another"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "within one another"),
        ('"\\ud800"', "half a character"),
        ('{"\\udc00": 1}', "half a character"),
    ],
)
def test_what_json_or_we_do_not_allow_is_one_sentence(text, says):
    with pytest.raises(InputError, match=says) as caught:
        parse_json(text, "The file")
    assert str(caught.value).startswith("The file cannot be read as JSON")
    assert len(str(caught.value)) < 300


def test_the_limits_themselves_are_allowed():
    assert parse_json(str(2**64 - 1), "It") == 2**64 - 1
    assert parse_json(nested(MAX_DEPTH), "It") == json.loads(nested(MAX_DEPTH))
    assert parse_json('"\\ud83d\\ude00"', "It") == "\U0001f600"
    low, high = parse_json("[NaN, Infinity]", "It", nan=True)
    assert low != low
    assert high == float("inf")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = nan", "nan is no finite number"),
        ("a = 1e999", "no finite number"),
        ("a = 0x" + "f" * 9000, "too large"),
        ("a = 1979-05-27", "a date or a time"),
        ("a = " + nested(100), "within one another"),
        ("a = " + nested(20_000), "within one another"),
        ("a = 1\na = 2", "overwrite"),
        ("a", "expected|Expected"),
    ],
)
def test_toml_has_the_same_bounds(text, says):
    with pytest.raises(InputError, match=says):
        parse_toml(text.encode(), "The study")
    assert parse_toml(b"a = {b = [1, 2.5, 'x']}", "It") == {"a": {"b": [1, 2.5, "x"]}}


def test_only_files_are_read(tmp_path):
    pipe, folder, link, large = (tmp_path / name for name in ("pipe", "folder", "link", "large"))
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to("/dev/zero")
    large.touch()
    os.truncate(large, 2**40)  # Takes no space on disk.
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    for path, says in (
        (pipe, "a device or a pipe"), (folder, "Is a directory"), (link, "a device or a pipe"),
        (large, "more than"), (tmp_path / "none", "There is no file"), (circle, "symbolic links"),
        (tmp_path / "a\0b", "null byte"), (tmp_path / ("x" * 300), "too long"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=says):
            read_file(path)
    good = tmp_path / "good"
    good.write_bytes(b"12345")
    assert read_file(good, 5) == b"12345"
    with pytest.raises(InputError, match="more than 4 bytes"):
        read_file(good, 4)
