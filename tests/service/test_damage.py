"""Starts on a store with a damaged part: named, put right where nothing can be lost by it, else refused."""

from __future__ import annotations

import json
import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import ANN, Bench

from eunomia.backends.reports import GangEnded, Launched
from eunomia.records.scheduler_digest import digest
from eunomia.service.job_document import parse_job
from eunomia.service.job_row import CHECKSUM, JobRow
from eunomia.service.messages import Cancel, Request, Submit
from eunomia.service.store import StoreProblem
from eunomia.service.store.reader import Reader, detail_of

JOB: dict[str, Any] = {"command": ["true"], "duration_s": 100}


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


def test_an_event_that_cannot_be_read_says_so() -> None:
    assert "cannot be read" in detail_of('{"reason": "')["reason"] and "cannot be read" in detail_of("7")["reason"]
    assert detail_of(json.dumps({"reason": "x", "epoch": 1})) == {"reason": "x", "epoch": 1}
