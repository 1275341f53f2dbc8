"""The job lists of Tiresias' simulator (J. Gu et al., NSDI 2019) and of simulators that use its format.

One line per job, in whole seconds. ASTRAEA's lists name a `user`; Blox's call the duration `work_s`.
"""

from __future__ import annotations

from pathlib import Path

from eunomia.inputs.field_rules import DURATION, SCALE_FACTOR, SUBMITTED
from eunomia.inputs.open_table import read_table
from eunomia.inputs.options import flag
from eunomia.inputs.table import InputTable
from eunomia.traces.notes import MODELS
from eunomia.traces.table import Trace, build_trace

REQUIRED = ("job_id", "num_gpu", "submit_time")
OPTIONAL = ("duration", "work_s", "user", "iterations", "model_name", "interval", "expect_time")
WORK = ("duration", "work_s")


def read(path: Path, *, models: bool = False) -> Trace:
    """Return the trace, by submission; `models` keeps the models as job types.

    Raises InvalidInput with everything that is wrong with the file.
    """
    flag(str(path), "models", models)
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    return build_trace(
        sheet,
        sheet.unique("job_id"),
        sheet.number("submit_time", SUBMITTED),
        sheet.whole("num_gpu", SCALE_FACTOR),
        job_type=sheet.filled("model_name") if models else None,
        duration_s=sheet.number(_work(sheet), DURATION),
        tenant=sheet.filled("user"),
        unread=sheet.unread(instead=MODELS),
        notes=() if models or "model_name" not in sheet.columns else ("models are left out; models = true keeps them",),
    )


def _work(sheet: InputTable) -> str:
    """Return the column of durations; note a problem when there is none, or two."""
    names = [name for name in WORK if name in sheet.columns]
    if len(names) != 1 and sheet.columns:
        rule = "this column is missing, and so is work_s" if not names else "work_s says the same"
        sheet.note(sheet.header_line, "duration", None, rule, "give the file one of the two columns")
    return names[0] if names else "duration"
