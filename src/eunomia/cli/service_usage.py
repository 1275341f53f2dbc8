"""The commands `usage` and `audit`: what users used, and who changed what."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from eunomia.cli.errors import FAILED
from eunomia.cli.options import flag, option
from eunomia.cli.output import span
from eunomia.cli.service_jobs import moment
from eunomia.cli.service_session import ServiceSession, client_command, printed, show_lines, show_table
from eunomia.inputs.problems import refused

GROUPS = ("tenant", "user", "type")
WHOLE = ("starts", "succeeded", "failed", "cancelled", "refused", "failures")
FOLLOW_S = 2.0
PAGE = 1000  # entries of one answer
AUDIT = ("number", "at", "user", "role", "source", "action", "object", "verified", "file")
CsvOption = Annotated[bool, flag("Print CSV instead of a table.", "--csv")]


@client_command
def usage(
    session: ServiceSession,
    begin: Annotated[str, option("TIME", "First day, or time; left out, the first of this month.", "--from")] = "",
    end: Annotated[str, option("TIME", "Day, or time, before which it ends; left out, now.", "--to")] = "",
    month: Annotated[str, option("YYYY-MM", "Instead of both: one calendar month.")] = "",
    by: Annotated[str, option("A,B", "Of tenant, user, type, and one of hour, day, week, month.")] = "tenant,user,type",
    as_csv: CsvOption = False,
    parquet: Annotated[Path | None, option("FILE.parquet", "Write all columns into this file.")] = None,
    force: Annotated[bool, flag("Replace an existing file.", "--force")] = False,
) -> None:
    """Show what users used: accelerator-hours, waits, ends of jobs, lost work, energy.

    Users see their own, an administrator of a tenant its users', operators all. Days and months are those of the site's
    time_zone. For example: eunomia usage --month 2026-10 --by user,type --csv
    """
    from eunomia.inputs.atomic_write import check_place, write_output

    if parquet is not None:
        check_place(parquet, force=force, endings=(".parquet",), column="--parquet")
    if month:
        begin, end = _month(month, begin or end)
    found, cursor = None, ""
    while cursor is not None:
        page = session.client.get("/v1/usage", **{"from": begin, "to": end}, by=by, cursor=cursor, limit=10_000)
        if found is None:
            found = page
        else:
            found["usage"] += page["usage"]
        cursor = page["next"]
    assert found is not None
    found["next"] = None
    if parquet is not None:
        write_output(parquet, lambda file: _write_parquet(found, file), column="--parquet")
    if as_csv and not session.as_json:
        sys.stdout.write(_csv(found["usage"], list(_columns(found))))
        return
    session.show(found, lambda: _show_usage(found, parquet))


def _month(text: str, other: str) -> tuple[str, str]:
    """Return begin and end of a calendar month. Raises InvalidInput."""
    from datetime import date, timedelta

    try:
        first = date.fromisoformat(f"{text}-01")
        following = (first + timedelta(days=32)).replace(day=1)
    except (ValueError, OverflowError):
        raise refused("command line", "--month", text, "is no month", "write one such as 2026-10") from None
    if other:
        raise refused("command line", "--month", text, "stands beside --from or --to", "leave either out")
    return first.isoformat(), following.isoformat()


def _columns(found: dict[str, Any]) -> dict[str, str]:
    """Return the columns of an answer, each with its kind."""
    named = [name for name in GROUPS if name in found["by"]]
    sums = {name: "whole" if name in WHOLE else "number" for name in found["total"]}
    return {"begins_at": "time", "ends_at": "time", **dict.fromkeys(named, "text"), **sums}


def _csv(rows: list[dict[str, Any]], columns: list[str]) -> str:
    text = io.StringIO()
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def _write_parquet(found: dict[str, Any], file: BinaryIO) -> None:
    from datetime import datetime

    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"time": pa.timestamp("s", "UTC"), "text": pa.string(), "whole": pa.int64(), "number": pa.float64()}
    columns = _columns(found)
    values = [
        [datetime.fromisoformat(row[name]) if kind == "time" else row[name] for row in found["usage"]]
        for name, kind in columns.items()
    ]
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    arrays = [pa.array(each, field.type) for each, field in zip(values, schema, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), file)


def _show_usage(found: dict[str, Any], parquet: Path | None) -> None:
    total, names = found["total"], [name for name in GROUPS if name in found["by"]]
    has_period, has_energy = len(found["by"]) > len(names), total["energy_kwh"] is not None
    heads = (
        *(["from"] if has_period else []), *names, "hours", "jobs", "wait", "ok", "failed", "other", "lost h",
        *(["kWh"] if has_energy else []),
    )  # fmt: skip

    def cells(row: dict[str, Any], first: list[str]) -> tuple[str, ...]:
        energy = "–" if row["energy_kwh"] is None else _number(row["energy_kwh"])
        return (
            *first, _number(row["accelerator_hours"]), str(row["starts"]), span(row["mean_wait_s"]),
            str(row["succeeded"]), str(row["failed"]), str(row["cancelled"] + row["refused"]),
            _number(row["lost_accelerator_hours"]), *([energy] if has_energy else []),
        )  # fmt: skip

    rows = []
    for row in found["usage"]:
        period = [row["begins_at"][: 16 if "hour" in found["by"] else 10].replace("T", " ")] if has_period else []
        rows.append(cells(row, [*period, *(row[name] or "–" for name in names)]))
    if rows:
        rows.append(cells(total, ["all", *[""] * (has_period + len(names) - 1)] if has_period or names else []))
    begin, end = _shown(found["from"]), _shown(found["to"])
    show_lines(f"accelerator-hours, jobs that began and their mean wait: {begin} to {end}, {found['time_zone']}")
    show_table(heads, rows, "nothing was used")
    if rows and not has_energy:
        show_lines("energy: not shown, as no driver of these accelerators counts it")
    elif has_energy and total["metered_accelerator_hours"] < 0.99 * total["accelerator_hours"]:
        show_lines(f"energy: of {total['metered_accelerator_hours']:.2f} accelerator-hours; no driver counted the rest")
    if found["exact_from"] is not None:
        show_lines(f"exact from {_shown(found['exact_from'])} (UTC) on; before, as an earlier version kept its jobs")
    if parquet is not None:
        show_lines(f"table: {parquet}")


def _number(value: float) -> str:
    return f"{value:.2f}" if value >= 1 or value == 0 else f"{value:.2g}"


def _shown(text: str) -> str:
    return text[:16].replace("T", " ")


@client_command
def audit(
    session: ServiceSession,
    user: Annotated[str, option("NAME", "Only what this user did.")] = "",
    action: Annotated[str, option("NAME", "Only this action, such as cancel.")] = "",
    about: Annotated[str, option("NAME", "Only about this, such as the id of a job.", "--object")] = "",
    source: Annotated[str, option("ADDRESS", "Only from this address, or 'unix socket'.")] = "",
    begin: Annotated[str, option("TIME", "From this time on, or since so long ago, such as 2d.", "--from")] = "",
    end: Annotated[str, option("TIME", "Before this time.", "--to")] = "",
    limit: Annotated[int, option("N", "At most so many, the newest.", min=1, max=1_000_000)] = 50,
    follow: Annotated[bool, flag("Go on with new entries until Ctrl-C.", "--follow", "-f")] = False,
    as_csv: CsvOption = False,
) -> None:
    """Show who changed what, the last entry at the end, each verified; for operators.

    Entries that were taken out of the store are read from their files in the state folder, where they still are.
    For example: eunomia audit --user ann --action cancel --from 2d
    """
    asked: dict[str, Any] = {"user": user, "action": action, "object": about, "source": source}
    asked |= {"from": moment(begin, "--from") if begin else "", "to": moment(end, "--to") if end else ""}
    newest = session.client.get("/v1/audit", limit=1)["entries"] if follow else []
    found = _entries(session, asked, limit)
    found["entries"].reverse()
    if as_csv and not session.as_json:
        sys.stdout.write(_csv(found["entries"], list(AUDIT)))
    elif follow or not session.as_json:
        _show_entries(session, found)
    else:
        session.show(found, lambda: None)
    for line in _remarks(found):
        print(printed(line), file=sys.stderr)
    if follow:
        _follow(session, asked, newest[0]["number"] if newest else 0, as_csv)
    if found["problems"]:
        raise typer.Exit(FAILED)


def _entries(session: ServiceSession, asked: dict[str, Any], limit: int) -> dict[str, Any]:
    """Return entries, the newest first, of as many pages as it takes."""
    found: dict[str, Any] = {"entries": [], "taken_away": [], "problems": [], "signatures_checked": True}
    cursor = ""
    while cursor is not None and len(found["entries"]) < limit:
        most = min(limit - len(found["entries"]), PAGE)
        page = session.client.get("/v1/audit", **asked, limit=most, cursor=cursor)
        for name in ("entries", "taken_away", "problems"):
            found[name] += [one for one in page[name] if one not in found[name]] if name != "entries" else page[name]
        found["signatures_checked"] &= page["signatures_checked"]
        cursor = page["next"]
    return found


def _show_entries(session: ServiceSession, found: dict[str, Any]) -> None:
    for one in found["entries"]:
        if session.as_json:
            print(json.dumps(one), flush=True)
            continue
        mark = "" if one["verified"] else "  NOT AS IT WAS WRITTEN"
        who = f"{one['user']} ({one['role']}, {one['source']})"
        print(printed(f"{one['at']}  {who}  {one['action']}  {one['object']}{mark}"), flush=True)
    if not found["entries"] and not session.as_json:
        print("no entries")


def _remarks(found: dict[str, Any]) -> list[str]:
    """Return what is not shown, or is not as it was written."""
    lines = [f"warning: {text}" for text in found["problems"]]
    lines += [
        f"note: entries {one['first']} to {one['last']} ({one['begun_at'][:10]}) were taken away"
        f"{'' if one['removed_at'] is None else ' on ' + one['removed_at'][:10]}; their file {one['file']} is not there"
        for one in found["taken_away"]
    ]
    if not found["signatures_checked"]:
        lines.append("note: signatures were not checked, as there is no key in the state folder")
    return lines


def _follow(session: ServiceSession, asked: dict[str, Any], after: int, as_csv: bool) -> None:
    """Show new entries as they come."""
    while True:
        time.sleep(FOLLOW_S)
        found = session.client.get("/v1/audit", **asked, after=after, limit=PAGE)
        after = int(found["next"])
        if as_csv and not session.as_json:
            csv.DictWriter(sys.stdout, AUDIT, lineterminator="\n").writerows(found["entries"])
            sys.stdout.flush()
        elif found["entries"]:
            _show_entries(session, found)
        for line in _remarks({**found, "signatures_checked": True}):
            print(printed(line), file=sys.stderr)
