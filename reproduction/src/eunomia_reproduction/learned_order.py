"""The learned order between FIFO, which knows nothing, and SRTF, which knows all durations.

Days of Philly after those that the shipped model has learnt from, and of clusters that it has not seen: SenseTime's
Venus and a cluster of Microsoft ITP. Machines are taken away until jobs ask for 0.8, 1.0 and 1.2 of what is left. The
goals: 60 % of the gap between FIFO and SRTF closed, less mean JCT than under Tiresias, and no tenant with 20 jobs or
more worse off than under Tiresias by over 5 %.

On Venus, how many of the shorter half of the jobs take more than five times as long as they run: ASTRAEA's paper says
of FIFO there that short jobs do.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.model.arrays import Array
from eunomia.runs.simulation import Result, simulate
from eunomia.scenario import Scenario, scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia_reproduction.table import FigureRow, FigureTable, Request

LOADS = (0.8, 1.0, 1.2)
POLICIES = ("fifo", "srtf", "tiresias", "las", "learned_order")
DAY_S = 86_400.0
FEWEST = 20  # jobs of a tenant that is compared
GAP, WORSE = 0.6, 0.05
SLOWED_ON, SLOW = "venus", 5.0  # completion time ÷ run time
TRACES: Mapping[str, tuple[str, Mapping[str, Any], float, float, int]] = {  # file, options, first day, days, machines
    "philly": ("philly/philly_jobs.csv.gz", {"format": "philly"}, 75.0, 8.0, 552),
    "venus": ("helios-venus/venus_gpu_jobs.csv.gz", {"format": "venus"}, 60.0, 10.0, 133),
    "itp": ("elasticflow-itp/itp_jobs.csv.gz", {"format": "itp", "cluster": "cluster07"}, 20.0, 10.0, 80),
}


def scenario_of(folder: Path, trace: str, load: float, policy: str) -> Scenario:
    """Return the days of a trace on so many machines of 8 accelerators that jobs ask for `load` of them."""
    file, options, first, days, most = TRACES[trace]

    def on(machines: int) -> Scenario:
        return scenario_from_dict(
            {
                "cluster": {"nodes": [{"type": "gpu", "count": machines, "accelerators": 8}]},
                "workload": {
                    "trace": str((folder / file).resolve()), **options, "start_s": first * DAY_S,
                    "end_s": (first + days) * DAY_S,
                },
                "throughputs": {"source": "uniform"},
                "policy": {"name": policy},
            },
            folder,
            f"{trace} at load {load:g}",
        )  # fmt: skip

    offered = set_up(on(most)).offered_load()
    return on(max(1, round(most * (offered or 0.0) / load)))


def reproduce(request: Request) -> FigureTable:
    """Play every trace at every load under every policy."""
    folder = request.folder("data/traces")
    rows: list[FigureRow] = []
    for trace in TRACES:
        for load in LOADS:
            runs = {name: simulate(scenario_of(folder, trace, load, name)) for name in POLICIES}
            hours = {name: float(run.summary["jct_mean_s"] or np.nan) / 3600 for name, run in runs.items()}
            request.tell(f"{trace}, load {load:g}: {', '.join(f'{name} {h:.3f} h' for name, h in hours.items())}")
            rows += _rows(trace, load, hours, _worst_tenant(runs["learned_order"], runs["tiresias"]))
            if trace == SLOWED_ON:
                rows += [slowed(name, load, run.jobs) for name, run in runs.items()]
    notes = (
        "The model has learnt from days 30 to 65 of Philly. One run each: the traces are data, not draws.",
        "A tenant's change is that of its mean JCT against Tiresias.",
    )
    return FigureTable(rows=tuple(rows), notes=notes)


def _rows(trace: str, load: float, hours: Mapping[str, float], worst: float | None) -> list[FigureRow]:
    rows = [
        FigureRow(series=f"{trace}, {name}", x=load, quantity="mean JCT", unit="h", measured=round(value, 4))
        for name, value in hours.items()
    ]
    gap = hours["fifo"] - hours["srtf"]
    closed = (hours["fifo"] - hours["learned_order"]) / gap if gap > 0 else None
    quantities = {
        f"part of the gap FIFO → SRTF closed; goal {GAP:g}": closed,
        "mean JCT ÷ that of Tiresias; goal below 1": hours["learned_order"] / hours["tiresias"],
        f"largest change of a tenant; goal {WORSE:g}": worst,
    }
    return rows + [
        FigureRow(
            series=f"{trace}, learned_order", x=load, quantity=quantity, unit="",
            measured=None if value is None else round(value, 4),
        )
        for quantity, value in quantities.items()
    ]  # fmt: skip


def slowed(policy: str, load: float, jobs: Mapping[str, Array]) -> FigureRow:
    """Return which part of the shorter half of the jobs that ended are slowed more than `SLOW` times."""
    slowdown, jct = (np.asarray(jobs[name], dtype=float) for name in ("slowdown", "jct_s"))
    done = np.isfinite(slowdown) & np.isfinite(jct)
    ran = jct[done] / slowdown[done]
    short = ran <= np.median(ran)
    return FigureRow(
        series=f"{SLOWED_ON}, {policy}", x=load, quantity=f"shorter half of jobs, slowdown above {SLOW:g}",
        unit="of them", measured=round(float((slowdown[done][short] > SLOW).mean()), 4),
        source="Ye et al., TPDS 2022, section 1", note="not published: short jobs under FIFO",
    )  # fmt: skip


def _worst_tenant(run: Result, reference: Result) -> float | None:
    """Return the largest relative change of a tenant's mean JCT; None where no tenant has jobs enough."""
    means = [_means(one) for one in (run, reference)]
    changes = [means[0][name] / means[1][name] - 1 for name in means[0].keys() & means[1].keys()]
    return max(changes, default=None)


def _means(run: Result) -> dict[str, float]:
    names, times = np.array(run.jobs["tenant"], dtype=object), np.asarray(run.jobs["jct_s"], dtype=float)
    done = np.isfinite(times)
    found = {name: times[done & (names == name)] for name in dict.fromkeys(names.tolist()) if name}
    return {name: float(np.mean(one)) for name, one in found.items() if len(one) >= FEWEST}
