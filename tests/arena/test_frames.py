import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dropin.arena.frames import shorten


@given(st.lists(st.floats(width=32, allow_nan=True, allow_infinity=True), max_size=5))
def test_short_numbers_have_four_digits_and_are_json(values):
    short = shorten(np.array(values, np.float32))
    json.dumps(short, allow_nan=False)
    for value, shown in zip(values, short, strict=True):
        if shown is None:
            assert not np.isfinite(value)
        else:
            assert shown == float(f"{shown:.4g}") or abs(shown / float(f"{shown:.4g}") - 1) < 1e-12
            assert abs(shown - value) <= 0.00051 * abs(value)
