"""How the shorthand of a cluster becomes machines."""

from __future__ import annotations


def whole_nodes(total: int, size: int) -> tuple[tuple[int, int], ...]:
    """Return (machines, accelerators of each): full machines, then one with what remains."""
    full, rest = divmod(total, size)
    return tuple((count, each) for count, each in ((full, size), (min(rest, 1), rest)) if count)
