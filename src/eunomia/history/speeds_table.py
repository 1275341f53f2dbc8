"""The table of throughputs of an import: how fast each type is, for jobs of which nothing else is known."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence

from eunomia.throughputs.analytic import INTERVAL_FACTOR
from eunomia.throughputs.catalogue import find
from eunomia.throughputs.estimators.calibration import COLUMNS

ANY = "any"  # job type of jobs that run on every type


def only(kind: str) -> str:
    """Return the job type of jobs that run on no other accelerator type."""
    return f"only {kind}"


def speeds_csv(speeds: Mapping[str, float], pinned: Sequence[str], reference: str, stated: Collection[str]) -> str:
    """Return the long table: one job type for jobs that run anywhere, one for each type in `pinned`.

    Durations are counted on `reference`, so its speed is exact, as are those that the user has `stated`. Others are
    estimates: of a type in the catalogue within a factor, of any other type as slow or fast as the catalogue goes.
    """
    least, most = min(1.0, *speeds.values()), max(1.0, *speeds.values())
    exact = {reference, *stated}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for kind, speed in speeds.items():
        known = all(find(name) is not None or name in stated for name in (kind, reference))
        low, high = (1 / INTERVAL_FACTOR, INTERVAL_FACTOR) if known else (least, most)
        low, high, origin = (1.0, 1.0, "measured") if kind in exact else (low, high, "estimated")
        row = [*(f"{speed * factor:g}" for factor in (1.0, low, high)), origin]
        writer.writerow([kind, ANY, 1, *row])
        for name in pinned:
            writer.writerow([kind, only(name), 1, *(row if name == kind else [0, 0, 0, "measured"])])
    return text.getvalue()
