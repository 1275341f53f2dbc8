"""A heap of rows by time: walks find all that are early enough, and rows may come, go and change their time."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.core.row_heap import next_place, sift

ROWS = 40


@pytest.mark.parametrize("seed", range(4))
def test_a_walk_finds_all_rows_whose_time_is_early_enough(seed: int) -> None:
    rng = np.random.default_rng(seed)
    heap, where, time = np.zeros(ROWS, dtype=np.int64), np.zeros(ROWS, dtype=np.int64), np.zeros(ROWS)
    inside: list[int] = []
    for _ in range(400):
        row, count = int(rng.integers(ROWS)), len(inside)
        if row not in inside:
            time[row] = rng.integers(12)
            inside.append(row)
            sift(heap, where, time, row, count, count + 1)
        elif rng.random() < 0.4:
            inside.remove(row)
            last = int(heap[count - 1])
            if last != row:
                sift(heap, where, time, last, int(where[row]), count - 1)
        else:
            time[row] = rng.integers(12)
            sift(heap, where, time, row, int(where[row]), count)
        limit, found, place = rng.integers(13), [], 0
        while place < len(inside):
            early = bool(time[heap[place]] < limit)
            if early:
                found.append(int(heap[place]))
            place = next_place(place, early, len(inside))
        assert sorted(found) == sorted(one for one in inside if time[one] < limit)
        assert all(heap[where[one]] == one for one in inside)
    assert inside
