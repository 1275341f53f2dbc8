"""What policies that go by deadlines have in common: who is late, and where in line that puts a job."""

from __future__ import annotations

from typing import Literal

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints

Late = Literal["first", "last"]
_DIGITS = 7  # of seconds


def check_late(late: str) -> None:
    """Raise ValueError for a spelling that is not one of `Late`."""
    if late not in ("first", "last"):
        raise ValueError(f"late is {late!r}; it is 'first' (as if nothing had happened) or 'last' (behind all others)")


def in_line(key: Floats, is_late: Bools, late: Late) -> Ints:
    """Return the jobs by `key` (job,), seconds, the smallest first; with `last` the late ones behind the others.

    Keys are told apart by tenths of a microsecond: less than what policies allow for the rounding of times. Ties go by
    row.
    """
    behind = is_late if late == "last" else np.zeros(len(key), dtype=bool)
    return np.lexsort((np.round(key, _DIGITS), behind))


def told(is_late: Bools, deadline: Floats, reason: str) -> tuple[tuple[int, ...], dict[int, str]]:
    """Return the late jobs, and what to say of each: the reason, in which `{}` stands for its deadline."""
    rows = np.flatnonzero(is_late)
    due = zip(rows.tolist(), deadline[rows].tolist(), strict=True)
    return tuple(rows.tolist()), {m: reason.format(f"{at:,.0f} s") for m, at in due}
