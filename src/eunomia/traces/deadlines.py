"""Jobs of one virtual cluster of Philly with deadlines, as used by ElasticFlow (D. Gu et al., ASPLOS 2023).

Submissions, sizes and durations are real. Models, batch sizes, iterations and deadlines were added by the authors;
`duration` and `iteration` are as the authors ran them, `real_duration` and `real_iteration` as logged.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import DEADLINE, DURATION, SCALE_FACTOR, SUBMITTED
from eunomia.inputs.open_table import read_table
from eunomia.inputs.options import flag
from eunomia.traces.notes import MODELS, count_notes
from eunomia.traces.table import Trace, build_trace

REQUIRED = ("job_id", "submit_time", "ddl", "num_gpu", "duration", "real_duration")
OPTIONAL = ("model_name", "batch_size", "real_iteration", "iteration")
SYNTHETIC = "deadlines and models are synthetic, added by the authors of ElasticFlow to real jobs"


def read(path: Path, *, models: bool = False) -> Trace:
    """Return the trace, by submission; `models` keeps the synthetic job types.

    Raises InvalidInput with everything that is wrong with the file.
    """
    flag(str(path), "models", models)
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    submitted_s = sheet.number("submit_time", SUBMITTED)
    duration_s, real_s = sheet.number("duration", DURATION), sheet.number("real_duration", DURATION)
    scaled = np.abs(duration_s - real_s) > 0
    return build_trace(
        sheet,
        sheet.unique("job_id"),
        submitted_s,
        sheet.whole("num_gpu", SCALE_FACTOR),
        job_type=sheet.filled("model_name") if models else None,
        duration_s=duration_s,
        deadline_s=sheet.deadline("ddl", DEADLINE, submitted_s),
        unread=sheet.unread("real_duration", instead=MODELS),
        notes=(
            f"{SYNTHETIC}; {'models are kept as job types' if models else 'models are left out'}",
            *count_notes({"jobs last longer or shorter here than they did in the log": scaled}),
        ),
    )
