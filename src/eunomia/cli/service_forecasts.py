"""Commands about what comes: `when`, what-if on the living service, `forecast score`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from eunomia.cli.command import Output, command
from eunomia.cli.options import argument, flag, option
from eunomia.cli.service_session import (
    ServiceSession,
    TokenFileOption,
    UrlOption,
    service_errors,
    show_lines,
    show_table,
)

forecast_app = typer.Typer(help="Say how good forecasts were.", no_args_is_help=True, rich_markup_mode=None)
MOST_SHOWN = 20


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
) -> None:
    """Say when a job starts and finishes.

    Plays the present state forward, and gives the median and an 80 % interval. For example: eunomia when 17-k3f9a, or
    eunomia when --slurm 1234
    """
    if slurm or kueue is not None:
        from eunomia.cli.queue_forecasts import show_queue

        show_queue(job_id, slurm, kueue, output)
        return
    with service_errors(output.as_json):
        from eunomia.inputs.problems import refused

        if job_id is None:
            fix = "give an id of eunomia jobs, or --slurm or --kueue FILE"
            raise refused("command line", "ID", None, "which job is not said", fix)
        session = _session(url, token_file, output)
        path = f"{session.client.job_path(job_id)}/when"
        found = session.client.get(path, **({"arrivals": "true"} if arrivals else {}))
        session.show(found, lambda: _show_when(found))


def _session(url: str | None, token_file: Path | None, output: Output) -> ServiceSession:
    from eunomia.service.client import Client, find_service

    return ServiceSession(output.as_json, Client(find_service(url, token_file)))


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


def ask_service(url: str | None, token_file: Path | None, output: Output, body: dict[str, Any]) -> None:
    """Ask a service what a change would do, and show it."""
    with service_errors(output.as_json):
        session = _session(url, token_file, output)
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
        session = _session(url, token_file, output)
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
