"""Memory of pairs that share accelerators: the two jobs of a pair have the same pair number."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.view import View

NO_PAIR = -1.0
REMEMBERED = {"pair": NO_PAIR, "paired_at": NO_PAIR}  # job columns of the memory


def partners(view: View) -> tuple[Ints, Ints]:
    """Return the two jobs of each pair of earlier answers that are both in the view, (pair,) each, earlier row first.

    A resumed job has its old number, which may have been used again meanwhile. So a pair is exactly two jobs of one
    size with one number of one answer.
    """
    number, since, size = view.memory["pair"], view.memory["paired_at"], view.scale_factor
    order = np.lexsort((size, since, number))
    order = order[number[order] != NO_PAIR]
    keys = np.stack((number, since, size))[:, order]
    same = np.concatenate(([False], (keys[:, 1:] == keys[:, :-1]).all(axis=0), [False]))
    first = np.flatnonzero(same[1:-1] & ~same[:-2] & ~same[2:])
    return order[first], order[first + 1]


def numbered(view: View, m: Ints, n: Ints) -> Floats:
    """Return numbers for these pairs, (job,), counted from 0; NO_PAIR for unpaired jobs."""
    pair = np.full(view.jobs, NO_PAIR)
    pair[m] = pair[n] = np.arange(len(m))
    return pair


def memory_of(view: View, pair: Floats) -> dict[str, Array]:
    """Return the memory of pair numbers, (job,); a second answer of one instant counts as a later one."""
    before = view.memory["paired_at"].max(initial=NO_PAIR)
    return {"pair": pair, "paired_at": np.full(view.jobs, max(view.at, np.nextafter(before, np.inf)))}
