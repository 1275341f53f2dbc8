"""Shares of what cannot be divided: whole things, or the whole for a part of the time.

floor        ⌊c·n⌋ of the n things won
randomized   ⌊c·n⌋, and one more with the probability that is left: c·n on average
lease        all n, for the part c of the time
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from eunomia.model.arrays import Floats, Ints

Treatment = Literal["floor", "randomized", "lease"]
_ROUNDING = 1e-9  # c·n that is below a whole number by less than this is that number


def whole(won: Ints, share: Floats, treatment: Treatment, rng: np.random.Generator) -> Ints:
    """Return how many of the things won each bidder keeps, (bidder,)."""
    if treatment == "lease":
        return won.copy()
    exact = share * won + _ROUNDING
    keeps = np.floor(exact).astype(np.int64)
    if treatment == "randomized":
        keeps += rng.random(len(won)) < np.maximum(exact - keeps - _ROUNDING, 0.0)
    return np.minimum(keeps, won)


def cut(take: Ints, keeps: Ints) -> Ints:
    """Return (bidder, class) what each keeps of its take: the classes of which it has most first, so few classes."""
    order = np.argsort(-take, axis=1, kind="stable")
    falling = np.take_along_axis(take, order, axis=1)
    before = np.cumsum(falling, axis=1) - falling
    kept = np.empty_like(take)
    np.put_along_axis(kept, order, np.clip(keeps[:, None] - before, 0, falling), axis=1)
    return kept
