"""A trace drawn anew from its own days or weeks, so that seeds differ where the jobs are those of one log.

Whole blocks are drawn with replacement, since jobs of one day wait for each other (H. R. Künsch, "The jackknife and
the bootstrap for general stationary observations", Annals of Statistics 17, 1989).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eunomia.inputs.problems import refused
from eunomia.traces.table import Trace, in_order

BLOCK_S = {"days": 86_400.0, "weeks": 604_800.0}
LEAST_BLOCKS = 2


def resample(trace: Trace, unit: str, seed: int) -> Trace:
    """Return as many blocks of a unit (`days` or `weeks`) as the trace has, drawn with replacement, one after another.

    A block holds the jobs submitted within it, counted from 0 s; jobs keep their distance to its start. A job that is
    drawn again has `#2` after its id and its app. The last block counts as whole. Raises InvalidInput for a trace of
    one block.
    """
    length = BLOCK_S[unit]
    block = np.floor(trace.submitted_s / length).astype(np.int64)
    first, last = int(block.min()), int(block.max())
    count = last - first + 1
    if count < LEAST_BLOCKS:
        rule = f"the trace has one of its {unit} only, so nothing can be drawn"
        shorter = "" if unit == "days" else ', write resample = "days"'
        fix = f"use a longer trace{shorter}{',' * bool(shorter)} or leave it out"
        raise refused(trace.source, "workload.resample", unit, rule, fix)
    drawn = np.random.default_rng((seed, 3)).integers(first, last + 1, size=count)
    rows = [np.flatnonzero(block == one) for one in drawn.tolist()]
    keep = np.concatenate(rows)
    if not len(keep):
        rule = f"the drawn {unit} have no job, as most of the trace's are empty"
        raise refused(trace.source, "workload.resample", unit, rule, "choose another seed, or leave resample out")
    shift = np.concatenate(
        [
            np.full(len(found), (position + first - one) * length)
            for position, (one, found) in enumerate(zip(drawn.tolist(), rows, strict=True))
        ]
    )
    taken = trace.take(keep)
    times = [
        int(np.count_nonzero(drawn[: position + 1] == one))  # how often the block has been drawn up to here
        for position, (one, found) in enumerate(zip(drawn.tolist(), rows, strict=True))
        for _ in found
    ]
    return in_order(
        replace(
            taken.submitted_at(taken.submitted_s + shift),
            job_id=_numbered(taken.job_id, times),
            app=_numbered(taken.app, times),
            notes=(*taken.notes, f"The jobs are {count} of its {unit}, drawn from them with seed {seed}."),
        )
    )


def _numbered(names: tuple[str, ...], times: list[int]) -> tuple[str, ...]:
    """Return names with `#2`, `#3` … where they are drawn again; with more # if such a name is there already."""
    drawn, there, mark = list(zip(names, times, strict=True)), set(names), "#"
    while any(f"{name}{mark}{n}" in there for name, n in drawn if n > 1):
        mark += "#"
    return tuple(f"{name}{mark}{n}" if name and n > 1 else name for name, n in drawn)
