"""Completed jobs of Shanghai AI Lab's Kalos cluster, 2023 (Q. Hu et al., NSDI 2024), as one table, a line per job.

Only completed jobs of pretraining, fine-tuning and other work are here: no evaluation, no failures. The column
`iteration_networking_time` is the publisher's code of the kind of work, 0.75 for pretraining.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import DURATION, SCALE_FACTOR, SUBMITTED, Rule
from eunomia.inputs.open_table import read_table
from eunomia.inputs.options import flag
from eunomia.traces.notes import count_notes
from eunomia.traces.table import Trace, build_trace

KIND_OF = "iteration_networking_time"
REQUIRED = ("job_id", "submit_s", "gpus", "service_s")
OPTIONAL = ("nodes", "gpus_per_node", KIND_OF)
NODES = Rule(
    what="a whole number of machines, at least 1", least=1, most=1e6, whole=True, empty=1, fix="write 1 for one machine"
)
KIND = Rule(what="a number from 0 to 1", least=0, most=1, empty=0, fix="write 0.75 for pretraining, else 0.25")
PRETRAINING = 0.75
SELECTED = "evaluation jobs and all that failed or were cancelled are absent from the published extract"


def read(path: Path, *, models: bool = False) -> Trace:
    """Return the trace, by submission; `models` makes the kind of work, pretrain or other, the job type.

    Raises InvalidInput with everything that is wrong with the file.
    """
    flag(str(path), "models", models)
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    kind = sheet.number(KIND_OF, KIND) if models else np.empty(0)
    nodes, per_node = sheet.whole("nodes", NODES), sheet.whole("gpus_per_node", NODES)
    gpus = sheet.whole("gpus", SCALE_FACTOR)
    uneven = (nodes * per_node != gpus) & ("nodes" in sheet.columns)
    return build_trace(
        sheet,
        sheet.unique("job_id"),
        sheet.number("submit_s", SUBMITTED),
        gpus,
        job_type=tuple(np.where(kind == PRETRAINING, "pretrain", "other").tolist()) if models else None,
        duration_s=sheet.number("service_s", DURATION),
        status=("finished",) * len(sheet),
        unread=sheet.unread("nodes", "gpus_per_node", instead={KIND_OF: "models=true, as job_type"}),
        partly=(f"of {KIND_OF} more than pretrain or other",) * models,
        notes=(
            SELECTED,
            *count_notes({"jobs do not fill their machines evenly; their accelerators are taken": uneven}),
        ),
    )
