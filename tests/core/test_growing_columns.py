"""Columns that grow together keep what was written, also ahead of the rows that are open."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.core.columns import GrowingColumns


@pytest.mark.parametrize("expected", [0, 10, 3000])
def test_what_was_written_ahead_is_kept_when_columns_grow(expected: int) -> None:
    columns = GrowingColumns({"count": (np.int64, -1), "place": (np.float64, 0.5, 2)})
    ahead = columns.reserve(20)
    columns.count[ahead], columns.place[ahead] = np.arange(20), np.arange(40.0).reshape(20, 2)  # type: ignore[attr-defined]
    columns.expect(expected)
    columns.reserve(5000)
    columns.add_many(30)
    assert columns.count[:30].tolist() == [*range(20), *[-1] * 10]  # type: ignore[attr-defined]
    assert columns.place[:21].tolist() == [*np.arange(40.0).reshape(20, 2).tolist(), [0.5, 0.5]]  # type: ignore[attr-defined]


def test_room_for_an_expected_number_is_made_once() -> None:
    columns = GrowingColumns({"count": (np.int64, 0)})
    columns.expect(3000)
    room, table = columns.room, columns.ints
    columns.add_many(3000)
    assert (columns.room, columns.ints is table) == (room, True)
    assert room * 8 % 4096 != 0
