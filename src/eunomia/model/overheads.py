"""What it costs a job to change seats."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """Seconds without progress. A stopped job pays its checkpoint and its restore when it is next started,

    so that seats change hands at once; a job that was never started pays `start_s`.
    """

    start_s: float = 0.0
    checkpoint_s: float = 0.0
    restore_s: float = 0.0

    def of(self, *, first: bool) -> float:
        """Return the seconds that a start costs."""
        return self.start_s if first else self.checkpoint_s + self.restore_s
