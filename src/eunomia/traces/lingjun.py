"""Jobs of Alibaba's Lingjun cluster, 2023 (J. Cao et al., SIGCOMM 2024), as one table, a line per job.

A time is the job's start: queueing is not recorded. Durations are whole minutes; 0 becomes 1 second.
"""

from __future__ import annotations

from pathlib import Path

from eunomia.inputs.field_rules import SCALE_FACTOR, SPAN, SUBMITTED
from eunomia.inputs.open_table import read_table
from eunomia.traces.notes import replace_zero_durations
from eunomia.traces.table import Trace, build_trace

REQUIRED = ("job_index", "submit_s", "gpus", "service_s")
OPTIONAL = ()
STARTS = "submission times are the starts of the jobs: their waits in the queue are not recorded"


def read(path: Path) -> Trace:
    """Return the trace, by start. Raises InvalidInput with everything that is wrong with the file."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    duration_s, zeros = replace_zero_durations(sheet.number("service_s", SPAN))
    return build_trace(
        sheet,
        sheet.unique("job_index"),
        sheet.number("submit_s", SUBMITTED),
        sheet.whole("gpus", SCALE_FACTOR),
        duration_s=duration_s,
        notes=(STARTS, *zeros),
    )
