"""Philly's Tables 2, 6 and 7 beside what a synthetic workload gives."""

from __future__ import annotations

import numpy as np

from eunomia.reproduction.philly.delays import LOAD, delays, waited
from eunomia.reproduction.philly.failures import drawn, reasons, statuses
from eunomia.reproduction.table import Request, Table

LEAST_SEEDS = 10
NOTES = (
    "Tables 6 and 7 are inputs of the generator: that they come back says that it draws what it was given.",
    "a wait counts for what it mostly was; a job whose virtual cluster cannot take it within its quota waits for fair "
    "share, even where it may borrow",
    "racks, quotas, owners and load are modelled; Table 2 depends on all of them, and nothing was fitted to it",
)


def reproduce(request: Request) -> Table:
    """Draw and play with ten seeds, or more if asked."""
    seeds = max(request.seeds, LEAST_SEEDS)
    found = [drawn(seed) for seed in range(seeds)]
    rows = [*statuses(found), *reasons(found, seeds)]
    played = []
    for seed in range(seeds):
        request.tell(f"philly-tables: seed {seed + 1} of {seeds}")
        played.append(waited(seed))
    rows += delays(played)
    busy = float(np.mean([one.utilization for one in played]))
    return Table(rows=tuple(rows), notes=(*NOTES, f"load {LOAD:g}; {busy:.0%} of the accelerators were busy"))
