"""Shockwave's trace files: Gavel's columns, how the batch size changes, and a nominal duration (P. Zheng et al.,
NSDI 2023). Twelve tab-separated columns, no header; the job's id is the number of its line, counted from 0.

Each job has its work as steps and as a duration. Steps are counted at the batch size it starts with.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import DURATION, FLAG, SCALE_FACTOR, SUBMITTED, TOTAL_STEPS
from eunomia.inputs.open_table import read_tabbed
from eunomia.inputs.options import one_of
from eunomia.traces.gavel import PRIORITY, line_numbers, slo_notes
from eunomia.traces.table import Trace, build_trace

NAMES = ("job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor",
         "mode", "priority_weight", "SLO", "duration", "arrival_time")  # fmt: skip
MODES = {word: word for word in ("static", "accordion", "gns")}
WORK = ("steps", "duration")


def read(path: Path, *, work: str = "steps") -> Trace:
    """Return the trace; `work` says whether a job's work is its `steps` or its nominal `duration`.

    Raises InvalidInput with everything that is wrong with the file.
    """
    one_of(str(path), "work", work, WORK)
    sheet = read_tabbed(path, NAMES)
    sheet.expect(NAMES, ())
    sheet.number("needs_data_dir", FLAG)
    modes = sheet.renamed("mode", MODES)
    steps, duration_s = sheet.number("total_steps", TOTAL_STEPS), sheet.number("duration", DURATION)
    unknown = np.full(len(sheet), np.nan)
    unused, other = ("duration", "duration") if work == "steps" else ("total_steps", "steps")
    return build_trace(
        sheet,
        line_numbers(sheet),
        sheet.ordered("arrival_time", SUBMITTED),
        sheet.whole("scale_factor", SCALE_FACTOR),
        job_type=sheet.filled("job_type"),
        total_steps=steps if work == "steps" else unknown,
        duration_s=duration_s if work == "duration" else unknown,
        weight=sheet.number("priority_weight", PRIORITY),
        notes=(*_batch_size_notes(modes, work), *slo_notes(sheet)),
        unread=sheet.unread("needs_data_dir", "SLO", "mode", unused, instead={unused: f"work={other}"}),
    )


def _batch_size_notes(modes: tuple[str, ...], work: str) -> tuple[str, ...]:
    """Return a note that counts the jobs whose batch size changes in training; a trace has no such changes."""
    count_by_mode = Counter(mode for mode in modes if mode not in ("", "static"))
    if not count_by_mode:
        return ()
    kinds = ", ".join(f"{mode} {count:,}" for mode, count in sorted(count_by_mode.items()))
    meant = "steps of the first batch size" if work == "steps" else "the nominal duration"
    return (
        f"{count_by_mode.total():,} jobs change their batch size in training ({kinds}); they are read with {meant}",
    )
