"""The heap of foreseen ends, against a dictionary that is searched."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.backends.simulated.completion_heap import (
    IN_HEAP,
    PLACES,
    foresee_end,
    forget_end,
    forget_ends,
    no_ends,
    note_next,
)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_ends_come_in_order_whatever_was_foreseen_and_forgotten(seed: int) -> None:
    """Of equal ends the one that was foreseen first; many may be forgotten at once, some of them never foreseen."""
    rng = np.random.default_rng(seed)
    jobs = int(rng.integers(1, 60))
    heap, counts = no_ends(jobs)
    expected: dict[int, tuple[float, int]] = {}  # end and number by job
    foreseen = 0
    for _ in range(80):
        what = rng.integers(6)
        if what <= 3:
            row, when = int(rng.integers(jobs)), float(rng.choice([1.0, 2.0, 3.0, rng.random(), math.inf]))
            foresee_end(heap, counts, row, when)
            expected.pop(row, None)
            if when < math.inf:
                expected[row] = when, foreseen
                foreseen += 1
        elif what == 4:
            row = int(rng.integers(jobs))
            forget_end(heap, counts, row)
            expected.pop(row, None)
        else:
            rows = rng.permutation(jobs)[: rng.integers(jobs + 1)]
            forget_ends(heap, counts, rows)
            for row in rows.tolist():
                expected.pop(row, None)
        for place in range(counts[IN_HEAP]):
            assert counts[PLACES + heap[place]["row"]] == place
        assert {int(row) for row in heap["row"][: counts[IN_HEAP]]} == set(expected)
    next_end = np.empty(1)
    for row in sorted(expected, key=lambda row: expected[row]):
        note_next(heap, counts, next_end)
        assert next_end[0] == expected[row][0]
        assert heap[0]["row"] == row
        forget_end(heap, counts, row)
    note_next(heap, counts, next_end)
    assert next_end[0] == math.inf
