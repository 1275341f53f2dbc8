"""What the ideal mechanism can be set to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ideal:
    """Time that can be divided at will: no seats, no rounds, no overheads.

    The policy is asked when jobs came or went, at most once in `solve_gap_s` seconds; its last answer holds until
    then. Raises ValueError for a gap below 0.
    """

    solve_gap_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.solve_gap_s < float("inf"):
            raise ValueError(f"solve_gap_s is {self.solve_gap_s}; it is at least 0 and finite")
