"""Progressive filling beside the same task by task in plain Python."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats
from eunomia.solvers.drf import Tasks, dominant_shares, filling


def one_by_one(tasks: Tasks, total: Floats, used: Floats, weight: Floats, strict: bool) -> Iterator[tuple[int, int]]:
    """Yield each task that is looked at and the choice that it takes; everybody is looked through each time."""
    used, room = used.copy(), total - used.sum(axis=0)
    slack = 1e-9 * np.where(np.isfinite(total), total, 0.0)
    waiting = [list(range(low, high)) for low, high in zip(tasks.first[:-1], tasks.first[1:], strict=True)]
    while any(waiting) and (room > slack).any():
        shares = dominant_shares(used, total, weight)
        u = min((u for u in range(len(weight)) if waiting[u]), key=lambda u: shares[u])
        task = waiting[u].pop(0)
        wanted = tasks.wanted[task, : tasks.choices[task]]
        fits = np.flatnonzero((wanted <= room + slack).all(axis=1))
        if len(fits):
            room, used[u] = room - wanted[fits[0]], used[u] + wanted[fits[0]]
        yield task, int(fits[0]) if len(fits) else -1
        if strict and not len(fits):
            return


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_filling_looks_at_the_same_tasks_in_the_same_order(seed: int, strict: bool) -> None:
    rng = np.random.default_rng(seed)
    users, resources, most = (int(rng.integers(1, high)) for high in (7, 5, 4))
    count = rng.integers(0, 9, users)
    n = int(count.sum())
    wanted = rng.integers(0, 4, (n, most, resources)).astype(float)  # whole numbers, so that shares are often equal
    tasks = Tasks(np.concatenate(([0], np.cumsum(count))), wanted, rng.integers(0, most + 1, n))
    total = np.where(rng.random(resources) < 0.2, np.inf, rng.integers(0, 25, resources))
    used = rng.integers(0, 2, (users, resources)).astype(float)
    weight = rng.choice([1.0, 2.0, 3.0], users)
    looked, choice = filling(tasks, total=total, used=used, weight=weight, strict=strict)
    slow = list(one_by_one(tasks, total, used, weight, strict))
    assert list(zip(looked.tolist(), choice.tolist(), strict=True)) == slow
