"""What comes from outside ends nothing: every field of every route, every report, every file of a job, every column.

Each gets values that are no good; after each the service goes on, takes an honest job and decides about it, and starts
again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from tests.service.bench import ANN, OPERATOR, SITE, Bench
from tests.service.test_stores import on

from eunomia.backends.reports import (
    GangEnded,
    GangFaulty,
    GangUnknown,
    Launched,
    MemoryUsed,
    NodeState,
    OrderTaken,
    SeatsIdle,
    SeatsTaken,
    StepsSaved,
)
from eunomia.service import user_requests, world_reports
from eunomia.service.messages import Cancel, PolicyAnswered, Request
from eunomia.service.store import StoreProblem, open_store
from eunomia.service.store.backup import TABLES

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
    "end": lambda job, value: GangEnded(job, 1, "failed", value),
    "fault": lambda job, value: GangFaulty(job, 1, value),
    "silence": lambda job, value: GangUnknown(job, 1, value),
    "holder": lambda job, value: SeatsTaken(((0, value),)),
    "seat": lambda job, value: SeatsTaken(((value, "others"),)),
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
    from eunomia.service.store.reader import Reader

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


# ---- columns that a start reads --------------------------------------------------------------------------------------

FATAL = ("moments", "snapshots", "meta", "audit")  # a start without its log, or with another one's, says so


def columns(bench: Bench) -> list[tuple[str, str]]:
    """Return every column of every table."""
    return [
        (table, str(column[0]))
        for table in TABLES
        for column in bench.store._db.execute(f"SELECT * FROM {table} LIMIT 1").description
    ]


@pytest.mark.parametrize("values", [["a\0b", 1e308, math.nan, b"\0"], pytest.param(
    [5e-324, -1, 7, "1" + "0" * 400, "x" * LONG], marks=pytest.mark.slow)], ids=["usual", "further"])  # fmt: skip
def test_no_value_in_any_column_ends_a_start(stored: Bench, values: list[Any]) -> None:
    for table, column in columns(stored):
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
        bench.store = open_store(bench.site.place, bench.site.state)
        put_back(bench, table, kept)
        bench.restart()
    except BaseException as error:
        error.add_note(str(shown))
        raise
    assert bench.store.problems() is not None
    try:
        goes_on(bench)
    except BaseException as error:
        error.add_note(str(shown))
        raise
    put_back(bench, table, []) if table in ("tokens", "audit", "news", "keys") else None


def put_back(bench: Bench, table: str, rows: list[Any]) -> None:
    with bench.store.transaction() as db:
        db.execute(f"DELETE FROM {table}")
        if rows:
            db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
