"""The audit log goes in signed parts into files; what stays is still verified, and what was changed is named."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import SITE, Bench
from tests.service.test_removal import removal, rows_of
from tests.service.test_stores import site_on
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.inputs.problems import InvalidInput
from eunomia.service import fault_points
from eunomia.service.audit_check import AuditFindings, audited
from eunomia.service.audit_key import replace_lost_key
from eunomia.service.fault_points import InjectedFault
from eunomia.service.site import load_site
from eunomia.service.store import StoreProblem, audit_log
from eunomia.service.store.audit_log import DAY_S, KEY_FILE, AuditPart
from eunomia.service.store.backup import back_up, put_back

WEEK = SITE.replace("[service]", "[service]\naudit_days = 7")


@pytest.fixture(params=["sqlite", "postgres"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A service on either store, with three entries of its audit log a day, for ten days; it keeps a week."""
    found = Bench(tmp_path, site_on(request, "audit_days = 7"))
    days(found, 10)
    yield found
    found.store.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path, WEEK)
    days(found, 10)
    yield found
    found.store.close()


def days(bench: Bench, count: int) -> None:
    for _ in range(count):
        for _ in range(3):
            bench.submit()
        bench.clock.at += DAY_S


def key_of(bench: Bench) -> bytes:
    return (bench.site.state / KEY_FILE).read_bytes()


def files(bench: Bench) -> list[Path]:
    return sorted((bench.site.state / "audit").glob("*.jsonl.gz"))


def unpacked(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines()


def verified(bench: Bench, *paths: Path, key: bytes | None = None) -> AuditFindings:
    found = audited(bench.site.place, key or key_of(bench), paths)
    assert bench.store.problems(key or key_of(bench)) == [one for one in found.problems if "jsonl.gz" not in one]
    return found


def parts(bench: Bench) -> list[AuditPart]:
    return audit_log.parts(bench.store._db)


# ---- parts that are taken away ---------------------------------------------------------------------------------------


def test_old_parts_go_into_files_and_the_rest_of_the_log_is_still_verified(stored: Bench) -> None:
    entries = stored.store._db.execute(f"SELECT {audit_log.ENTRY} FROM audit ORDER BY seq").fetchall()
    planned = {one.what: one.count for one in removal(stored).plan()}
    gone = dict(removal(stored).sweep())
    assert planned["audit entries"] == 9 and gone["parts of the audit log"] == 3
    assert [(one.first, one.last, one.removed is not None) for one in parts(stored)] == [
        *((3 * n + 1, 3 * n + 3, n < 3) for n in range(9)), (28, 29, False),  # the last entry stays open
    ]  # fmt: skip
    assert rows_of(stored, "audit") == 30 - 9
    found = verified(stored, *files(stored))
    assert found.problems == [] and [Path(one.file).exists() for one in found.parts if one.is_removed] == [True] * 3
    written = [json.loads(line) for path in files(stored) for line in unpacked(path)[1:]]
    assert written == [[*row] for row in entries[:9]]
    for path in files(stored):
        path.unlink()  # taken away
    days(stored, 2)
    stored.restart()
    removal(stored).sweep()
    assert verified(stored).problems == [] and len(files(stored)) == 2 and rows_of(stored, "audit") == 36 - 15
    assert {one.what: one.count for one in removal(stored).plan()}["audit entries"] == 0


def test_without_the_key_of_the_site_every_entry_stays_and_days_are_signed(bench: Bench) -> None:
    gone = dict(removal(bench, audit_days=None).sweep())
    assert gone["parts of the audit log"] == 0 and rows_of(bench, "audit") == 30 and not files(bench)
    assert [one.removed for one in parts(bench)] == [None] * 10
    before = parts(bench)
    removal(bench, audit_days=None).sweep()
    assert parts(bench) == before and verified(bench).problems == []


def test_a_long_day_becomes_several_parts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "MOST", 2)
    monkeypatch.setattr(audit_log, "PAGE", 3)
    removal(bench).sweep()
    assert [one.last - one.first for one in parts(bench)[:4]] == [1, 0, 1, 0]
    assert verified(bench, *files(bench)).problems == [] and len(files(bench)) == 6


def test_a_log_whose_last_day_is_over_goes_on_after_it(bench: Bench) -> None:
    bench.clock.at += 100 * DAY_S
    removal(bench).sweep()
    assert rows_of(bench, "audit") == 1
    bench.restart()
    bench.submit()
    assert verified(bench).problems == [] and bench.store._db.execute("SELECT max(seq) FROM audit").fetchone()[0] == 31


def test_a_backup_of_a_store_whose_parts_were_taken_away_is_restored(bench: Bench, tmp_path: Path) -> None:
    removal(bench).sweep()
    backup = tmp_path / "backup.db"
    back_up(bench.site.state, backup)
    days(bench, 1)
    bench.store.close()
    put_back(backup, bench.site.state)
    bench._open()
    days(bench, 1)
    removal(bench).sweep()
    assert verified(bench).problems == []


# ---- what was changed ------------------------------------------------------------------------------------------------

CHANGES = {
    "an entry of a closed part": ("UPDATE audit SET action = 'other' WHERE seq = 20", "changed at entry 20"),
    "an entry after the last part": ("UPDATE audit SET action = 'other' WHERE seq = 30", "changed at entry 30"),
    "entries that were not taken away": ("DELETE FROM audit WHERE seq < 13", "lacks entries between 10 and 12"),
    "the end of a part": ("DELETE FROM audit WHERE seq = 12", "lacks entries between 10 and 12"),
    "entries called taken away": (
        "UPDATE audit_parts SET removed = 1.0 WHERE last = 12", "entries 10 to 12 was changed, or signed"),
    "when they were": ("UPDATE audit_parts SET removed = removed + 1 WHERE last = 3", "entries 1 to 3 was changed"),
    "the row of a part that was taken away": ("DELETE FROM audit_parts WHERE last = 6", "was before entry 7"),
    "the rows of all": ("DELETE FROM audit_parts", "changed at entry 10"),
    "a row": ("UPDATE audit_parts SET begun = 7.5 WHERE last = 15", "entries 13 to 15 was changed"),
    "a row beyond reading": ("UPDATE audit_parts SET ended = 1e308 WHERE last = 15", "part of the audit log cannot be"),
}  # fmt: skip


@pytest.mark.parametrize("what", list(CHANGES))
def test_what_was_changed_is_named_and_nothing_more_is_taken_away(bench: Bench, what: str) -> None:
    removal(bench).sweep()
    statement, named = CHANGES[what]
    bench.store._db.execute(statement)
    found = verified(bench)
    assert len(found.problems) == 1 and named in found.problems[0]
    before = files(bench)
    bench.clock.at += 20 * DAY_S
    removal(bench).sweep()
    assert len(verified(bench).problems) == 1
    wrong = max(map(int, re.findall("[0-9]+", named)), default=15)
    taken = {path.name[-30:-9] for path in files(bench) if path not in before}
    assert all(not int(name[:10]) <= wrong <= int(name[-10:]) for name in taken)


def test_a_log_that_was_written_anew_with_other_entries_lacks_the_signature(bench: Bench) -> None:
    removal(bench).sweep()
    chain = parts(bench)[2].after
    rows = bench.store._db.execute(f"SELECT {audit_log.ENTRY} FROM audit ORDER BY seq").fetchall()
    for seq, at, user, *entry, _ in rows:
        chain = audit_log.next_digest(chain, at, ("mallory" if seq == 20 else user, *entry))
        bench.store._db.execute(
            'UPDATE audit SET "user" = ?, hash = ? WHERE seq = ?', ("mallory" if seq == 20 else user, chain, seq)
        )
    (problem,) = verified(bench).problems
    assert "lacks entries between 19 and 21" in problem


def written_anew(path: Path, change: Callable[[list[Any]], None]) -> None:
    lines = [json.loads(line) for line in unpacked(path)]
    change(lines)
    path.write_bytes(gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode()))


def test_a_forged_or_foreign_file_is_refused(bench: Bench, tmp_path: Path) -> None:
    removal(bench).sweep()
    (tmp_path / "other").mkdir()
    other = Bench(tmp_path / "other", WEEK)
    days(other, 10)
    removal(other).sweep()
    path = tmp_path / "part.jsonl.gz"

    def refused(change: Callable[[list[Any]], None], key: bytes | None = None) -> str:
        shutil.copy(files(bench)[1], path)
        written_anew(path, change)
        (problem,) = verified(bench, path, key=key).problems
        return problem

    assert "changed at entry 5" in refused(lambda lines: lines[2].__setitem__(2, "mallory"))
    assert "lacks entries between 4 and 6" in refused(lambda lines: lines.pop())
    assert "signed with another key" in refused(lambda lines: lines[0].update(ended=1.0))
    assert "signed with another key" in refused(lambda lines: lines[0].update(cluster_id="other"))
    for key in (key_of(bench), key_of(other)):
        (problem,) = [one for one in audited(bench.site.place, key, files(other)[:1]).problems if "jsonl" in one]
        assert ("signed with another key" if key == key_of(bench) else "no part of the audit log of this") in problem
    for text in (b"", b"{}", b"[]\n", b'{"first": 1}\n', b"[" * 100_000, b"9" * 5000):
        path.write_bytes(gzip.compress(text))
        with pytest.raises(InvalidInput, match="no part of an audit log"):
            verified(bench, path)
    other.store.close()


def test_a_part_is_verified_with_its_key_alone(bench: Bench, tmp_path: Path) -> None:
    removal(bench).sweep()
    path = files(bench)[0]
    assert audit_files_check(path, key_of(bench)) == (1, 3)
    with pytest.raises(audit_log.AuditChanged, match="signed with another key"):
        audit_files_check(path, b"x" * 32)
    assert path.stat().st_mode & 0o777 == (bench.site.state / KEY_FILE).stat().st_mode & 0o777 == 0o600


def audit_files_check(path: Path, key: bytes) -> tuple[int, int]:
    from eunomia.service.store.audit_files import check_file

    _, part = check_file(path, key)
    return part.first, part.last


def test_where_the_key_is_lost_nothing_is_signed_with_another_one(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    removal(bench).sweep()
    key = key_of(bench)
    (bench.site.state / KEY_FILE).unlink()
    bench.clock.at += DAY_S
    before = parts(bench)
    removal(bench).sweep()
    assert parts(bench) == before and "the key that signed the parts of the audit log is not there" in caplog.text
    (bench.site.state / KEY_FILE).write_bytes(key)
    (bench.site.state / KEY_FILE).chmod(0o644)
    removal(bench).sweep()
    assert parts(bench) == before and "other users may read it" in caplog.text
    caplog.clear()
    (bench.site.state / KEY_FILE).write_bytes(b"")
    (bench.site.state / KEY_FILE).chmod(0o600)
    removal(bench).sweep()
    assert parts(bench) == before and "no plain file, or empty" in caplog.text
    (bench.site.state / KEY_FILE).write_bytes(key)
    removal(bench).sweep()
    assert len([one for one in parts(bench) if one.removed]) == 4 and verified(bench).problems == []


def test_after_its_key_is_lost_the_log_goes_on_with_a_new_one_and_says_so(stored: Bench) -> None:
    removal(stored).sweep()
    lost = key_of(stored)
    (stored.site.state / KEY_FILE).unlink()
    days(stored, 2)
    stored.store.close()
    found = replace_lost_key(stored.site)
    assert (found.lost, found.parts, found.removed) == ((audit_log.key_name(lost),), 10, 3)
    stored.restart()
    assert key_of(stored) != lost and verified(stored).problems == []
    said = stored.store._db.execute("SELECT action, object FROM audit ORDER BY seq").fetchall()
    assert [text for action, text in said if action == "audit key replaced"] == [
        f"{found.key} signs 10 parts of {found.lost[0]}, 3 of them taken away before"
    ]
    removal(stored).sweep()
    assert len([one for one in parts(stored) if one.removed]) == 5 and verified(stored).problems == []
    stored.store.close()
    with pytest.raises(InvalidInput, match="has signed every part"):
        replace_lost_key(stored.site)
    stored.restart()


def test_a_new_key_signs_no_log_that_was_changed(bench: Bench) -> None:
    removal(bench).sweep()
    (bench.site.state / KEY_FILE).unlink()
    with bench.store.transaction() as db:
        db.execute("UPDATE audit SET object = 'x' WHERE seq = 14")
    before = parts(bench)
    bench.store.close()
    with pytest.raises(StoreProblem, match="changed at entry 14"):
        replace_lost_key(bench.site)
    assert not (bench.site.state / KEY_FILE).exists()
    bench.restart()
    assert parts(bench) == before


# ---- kills -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["audit.closed", "audit.written", "removal.rows"])
def test_wherever_it_dies_the_next_removal_goes_on_and_no_entry_is_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    entries = [[*row] for row in bench.store._db.execute(f"SELECT {audit_log.ENTRY} FROM audit ORDER BY seq")]
    monkeypatch.setattr(audit_log, "MOST", 2)
    monkeypatch.setattr(sys.modules["eunomia.service.store.old_rows"], "BATCH", 2)
    deaths = 0
    for hit in range(1, 100):
        monkeypatch.setenv("EUNOMIA_TEST_BUILD", "1")
        monkeypatch.setenv("EUNOMIA_FAULT_POINT", f"{point}:raise:{hit}")
        monkeypatch.setattr(fault_points, "_hits", Counter())
        try:
            replace(removal(bench), rows_s=0.0).sweep()
        except InjectedFault:
            deaths += 1
            monkeypatch.delenv("EUNOMIA_FAULT_POINT")
            bench.restart()
            assert verified(bench, *files(bench)).problems == []
            kept = [[*row] for row in bench.store._db.execute(f"SELECT {audit_log.ENTRY} FROM audit ORDER BY seq")]
            there = [json.loads(line) for path in files(bench) for line in unpacked(path)[1:]]
            assert [row for row in there if row not in kept] + kept == entries
        else:
            break
    assert deaths >= 2 and rows_of(bench, "audit") == 21 and len(files(bench)) == 6


def test_a_command_that_is_killed_amid_a_part_is_repeated(tmp_path: Path) -> None:
    bench = Bench(tmp_path, WEEK)
    days(bench, 10)
    bench.store.close()
    command = [sys.executable, "-m", "eunomia", "store", "prune", str(bench.path)]
    variables = {**os.environ, "EUNOMIA_TEST_BUILD": "1", "EUNOMIA_FAULT_POINT": "audit.written:kill:2"}
    assert subprocess.run(command, check=False, env=variables, stdout=subprocess.DEVNULL).returncode == -signal.SIGKILL
    assert len(files(bench)) == 2

    def run(*words: str) -> dict[str, Any]:
        found = CliRunner().invoke(app, [*words, "--json"])
        assert found.exit_code == 0, found.output
        return dict(json.loads(found.stdout))

    run("store", "prune", str(bench.path))
    shown = run("store", "audit", *map(str, files(bench)), "--state", str(bench.site.state))
    assert shown["problems"] == [] and shown["signatures_checked"] and len(shown["parts"]) == 10
    assert [one["removed"] for one in shown["parts"]] == [bool(one["file"]) for one in shown["parts"]]
    assert run("store", "check", "--state", str(bench.site.state))["problems"] == []
    (bench.site.state / KEY_FILE).write_bytes(b"y" * 32)
    for words in (["audit"], ["check"]):
        found = CliRunner().invoke(app, ["store", *words, "--state", str(bench.site.state)])
        assert found.exit_code == 1 and "entries 1 to 3 was changed, or signed with another key" in found.output
    found = CliRunner().invoke(app, ["store", "audit", "--state", str(tmp_path)])
    assert found.exit_code == 2 and "there is no store here" in found.output


def test_the_last_entry_is_still_compared_with_what_stands_beside_the_store(stored: Bench) -> None:
    removal(stored).sweep()
    stored.store._db.execute("DELETE FROM audit WHERE seq = 30")
    with pytest.raises(StoreProblem, match="the audit log was cut or changed: its entry 30"):
        stored.restart()


def test_less_than_a_day_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(WEEK.replace("= 7", "= 0.5"))
    with pytest.raises(InvalidInput, match=r"site\.toml:3: service\.audit_days"):
        load_site(path)
