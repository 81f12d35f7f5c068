"""JSON that somebody else wrote is read strictly, with one sentence for what is wrong."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dropin.core.errors import InputError
from dropin.experiments.benchmark.schema import (
    each_of,
    fields_of,
    list_of,
    number,
    one_of,
    optional,
    plain,
    read_strictly,
    text,
    whole,
)

READER = fields_of({
    "n": whole(1, 9),
    "x": number(-2, 2),
    "kind": one_of("a", 1),
    "words": list_of(text("[a-z]+", 4), least=1, most=2),
    "table": each_of(optional(whole()), text("[a-z]")),
    "more": plain,
})  # fmt: skip
GOOD = {"n": 3, "x": 1, "kind": "a", "words": ["ab"], "table": {"a": None, "b": 2}, "more": [{}]}


def test_what_is_right_is_returned():
    assert READER(GOOD, "f") == GOOD
    assert isinstance(READER(GOOD, "f")["x"], float)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "f.n is out of range: it is from 1 to 9."),
        ({"n": 2.0}, "f.n is 2.0, which is no whole number."),
        ({"n": True}, "f.n is True, which is no whole number."),
        ({"x": float("nan")}, "f.x is out of range: it is from -2 to 2."),
        ({"x": float("inf")}, "f.x is out of range: it is from -2 to 2."),
        ({"x": 10**400}, "f.x is out of range: it is from -2 to 2."),
        ({"x": "1"}, "f.x is '1', which is no number."),
        ({"kind": True}, "f.kind is True: it can be a, 1."),
        ({"words": "ab"}, "f.words is 'ab', which is no list."),
        ({"words": []}, "f.words has 0 values: it has 1 to 2."),
        ({"words": ["ab", "abcde"]}, "f.words[1] is 5 characters long: 4 are allowed."),
        ({"words": ["A"]}, "f.words[0] is 'A', which is not of the form [a-z]+."),
        ({"words": ["a\n"]}, r"f.words[0] is 'a\n', which is not of the form [a-z]+."),
        ({"table": {"a": -1}}, f"f.table.a is out of range: it is from 0 to {10**12}."),
        ({"table": {"A": 1}}, "A key of f.table is 'A', which is not of the form [a-z]."),
        ({"table": 3}, "f.table is 3, which is no object."),
        ({"more": {"a": [1e300]}}, "f.more.a[0] is out of range: it is from -1e+12 to 1e+12."),
        ({"word": []}, "f has an unknown key 'word'; did you mean 'words'?"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(change, message):
    with pytest.raises(InputError) as caught:
        READER(GOOD | change, "f")
    assert str(caught.value) == message


def test_a_missing_key_is_named():
    with pytest.raises(InputError, match=r"^f has no key 'n'\.$"):
        READER({name: value for name, value in GOOD.items() if name != "n"}, "f")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read as JSON"),
        ('{"n": NaN}', "NaN is no number of JSON"),
        ('{"n": -Infinity}', "-Infinity is no number of JSON"),
        ('{"n": 1, "n": 2}', "the name 'n' stands twice"),
        ("[" * 100_000, "cannot be read as JSON"),
        ('{"more": ' + "[" * 20 + "]" * 20 + "}", "has no key|nested too deeply"),
        ("1" * 5000, "cannot be read as JSON"),
        ("\xff\x00", "cannot be read as JSON"),
        ("[1]", "is [1], which is no object"),
        ('"' + "a" * 99 + '"', r"is 'a+\.\.\., which is no object"),
        (" " * 3000, "has 3,000 bytes: 2,000 are allowed"),
    ],
)
def test_files_of_any_content_are_refused_in_one_sentence(tmp_path, content, message):
    path = tmp_path / "f.json"
    path.write_text(content, encoding="latin-1")
    max_bytes = 2000 if content.isspace() else 10**6
    with pytest.raises(InputError, match=message.replace("[1]", r"\[1\]")):
        read_strictly(path, READER, max_bytes)


def test_settings_are_not_nested_deeply():
    value = {}
    for _ in range(9):
        value = {"a": value}
    with pytest.raises(InputError, match="nested too deeply: 8 levels are allowed"):
        plain(value, "f")


def test_only_regular_files_are_read(tmp_path):
    (tmp_path / "f.json").write_text(json.dumps(GOOD))
    (tmp_path / "link.json").symlink_to(tmp_path / "f.json")
    assert read_strictly(tmp_path / "f.json", READER, 1000) == GOOD
    for name, message in (("link.json", "is not a file"), ("x.json", "does not exist"),
                          (".", "is not a file")):  # fmt: skip
        with pytest.raises(InputError, match=message):
            read_strictly(tmp_path / name, READER, 1000)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from(sorted(GOOD)))
def test_no_value_raises_anything_but_an_input_error(value, name):
    # Any other error would end the test.
    with contextlib.suppress(InputError):
        read = READER(GOOD | {name: value}, "f")
        assert json.loads(json.dumps(read, allow_nan=False)) == read
