"""Backup, restore and export of a store."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
from dataclasses import asdict
from pathlib import Path

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.records.moment_log import MomentLog, stored_decisions
from eunomia.records.record import header_line, moment_line
from eunomia.service.store import open_store
from eunomia.service.store.base import Connection
from eunomia.service.store.head import RESTORED, Head, read_head
from eunomia.service.store.opening import FILE, StoreProblem, connect, create, lock_folder
from eunomia.service.store.schema import APPLICATION_ID, BASE, MIGRATIONS, VERSION

TABLES = tuple(re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", BASE + "".join(MIGRATIONS)))


def _must_be_free(target: Path) -> None:
    if target.exists():
        rule, fix = "there is a file already, which is not overwritten", "give another name"
        raise InvalidInput([Problem(file=str(target), rule=rule, fix=fix)])


def back_up(place: Path | str, target: Path) -> None:
    """Copy the store of a folder or a database into a file, whole, also while a service writes.

    Raises InvalidInput if there is none.
    """
    _must_be_free(target)
    if isinstance(place, str):
        _back_up_database(place, target)
        return
    path = place / FILE
    if not path.exists():
        raise StoreProblem.of(path, "there is no store here", "give the state folder of a service")
    draft = target.with_name(f".{target.name}.draft")
    draft.unlink(missing_ok=True)
    source, copy = sqlite3.connect(f"file:{path}?mode=ro", uri=True), sqlite3.connect(draft)
    try:
        source.backup(copy)
        _sign(copy)
    except sqlite3.DatabaseError as error:
        draft.unlink(missing_ok=True)
        raise StoreProblem.of(path, f"the store cannot be copied ({error})", "check the disk") from error
    finally:
        source.close()
        copy.close()
    os.chmod(draft, 0o600)
    os.replace(draft, target)


def _sign(copy: sqlite3.Connection) -> None:
    """Write into a copy what was committed last when it was made, and let it be one file."""
    head = json.dumps(asdict(Head.of(copy.execute)))
    with copy:
        copy.execute("DELETE FROM notices")  # a store that is restored says nothing of then
    with copy:
        copy.execute(
            "INSERT INTO meta (key, value) VALUES ('head', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (head,),
        )
    copy.execute("PRAGMA journal_mode = DELETE")


def _copy_tables(source: Connection, target: Connection) -> None:
    """Replace the rows of all tables."""
    for table in TABLES:
        found = source.execute(f"SELECT * FROM {table}")
        names = [f'"{column[0]}"' for column in found.description]
        text = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        target.execute(f"DELETE FROM {table}")
        while rows := found.fetchmany(1000):
            target.executemany(text, rows)


def _back_up_database(url: str, target: Path) -> None:
    """Copy a database into a file as a folder's store has it, so that either can be restored from it."""
    from eunomia.service.store import postgres

    source = postgres.connect(url, read_only=True)
    draft = target.with_name(f".{target.name}.draft")
    draft.unlink(missing_ok=True)
    try:
        if not postgres.exists(source):
            raise StoreProblem.of(url, "there is no store here", "give the database of a service")
        source.execute("BEGIN")
        copy = connect(draft)
        try:
            create(copy)
            copy.execute("BEGIN")
            _copy_tables(source, copy)
            copy.execute("DELETE FROM meta WHERE key = 'version'")
            copy.execute("COMMIT")
            _sign(copy)
        finally:
            copy.close()
    finally:
        source.close()
    os.replace(draft, target)


def put_back_database(source: Path, url: str) -> str | None:
    """Put a backup in place of the store of a database that no service uses; return the schema that keeps the old one.

    The generation goes on counting, so a service that was only frozen writes nothing more.
    """
    from eunomia.service.store import postgres

    _check_backup(source)
    db = postgres.connect(url)
    backup = sqlite3.connect(f"file:{source}?mode=ro", uri=True)
    try:
        if (version := backup.execute("PRAGMA user_version").fetchone()[0]) != VERSION:
            rule = f"the backup has version {version}, and a database takes those of version {VERSION}"
            raise StoreProblem.of(source, rule, "restore it into a state folder, start the service once, back that up")
        (generation,) = backup.execute("SELECT coalesce(max(value), '0') FROM meta WHERE key = 'generation'").fetchone()
        kept, lead, taken = None, int(generation), 0
        if postgres.exists(db):
            taken, holder = postgres.take_lead(db, "a restore")
            if not taken:
                raise StoreProblem.of(url, f"a service uses it ({holder})", "stop it first")
            lead, kept = max(lead, taken), f"{postgres.SCHEMA}_replaced_{taken}"
        with db.raw.transaction():
            # No service leads the replaced tables again, not even one that has just asked for them.
            ended = "UPDATE leader SET holder = 'replaced', renewed = 'infinity' WHERE generation = ?"
            if kept and db.execute(ended, (taken,)).rowcount != 1:
                raise StoreProblem.of(url, "a service has begun to use it", "stop it first")
            postgres.create(db, lead, replaces=kept or "")
            _copy_tables(backup, db)
            db.execute("INSERT INTO meta (key, value) VALUES ('version', ?)", (str(VERSION),))
            _count_on(db, lead)
            for table in ("moments", "news", "audit", "notices"):
                text = f"SELECT setval(pg_get_serial_sequence('{table}', 'seq'), max(seq)) FROM {table}"
                db.execute(text)
    finally:
        backup.close()
        db.close()
    return kept


def put_back(source: Path, folder: Path) -> Path | None:
    """Put a backup in place of the store of a stopped service; return where the old store is kept.

    The generation goes on counting at the next start, and ids get a new ending, so none is used twice.
    """
    _check_backup(source)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = lock_folder(folder)
    try:
        path, kept = folder / FILE, None
        if path.exists():
            kept = next(p for n in range(1, 10_000) if not (p := folder / f"store.replaced-{n}.db").exists())
            for ending in ("", "-wal", "-shm"):
                if (old := folder / f"{FILE}{ending}").exists():
                    os.replace(old, kept.with_name(kept.name + ending))
        head, draft = read_head(folder), folder / f".{FILE}.draft"
        with open(source, "rb") as file, open(draft, "wb") as copy:
            os.fchmod(copy.fileno(), 0o600)
            while chunk := file.read(2**20):
                copy.write(chunk)
            copy.flush()
            os.fsync(copy.fileno())
        with contextlib.closing(sqlite3.connect(draft)) as db, db:
            _count_on(db, 0 if head is None else head.generation + 1)
        os.replace(draft, path)
    finally:
        os.close(lock)
    return kept


def _count_on(db: Connection, least: int) -> None:
    """Let the generations of a restored store go on after all that were, and say that it was restored."""
    found = db.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
    generation = max(least, int(found[0]) if found else 0)
    db.execute("DELETE FROM meta WHERE key IN ('generation', ?)", (RESTORED,))
    rows = [(key, str(generation)) for key in ("generation", RESTORED)]
    db.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", rows)


def _check_backup(source: Path) -> None:
    if not source.is_file():
        raise StoreProblem.of(source, "there is no such file", "give a file that `eunomia store backup` wrote")
    db = sqlite3.connect(f"file:{source}?mode=ro", uri=True)
    try:
        ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        sound = db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        head = db.execute("SELECT value FROM meta WHERE key = 'head'").fetchone() if ours and sound else None
        if head is not None and (lack := Head(**json.loads(head[0])).missing_in(db.execute)):
            raise StoreProblem.of(source, f"this backup is not as it was written: {lack}", "give another backup")
    except sqlite3.DatabaseError as error:
        raise StoreProblem.of(source, f"this is no store ({error})", "give another backup") from error
    finally:
        db.close()
    if not ours or not sound or version > VERSION:
        raise StoreProblem.of(source, "this is no sound store of this version", "give another backup")


def export(site: object, target: Path) -> int:
    """Write the moments of a stopped service, since the site was last changed, as a record; return how many."""
    import gzip

    from eunomia.service.recovery import record_header
    from eunomia.service.site import Site
    from eunomia.service.site_change import effective_site

    assert isinstance(site, Site)
    _must_be_free(target)
    store = open_store(site.place, site.state, must_exist=True)
    draft = target.with_name(f".{target.name}.draft")
    try:
        header, first = record_header(store, effective_site(store, site))
        count, log = 0, MomentLog()
        with draft.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
            packed.write(header_line(header).encode())
            for _, lines, _ in store.moments(first):
                packed.write((moment_line(log.read(lines)) + stored_decisions(lines)).encode())
                count += 1
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
        store.close()
    return count
