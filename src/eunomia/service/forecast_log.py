"""What the service said of waiting jobs and what came, as it is stored."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from eunomia.forecasts.intervals import TimeInterval
from eunomia.forecasts.scoring import ForecastOutcome
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
        text = (
            "SELECT f.tenant, coalesce(json_extract(j.body, '$.spec.accelerators'), 1), f.said, f.latest, "
            "json_extract(j.body, '$.first_started'), CASE WHEN j.state = 'succeeded' THEN j.ended END "
            "FROM forecasts f JOIN jobs j ON j.number = f.number ORDER BY f.number DESC LIMIT ?"
        )
        found = []
        for tenant, size, written, latest, started, finished in reversed(self._db.execute(text, (last,)).fetchall()):
            said = json.loads(written)
            start, finish = (TimeInterval(*one) for one in said["shown"])
            one = ForecastOutcome(
                tenant=tenant, size=int(size), said_at=said["at"], start=start, finish=finish, latest_start=latest,
                started=started, finished=finished,
            )  # fmt: skip
            found.append((said, one))
        return found


def outcomes_of(place: Path | str) -> list[ForecastOutcome]:
    """Return what came of the last forecasts of a store."""
    with contextlib.closing(ForecastReader(place)) as reader:
        return [outcome for _, outcome in reader.outcomes()]
