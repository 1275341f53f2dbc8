"""`eunomia when --slurm` and `--kueue`: when the jobs of another scheduler's queue start, without changing anything."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from eunomia.cli.command import Output

if TYPE_CHECKING:
    from eunomia.history.queue_forecast import StartForecast

MOST_SHOWN = 50


def show_queue(job_id: str | None, slurm: bool, kueue: Path | None, output: Output) -> None:
    """Print when one job of a queue starts, or all that wait."""
    from eunomia.history.kueue_queue import kueue_queue
    from eunomia.history.queue_hindcast import calibrated_starts
    from eunomia.history.slurm_queue import slurm_queue
    from eunomia.inputs.problems import refused

    if slurm and kueue is not None:
        raise refused("command line", "--slurm", None, "stands beside --kueue", "give one of the two")
    queue = slurm_queue() if kueue is None else kueue_queue(kueue)
    found = calibrated_starts(queue)
    if job_id is not None:
        found = [one for one in found if one.job_id == job_id]
        if not found:
            rule = "no such job waits there"
            raise refused(queue.source, "JOB", job_id, rule, "leave it out to see all that wait")
    lines = [f"{one.job_id}: {_shown(one)}; {one.reason}" for one in found[:MOST_SHOWN]]
    if len(found) > MOST_SHOWN:
        lines.append(f"and {len(found) - MOST_SHOWN:,} jobs more; --json has all")
    output.show({"source": queue.source, "jobs": [_plain(one) for one in found]}, *(lines or ["no job waits"]))


def _plain(one: StartForecast) -> dict[str, object]:
    points = {name: getattr(one, f"{name}_s") for name in ("p10", "p50", "p90")}
    start = {f"{name}_s": None if math.isinf(value) else round(value, 1) for name, value in points.items()}
    return {"job_id": one.job_id, "start_in": start, "reason": one.reason}


def _shown(one: StartForecast) -> str:
    from eunomia.verdict.number_format import duration

    if math.isinf(one.p50_s):
        return "its start is not foreseen"
    last = "later" if math.isinf(one.p90_s) else duration(one.p90_s)
    return f"starts in {duration(one.p50_s)}; in 80 % of futures in {duration(one.p10_s)} to {last}"
