"""Traces of Muri (Y. Zhao et al., SIGCOMM 2022): one virtual cluster of Philly a file, a line per job.

Submissions, sizes and durations are real and in milliseconds; they become seconds. Models and priorities were drawn at
random by the authors, and the times of a model's stages measured by them.
"""

from __future__ import annotations

from pathlib import Path

from eunomia.inputs.field_rules import MOST_S, SCALE_FACTOR, Rule
from eunomia.inputs.open_table import read_table
from eunomia.inputs.options import flag
from eunomia.traces.notes import MODELS
from eunomia.traces.table import Trace, build_trace

REQUIRED = ("job_id", "num_gpu", "submit_time", "duration", "resource_time_0", "resource_time_1", "resource_time_2")
OPTIONAL = ("iterations", "model_name", "batch_size", "interval", "iteration_time", "priority")
SUBMITTED_MS = Rule(
    what="a finite number of milliseconds, at least 0",
    least=0.0,
    fix="write the submission time as milliseconds since the trace began",
)
DURATION_MS = Rule(
    what="a number of milliseconds above 0, at most 1e15",
    above=0.0,
    most=1000 * MOST_S,
    fix="write how long the job runs, or leave the job out",
)
MILLISECONDS = "submissions and durations are milliseconds in the file, read as seconds"


def read(path: Path, *, models: bool = False) -> Trace:
    """Return the trace, by submission; `models` keeps the models, drawn at random, as job types.

    Raises InvalidInput with everything that is wrong with the file.
    """
    flag(str(path), "models", models)
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    kept = "kept as job types" if models else "left out"
    return build_trace(
        sheet,
        sheet.unique("job_id"),
        sheet.number("submit_time", SUBMITTED_MS) / 1000,
        sheet.whole("num_gpu", SCALE_FACTOR),
        job_type=sheet.filled("model_name") if models else None,
        duration_s=sheet.number("duration", DURATION_MS) / 1000,
        unread=sheet.unread(instead=MODELS),
        notes=(
            MILLISECONDS,
            f"models and priorities were drawn at random by the authors; models are {kept}, priorities left out",
            "jobs that passed, failed or were killed are here alike, and the file does not say which",
        ),
    )
