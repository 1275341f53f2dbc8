"""Commands about what comes: `when` (of the service, of Slurm, of Kueue), what-if on the service, `forecast score`."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from eunomia.cli.command import Output, command
from eunomia.cli.options import argument, flag, group, option
from eunomia.cli.service_session import (
    CaOption,
    ServiceSession,
    TokenFileOption,
    UrlOption,
    service_errors,
    show_lines,
    show_table,
)

if TYPE_CHECKING:
    from eunomia.history.queue_forecast import StartForecast

forecast_app = group("Say how good forecasts were.")
MOST_SHOWN = 20
MOST_QUEUED = 50


@command
def when(
    output: Output,
    job_id: Annotated[str | None, argument("[ID]", "The job's id; may be left out with --slurm and --kueue.")] = None,
    arrivals: Annotated[bool, flag("Let tenants go on submitting jobs as they did before.", "--arrivals")] = False,
    slurm: Annotated[
        bool, flag("Jobs that wait in the Slurm that squeue speaks to, without a service.", "--slurm")
    ] = False,
    kueue: Annotated[
        Path | None, option("FILE", "Workloads that wait in Kueue, a file of kubectl get -o json.")
    ] = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Say when a job starts and finishes.

    Plays the present state forward, and gives the median and an 80 % interval. For example: eunomia when 17-k3f9a, or
    eunomia when --slurm 1234
    """
    if slurm or kueue is not None:
        show_queue(job_id, slurm, kueue, output)
        return
    with service_errors(output.as_json):
        from eunomia.inputs.problems import refused

        if job_id is None:
            fix = "give an id of eunomia jobs, or --slurm or --kueue FILE"
            raise refused("command line", "ID", None, "which job is not said", fix)
        session = _session(url, token_file, ca, output)
        path = f"{session.client.job_path(job_id)}/when"
        found = session.client.get(path, **({"arrivals": "true"} if arrivals else {}))
        session.show(found, lambda: _show_when(found))


def _session(url: str | None, token_file: Path | None, ca: Path | None, output: Output) -> ServiceSession:
    from eunomia.service.client import Client, find_service

    return ServiceSession(output.as_json, Client(find_service(url, token_file, ca)))


def _show_when(found: dict[str, Any]) -> None:
    show_lines(f"job {found['id']} is {found['state']}: {found['how']}")
    for name in ("start", "finish"):
        one = found[name]
        if one is not None:
            points = [_shown(one[point], found["as_of"]) for point in ("p50", "p10", "p90")]
            show_lines(f"  {name:6}  {points[0]}; in 80 % of cases between {points[1]} and {points[2]}")
    for text in found["assumes"]:
        show_lines(f"  assumes: {text}")


def _shown(at: str | None, as_of: str) -> str:
    """Return a time and how far away it is."""
    if at is None:
        return "a time not foreseen"
    then, now = (datetime.fromisoformat(text) for text in (at, as_of))
    local, seconds = then.astimezone(), (then - now).total_seconds()
    days = (local.date() - datetime.now(UTC).astimezone().date()).days
    clock = local.strftime("%H:%M:%S") if days == 0 else local.strftime("%Y-%m-%d %H:%M")
    return f"{clock} ({_span(seconds)})"


def _moved(later_s: float | None) -> str:
    from eunomia.verdict.number_format import duration

    return "" if later_s is None else f"{duration(abs(later_s))} {'later' if later_s > 0 else 'sooner'}"


def _span(seconds: float) -> str:
    from eunomia.verdict.number_format import duration

    return f"in {duration(seconds)}" if seconds >= 0 else f"{duration(-seconds)} ago"


def ask_service(
    url: str | None, token_file: Path | None, ca: Path | None, output: Output, body: dict[str, Any]
) -> None:
    """Ask a service what a change would do, and show it."""
    with service_errors(output.as_json):
        session = _session(url, token_file, ca, output)
        found = session.client.send("POST", "/v1/whatif", body)
        session.show(found, lambda: _show_what_if(found))


def _show_what_if(found: dict[str, Any]) -> None:
    show_lines(found["how"])
    if found["new_job"] is not None:
        start, finish = (_shown(found["new_job"][name], found["as_of"]) for name in ("start", "finish"))
        show_lines(f"the new job would start at {start} and finish at {finish}")
    rows = [
        (
            one["id"],
            one["tenant"],
            *(_shown(one[each]["finish"], found["as_of"]) for each in ("before", "after")),
            _moved(one["later_s"]),
        )
        for one in found["changed"][:MOST_SHOWN]
    ]
    show_table(
        ("job", "tenant", "finishes", "then", ""), rows, "no job would finish more than a minute sooner or later"
    )
    if found["changed_count"] > len(rows):
        show_lines(f"… and {found['changed_count'] - len(rows):,} jobs more")
    for one in found["tenants"]:
        counts = f"{one['sooner']:,} jobs sooner, {one['later']:,} later, {one['unchanged']:,} as before"
        show_lines(f"{one['tenant']}: {counts}")


@forecast_app.command("score")
@command
def forecast_score(
    output: Output,
    record: Annotated[
        Path | None, option("FILE", "A recorded run: forecasts are made and scored while it is played again.")
    ] = None,
    jobs: Annotated[int, option("N", "With --record: jobs whose forecasts are made, at most.", min=1)] = 500,
    futures: Annotated[int, option("N", "With --record: futures of each forecast.", min=1)] = 20,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Say how good forecasts were.

    Without --record, those of the service that runs. For example: eunomia forecast score --record out/record.jsonl.gz
    """
    if record is not None:
        from eunomia.forecasts.record_forecasts import score_record

        found = score_record(record, jobs=jobs, futures=futures)
        output.show(found, lambda: _show_score(found))
        return
    with service_errors(output.as_json):
        session = _session(url, token_file, ca, output)
        answer = session.client.get("/v1/forecasts")
        session.show(answer, lambda: _show_score(answer))


def _show_score(found: dict[str, Any]) -> None:
    show_lines(f"{found['jobs']:,} jobs that had to wait have started since their first forecast")
    texts = {
        "start_coverage": "80 % interval of the start held",
        "finish_coverage": "80 % interval of the finish held",
        "within_1_min_or_5_percent": "start within 1 min or 5 % of the wait",
        "within_1_min": "start within 1 min",
        "within_10_min": "start within 10 min",
        "median_moved_past_first_p90": "median moved past its first p90",
    }
    for key, text in texts.items():
        show_lines(f"  {text:40} {_percent(found[key])}")
    for key, text in (("start_coverage_by_tenant", "tenant"), ("start_coverage_by_size", "accelerators")):
        rows = [(name, f"{one['jobs']:,}", _percent(one["coverage"])) for name, one in found[key].items()]
        if rows:
            show_table((text, "jobs", "start held"), rows, "")


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def show_queue(job_id: str | None, slurm: bool, kueue: Path | None, output: Output) -> None:
    """Print when one job of a queue starts, or all that wait."""
    from eunomia.history.kueue_queue import kueue_queue
    from eunomia.history.queue_forecast import calibrated_starts
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
    lines = [f"{one.job_id}: {_start_text(one)}; {one.reason}" for one in found[:MOST_QUEUED]]
    if len(found) > MOST_QUEUED:
        lines.append(f"and {len(found) - MOST_QUEUED:,} jobs more; --json has all")
    output.show({"source": queue.source, "jobs": [_plain(one) for one in found]}, *(lines or ["no job waits"]))


def _plain(one: StartForecast) -> dict[str, object]:
    points = {name: getattr(one, f"{name}_s") for name in ("p10", "p50", "p90")}
    start = {f"{name}_s": None if math.isinf(value) else round(value, 1) for name, value in points.items()}
    return {"job_id": one.job_id, "start_in": start, "reason": one.reason}


def _start_text(one: StartForecast) -> str:
    from eunomia.verdict.number_format import duration

    if math.isinf(one.p50_s):
        return "its start is not foreseen"
    last = "later" if math.isinf(one.p90_s) else duration(one.p90_s)
    return f"starts in {duration(one.p50_s)}; in 80 % of futures in {duration(one.p10_s)} to {last}"
