"""Costs of starting, stopping and moving a job."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal, get_args

Saves = Literal["checkpoint", "periodic", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """Seconds without progress. A job's first start costs `start_s`; a later one its checkpoint and its restore.

    Seats are released at once: a stopped job pays its checkpoint when it is next started. `restore_by_size` are pairs
    (accelerators, seconds) in rising order, each from that size on; smaller gangs pay `restore_s`.

    `saves` is what a preempted job goes on from: a checkpoint that it writes then; the last one that it wrote while it
    ran, without writing another; or nothing, so that it starts over and pays `start_s` again. Raises ValueError for
    another word, and for sizes that do not rise.
    """

    start_s: float = 0.0
    checkpoint_s: float = 0.0
    restore_s: float = 0.0
    restore_by_size: tuple[tuple[int, float], ...] = ()
    saves: Saves = "checkpoint"

    def __post_init__(self) -> None:
        object.__setattr__(self, "restore_by_size", tuple((int(n), float(s)) for n, s in self.restore_by_size))
        sizes = [size for size, _ in self.restore_by_size]
        if sizes != sorted(set(sizes)):
            raise ValueError(f"restore_by_size names sizes {sizes}; give each once, in rising order")
        if self.saves not in get_args(Saves):
            raise ValueError(f"saves is {self.saves!r}; it is one of {', '.join(get_args(Saves))}")

    def of(self, *, first: bool, size: int = 1, saved: bool = True) -> float:
        """Return the seconds that a start costs a gang of `size` accelerators.

        A gang that was not `saved`, because it failed or its machine was lost, wrote no checkpoint.
        """
        if first or (saved and self.saves == "nothing"):
            return self.start_s
        place = bisect_right(self.restore_by_size, size, key=lambda pair: pair[0])
        restore = self.restore_by_size[place - 1][1] if place else self.restore_s
        return self.checkpoint_s + restore if saved and self.saves == "checkpoint" else restore
