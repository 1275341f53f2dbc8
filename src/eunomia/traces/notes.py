"""Notes of a trace: sentences that say what its reader counted, estimated or left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from eunomia.inputs.problems import refused
from eunomia.model.arrays import Bools, Floats
from eunomia.traces.table import Trace, in_order

MODELS = {"model_name": "models=true, as job_type"}  # the option of many formats
SHORTEST_S = 1.0  # logs count whole seconds or minutes, and a job of no length cannot be scheduled


def count_notes(rows_by_sentence: Mapping[str, Bools]) -> tuple[str, ...]:
    """Return "N sentence" for each sentence that is true of N rows, N above 0."""
    counts = {sentence: int(np.count_nonzero(rows)) for sentence, rows in rows_by_sentence.items()}
    return tuple(f"{count:,} {sentence}" for sentence, count in counts.items() if count)


def replace_zero_durations(duration_s: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Return (row,) durations with 1 s in place of 0, and the note that counts them."""
    zero = duration_s == 0
    notes = count_notes({f"jobs have a duration of 0 s, read as {SHORTEST_S:g} s": zero})
    return np.where(zero, SHORTEST_S, duration_s), notes


def clamped_note(duration_s: Floats, clamped: Floats) -> tuple[str, ...]:
    """Return the note on durations that a published extract cut off, if any; `clamped` (row,) is 1 for those."""
    cut = duration_s[clamped == 1]
    if not np.isfinite(cut).any():  # none was cut, or the cut ones are invalid, which the reader reports
        return ()
    return (
        f"{len(cut):,} jobs ran longer than the {np.nanmax(cut):,.0f} s at which the published extract cuts durations "
        "off",
    )


def drop_cpu_jobs(trace: Trace, ran_s: Floats, column: str) -> Trace:
    """Return the jobs with accelerators, by submission, with notes on those left out and on run times of 0 s.

    `ran_s` (job,) holds the run times as logged; `column` is the file's column of accelerators. Raises InvalidInput if
    no job is left.
    """
    keep = trace.scale_factor > 0
    if not keep.any():
        raise refused(trace.source, column, 0, "no job of this file has an accelerator", "name another file")
    notes = count_notes(
        {
            "jobs have no accelerator and are left out": ~keep,
            "jobs have a duration of 0 s, read as 1 s": keep & (ran_s == 0),
        }
    )
    return in_order(replace(trace.take(np.flatnonzero(keep)), notes=notes))
