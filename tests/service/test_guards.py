"""What comes from outside ends nothing: every field of every route, every report, every file of a job, every column.

Each gets values that are no good; after each the service goes on, takes an honest job and decides about it, and starts
again.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import signal
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from tests.service.bench import ANN, OPERATOR, SITE, Bench, LiveService, until
from tests.service.test_api import DONE, SLEEP, status
from tests.service.test_stores import on

from eunomia.backends.processes.folder import JobFolder
from eunomia.backends.reports import (
    EnergyUsed,
    GangEnded,
    GangFaulty,
    GangUnknown,
    Launched,
    MemoryUsed,
    NodeState,
    OrderTaken,
    SeatsIdle,
    SeatsTaken,
    SessionIdle,
    StepsSaved,
)
from eunomia.service import user_requests, world_reports
from eunomia.service.client import Address, Client
from eunomia.service.failed_starts import forget, note_end
from eunomia.service.http.dashboard import page_routes
from eunomia.service.http.openapi import document
from eunomia.service.http.routes import ROUTES
from eunomia.service.job_document import parse_job
from eunomia.service.job_row import iso
from eunomia.service.messages import Cancel, PolicyAnswered, Request
from eunomia.service.store import StoreProblem
from eunomia.service.store.backup import TABLES
from eunomia.service.store.reader import Reader
from eunomia.service.user_requests import CHANGEABLE
from eunomia.service.writer import CommittedTurnFailed

LONG = 10**6  # characters
# Values as they stand in JSON.
BAD = {
    "NUL": '"a\\u0000b"', "half a surrogate pair": '"a\\ud800b"', "400 digits": "1" + "0" * 400, "tiny": "5e-324",
    "huge": "1e308", "NaN": "NaN", "long": f'"{"x" * LONG}"', "wrong type": "[{}]",
}  # fmt: skip
NUMBERS = {"400 digits": 10**400, "tiny": 5e-324, "huge": 1e308, "NaN": math.nan, "negative": -1}
TEXTS = {"NUL": "a\0b", "half a surrogate pair": "a\ud800b", "long": "x" * LONG, "wrong type": 7}
ESCAPED = {"NUL": "%00", "half a surrogate pair": "%ED%A0%80", "400 digits": "1" + "0" * 400, "NaN": "NaN",
           "huge": "1e308", "tiny": "5e-324", "superscript": "%C2%B2", "long": "x" * 30_000}  # fmt: skip


def both_stores(request: pytest.FixtureRequest) -> str:
    """Return the site on the store that a test was given."""
    site = SITE if request.param == "sqlite" else on(request.getfixturevalue("database"))
    return site.replace("check = true\n", "")  # with it an assertion of ours ends the service, as in all other tests


@pytest.fixture(autouse=True)
def log_that_can_be_sent() -> Iterator[None]:
    """Lines of the log name values that no report of a test can hold, as half a surrogate pair."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(params=["sqlite", "postgres"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A controller on either store."""
    found = Bench(tmp_path, both_stores(request))
    yield found
    found.store.close()


def goes_on(bench: Bench) -> None:
    """An honest job is taken, decided about, run and finished."""
    for row in list(bench.controller.rows.values()):  # whatever else there is makes room
        bench.do(Request(Cancel(row.id), OPERATOR), GangEnded(row.id, row.epoch, "stopped"))
    bench.do(SeatsTaken(()), *(NodeState(node) for node in range(len(bench.controller.nodes))))
    job = bench.submit(duration_s=10).body["id"]
    assert bench.state(job) == "starting"
    bench.do(Launched(job, 1))
    bench.do(GangEnded(job, 1, "finished"))
    assert bench.state(job) == "succeeded"
    assert not bench.controller.taken_seats


# ---- reports of a world ----------------------------------------------------------------------------------------------

REPORTS: dict[str, Callable[[str, Any], Any]] = {
    "steps": lambda job, value: StepsSaved(job, 1, value),
    "memory": lambda job, value: MemoryUsed(job, 1, value),
    "energy": lambda job, value: EnergyUsed(job, 1, value, 1.0),
    "metered": lambda job, value: EnergyUsed(job, 1, 1.0, value),
    "end": lambda job, value: GangEnded(job, 1, "failed", value),
    "fault": lambda job, value: GangFaulty(job, 1, value),
    "silence": lambda job, value: GangUnknown(job, 1, value),
    "holder": lambda job, value: SeatsTaken(((0, value),)),
    "seat": lambda job, value: SeatsTaken(((value, "others"),)),
    "session": lambda job, value: SessionIdle(job, 1, value),
    "idle": lambda job, value: SeatsIdle(((0, value),)),
    "node": lambda job, value: NodeState(value, "away"),
    "node's reason": lambda job, value: NodeState(0, value),
    "epoch": lambda job, value: GangEnded(job, value, "finished"),
    "job": lambda job, value: StepsSaved(value, 1, 5.0),
    "order": lambda job, value: OrderTaken(value),
    "answer": lambda job, value: PolicyAnswered(1, value),
}


@pytest.mark.parametrize("field", list(REPORTS))
def test_no_value_in_a_report_ends_the_service_and_its_job_alone_is_set_aside(stored: Bench, field: str) -> None:
    for value in (*NUMBERS.values(), *TEXTS.values()):
        mine, other = (stored.submit(duration_s=10).body["id"] for _ in range(2))
        stored.do(Launched(mine, 1), Launched(other, 1))
        saved = StepsSaved(other, 1, 5.0)
        stored.do(REPORTS[field](mine, value), saved)
        assert stored.controller.rows[other].steps == 5.0, (field, str(value)[:40])
        assert stored.state(other) == "running" or field in ("node", "node's reason"), (field, str(value)[:40])
        goes_on(stored)
    stored.restart()
    goes_on(stored)
    assert stored.store.problems() == []


def test_a_job_whose_report_cannot_be_handled_says_so_and_its_seats_are_free_when_its_gang_has_ended(
    stored: Bench,
) -> None:
    bad, good, waiting = (stored.submit(duration_s=10).body["id"] for _ in range(3))
    stored.do(Launched(bad, 1), Launched(good, 1))
    stored.do(StepsSaved(bad, 1, math.nan), StepsSaved(good, 1, 3.0))
    row = stored.controller.rows[bad]
    assert (row.state, row.seats, stored.controller.rows[good].steps) == ("quarantined", (0,), 3.0)
    assert "steps are nan" in row.reason
    assert stored.state(waiting) == "pending"
    kinds = [kind for _, _, kind, _ in stored_news(stored, bad)]
    assert kinds[-1] == "quarantined"
    stored.restart()
    assert stored.state(bad) == "quarantined" and stored.state(waiting) == "pending"
    assert [type(order).__name__ for order in stored.orders if order.job_id == bad] == ["Launch", "Halt"]
    stored.do()
    assert stored.state(waiting) == "pending"
    stored.do(GangEnded(bad, 1, "stopped"))
    assert stored.state(waiting) == "starting" and stored.store.problems() == []


def stored_news(bench: Bench, job_id: str) -> list[Any]:
    return Reader(bench.site.place).job_news(job_id)


# ---- what fails in the writer's turn ---------------------------------------------------------------------------------


def test_a_request_whose_handling_raises_is_refused_by_itself_and_nothing_of_it_stays(
    stored: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = stored.submit(duration_s=10).body["id"]
    before = user_requests.HANDLERS[Cancel]

    def cancel(controller: Any, action: Cancel, who: Any) -> Any:
        before(controller, action, who)
        raise ZeroDivisionError

    monkeypatch.setitem(user_requests.HANDLERS, Cancel, cancel)
    requests = [Request(Cancel(first), ANN, request_id="abc"), StepsSaved(first, 1, 2.0), Request(Cancel("1-x"), ANN)]
    refused, report, unknown = stored.do(*requests)
    assert refused is not None and unknown is not None and report is None
    assert (refused.status, refused.body["request"]) == (500, "abc")
    assert stored.state(first) == "starting" and stored.controller.rows[first].steps == 2.0
    again = stored.controller.scheduler
    stored.restart()
    assert stored.state(first) == "starting"
    assert stored.controller.scheduler.state.row_of.keys() == again.state.row_of.keys()
    monkeypatch.undo()
    goes_on(stored)


def test_what_falls_due_and_fails_sets_its_job_aside(stored: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    job = stored.submit(duration_s=10, max_run_s=5.0).body["id"]
    stored.do(Launched(job, 1))

    def expire(*_: Any) -> None:
        stored.controller.subject = job
        raise ZeroDivisionError

    monkeypatch.setattr(world_reports, "expire", expire)
    stored.clock.at = 6.0
    stored.do()
    assert stored.state(job) == "quarantined"


def test_a_job_with_which_the_service_ended_twice_for_one_cause_is_set_aside_at_the_next_start(stored: Bench) -> None:
    job, other = (stored.submit(duration_s=10).body["id"] for _ in range(2))
    stored.do(Launched(job, 1))
    for left in (True, False):
        note_end(stored.site.state, ZeroDivisionError(), job)
        stored.restart()
        assert (stored.state(job) == "running") == left
    assert "ended 2 times with it" in stored.controller.rows[job].reason and stored.state(other) == "starting"
    forget(stored.site.state)
    goes_on(stored)


# ---- columns that a start reads --------------------------------------------------------------------------------------

FATAL = ("moments", "snapshots", "meta", "audit")  # a start without its log, or with another one's, says so


def columns(bench: Bench, tables: Sequence[str]) -> list[tuple[str, str]]:
    """Return every column of some tables."""
    return [
        (table, str(column[0]))
        for table in tables
        for column in bench.store._db.execute(f"SELECT * FROM {table} LIMIT 1").description
    ]


READ = ("meta", "clock", "jobs", "nodes", "tokens", "tenant_hours", "seats", "outbox", "snapshots")  # by each start
USUAL: list[Any] = ["a\0b", 1e308, math.nan]
FURTHER: list[Any] = [b"\0", 5e-324, -1, 7, "1" + "0" * 400, "x" * LONG]


@pytest.mark.parametrize(
    ("tables", "values"),
    [(READ, USUAL), pytest.param(TABLES, [*USUAL, *FURTHER], marks=[pytest.mark.slow, pytest.mark.nightly])],
    ids=["usual", "all"],
)  # fmt: skip
def test_no_value_in_any_column_ends_a_start(stored: Bench, tables: tuple[str, ...], values: list[Any]) -> None:
    for table, column in columns(stored, tables):
        for value in values:
            job = stored.submit(duration_s=10).body["id"]
            stored.do(Launched(job, 1), StepsSaved(job, 1, 2.0))
            stored.writer.snapshot()
            kept = stored.store._db.execute(f"SELECT * FROM {table}").fetchall()
            try:
                with stored.store.transaction() as db:
                    but = " WHERE key <> 'version'" if table == "meta" else ""  # which is asked for first
                    db.execute(f'UPDATE {table} SET "{column}" = ?{but}', (value,))
            except (*stored.store.errors, OverflowError, UnicodeEncodeError):
                continue  # such a value is none of this column
            restart_with(stored, table, column, value, kept)


def restart_with(bench: Bench, table: str, column: str, value: Any, kept: list[Any]) -> None:
    """Start on a changed table, which is as it was afterwards where it is one that stops a start."""
    shown = (table, column, str(value)[:40])
    try:
        bench.restart()
    except StoreProblem:
        assert table in FATAL, shown
        db = raw(bench)
        replace_rows(db, table, kept)
        db.close()
        bench._open()
    except BaseException as error:
        error.add_note(str(shown))
        raise
    assert bench.store.problems() is not None
    try:
        goes_on(bench)
    except BaseException as error:
        error.add_note(str(shown))
        raise
    with bench.store.transaction() as db:
        replace_rows(db, table, []) if table in ("tokens", "news", "keys") else None


def raw(bench: Bench) -> Any:
    """Open a store that a service does not open."""
    if isinstance(bench.site.place, str):
        from eunomia.service.store.postgres import connect

        return connect(bench.site.place)
    return sqlite3.connect(bench.site.place / "store.db", isolation_level=None)


def replace_rows(db: Any, table: str, rows: list[Any]) -> None:
    db.execute(f"DELETE FROM {table}")
    if rows:
        db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


# ---- files that a job writes -----------------------------------------------------------------------------------------

CONTENTS = {
    **{name: f'{{"step": {value}, "loss": {value}, "code": {value}, "epoch": {value}}}' for name, value in BAD.items()},
    "no object": "[1]", "deep": "[" * 100_000, "empty": "",
}  # fmt: skip


@pytest.mark.parametrize("content", list(CONTENTS))
@pytest.mark.parametrize("kind", ["plain", "link", "pipe", "folder"])
def test_no_file_of_a_job_is_read_as_what_it_is_not(tmp_path: Path, kind: str, content: str) -> None:
    folder = JobFolder(tmp_path, tmp_path / "checkpoint", 1)
    for path in (folder.progress, folder.exit, folder.last_exit, folder.record, folder.log):
        match kind:
            case "plain":
                path.write_text(CONTENTS[content])
            case "link":
                path.symlink_to("/dev/zero")
            case "pipe":
                os.mkfifo(path)
            case _:
                path.mkdir()
    steps, loss = folder.read_progress(math.inf), folder.read_loss()
    assert steps is None or 0 <= steps <= 1e15
    assert math.isnan(loss) or math.isfinite(loss)
    assert folder.read_exit() is None
    assert all(len(line) <= 200 for line in [folder.last_line()])


SPOILERS = {
    "digits": "printf '{\"step\": 1%0400d}' 0 > $EUNOMIA_PROGRESS_FILE",
    "records": "for f in ../../jobs/*/exit-1.json $EUNOMIA_PROGRESS_FILE; do echo '{\"code\": NaN}' > $f; done",
    "pipe": "cd $(dirname $EUNOMIA_LEASE_FILE); rm -f log; mkfifo log",
    "folder": "rm -rf $(dirname $EUNOMIA_LEASE_FILE)",
    "devices": "cd $(dirname $EUNOMIA_LEASE_FILE); for f in *.json job.lock; do ln -sf /dev/zero $f; done",
    "drafts": "mkfifo $EUNOMIA_LEASE_FILE.$(cut -d' ' -f4 /proc/$PPID/stat).draft",
    "lease": "echo '{\"end_s\": 1e999' > $EUNOMIA_LEASE_FILE",
}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def running(request: pytest.FixtureRequest, live: LiveService) -> LiveService:
    """A running service on either store."""
    (live.folder / "site.toml").write_text(both_stores(request).replace("cpu = 2", "cpu = 8"))
    live.start()
    return live


def serves(service: LiveService, client: Client) -> None:
    """The service answers, and an honest job runs to its end."""
    assert status(client, "GET", "/healthz") == 200
    job = client.submit(DONE)["id"]
    until(lambda: client.get(f"/v1/jobs/{job}")["state"] == "succeeded")


def start_again(service: LiveService) -> tuple[Client, Client]:
    service.kill()
    service.start()
    return service.client("ann", "vision"), service.operator


def test_no_job_that_spoils_its_files_ends_the_service_or_its_next_start(running: LiveService) -> None:
    client = running.client("ann", "vision")
    jobs = [client.submit({"command": ["bash", "-c", f"{script}; sleep 600"]})["id"] for script in SPOILERS.values()]
    until(lambda: all(client.get(f"/v1/jobs/{job}")["state"] in ("running", "quarantined") for job in jobs))
    serves(running, client)
    for job in jobs:
        status(client, "GET", f"/v1/jobs/{job}/log")
    client, operator = start_again(running)
    serves(running, client)
    for job in jobs:
        status(operator, "DELETE", f"/v1/jobs/{job}")
    serves(running, client)


# ---- fields of routes ------------------------------------------------------------------------------------------------

BODY: dict[str, dict[str, Any]] = {
    "Submission": SLEEP, "ChangeJob": {}, "NodeChange": {"action": "resume"}, "WhatIf": {}, "Progress": {"steps": 1},
    "TenantChange": {}, "PolicyChange": {"name": "las"}, "SiteFile": {}, "NewToken": {},
    "Maintenance": {"nodes": ["cpu-0"], "from": "2500-01-01", "for": "2h"}, "NoticeTest": {"target": "mail"},
}  # fmt: skip
MORE = {"ChangeJob": CHANGEABLE, "PolicyChange": ("quantum", "bogus"), "Submission": ("env.A", "labels.a", "bogus")}


def fields_of(schema: str, schemas: Mapping[str, Any]) -> list[str]:
    """Return the fields of a body, also those within an object, and some that are not declared."""
    found = dict.fromkeys(MORE.get(schema, ()))
    parts = [schemas[schema]]
    while parts:
        part = parts.pop()
        if "$ref" in part:
            part = schemas[part["$ref"].rpartition("/")[2]]
        parts += part.get("oneOf", [])
        for name, one in part.get("properties", {}).items():
            inner = schemas.get(one.get("$ref", "").rpartition("/")[2], {})
            found |= dict.fromkeys(f"{name}.{key}" for key in inner.get("properties", {}) if name == "checkpoint")
            found[name] = None
    return list(found)


def body_with(base: dict[str, Any], field: str, value: str) -> bytes:
    """Return the JSON of a body in which a field has a value that is written as it is."""
    outer, _, inner = field.partition(".")
    mark = "@@"
    data = {**base, outer: {inner: mark} if inner else mark}
    return json.dumps(data).replace(f'"{mark}"', value).encode()


def token_of_job(service: LiveService, client: Client) -> tuple[str, Client]:
    """Return a running job, and a client with its token."""
    job = client.submit(SLEEP)["id"]
    until(lambda: client.get(f"/v1/jobs/{job}")["state"] == "running")
    text = (service.folder / "state" / "jobs" / job / "token-1").read_text().strip()
    return job, Client(Address(service.url, text))


def test_no_value_in_any_field_of_any_route_ends_the_service(running: LiveService) -> None:
    client, operator = running.client("ann", "vision"), running.operator
    schemas = document(ROUTES)["components"]["schemas"]
    job, of_job = token_of_job(running, client)
    names = {"id": job, "name": "cpu-0", "tenant": "vision", "stream": "0" * 32, "number": "1"}
    for route in ROUTES:
        who = of_job if route.role == "job" else operator
        path = re.sub(r"\{(\w+)[^}]*\}", lambda found: names[found[1]], route.path)
        if route.body:
            for field in fields_of(route.body, schemas):
                for name, value in BAD.items():
                    raw = body_with(BODY[route.body], field, value)
                    code = status(who, route.method, path, raw)
                    assert code < 500 or code == 503, (route.method, path, field, name, code)
                    assert status(who, "GET", "/healthz") == 200, (route.method, path, field, name)
        for parameter in re.findall(r"\{(\w+)", route.path):
            for name, value in ESCAPED.items():
                wrong = re.sub(r"\{(\w+)[^}]*\}", lambda found, v=value: v, route.path)
                body = None if route.method == "GET" else json.dumps(BODY.get(route.body, {}))
                code = status(who, route.method, wrong, None if body is None else body.encode())
                assert code < 500, (route.method, route.path, parameter, name, code)
        for key in route.query:
            for name, value in ESCAPED.items():
                if route.method == "GET":
                    code = status(who, "GET", f"{path}?{key}={value}")
                    assert code < 500 or code == 503, (path, key, name, code)
        serves(running, client) if route.body else None
    client, operator = start_again(running)
    serves(running, client)


def test_a_time_that_no_calendar_has_is_shown_as_the_end_of_the_last_year_that_it_has() -> None:
    assert iso(1e12) == iso(1e300) == iso(math.nan) == "9999-12-31T23:59:59.999Z"
    assert iso(0.0) == "1970-01-01T00:00:00.000Z"


def test_an_array_is_counted_before_it_is_made() -> None:
    job = parse_job({"command": ["x"], "array": "0-9999"})
    assert job.count == len(job.indices()) == 10_000
    assert parse_job({"command": ["x"]}).count == 1


HEADERS = ("Idempotency-Key", "Last-Event-ID", "Authorization", "Cookie", "X-Forwarded-For", "Origin", "Content-Type")


def test_no_value_in_a_page_or_a_header_ends_the_service(running: LiveService) -> None:
    client = running.client("ann", "vision")
    cookie = {"Cookie": f"eunomia={client.address.token}", "Authorization": ""}
    job = client.submit({**SLEEP, "duration_s": 1e12, "accelerators": 8})["id"]
    last = client.submit({**SLEEP, "accelerators": 8})["id"]
    for route in page_routes(None):  # type: ignore[arg-type]
        path = re.sub(r"\{(\w+)[^}]*\}", last, route.path)
        for method in sorted((route.methods or set()) - {"HEAD"}):
            for value in ESCAPED.values():
                keys = ("state", "label", "cursor", "try_gpus", "try_nodes", "try_policy")
                query = "&".join(f"{key}={value[:5000]}" for key in keys)
                wrong = re.sub(r"\{(\w+)[^}]*\}", value, route.path)
                for where in (f"{path}?{query}" if method == "GET" else path, wrong):
                    code = status(client, method, where, b"token=%00" if method == "POST" else None, **cookie)
                    assert code < 500 or code == 503, (method, where[:200], code)
    for one in ("try_gpus", "try_nodes"):
        for value in ("0", "%C2%B2", "9" * 30, "cpu=%C2%B2", f"cpu={'9' * 5000}"):
            assert status(client, "GET", f"/policy?{one}={value}", **cookie) < 500, (one, value[:40])
    for header in HEADERS:
        for value in ("a\x01b", "\xff", "1" + "0" * 400, "1e308", "NaN", "x" * 30_000, '"\\000"', quote("\0")):
            with suppress(ValueError, OSError):  # no client sends it, or the connection ends
                assert status(client, "POST", "/v1/jobs", json.dumps(DONE).encode(), **{header: value}) < 500
    status(client, "DELETE", f"/v1/jobs/{last}"), status(client, "DELETE", f"/v1/jobs/{job}")
    serves(running, client)
    assert running.process is not None and running.kill(signal.SIGTERM) == 0
    running.start()
    serves(running, running.client("ann", "vision"))


def test_what_fails_after_a_commit_ends_the_service_and_no_input_is_handled_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)

    def fail() -> None:
        raise RuntimeError("no reader hears of it")

    monkeypatch.setattr(bench.writer, "on_commit", fail)
    with pytest.raises(CommittedTurnFailed):
        bench.submit()
    bench.restart()
    assert len(bench.controller.rows) == 1
    assert [type(order).__name__ for order in bench.orders] == ["Launch"]
    bench.store.close()
