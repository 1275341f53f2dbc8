"""Job files in the layout of Alibaba's trace of 2026, which say of no job when it started."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from random import Random

from tests.traces.generated.truth import HOUR_S, TYPES, Truth, assert_same

from eunomia.traces import read
from eunomia.traces.accounting_csv import read_history
from eunomia.traces.import_findings import History

COLUMNS = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type"
MODELS = {"v100": "Tesla-V100-SXM2-16GB", "t4": "Tesla-T4", "h100": "NVIDIA-H100-80GB-HBM3"}


def generate(rng: Random, folder: Path) -> tuple[History, Truth]:
    """Return the history that is read of a job file; the trace of its own format must have the same sums."""
    truth, rows, at = Truth(), [], 0
    for k in range(rng.randrange(3, 40)):
        at += rng.randrange(3000)
        tenant, kind = str(rng.randrange(4)), rng.choice(TYPES)
        each, workers, lasted = rng.choice((0, 0.5, 1, 8)), rng.choice((1, 1, 16, 94)), rng.randrange(1, 90_000)
        rows.append(f"{k},{tenant},{MODELS[kind]},4,{each:g},{workers},{at},{lasted},{rng.choice(('HP', 'Spot'))}")
        if each:
            hours = workers * lasted / HOUR_S
            truth.add(kind, tenant, each * hours, written=ceil(each) * hours)
    rows.append(f"last,0,{MODELS['t4']},1,1,1,{at},3600,HP")
    truth.add("t4", "0", 1)
    path = folder / "job_info_df.csv"
    path.write_text("\n".join([COLUMNS, *rows, ""]))
    trace = read(path, "auto")
    sums: dict[tuple[str, str], float] = {}
    for kind, tenant, width, lasted in zip(
        trace.ran_on, trace.tenant, trace.scale_factor.tolist(), trace.duration_s.tolist(), strict=True
    ):
        sums[kind, tenant] = sums.get((kind, tenant), 0.0) + width * lasted / HOUR_S
    assert_same(sums, truth.written)
    return read_history(path), truth
