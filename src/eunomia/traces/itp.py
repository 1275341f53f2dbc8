"""Jobs of Microsoft's ITP clusters, 2021, published with ElasticFlow (D. Gu et al., ASPLOS 2023).

Submissions, sizes and durations are real. Models, batch sizes, iterations and deadlines were added by the authors.
The clusters are independent of each other: name one to replay it; together each is a tenant.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import DEADLINE, DURATION, SCALE_FACTOR, SUBMITTED
from eunomia.inputs.open_table import read_table
from eunomia.inputs.options import chosen, flag
from eunomia.traces.notes import MODELS
from eunomia.traces.table import Trace, build_trace

REQUIRED = ("cluster", "job_id", "submission_time", "duration", "num_gpu")
OPTIONAL = ("model_name", "batch_size", "num_iteration", "deadline")
SYNTHETIC = "deadlines and models are synthetic, added by the authors of ElasticFlow to real jobs"


def read(path: Path, *, cluster: str = "", models: bool = False) -> Trace:
    """Return the jobs of one cluster, or of all with the cluster as tenant; `models` keeps the synthetic job types.

    Raises InvalidInput with everything that is wrong with the file.
    """
    flag(str(path), "models", models)
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    submitted_s = sheet.number("submission_time", SUBMITTED)
    trace = build_trace(
        sheet,
        sheet.unique("job_id"),
        submitted_s,
        sheet.whole("num_gpu", SCALE_FACTOR),
        job_type=sheet.filled("model_name") if models else None,
        duration_s=sheet.number("duration", DURATION),
        tenant=sheet.filled("cluster"),
        deadline_s=sheet.deadline("deadline", DEADLINE, submitted_s),
        unread=sheet.unread(instead=MODELS),
        notes=(f"{SYNTHETIC}; {'models are kept as job types' if models else 'models are left out'}",),
    )
    return trace.take(np.flatnonzero(chosen(sheet.file, "cluster", cluster, trace.tenant)))
