"""A store that is foreign, older or cut is refused before it is used, with what to type; nothing of it is changed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.bench import SITE, Bench
from tests.service.test_stores import on

from eunomia.service.store import StoreProblem
from eunomia.service.store.backup import back_up, put_back
from eunomia.service.store.head import FILE, SECTOR, read_head

FILES = ("store.db", "store.db-wal", "store.db-shm")


@pytest.fixture(params=["sqlite", "postgres"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A controller on either store, with three jobs."""
    found = Bench(tmp_path, SITE if request.param == "sqlite" else on(request.getfixturevalue("database")))
    for _ in range(3):
        found.submit()
    yield found
    found.store.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A controller on a store in a file, with three jobs."""
    found = Bench(tmp_path)
    for _ in range(3):
        found.submit()
    yield found
    found.store.close()


def taken(bench: Bench, place: Path) -> Path:
    """Copy the files of an open store as they are now."""
    place.mkdir()
    for name in FILES:
        if (bench.site.state / name).exists():
            shutil.copy(bench.site.state / name, place)
    return place


def put(bench: Bench, place: Path) -> None:
    """Put copied files in the place of those of a store that was killed."""
    for name in FILES:
        (bench.site.state / name).unlink(missing_ok=True)
        if (place / name).exists():
            shutil.copy(place / name, bench.site.state)


@pytest.mark.parametrize(
    "cut",
    ["DELETE FROM audit", "DELETE FROM audit WHERE seq > 2", "UPDATE audit SET seq = seq + 100"],
)
def test_an_audit_log_without_its_end_is_refused_at_start(stored: Bench, cut: str) -> None:
    stored.store._db.execute(cut)
    with pytest.raises(StoreProblem, match=r"audit log was cut or changed: its entry 3 .*eunomia store restore BACKUP"):
        stored.restart()


def test_the_store_of_another_cluster_is_refused(stored: Bench) -> None:
    stored.store._db.execute("UPDATE meta SET value = 'other' WHERE key = 'cluster_id'")
    with pytest.raises(StoreProblem, match=r"that of another service \(other; here ran \w+\)"):
        stored.restart()


def test_an_older_copy_is_refused_until_it_is_restored_on_purpose(bench: Bench, tmp_path: Path) -> None:
    older = taken(bench, tmp_path / "older")
    backup = tmp_path / "backup.db"
    back_up(bench.site.state, backup)
    later = bench.submit().body["id"]
    generation = bench.store.generation
    bench.store.close()
    put(bench, older)
    with pytest.raises(StoreProblem, match=r"older than what was committed last: it ends with moment 5 .*moment 7"):
        bench._open()
    put_back(backup, bench.site.state)
    bench._open()
    assert bench.store.generation > generation
    assert bench.submit().body["id"] != later


def test_a_cut_write_ahead_log_is_refused(bench: Bench, tmp_path: Path) -> None:
    whole = taken(bench, tmp_path / "whole")
    bench.store.close()
    put(bench, whole)
    with open(bench.site.state / "store.db-wal", "r+b") as file:
        file.truncate(file.seek(0, 2) * 2 // 3)
    with pytest.raises(StoreProblem, match="older than what was committed last"):
        bench._open()
    put(bench, whole)
    (bench.site.state / "store.db-wal").unlink()
    with pytest.raises(StoreProblem, match=r"write-ahead log \(store.db-wal\) was lost.*store restore BACKUP"):
        bench._open()
    put(bench, whole)
    bench._open()
    assert len(bench.controller.rows) == 3


@pytest.mark.parametrize("left", ["store.head", "operator.token", "jobs/1-abcde"])
def test_no_new_store_is_made_where_a_service_has_run(bench: Bench, left: str) -> None:
    bench.store.close()
    for name in (*FILES, "store.head"):
        (bench.site.state / name).unlink(missing_ok=True)
    trace = bench.site.state / left
    trace.parent.mkdir(exist_ok=True)
    trace.write_text("left")
    with pytest.raises(StoreProblem, match="a service has run in this folder"):
        bench._open()
    assert not (bench.site.state / "store.db").exists()
    trace.unlink()
    bench._open()


def test_a_head_that_was_written_in_part_is_read_from_its_other_half(bench: Bench) -> None:
    path = bench.site.state / FILE
    head = read_head(bench.site.state)
    halves = path.read_bytes()
    for at in (0, SECTOR):
        path.write_bytes(halves[:at] + b"\xff" * SECTOR + halves[at + SECTOR :])
        found = read_head(bench.site.state)
        assert found is not None
        assert head is not None
        assert head.audit - found.audit in (0, 1)
    bench.restart()
    path.write_bytes(b"\0" * 2 * SECTOR)
    with pytest.raises(StoreProblem, match=r"store.head.*is damaged.*remove this file"):
        bench.restart()


def test_a_store_without_a_head_is_taken_and_the_audit_log_says_so(stored: Bench) -> None:
    (stored.site.state / FILE).unlink()
    stored.restart()
    found = stored.store._db.execute('SELECT "user", action, object FROM audit ORDER BY seq DESC LIMIT 1').fetchone()
    assert tuple(found) == ("service", "store taken as it is", "start 2")
    assert stored.store.problems() == []


def test_a_backup_whose_audit_log_was_cut_is_not_restored(bench: Bench, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    back_up(bench.site.state, backup)
    with sqlite3.connect(backup) as db:
        db.execute("DELETE FROM audit WHERE seq = 3")
    db.close()
    bench.store.close()
    with pytest.raises(StoreProblem, match="this backup is not as it was written: the audit log was cut"):
        put_back(backup, bench.site.state)
    bench._open()
