"""Arrays of numbers are written as `json.dumps` writes their lists, sign by sign."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.inputs.json_text import json_pieces

EDGES = [0.0, -0.0, 1.0, 1e-4, 9.999e-5, 1e-5, 1e9 + 0.5, 1e10, 1e15, 1e16, 1e16 + 2, 1e21, 1e300, 5e-324, 0.1, 1 / 3]


def written(**fields: object) -> str:
    return "".join(json_pieces(fields, ascii_only=False))


@given(st.lists(st.one_of(st.sampled_from(EDGES), st.floats(allow_nan=False, allow_infinity=False)), max_size=40))
def test_any_numbers_have_the_text_that_json_gives_them(numbers: list[float]) -> None:
    assert written(x=np.array(numbers)) == json.dumps({"x": numbers})


def test_a_table_longer_than_a_part_has_the_text_that_json_gives_its_rows() -> None:
    table = np.random.default_rng(5).lognormal(size=(70_000, 3), sigma=6)
    table[::7] = 0.0
    fields = {"rows": table.tolist(), "turned": table[:9].T.tolist(), "none": []}
    arrays = {"rows": table, "turned": table[:9].T, "none": np.zeros((0, 3))}
    assert written(**arrays) == json.dumps(fields)


def test_texts_and_other_values_stand_beside_arrays() -> None:
    fields = {"why": ["ä", '"', "ä"], "late": [], "mixed": ["a", 1], "gap": None, "x": np.float64(0.1)}
    assert written(**fields, y=np.ones(1)) == json.dumps({**fields, "y": [1.0]}, ensure_ascii=False)
    assert "".join(json_pieces(fields, ascii_only=True)) == json.dumps(fields)


@pytest.mark.parametrize("value", [np.array([1.0, np.nan]), np.array([[np.inf]]), float("nan")])
def test_a_number_that_is_not_finite_is_not_written(value: object) -> None:
    with pytest.raises(ValueError, match=r"finite|compliant"):
        written(x=value)
