"""Philly's Tables 2, 6 and 7 beside what a synthetic workload gives."""

from __future__ import annotations

from eunomia.reproduction.philly.delays import BUSY, LOAD, NEVER, delays, waited
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
    described, unpreempted = [], []
    for seed in range(seeds):
        request.tell(f"philly-tables: seed {seed + 1} of {seeds}")
        described.append(waited(seed))
        unpreempted.append(waited(seed, preempt_above=NEVER))
    rows += [*delays(described), *delays(unpreempted, " without preemption")]
    return Table(rows=tuple(rows), notes=(*NOTES, f"load {LOAD:g}, on a cluster that is {BUSY:.0%} busy at first"))
