"""How much a start would replay, which says when a snapshot is due."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eunomia.service.turn import LoggedMoment

# Each is about two seconds of a start.
MOST_MOMENTS = 8192
MOST_BYTES = 8_000_000  # of moments as they are stored
MOST_S = 2.0  # of processor time that the turns took: more than their replay takes, as that writes nothing


@dataclass(slots=True)
class ReplayCost:
    """What has been written since the last snapshot."""

    moments: int = 0
    bytes: int = 0
    turns_s: float = 0.0  # processor time of deciding it

    def add(self, moments: Iterable[LoggedMoment], turn_s: float) -> None:
        """Count the moments of a turn; one without any is not replayed."""
        for moment in moments:
            self.moments += 1
            self.bytes += len(moment.lines)
            self.turns_s += turn_s
            turn_s = 0.0

    def is_snapshot_due(self, *, is_busy: bool) -> bool:
        """Say whether a start would replay all that it may, or half of that where nothing waits for the writer."""
        share = max(self.moments / MOST_MOMENTS, self.bytes / MOST_BYTES, self.turns_s / MOST_S)
        return share >= (1.0 if is_busy else 0.5)
