"""Traces as converted for RFold's workload generator, among them Philly's and Lingjun's: a line per job.

A time is a start where the original has no submission, a duration the span from first start to last end; the file does
not say which of its jobs failed.
"""

from __future__ import annotations

from pathlib import Path

from eunomia.inputs.field_rules import SCALE_FACTOR, SPAN, SUBMITTED
from eunomia.inputs.open_table import read_table
from eunomia.traces.notes import lasting
from eunomia.traces.table import Trace, in_order, trace_of

REQUIRED = ("#job id", "arrival time (sec)", "size", "duration (sec)")
OPTIONAL = ("topology", "shape")
UNSAID = "the file says neither how jobs ended nor whether its times are submissions or starts"


def read(path: Path) -> Trace:
    """Return the trace, by arrival. Raises InvalidInput with everything that is wrong with the file."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    duration_s, zeros = lasting(sheet.number("duration (sec)", SPAN))
    trace = trace_of(
        sheet.file,
        sheet.unique("#job id"),
        sheet.number("arrival time (sec)", SUBMITTED),
        sheet.whole("size", SCALE_FACTOR),
        duration_s=duration_s,
        row=sheet.line,
        notes=(UNSAID, *zeros),
        unread=sheet.unread(),
    )
    sheet.raise_if_any()
    return in_order(trace)
