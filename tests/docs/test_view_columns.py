"""The page of view columns has every column with its axes and kind of values, as real views have them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from eunomia.model.view import COLUMNS, NOT_BY_JOB, View
from eunomia.testing.sample_views import all_views
from eunomia.testing.small_worlds import draw

PAGE = Path(__file__).parents[2] / "docs" / "view-columns.md"
KINDS = {"whole": "i", "float": "f", "boolean": "b", "name": "O"}


def rows() -> dict[str, tuple[str, str]]:
    """Return shape and values of each column on the page."""
    found = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: (shape, values) for name, shape, values in found}


def test_the_page_has_the_columns_of_the_program_in_its_order() -> None:
    assert list(rows()) == [name for name in vars(View) if name in COLUMNS]


def test_axes_and_kinds_are_those_of_real_views() -> None:
    for view in (views := all_views(draw(3), seed=3))[:: max(1, len(views) // 4)]:
        for name, (shape, values) in rows().items():
            column = view.columns[name]
            if shape == "object":
                assert f"`{type(column).__name__}`" == values, name
                continue
            assert np.asarray(column).dtype.kind == KINDS[values], name
            axes = [] if shape == "number" else shape.strip("()").split(", ")
            assert np.ndim(column) == len(axes), name
            length = {"job": view.jobs, "type": len(view.types), "2": 2, "3": 3}
            assert all(length.get(axis, n) == n for axis, n in zip(axes, np.shape(column), strict=True)), name
            assert ("job" in axes[:1]) == (name not in NOT_BY_JOB), name
