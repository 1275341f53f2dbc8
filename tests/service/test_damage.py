"""Starts on a store with a damaged part: named, put right where nothing can be lost by it, else refused."""

from __future__ import annotations

import json
import logging
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import ANN, OPERATOR, Bench

from eunomia.backends.reports import GangEnded, Launched
from eunomia.records.scheduler_digest import digest
from eunomia.service import submitted_jobs
from eunomia.service.credentials import new_token, write_tokens
from eunomia.service.draining import NOW
from eunomia.service.job_document import parse_job
from eunomia.service.job_row import CHECKSUM, JobRow
from eunomia.service.messages import Cancel, ChangeNode, PlanMaintenance, Request, Submit
from eunomia.service.store import ServiceStore, StoreProblem, open_store
from eunomia.service.store.base import UNSUMMED
from eunomia.service.store.reader import Reader, detail_of
from eunomia.service.store.row_sums import COLUMNS, row_sum

JOB: dict[str, Any] = {"command": ["true"], "duration_s": 100}
READ_LATER = ("keys", "moments")  # tables of which a start reads no row, or only the last ones


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    found = Bench(tmp_path)
    yield found
    found.store.close()


def write(bench: Bench, text: str, *values: object) -> None:
    """Change the closed store's file."""
    bench.store.close()
    with sqlite3.connect(bench.site.state / "store.db") as db:
        assert db.execute(text, values).rowcount
    db.close()


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0x10]) + (content[place + 1 :] if place != -1 else b"")


def end_one(bench: Bench) -> str:
    """Return a job that has succeeded."""
    job: str = bench.submit(**JOB).body["id"]
    bench.do(Launched(job, 1))
    bench.do(GangEnded(job, 1, "finished"))
    return job


@pytest.mark.parametrize("place", [3, 200, -1])
def test_with_a_flipped_byte_in_the_newest_snapshot_the_one_before_it_is_used(
    bench: Bench, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    bench.submit(**JOB)
    assert bench.writer.snapshot()
    jobs = [bench.submit(**JOB).body["id"] for _ in range(5)]
    assert bench.writer.snapshot()
    before = digest(bench.controller.scheduler)
    (newest, *_), (older, *_) = bench.store.snapshots()
    content = next(content for seq, _, _, content in bench.store.snapshots() if seq == newest)
    write(bench, "UPDATE snapshots SET content = ? WHERE seq = ?", flipped(content, place), newest)
    with caplog.at_level(logging.WARNING):
        bench.restart()
    assert digest(bench.controller.scheduler) == before
    assert set(jobs) <= bench.controller.rows.keys()
    assert f"snapshot {newest}" in caplog.text and f"from snapshot {older} instead" in caplog.text


def test_a_moment_that_cannot_be_read_stops_the_start_and_a_changed_site_goes_on_with_the_jobs(bench: Bench) -> None:
    jobs = [bench.submit(**JOB).body["id"] for _ in range(3)]
    last = bench.store.last_seq()
    lines = next(lines for seq, lines, _ in bench.store.moments() if seq == last)
    write(bench, "UPDATE moments SET lines = ? WHERE seq = ?", lines.replace('"', "'", 1), last)
    with pytest.raises(StoreProblem, match=rf"moment {last} cannot be read.*change the site file"):
        bench.restart()
    bench.restart(bench.path.read_text().replace("quantum = 60", "quantum = 61"))
    assert set(jobs) == bench.controller.rows.keys()


def test_an_index_that_lacks_a_row_is_built_anew(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    jobs = [bench.submit(**JOB).body["id"] for _ in range(4)]
    bench.store.close()
    with sqlite3.connect(bench.site.state / "store.db") as db:
        db.execute("PRAGMA writable_schema = ON")
        sql = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'jobs_live'").fetchone()[0]
        db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'jobs_live'", (sql.replace("= 1", "= 7"),))
    db.close()
    with sqlite3.connect(bench.site.state / "store.db") as db:
        db.execute("REINDEX jobs_live")  # of no row
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'jobs_live'", (sql,))
    db.close()
    with caplog.at_level(logging.WARNING):
        bench.restart()
    assert set(jobs) == bench.controller.rows.keys()
    assert "jobs_live" in caplog.text and "built anew" in caplog.text


def test_a_flipped_byte_in_a_page_of_the_file_is_refused_and_nothing_is_written(bench: Bench) -> None:
    for _ in range(40):
        bench.submit(**JOB)
    bench.store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    root = bench.store._db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'jobs'").fetchone()[0]
    size = bench.store._db.execute("PRAGMA page_size").fetchone()[0]
    bench.store.close()
    path = bench.site.state / "store.db"
    whole = path.read_bytes()
    damaged = flipped(whole, (root - 1) * size)  # the kind of the page
    path.write_bytes(damaged)
    with pytest.raises(StoreProblem, match=r"the store is damaged.*eunomia store restore"):
        bench.restart()
    assert path.read_bytes() == damaged
    path.write_bytes(whole)
    bench.restart()
    assert len(bench.controller.rows) == 40


def test_an_ended_job_that_cannot_be_read_is_named_and_all_others_go_on(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    ended, live = end_one(bench), bench.submit(**JOB).body["id"]
    write(bench, "UPDATE jobs SET body = substr(body, 1, 40) WHERE id = ?", ended)
    with caplog.at_level(logging.WARNING):
        bench.restart()
    assert ended in caplog.text and live in bench.controller.rows
    shown = Reader(bench.site.place).jobs(tenant=None, states=(), label=None, before=None, limit=10)
    assert [(row.id, row.state) for row in shown] == [(live, "starting"), (ended, "succeeded")]
    assert "cannot be read" in shown[1].reason and shown[1].shown(0.0)["submitted_at"] is None
    (reply,) = bench.do(Request(Cancel(ended), ANN))
    assert reply is not None
    assert (reply.status, reply.body["code"]) == (500, "damaged")
    assert any(ended in problem for problem in bench.store.problems())
    assert bench.submit(**JOB).status == 201


def test_no_flipped_bit_in_the_body_of_a_job_is_taken_for_another_value(bench: Bench) -> None:
    body = bench.controller.rows[bench.submit(**JOB, labels={"a": "b"}).body["id"]].body()
    assert JobRow.of(body).body() == body
    for place, letter in enumerate(body):
        for bit in range(7):
            changed = body[:place] + chr(ord(letter) ^ 1 << bit) + body[place + 1 :]
            with pytest.raises((ValueError, TypeError)):
                JobRow.of(changed)


def test_a_body_without_a_checksum_is_one_of_an_earlier_version(bench: Bench) -> None:
    body = bench.controller.rows[bench.submit(**JOB).body["id"]].body()
    assert JobRow.of(body.rpartition(f',"{CHECKSUM}":')[0] + "}").body() == body


def test_a_key_that_cannot_be_read_makes_no_second_job_and_stops_nothing(bench: Bench) -> None:
    request = Request(Submit((parse_job(JOB),), "key-of-one-job", "digest"), ANN)
    bench.do(request)
    assert len(bench.controller.rows) == 1
    write(bench, "UPDATE keys SET ids = '[' WHERE key = 'key-of-one-job'")
    bench.restart()
    (reply,) = bench.do(request)
    assert reply is not None
    assert (reply.status, reply.body["code"]) == (500, "damaged") and "key-of-one-job" in reply.body["title"]
    assert len(bench.controller.rows) == 1


def bits_flipped(value: Any) -> Iterator[Any]:
    """Yield what some single flipped bits make of a value of a column."""
    match value:
        case str():
            for place in sorted({0, len(value) // 2, len(value) - 1} if value else ()):
                yield from (value[:place] + chr(ord(value[place]) ^ 1 << bit) + value[place + 1 :] for bit in (0, 1, 4))
        case int():
            yield from (value ^ 1 << bit for bit in (0, 1, 40))
        case float():
            (bits,) = struct.unpack("<q", struct.pack("<d", value))
            yield from (struct.unpack("<d", struct.pack("<q", bits ^ 1 << bit))[0] for bit in (0, 40, 54))


def lived_in(bench: Bench) -> None:
    """Fill each table that has checksums; a list is entered in part."""
    token, _ = new_token("ann", "vision", "submitter", 1.0, 1e9, "parent")
    node = Request(ChangeNode(bench.controller.nodes[0], "drain", "broken", NOW), OPERATOR)
    later = Request(PlanMaintenance((bench.controller.nodes[-1],), 1e6, 3600.0, "fans"), OPERATOR)
    with bench.store.transaction() as db:
        write_tokens(db, [replace(token, revoked=2.0)])
    bench.submit(key="key-of-one-job", **JOB)
    bench.clock.at = 4000.0
    end_one(bench)
    bench.do(node)
    bench.do(later)
    assert bench.writer.snapshot()
    bench.do(Request(Submit(tuple(parse_job(JOB) for _ in range(5)), "key-of-a-list", "digest", several=True), ANN))
    bench.submit(**JOB)


@pytest.mark.parametrize("table", list(COLUMNS))
def test_no_flipped_bit_in_a_row_with_a_checksum_is_taken_for_another_value(
    bench: Bench, table: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitted_jobs, "AT_ONCE", 2)
    monkeypatch.setattr(ServiceStore, "_write_long", kept_long(ServiceStore._write_long))
    lived_in(bench)
    path = bench.site.state / "store.db"
    bench.store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    bench.store.close()
    whole = path.read_bytes()
    with closing(sqlite3.connect(path)) as db:
        names = ", ".join(f'"{column}"' for column in COLUMNS[table])
        rows = db.execute(f"SELECT {names} FROM {table}").fetchall()
    assert rows
    for row in rows[-3:] if table != "meta" else rows:
        for column, value in zip(COLUMNS[table], row, strict=True):
            for changed in () if row[0] in (*UNSUMMED, "cluster_id") else bits_flipped(value):
                if not flip(bench, path, whole, (table, column, row), changed):
                    continue
                with closing(open_store(bench.site.place, bench.site.state)) as store:
                    assert store.problems(), (column, row, changed)
                caplog.clear()
                with suppress(StoreProblem), caplog.at_level(logging.WARNING):
                    bench._open()
                    assert caplog.text or table in READ_LATER, (column, row, changed)
                    assert bench.submit(**JOB).status == 201
                    bench.store.close()


@pytest.mark.parametrize("value", [0.0, -0.0, 1e300, -5, 2**53, "", "a;b", None, float("nan"), float("inf")])
def test_the_checksum_of_a_value_is_that_of_what_the_database_returns_of_it(value: Any) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(f"CREATE TABLE one (it {'TEXT' if isinstance(value, str) else 'REAL'})")
        db.execute("INSERT INTO one VALUES (?)", (value,))
        assert row_sum(db.execute("SELECT it FROM one").fetchone()) == row_sum((value,))


def kept_long(write_long: Callable[..., None]) -> Callable[..., None]:
    """Keep the documents of a list that is entered whole, as if the service had been killed before."""

    def write(store: ServiceStore, db: Any, long: Any, at: float) -> None:
        if not long.is_complete:
            write_long(store, db, long, at)

    return write


def flip(bench: Bench, path: Path, whole: bytes, place: tuple[str, str, tuple[Any, ...]], changed: Any) -> bool:
    """Put the store back as it was, but for one value; return False where another row has that as its key."""
    table, column, row = place
    path.write_bytes(whole)
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    (bench.site.state / "store.head").unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as db, db:
        same = " AND ".join(f'"{one}" IS ?' for one in COLUMNS[table])
        return db.execute(f'UPDATE OR IGNORE {table} SET "{column}" = ? WHERE {same}', (changed, *row)).rowcount == 1


def test_a_live_job_whose_mark_as_such_has_flipped_goes_on_and_is_named(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    job, ended = bench.submit(**JOB).body["id"], end_one(bench)
    bench.do(Launched(job, 1))
    seats = bench.controller.rows[job].seats
    write(bench, "UPDATE jobs SET live = 1 - live")
    with caplog.at_level(logging.WARNING):
        bench.restart()
    assert job in caplog.text and ended in caplog.text and ended not in bench.controller.rows
    assert (bench.controller.rows[job].state, bench.controller.rows[job].seats) == ("running", seats)
    bench.do(GangEnded(job, 1, "finished"))
    assert bench.state(job) == "succeeded"
    with bench.store.transaction() as db:
        db.execute("UPDATE jobs SET live = 0 WHERE id = ?", (ended,))
    assert bench.store.problems() == []


def test_a_flipped_bit_in_what_the_site_was_is_put_right_and_no_job_is_scheduled_anew(bench: Bench) -> None:
    job = bench.submit(**JOB).body["id"]
    bench.do(Launched(job, 1))
    text = bench.store.meta("setup")
    assert text is not None
    write(bench, "UPDATE meta SET value = ? WHERE key = 'setup'", text.replace("las", "lar", 1))
    bench.restart()
    assert bench.state(job) == "running" and bench.store.meta("setup") == text


def test_an_event_that_cannot_be_read_says_so() -> None:
    assert "cannot be read" in detail_of('{"reason": "')["reason"] and "cannot be read" in detail_of("7")["reason"]
    assert detail_of(json.dumps({"reason": "x", "epoch": 1})) == {"reason": "x", "epoch": 1}
