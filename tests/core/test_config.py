from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pytest

from dropin.core.config import Checked, differences, from_dict, to_dict
from dropin.core.errors import InputError


@dataclass(frozen=True)
class Inner(Checked):
    rate: float = 0.5


@dataclass(frozen=True)
class Outer(Checked):
    kind: Literal["red", "green"] = "red"
    number_of_things: int = 3
    seed: int = field(default=0, metadata={"least": 0})
    inner: Inner = field(default_factory=Inner)
    names: tuple[str, ...] | None = None
    limits: tuple[int, ...] = ()
    more: Mapping[str, int] = field(default_factory=dict)


def test_settings_survive_being_written():
    config = Outer("green", 5, 0, Inner(0.25))
    assert from_dict(Outer, to_dict(config)) == config
    assert from_dict(Outer, {"inner": {"rate": 1.5}}) == Outer(inner=Inner(1.5))
    assert from_dict(Outer, to_dict(Outer(names=("a",), more={"b": 1}))).names == ("a",)
    assert Outer(limits=[3, 5]).limits == (3, 5)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"kind": "gren"}, "Unknown kind 'gren': it can be red, green; did you mean 'green'?"),
        ({"number_of_things": 0}, "number of things 0 is too small: it is at least 1"),
        ({"number_of_things": 2.5}, "number of things 2.5 is not a whole number"),
        ({"number_of_things": True}, "not a whole number"),
        ({"seed": -1}, "seed -1 is too small: it is at least 0"),
        ({"inner": {"rate": -0.1}}, "rate -0.1 is out of range"),
        ({"inner": {"rate": "fast"}}, "rate 'fast' is not a number"),
        ({"inner": {"rate": float("nan")}}, "out of range"),
        ({"iner": {}}, "Unknown setting of Outer 'iner'"),
        ({"inner": {"rats": 1}}, "did you mean 'rate'"),
        ({"inner": 3}, "inner 3 is not a group of settings"),
        ({"more": 3}, "more 3 is not a group of settings"),
        ({"names": "H6"}, "names 'H6' is not a list"),
        ({"limits": 5}, "limits 5 is not a list"),
        ({"limits": None}, "limits None is not a list"),
    ],
)
def test_wrong_settings_are_refused(values, says):
    with pytest.raises(InputError) as refused:
        from_dict(Outer, values)
    assert says in str(refused.value)


def test_differences_are_named():
    one, two = to_dict(Outer()), to_dict(Outer(seed=3, inner=Inner(0.75)))
    assert differences(one, one) == []
    assert differences(one, two) == ["inner.rate: 0.5, not 0.75", "seed: 0, not 3"]
