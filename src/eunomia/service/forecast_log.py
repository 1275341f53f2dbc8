"""What the service said of waiting jobs and what came, as it is stored."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

from eunomia.forecasts.intervals import TimeInterval
from eunomia.forecasts.scoring import ForecastOutcome, score
from eunomia.service.store.job_sums import in_groups, places
from eunomia.service.store.reader import Reader

LAST = 5_000  # forecasts that are scored


class ForecastReader(Reader):
    """Reads forecasts and outcomes."""

    def forecasts(self, first: int = 0, last: int = 2**62) -> dict[str, float]:
        """Return the latest median start that was said of each job with a forecast, of jobs between two numbers."""
        text = "SELECT job, latest FROM forecasts WHERE number >= ? AND number <= ?"
        return dict(self._db.execute(text, (first, last)).fetchall())

    def outcomes(self, last: int = LAST) -> list[tuple[dict[str, Any], ForecastOutcome]]:
        """Return what was said, also before its correction, and what came of the last forecasts, the oldest first."""
        numbers = [number for number, *_ in self.last_forecasts(last)]
        return [one for group in in_groups(numbers) for one in self.outcomes_of(group).values()]

    def last_forecasts(self, last: int = LAST) -> list[tuple[int, float, str, int]]:
        """Return number, latest median start, state and whether it is live of the last jobs with a forecast."""
        text = (
            "SELECT f.number, f.latest, j.state, j.live FROM forecasts f JOIN jobs j ON j.number = f.number "
            "ORDER BY f.number DESC LIMIT ?"
        )
        return list(reversed(self._db.execute(text, (last,)).fetchall()))

    def outcomes_of(self, numbers: Sequence[int]) -> dict[int, tuple[dict[str, Any], ForecastOutcome]]:
        """Return what was said and what came of the forecasts of some jobs, by their numbers and in order of these."""
        text = (
            "SELECT f.number, f.tenant, coalesce(json_extract(j.body, '$.spec.accelerators'), 1), f.said, f.latest, "
            "json_extract(j.body, '$.first_started'), CASE WHEN j.state = 'succeeded' THEN j.ended END "
            f"FROM forecasts f JOIN jobs j ON j.number = f.number WHERE f.number IN ({places(numbers)}) "
            "ORDER BY f.number"
        )
        found = {}
        for number, tenant, size, written, latest, started, finished in self._db.execute(text, numbers).fetchall():
            said = json.loads(written)
            start, finish = (TimeInterval(*one) for one in said["shown"])
            one = ForecastOutcome(
                tenant=tenant, size=int(size), said_at=said["at"], start=start, finish=finish, latest_start=latest,
                started=started, finished=finished,
            )  # fmt: skip
            found[number] = said, one
        return found


class ForecastScores:
    """What came of the last forecasts, and their coverage: what has not changed since is not read or scored again."""

    def __init__(self, reader: ForecastReader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._kept: dict[int, tuple[tuple[float, str, int], ForecastOutcome]] = {}  # by number, with what it hangs on
        self._coverage: float | None = None
        self._is_scored = False

    def outcomes(self) -> list[ForecastOutcome]:
        """Return what came of the last forecasts, the oldest first."""
        with self._lock:
            self._read()
            return [outcome for _, outcome in self._kept.values()]

    def coverage(self) -> float | None:
        """Return the share of starts that were in their 80 % interval; None without any."""
        with self._lock:
            self._read()
            if not self._is_scored:
                self._coverage = score(outcome for _, outcome in self._kept.values())["start_coverage"]
                self._is_scored = True
            return self._coverage

    def _read(self) -> None:
        now = {number: (latest, state, live) for number, latest, state, live in self._reader.last_forecasts()}
        changed = [number for number, rest in now.items() if number not in self._kept or self._kept[number][0] != rest]
        if not changed and len(now) == len(self._kept):
            return
        read = {}
        for group in in_groups(changed):
            read.update(self._reader.outcomes_of(group))
        kept = {number: outcome for number, (_, outcome) in self._kept.items()}
        kept |= {number: outcome for number, (_, outcome) in read.items()}
        self._kept = {number: (rest, kept[number]) for number, rest in now.items() if number in kept}
        self._is_scored = False
