"""`eunomia when`: when a job of the service, or the jobs of another scheduler's queue, start. Changes nothing."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eunomia.cli.errors import handle_errors
from eunomia.cli.options import JsonOption
from eunomia.cli.service_forecasts import ask_when
from eunomia.cli.service_session import TokenFileOption, UrlOption

if TYPE_CHECKING:
    from eunomia.history.queue_forecast import StartForecast

MOST_SHOWN = 50


def when(
    job_id: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="The job; of another queue, left out: all that wait.")
    ] = None,
    slurm: Annotated[bool, typer.Option("--slurm", help="The queue of the Slurm that squeue speaks to.")] = False,
    kueue: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json", help="Kueue's queue: kubectl get clusterqueues,localqueues,workloads -A -o json"
        ),
    ] = None,
    arrivals: Annotated[
        bool, typer.Option("--arrivals", help="The service's: let tenants go on submitting jobs as they did before.")
    ] = False,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say when a job starts.

    Plays the present state of the service, or the queue of another scheduler, forward with run times like those of
    earlier jobs, and gives the median and an 80 % interval. Changes nothing.
    """
    if not slurm and kueue is None and job_id is not None:
        ask_when(url, token_file, as_json, job_id, arrivals=arrivals)
        return
    with handle_errors(as_json):
        from eunomia.history.kueue_queue import kueue_queue
        from eunomia.history.queue_forecast import forecast_starts
        from eunomia.history.slurm_queue import slurm_queue
        from eunomia.inputs.problems import refused

        if slurm == (kueue is not None):
            rule, fix = "which queue is not said", "name a job of the service, or give --slurm or --kueue FILE.json"
            raise refused("command line", "--slurm", None, rule, fix)
        queue = slurm_queue() if kueue is None else kueue_queue(kueue)
        found = forecast_starts(queue)
        if job_id is not None:
            found = [one for one in found if one.job_id == job_id]
            if not found:
                rule = "no such job waits there"
                raise refused(queue.source, "JOB", job_id, rule, "leave it out to see all that wait")
        if as_json:
            print(json.dumps({"source": queue.source, "jobs": [_plain(one) for one in found]}))
            return
        for one in found[:MOST_SHOWN]:
            print(f"{one.job_id}: {_shown(one)}; {one.reason}")
        if len(found) > MOST_SHOWN:
            print(f"and {len(found) - MOST_SHOWN:,} jobs more; --json has all")
        if not found:
            print("no job waits")


def _plain(one: StartForecast) -> dict[str, object]:
    points = {name: getattr(one, f"{name}_s") for name in ("p10", "p50", "p90")}
    start = {f"{name}_s": None if math.isinf(value) else round(value, 1) for name, value in points.items()}
    return {"job_id": one.job_id, "start_in": start, "reason": one.reason}


def _shown(one: StartForecast) -> str:
    from eunomia.report.number_format import duration

    if math.isinf(one.p50_s):
        return "its start is not foreseen"
    last = "later" if math.isinf(one.p90_s) else duration(one.p90_s)
    return f"starts in {duration(one.p50_s)}; in 80 % of futures in {duration(one.p10_s)} to {last}"
