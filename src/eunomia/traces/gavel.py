"""Gavel's trace files: ten tab-separated columns, no header (D. Narayanan et al., OSDI 2020, published code).

The job's id is the number of its line, counted from 0. `total_steps` counts steps over all accelerators of the gang.
Commands are left out: they hold a placeholder for a data folder and run only inside Gavel's own checkout.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import FLAG, SCALE_FACTOR, SUBMITTED, TOTAL_STEPS, WEIGHT, Rule
from eunomia.inputs.open_table import read_tabbed
from eunomia.inputs.table import InputTable
from eunomia.traces.table import Trace, build_trace

NAMES = ("job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor",
         "priority_weight", "SLO", "arrival_time")  # fmt: skip
PRIORITY = replace(WEIGHT, empty=None, fix="write 1 for a job without priority")
SLO = Rule(what="a finite number, above 0 or -1 for none", least=-1, fix="write -1 for no objective")


def read(path: Path) -> Trace:
    """Return the trace in a Gavel file. Raises InvalidInput with everything that is wrong with it."""
    sheet = read_tabbed(path, NAMES)
    sheet.expect(NAMES, ())
    sheet.number("needs_data_dir", FLAG)
    return build_trace(
        sheet,
        line_numbers(sheet),
        sheet.ordered("arrival_time", SUBMITTED),
        sheet.whole("scale_factor", SCALE_FACTOR),
        job_type=sheet.filled("job_type"),
        total_steps=sheet.number("total_steps", TOTAL_STEPS),
        weight=sheet.number("priority_weight", PRIORITY),
        notes=slo_notes(sheet),
        unread=sheet.unread("needs_data_dir", "SLO"),
    )


def line_numbers(sheet: InputTable) -> tuple[str, ...]:
    """Return the ids of jobs in a file without header: the numbers of their lines, counted from 0."""
    return tuple(str(line - 1) for line in sheet.line.tolist())


def slo_notes(sheet: InputTable) -> tuple[str, ...]:
    """Check the SLO column; return a note that counts the objectives, which cannot become deadlines."""
    factor = sheet.number("SLO", SLO)
    sheet.refuse("SLO", (factor > -1) & (factor <= 0), f"must be {SLO.what}", SLO.fix)
    given = int(np.count_nonzero(factor > 0))
    if not given:
        return ()
    return (
        f"{given:,} jobs have an SLO; it is a multiple of a duration that the file does not hold, so they are "
        f"read without a deadline",
    )
