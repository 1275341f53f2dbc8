"""Commands about jobs: `submit`, `jobs`, `job`, `cancel`, `hold`, `release`, `logs`, `why`."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO
from urllib.parse import urlencode

import typer

from eunomia.cli.options import argument, flag, option
from eunomia.cli.service_session import ServiceSession, WatchOption, ago, client_command, show_lines, show_table

if TYPE_CHECKING:
    from eunomia.service.client import Client

JobArgument = Annotated[str, argument("ID", "The job's id.")]
JobsArgument = Annotated[list[str], argument("ID…", "Ids of jobs.")]
COLOURS = re.compile(r"(\x1b\[[0-9;]*m)")  # sequences of a terminal that change nothing else
SHELL = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX")  # with which it finds programs


@client_command
def submit(
    session: ServiceSession,
    command: Annotated[list[str] | None, argument("-- COMMAND…", "Program and arguments, after two dashes.")] = None,
    gpus: Annotated[int, option("N", "Accelerators of the gang.")] = 1,
    type_: Annotated[str, option("A,B", "Accelerator types, any of which will do.", "--type")] = "",
    processes: Annotated[
        str, option("HOW", "one, or per_accelerator with RANK and the rest as torchrun sets them.")
    ] = "one",
    debug: Annotated[bool, flag("At most 10 min, started at once in the debug lane.", "--debug")] = False,
    name: Annotated[str | None, option("NAME", "Name for display.")] = None,
    job_type: Annotated[str, option("TYPE", "What it trains: its throughputs.")] = "",
    steps: Annotated[float | None, option("N", "Steps that it trains, if known.")] = None,
    duration: Annotated[
        str | None, option("TIME", "How long it takes, if known: seconds, or as 90m, 1-12, 10:00:00.")
    ] = None,
    interruptible: Annotated[
        bool | None,
        flag(
            "It saves and goes on from there by itself, or never does; left out: what it shows.",
            "--interruptible/--not-interruptible",
        ),
    ] = None,
    retries: Annotated[int, option("N", "Further attempts after a failure.")] = 0,
    max_run: Annotated[str | None, option("TIME", "Longest time on its seats, in the same way.")] = None,
    weight: Annotated[float, option("W", "Share among its tenant's jobs.")] = 1.0,
    priority: Annotated[
        int, option("N", "Order among your own waiting jobs, -1000 to 1000: the higher start first.")
    ] = 0,
    deadline: Annotated[str | None, option("TIME", "When it is to be done, from now, in the same way.")] = None,
    after: Annotated[
        list[str] | None,
        option("ID", "A job that must succeed first; afterany:ID, afternotok:ID; singleton. May be repeated."),
    ] = None,
    array: Annotated[
        str | None, option("A-B", "One job for each index, as in 0-99; 0-99%4: at most four at once.")
    ] = None,
    env: Annotated[
        list[str] | None,
        option("NAME=VALUE", "A variable to set. May be repeated. On the service's machine PATH is this shell's."),
    ] = None,
    notify: Annotated[
        list[str] | None, option("WHERE", "Say there when it has ended: mail, webhook:NAME; with @failed or @started.")
    ] = None,
    label: Annotated[list[str] | None, option("KEY=VALUE", "A label. May be repeated.")] = None,
    cwd: Annotated[Path | None, option("DIR", "Folder to start in; default: this one.")] = None,
    stderr: Annotated[str, option("WHERE", "Standard error: log, or apart (logs --errors shows it).")] = "log",
    file: Annotated[
        Path | None,
        option("JSONL", "Many jobs, one JSON document a line; each starts in this folder unless it has a cwd."),
    ] = None,
    key: Annotated[str | None, option("KEY", "Idempotency key; one is made if left out.")] = None,
) -> None:
    """Submit a job.

    Prints its id once it is stored durably. For example: eunomia submit --gpus 4 --name cifar -- python train.py
    """
    jobs: Any
    if file is not None:
        here = str((cwd or Path.cwd()).resolve())
        jobs = [{"cwd": here, **one} if isinstance(one, dict) else one for one in _lines(file)]
    else:
        given = {
            "name": name,
            "debug": debug,
            "processes": None if processes == "one" else processes,
            "stderr": None if stderr == "log" else stderr,
            "job_type": job_type,
            "total_steps": steps,
            "duration_s": _span(duration, "--duration"),
            "retries": retries or None,
            "max_run_s": _span(max_run, "--max-run"),
            "deadline_s": _span(deadline, "--deadline"),
            "priority": priority or None,
            "weight": weight if weight != 1.0 else None,
            "after": after,
            "notify": notify,
            "array": array,
            "types": [one for one in type_.split(",") if one],
            "env": shell_variables(session.client) | _pairs(env, "--env"),
            "labels": _pairs(label, "--label"),
            "cwd": str((cwd or Path.cwd()).resolve()),
        }
        jobs = {"command": command or [], "accelerators": gpus} | {k: v for k, v in given.items() if v}
        if interruptible is not None:
            jobs["interruptible"] = interruptible
    answer = session.client.submit(jobs, key)
    for note in answer.get("notes", ()):
        sys.stderr.write(f"note: {note}\n")
    session.show(answer, lambda: print("\n".join(answer.get("ids") or [answer["id"]])))


@client_command
def resubmit(
    session: ServiceSession,
    job_ids: JobsArgument,
    change: Annotated[
        list[str] | None,
        option("KEY=VALUE", "Change a key of the document, such as accelerators=2. May be repeated.", "--set"),
    ] = None,
) -> None:
    """Submit jobs once more, with the same document.

    Jobs that they followed are not waited for. Of an array its one element is submitted. For example: eunomia resubmit
    17-k3f9a --set accelerators=2 --set max_run_s=7200
    """
    changes = {key: _value(text) for key, text in _pairs(change, "--set").items()}
    _each(session, job_ids, "POST", "/resubmit", changes)


def _value(text: str) -> Any:
    """Return a value as JSON has it; words without quotes are texts."""
    from eunomia.inputs.json_text import NotJson, parse_json

    try:
        return parse_json(text)
    except NotJson:
        return text


def shell_variables(client: Client) -> dict[str, str]:
    """Return the variables with which this shell finds programs; none for a service elsewhere."""
    return {name: os.environ[name] for name in SHELL if os.environ.get(name) and client.address.is_here}


def _lines(file: Path) -> list[Any]:
    from eunomia.inputs.json_text import NotJson, parse_json
    from eunomia.inputs.problems import Problems

    found, problems = [], Problems(str(file))
    for row, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                found.append(parse_json(line))
            except NotJson as error:
                problems.add(f"this is not JSON ({error})", "write one document a line", row=row)
    problems.raise_if_any()
    return found


def _pairs(words: list[str] | None, option: str) -> dict[str, str]:
    from eunomia.inputs.problems import Problems

    problems = Problems("command line")
    for word in words or ():
        if "=" not in word:
            problems.add("has no =", "write NAME=VALUE", column=option, value=word)
    problems.raise_if_any()
    return dict(word.split("=", 1) for word in words or ())


@client_command
def jobs(
    session: ServiceSession,
    state: Annotated[str, option("A,B", "Only jobs in these states, such as pending,running.")] = "",
    label: Annotated[str, option("KEY=VALUE", "Only jobs with this label.")] = "",
    tenant: Annotated[str, option("NAME", "Only jobs of this tenant; for operators.")] = "",
    limit: Annotated[int, option("N", "At most so many, the newest first.")] = 50,
    watch: WatchOption = False,
) -> None:
    """List jobs, the newest first.

    For example: eunomia jobs --state pending,running
    """
    session.watch(
        lambda: session.client.get("/v1/jobs", state=state, label=label, tenant=tenant, limit=limit),
        lambda found: show_table(
            ("id", "name", "tenant", "state", "gpus", "on", "since", "reason"),
            [
                (
                    one["id"],
                    one["name"],
                    one["tenant"],
                    one["state"],
                    str(one["accelerators"]),
                    _seats(one),
                    ago(one["since"]),
                    one["reason"] or "",
                )
                for one in found["jobs"]
            ],
            "no jobs",
            cut="reason",
        ),
        watch,
    )


@client_command
def job(session: ServiceSession, job_id: JobArgument) -> None:
    """Show a job and its history.

    For example: eunomia job 17-k3f9a
    """
    found = session.client.get(session.client.job_path(job_id))
    session.show(found, lambda: _show_job(found))


def _show_job(found: dict[str, Any]) -> None:
    from eunomia.service.pages.render import memory_text

    show_lines(f"job {found['id']} ({found['name']}) of {found['owner']}, tenant {found['tenant']}: {found['state']}")
    for line in (
        f"command    {shlex.join(found['spec']['command'])}",
        f"asks for   {found['accelerators']} accelerators",
        f"submitted  {found['submitted_at']}",
        f"started    {found['started_at'] or 'never'}, ended {found['ended_at'] or 'not yet'}",
        *([f"memory     {memory}, on each"] if (memory := memory_text(found)) else []),
        f"progress   {found['steps']:g} of {_steps(found)} steps in a checkpoint, start number {found['epoch']}",
        f"reason     {found['reason'] or '–'}",
    ):
        show_lines(f"  {line}")
    for one in found["history"]:
        show_lines(f"  {one['at']}  {one['kind']}  {one['reason']}")


def _steps(found: dict[str, Any]) -> str:
    if found["total_steps"] is not None:
        return f"{found['total_steps']:g}"
    return f"about {found['estimated_total_steps']:g} (estimated)"


@client_command
def cancel(session: ServiceSession, job_ids: JobsArgument) -> None:
    """Cancel jobs; once it is answered they never start again.

    For example: eunomia cancel 17-k3f9a
    """
    _each(session, job_ids, "DELETE", "")


@client_command
def hold(session: ServiceSession, job_ids: JobsArgument) -> None:
    """Hold jobs: running ones save and stop.

    For example: eunomia hold 17-k3f9a
    """
    _each(session, job_ids, "POST", "/hold")


@client_command
def release(session: ServiceSession, job_ids: JobsArgument) -> None:
    """Release held jobs.

    For example: eunomia release 17-k3f9a
    """
    _each(session, job_ids, "POST", "/release")


def _each(
    session: ServiceSession, job_ids: list[str], method: str, suffix: str, body: dict[str, Any] | None = None
) -> None:
    """Do it to every job, also where it is refused for one; each is listed, and a refusal of any ends in an error."""
    from eunomia.service.client import ServiceRefusal

    found, refused = list[dict[str, Any]](), list[ServiceRefusal]()
    for job_id in job_ids:
        try:
            found.append(session.client.send(method, session.client.job_path(job_id) + suffix, body))
        except ServiceRefusal as error:
            refused.append(error)
            if len(job_ids) > 1:
                found.append({"id": job_id, "error": str(error)})
    if found:
        session.show({"jobs": found}, lambda: show_lines(*map(_became, found)))
    if len(job_ids) == 1 and refused:
        raise refused[0]
    if refused:
        raise typer.Exit(1)


@client_command
def logs(
    session: ServiceSession,
    job_id: JobArgument,
    follow: Annotated[bool, flag("Go on until the job is over.", "-f", "--follow")] = False,
    tail: Annotated[int | None, option("N", "Only the last N lines.")] = None,
    since: Annotated[
        str | None, option("WHEN", "From about then on: a date and time, or how long ago, such as 10m or 1-12.")
    ] = None,
    errors: Annotated[bool, flag("What it wrote to standard error, where that is apart.", "--errors")] = False,
) -> None:
    """Print the output of a job.

    Of a long output the last two parts are kept. For example: eunomia logs 17-k3f9a --tail 100 -f
    """
    path = f"{session.client.job_path(job_id)}/log"
    asked: dict[str, Any] = {
        "tail": tail,
        "since": since and moment(since, "--since"),
        "stream": "errors" if errors else None,
    }
    query = {key: value for key, value in asked.items() if value is not None}
    if follow:
        for _, kind, data in session.client.events(f"{path}?{urlencode({'follow': 1, **query})}"):
            if kind == "log":
                sys.stdout.write(for_terminal(data["text"], sys.stdout))
                sys.stdout.flush()
        return
    text, headers = session.client.text(path, **query)
    end, parts = int(headers["x-size"]), [text]
    if (gone := int(headers["x-first-offset"])) and not query.keys() - {"stream"}:
        print(f"the first {gone} bytes of its output are no longer kept", file=sys.stderr)
    while text:  # up to where it was at first: it may go on for ever
        if not session.as_json:
            sys.stdout.write(for_terminal(text, sys.stdout))
        if (start := int(headers["x-next-offset"])) >= end:
            break
        text, headers = session.client.text(path, **{"stream": query.get("stream", ""), "from": start})
        parts.append(text)
    if session.as_json:
        print(json.dumps({"id": job_id, "log": "".join(parts)}))


def _became(one: dict[str, Any]) -> str:
    """Return what has become of a job, or of what was submitted again."""
    if "error" in one:
        return f"{one['id']}: refused: {one['error']}"
    return "\n".join(one["ids"]) if "ids" in one else f"{one['id']}: {one['state']}"


def _span(text: str | None, option: str) -> float | None:
    """Return the seconds of an option. Raises InvalidInput for what is no length of time."""
    from eunomia.inputs.problems import refused
    from eunomia.inputs.spans import RULE, seconds_of

    if text is not None and (found := seconds_of(text)) is None:
        raise refused("command line", option, text, f"must be {RULE}", "write one, or leave it out")
    return None if text is None else found


def moment(text: str, given: str) -> str:
    """Return a date and time as the service reads it, of one or of how long ago. Raises InvalidInput."""
    from eunomia.inputs.problems import refused
    from eunomia.inputs.spans import RULE, seconds_of

    if (ago_s := seconds_of(text)) is not None and 0 <= ago_s < 1e9:
        return (datetime.now(UTC) - timedelta(seconds=ago_s)).isoformat()
    try:
        return datetime.fromisoformat(text).astimezone().isoformat()
    except (ValueError, OverflowError):
        rule, fix = f"must be {RULE}, or a date and time", "write 10m or 2026-11-23T16:00"
        raise refused("command line", given, text, rule, fix) from None


@client_command
def why(session: ServiceSession, job_id: JobArgument, watch: WatchOption = False) -> None:
    """Say why a job does not run.

    For example: eunomia why 17-k3f9a
    """
    session.watch(lambda: session.client.get(f"{session.client.job_path(job_id)}/why"), _show_why, watch)


def _show_why(found: dict[str, Any]) -> None:
    show_lines(f"job {found['id']} is {found['state']} since {ago(found['since'])}")
    if preempted := found.get("preempted"):
        show_lines(f"  it was preempted {ago(preempted['at'])}, at {preempted['at']}")
    for one in found["reasons"]:
        until = f" (until {one['until']})" if one["until"] else ""
        show_lines(f"  {one['text']}{until} [{one['code']}]")
    if speed := found.get("speed"):
        show_lines(f"  {speed}")
    if saving := found.get("saving"):
        show_lines(f"  {saving}")
    if found.get("starts_unchanged"):
        show_lines(f"  it starts at {found['starts_unchanged']} if nothing changes until then")
    for text in found["would_run_if"]:
        show_lines(f"  it would run if {text}")
    if (tried := found.get("changes_played")) and not found["would_run_if"]:
        show_lines(f"  of {tried:,} changes that were played, none would let it start now")
    for key in ("note", "outcome"):
        if found.get(key):
            show_lines(f"  {found[key]}")


def _seats(one: dict[str, Any]) -> str:
    return f"{one['type']} {','.join(map(str, one['seats']))}" if one["seats"] else ""


def for_terminal(text: str, stream: TextIO) -> str:
    """Return the output of a job as it may be written: on a terminal, colours are all that it may control."""
    if not stream.isatty():
        return text
    return "".join(
        part if place % 2 else "".join(c if c.isprintable() or c in "\n\r\t" else ascii(c)[1:-1] for c in part)
        for place, part in enumerate(COLOURS.split(text))
    )
