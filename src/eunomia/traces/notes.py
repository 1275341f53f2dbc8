"""What a reader counted, estimated or left out, as the sentences of a trace's notes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eunomia.model.arrays import Bools, Floats

MODELS = {"model_name": "models=true, as job_type"}  # the option of many formats
SHORTEST_S = 1.0  # logs count whole seconds or minutes, and a job of no length cannot be scheduled


def counted(rows_by_sentence: Mapping[str, Bools]) -> tuple[str, ...]:
    """Return "N sentence" for each sentence that is true of N rows, N above 0."""
    counts = {what: int(np.count_nonzero(rows)) for what, rows in rows_by_sentence.items()}
    return tuple(f"{count:,} {what}" for what, count in counts.items() if count)


def lasting(duration_s: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Return durations of at least a second, and how many were 0."""
    zero = duration_s == 0
    said = counted({f"jobs have a duration of 0 s, read as {SHORTEST_S:g} s": zero})
    return np.where(zero, SHORTEST_S, duration_s), said
