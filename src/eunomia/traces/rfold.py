"""Traces as converted for RFold's workload generator, among them Philly's and Lingjun's: a line per job.

A time is a start where the original has no submission, a duration the span from first start to last end; the file does
not say which of its jobs failed.
"""

from __future__ import annotations

from pathlib import Path

from eunomia.inputs.field_rules import SCALE_FACTOR, SPAN, SUBMITTED
from eunomia.inputs.open_table import read_table
from eunomia.traces.notes import replace_zero_durations
from eunomia.traces.table import Trace, build_trace

REQUIRED = ("#job id", "arrival time (sec)", "size", "duration (sec)")
OPTIONAL = ("topology", "shape")
UNSAID = "the file says neither how jobs ended nor whether its times are submissions or starts"


def read(path: Path) -> Trace:
    """Return the trace, by arrival. Raises InvalidInput with everything that is wrong with the file."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    duration_s, zeros = replace_zero_durations(sheet.number("duration (sec)", SPAN))
    return build_trace(
        sheet,
        sheet.unique("#job id"),
        sheet.number("arrival time (sec)", SUBMITTED),
        sheet.whole("size", SCALE_FACTOR),
        duration_s=duration_s,
        notes=(UNSAID, *zeros),
    )
