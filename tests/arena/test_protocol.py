import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dropin.arena.protocol import FIELDS, Bucket, encode, parse_message
from dropin.core.errors import InputError

GOOD = {
    "hello": {"name": "Ada", "token": "t" * 20, "session": "s"},
    "play": {},
    "pause": {},
    "step": {},
    "speed": {"per_second": 0.5},
    "clock": {"kind": "turns", "tick_ms": 200, "limit_ms": 5000},
    "restart": {"seed": 3},
    "next": {},
    "rewind": {"step": 4},
    "take": {"slot": 2},
    "release": {},
    "act": {"action": 1, "step": 0, "ms": 12.5},
    "pair": {"step": 0, "a": 1, "b": 2},
    "ping": {"t": 1.25},
}


def test_every_message_has_an_example():
    assert set(GOOD) == set(FIELDS)


@pytest.mark.parametrize("kind", FIELDS)
def test_a_message_is_read(kind):
    message = parse_message(json.dumps({"type": kind, **GOOD[kind]}))
    assert message.type == kind
    assert message.values == GOOD[kind]


@pytest.mark.parametrize("kind", [kind for kind in FIELDS if FIELDS[kind]])
def test_a_missing_or_unknown_field_is_named(kind):
    for name, field in FIELDS[kind].items():
        rest = {key: value for key, value in GOOD[kind].items() if key != name}
        text = json.dumps({"type": kind, **rest})
        if field.required:
            with pytest.raises(InputError, match=f"'{kind}' needs the field '{name}'"):
                parse_message(text)
        else:
            assert name not in parse_message(text).values
    with pytest.raises(InputError, match=f"'{kind}' has no field 'colour'"):
        parse_message(json.dumps({"type": kind, **GOOD[kind], "colour": 1}))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 3000, "not JSON"),
        ('{"type":' * 500, "not JSON"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('{"type":"take","slot":NaN}', "not JSON"),
        ('{"type":"take","slot":1e999}', "is not JSON"),
        ("{}", "Unknown message type"),
        ('{"type":7}', "Unknown message type"),
        ('{"type":"tkae"}', "did you mean 'take'"),
        ('{"type":"take","slot":true}', "slot has to be a whole number, not 'True'"),
        ('{"type":"take","slot":"1"}', "slot has to be a whole number"),
        ('{"type":"take","slot":1.5}', "slot has to be a whole number"),
        ('{"type":"take","slot":-1}', "slot has to be between 0 and 999"),
        ('{"type":"speed","per_second":31}', "between 0.5 and 30"),
        ('{"type":"speed","per_second":[1]}', "has to be a number"),
        ('{"type":"restart","seed":2147483648}', "seed has to be between"),
        ('{"type":"hello","name":5}', "name has to be a text"),
        ('{"type":"hello","name":"%s"}' % ("x" * 33), "at most 32 characters"),
    ],
)
def test_what_is_wrong_with_a_message_is_one_sentence(text, says):
    with pytest.raises(InputError) as caught:
        parse_message(text)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 300


def test_names_are_cleaned_of_what_cannot_be_printed():
    text = json.dumps({"type": "hello", "name": " A\u0000d\u202ea\n\ud800 <b> "})
    assert parse_message(text).values["name"] == "Ada <b>"


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_no_text_causes_another_error(text):
    with contextlib.suppress(InputError):
        parse_message(text)


def test_numbers_that_are_not_finite_become_null():
    text = encode("frame", values=[1.5, float("nan"), {"q": float("inf")}], kind="x")
    assert json.loads(text) == {"type": "frame", "values": [1.5, None, {"q": None}], "kind": "x"}


def test_a_bucket_allows_a_burst_and_then_a_rate():
    bucket = Bucket(rate=2, burst=3)
    start = bucket.updated
    assert [bucket.take(start) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(start + 0.5) for _ in range(2)] == [True, False]
    assert sum(bucket.take(start + 100) for _ in range(10)) == 3
