"""Philly's Tables 2, 6 and 7 beside what a synthetic workload gives, and Table 2 beside what the trace itself gives."""

from __future__ import annotations

from eunomia_reproduction.philly import quotas, traced
from eunomia_reproduction.philly.delays import delays, if_one_a_start, orderings
from eunomia_reproduction.philly.failures import played, reasons, statuses
from eunomia_reproduction.philly.played import DESCRIBED, LOAD, NEVER
from eunomia_reproduction.philly.table_runs import Drawn, made
from eunomia_reproduction.run_cache import failures
from eunomia_reproduction.table import FigureRow, FigureTable, Request

LEAST_SEEDS = 10
PLAYS = {  # load, and the part of the cluster in use from which on jobs are preempted
    "at Philly's load": (LOAD, DESCRIBED),
    "at load 1.1": (1.1, DESCRIBED),
    "at load 1.1 without preemption": (1.1, NEVER),
}
ORDERED = "at load 1.1"  # at less, few gangs wait
NOTES = (
    "Tables 6 and 7 are inputs of the outcome model; here they are counted in the simulated world, trial by trial",
    "a job whose virtual cluster cannot take it within its quota waits for fair share, even where it may borrow; tries "
    "and delays are counted as Table 2 has more waits than there were jobs",
    "neither the trace nor the notebook beside it has the published number of out-of-order starts",
    "racks, quotas, owners and load are modelled; Table 2 depends on all of them; of these only the tries a level are "
    "chosen, from three that are shown",
    f"load {LOAD:g} is Philly's; the cluster is so busy at first",
)
OF_ITS_OWNERS = (
    "from the trace: jobs from 2017-10-03 to 2017-10-23; the owners of those that name none drawn with seed 0"
)


def reproduce(request: Request) -> FigureTable:
    """Draw and play with ten seeds, or more if asked; with the trace in the reference folder, play that too."""
    trace = traced.read(request.folder(traced.LIKE)) if request.reference is not None else None
    seeds = range(max(request.seeds, LEAST_SEEDS))
    drawn = {how: [Drawn(seed, load, above) for seed in seeds] for how, (load, above) in PLAYS.items()}
    of_trace = () if trace is None else quotas.PLAYS
    waited, failed = made([one for some in drawn.values() for one in some], of_trace, request)
    samples = [played(seed) for seed in seeds]
    rows: list[FigureRow] = [*failures(failed), *statuses(samples), *reasons(samples)]
    for how, some in drawn.items():
        waits = [waited[one] for one in some if one in waited]
        rows += delays(waits, how) if waits else []
        rows += orderings(waits, how) if how == ORDERED else []
    if trace is None:
        return FigureTable(rows=tuple(rows), notes=NOTES)
    rows += if_one_a_start(trace.scale_factor)
    rows += [row for play in of_trace if play in waited for row in quotas.rows(play, waited[play])]
    return FigureTable(rows=tuple(rows), notes=(*NOTES, OF_ITS_OWNERS, *trace.notes))
