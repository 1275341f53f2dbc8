"""What a site keeps no longer goes, in pieces and whatever kills the service meanwhile; what is live stays."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import ANN, BOB, SITE, Bench, until
from tests.service.test_controller import launched
from tests.service.test_stores import on, site_on
from typer.testing import CliRunner

from eunomia.backends.processes.folder_removal import remove_folder
from eunomia.backends.processes.gang_group import start_time
from eunomia.backends.reports import GangEnded
from eunomia.cli.app import app
from eunomia.inputs.problems import InvalidInput
from eunomia.service import fault_points
from eunomia.service.fault_points import InjectedFault
from eunomia.service.followed_state import FollowedState
from eunomia.service.living_state import summary
from eunomia.service.removal import DAY_S, JOBS, Removal
from eunomia.service.site import load_site
from eunomia.service.store import StoreProblem, old_rows
from eunomia.service.store.backup import export
from eunomia.service.store.reader import Reader
from eunomia.service.store.removal_reader import RemovalReader
from eunomia.service.store.row_sums import COLUMNS, SINCE

WEEK = SITE.replace("[service]", "[service]\nhistory_days = 7")


@pytest.fixture(params=["sqlite", "postgres"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A controller on either store, of a site that keeps jobs for a week."""
    found = Bench(tmp_path, site_on(request, "history_days = 7"))
    yield found
    found.store.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path, WEEK)
    yield found
    found.store.close()


def removal(bench: Bench, pause: Callable[[float], None] = lambda worked_s: None, **keys: Any) -> Removal:
    """Return a sweep of the bench's site, with other values of some keys, as the service does one now."""
    service = bench.site.service.model_copy(update=keys)
    reader = RemovalReader(bench.site.place)
    return Removal(service, bench.site.state / "jobs", reader, bench.clock.at, lambda do: do(bench.store), pause)


def run_one(bench: Bench, run_s: float = 60.0, **document: Any) -> str:
    """Let a job run to its end, with a folder as a supervisor leaves it."""
    job = bench.submit(duration_s=run_s, **document).body["id"]
    launched(bench)
    bench.clock.at += run_s
    bench.do(GangEnded(job, bench.controller.rows[job].epoch, "finished"))
    assert bench.state(job) == "succeeded"
    return str(job)


def folder(bench: Bench, job: str) -> Path:
    """Make the folder of a job, with a log and a checkpoint."""
    path = bench.site.state / "jobs" / job
    (path / "checkpoint").mkdir(parents=True)
    (path / "log").write_text("x" * 1000)
    (path / "checkpoint" / "step").write_text("100")
    return path


def forecast(bench: Bench, job: str) -> None:
    """Record a forecast of a job."""
    row = bench.store.job(job)
    assert row is not None
    said = {"at": row.submitted, "shown": [[1.0, 2.0, 3.0]] * 2, "raw": [[1.0, 2.0, 3.0]] * 2}
    with bench.store.transaction() as db:
        values = (row.number, job, row.tenant, json.dumps(said), 2.0)
        db.execute("INSERT INTO forecasts VALUES (?, ?, ?, ?, ?)", values)


def counted(bench: Bench) -> dict[str, int]:
    """Return how many jobs are in each state, counted."""
    return dict(Counter(state for (state,) in bench.store._db.execute("SELECT state FROM jobs").fetchall()))


def rows_of(bench: Bench, table: str) -> int:
    return int(bench.store._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def agree(bench: Bench) -> None:
    """Check that what the store and the scheduler count agrees."""
    assert bench.store.problems() == []
    assert Reader(bench.site.place).counts() == counted(bench)
    bench.controller.check()


# ---- rows, folders and what stays ------------------------------------------------------------------------------------


def test_what_ended_before_the_history_goes_with_its_folder_and_the_rest_stays(stored: Bench) -> None:
    old = [run_one(stored, labels={"n": "old"}) for _ in range(3)]
    kept_running = stored.submit(duration_s=1e7, labels={"n": "kept"}).body["id"]
    launched(stored)
    stored.clock.at += 6 * DAY_S
    new = run_one(stored)
    stored.clock.at += 1.5 * DAY_S
    waiting = stored.submit(accelerators=2).body["id"]
    folders = {job: folder(stored, job) for job in (*old, kept_running, new, waiting)}
    for job in (*old, new):
        forecast(stored, job)
    planned = {one.what: (one.count, one.size) for one in removal(stored).plan()}
    before = {table: rows_of(stored, table) for table in ("jobs", "news", "keys", "forecasts", "labels")}
    assert planned["ended jobs"][0] == 3 and planned["forecasts"][0] == 3
    assert planned["job folders"] == (3, 3 * 1003)
    removal(stored).sweep()
    after = {table: rows_of(stored, table) for table in before}
    assert before["jobs"] - after["jobs"] == before["forecasts"] - after["forecasts"] == 3
    assert before["labels"] - after["labels"] == 3
    assert before["news"] - after["news"] == planned["events"][0] > 0
    assert before["keys"] - after["keys"] == planned["idempotency keys"][0] > 0
    assert {job for job, path in folders.items() if path.exists()} == {kept_running, new, waiting}
    assert all(path.joinpath("log").exists() for job, path in folders.items() if job not in old)
    agree(stored)
    assert all(one.count == 0 for one in removal(stored).plan())
    number = int(waiting.partition("-")[0])
    stored.restart()
    agree(stored)
    assert stored.controller.rows.keys() == {kept_running, waiting} and stored.state(new) == "succeeded"
    assert int(stored.submit().body["id"].partition("-")[0]) == number + 1


def test_a_job_that_follows_a_removed_one_still_starts_when_the_others_have_ended(bench: Bench) -> None:
    first = run_one(bench)
    second = bench.submit(duration_s=10 * DAY_S).body["id"]
    launched(bench)
    follower = bench.submit(after=[first, second]).body["id"]
    bench.clock.at += 8 * DAY_S
    removal(bench).sweep()
    assert bench.store.job(first) is None and bench.state(follower) == "pending"
    bench.restart()
    launched(bench)
    assert bench.controller.rows[follower].holds == ["after"]
    bench.do(GangEnded(second, bench.controller.rows[second].epoch, "finished"))
    assert bench.controller.rows[follower].holds == [] and bench.state(follower) == "starting"


def test_the_key_of_a_list_that_is_not_entered_whole_stays(bench: Bench) -> None:
    bench.submit(key="a-key-of-a-list")
    with bench.store.transaction() as db:
        db.execute("INSERT INTO lists VALUES ('vision', 'a-key-of-a-list', 'ann', 'submitter', '-', '[]', NULL)")
    bench.clock.at += 30 * DAY_S
    bench.submit(key="a-key-of-now")
    removal(bench).sweep()
    assert bench.store.key("vision", "a-key-of-a-list") is not None and rows_of(bench, "keys") == 2


def test_others_are_served_between_two_pieces(bench: Bench) -> None:
    for _ in range(70):
        folder(bench, run_one(bench))
    bench.clock.at += 8 * DAY_S
    served: list[str] = []
    removal(bench, lambda worked_s: served.append(bench.submit(BOB).body["id"])).sweep()
    assert len(served) > 3 and counted(bench).keys() <= {"starting", "pending"}
    agree(bench)


def test_a_piece_is_a_few_rows_of_each_kind_however_many_are_due_and_a_folder_goes_entry_by_entry(
    bench: Bench,
) -> None:
    for _ in range(2 * JOBS):
        run_one(bench, labels={"n": "old"})
    with bench.store.transaction() as db:  # many users in one hour
        rows = [(0, "vision", f"user-{n}", "failed", 1, 1.0, 1, 1.0) for n in range(500)]
        db.executemany("INSERT INTO ended_hours VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    bench.writer.snapshot()
    bench.writer.snapshot()
    bench.clock.at += 400 * DAY_S
    pieces = list[int]()

    def change(do: Callable[[Any], int]) -> int:
        before = bench.store._db.total_changes
        found = do(bench.store)
        pieces.append(bench.store._db.total_changes - before)
        return found

    reader = RemovalReader(bench.site.place)
    Removal(
        bench.site.service, bench.site.state / "jobs", reader, bench.clock.at, change, lambda worked_s: None,
        rows_s=0.0,  # a look at the clock ends the piece
    ).sweep()  # fmt: skip
    assert len(pieces) > 30 and max(pieces[2:]) <= 6 * old_rows.BATCH  # kinds of rows
    assert max(pieces[:2]) <= 3 * JOBS + 10  # a job's row, its label and its count
    path = folder(bench, "1-abc")
    for n in range(600):
        (path / "checkpoint" / str(n)).touch()
    assert gone(path.parent, "1-abc") >= 600


# ---- decisions -------------------------------------------------------------------------------------------------------


def test_moments_before_the_older_snapshot_go_and_a_start_still_finds_its_way_from_either(stored: Bench) -> None:
    for part in range(3):
        for _ in range(4):
            run_one(stored)
        if part:
            stored.writer.snapshot()
    running = stored.submit(duration_s=1e6).body["id"]
    follower = FollowedState(stored.site)
    follower.present(stored.clock.at)
    oldest = min(seq for seq, *_ in stored.store.snapshots())
    last = stored.store.last_seq()
    stored.clock.at += 8 * DAY_S
    removal(stored).sweep()
    assert [seq for seq, *_ in stored.store.moments()] == list(range(oldest + 1, last + 1))
    with stored.store.transaction() as db:
        db.execute(
            "UPDATE snapshots SET row_sum = NULL, digest = 'other' WHERE seq > ?", (oldest,)
        )  # the newest is damaged
    stored.restart()
    agree(stored)
    assert stored.state(running) == "starting"
    late = FollowedState(stored.site)
    late.seq = 1  # as one that was last asked long ago
    late.present(stored.clock.at)
    assert late.scheduler.state.row_of.keys() >= {running}
    stored.store.close()
    with pytest.raises(StoreProblem, match="were removed"):
        export(stored.site, stored.path.with_name("record.jsonl.gz"))
    stored._open()


def test_without_a_snapshot_every_moment_stays(bench: Bench) -> None:
    run_one(bench)
    with bench.store.transaction() as db:
        db.execute("DELETE FROM snapshots")
    count = rows_of(bench, "moments")
    bench.clock.at += 30 * DAY_S
    removal(bench).sweep()
    assert rows_of(bench, "moments") == count > 0


def test_decisions_are_kept_for_days_of_their_own(bench: Bench) -> None:
    for _ in range(5):
        run_one(bench)
        bench.writer.snapshot()
    bench.clock.at += 2 * DAY_S
    removal(bench, decision_days=3.0).sweep()
    count = rows_of(bench, "moments")
    removal(bench, decision_days=1.0).sweep()
    assert rows_of(bench, "moments") < count and rows_of(bench, "jobs") == 5


# ---- logs ------------------------------------------------------------------------------------------------------------


def test_logs_go_by_age_before_their_jobs_and_only_those_of_ended_jobs(bench: Bench) -> None:
    old, live = run_one(bench), bench.submit(duration_s=1e7).body["id"]
    bench.clock.at += 2 * DAY_S
    new = run_one(bench)
    paths = {job: folder(bench, job) for job in (old, live, new)}
    assert {one.what: one.count for one in removal(bench, log_days=1.0).plan()}["logs of ended jobs"] == 1
    for _ in range(2):
        removal(bench, log_days=1.0).sweep()
        assert {job for job, path in paths.items() if path.joinpath("log").exists()} == {live, new}
    assert paths[old].joinpath("checkpoint", "step").exists() and bench.store.job(old) is not None


def test_logs_go_oldest_first_until_the_others_are_small_enough(bench: Bench) -> None:
    jobs = [run_one(bench) for _ in range(5)]
    paths = [folder(bench, job) for job in jobs]  # 1000 bytes each
    removal(bench, logs_gib=2500 / 2**30).sweep()
    assert [path.joinpath("log").exists() for path in paths] == [False] * 3 + [True] * 2
    removal(bench, logs_gib=2500 / 2**30).sweep()
    assert [path.joinpath("log").exists() for path in paths] == [False] * 3 + [True] * 2


def test_a_log_that_cannot_be_removed_holds_up_no_other(bench: Bench) -> None:
    paths = [folder(bench, run_one(bench)) for _ in range(3)]
    (paths[1] / "log").unlink()
    (paths[1] / "log").mkdir()  # as a job may do
    bench.clock.at += 2 * DAY_S
    done = dict(removal(bench, log_days=1.0).sweep())
    assert done["logs"] == 2 and [path.joinpath("log").exists() for path in paths] == [False, True, False]


def test_logs_that_go_with_their_jobs_are_planned_once(bench: Bench) -> None:
    for _ in range(3):
        folder(bench, run_one(bench))
    bench.clock.at += 8 * DAY_S
    planned = {one.what: one.count for one in removal(bench, log_days=1.0, logs_gib=1e-9).plan()}
    assert planned["job folders"] == 3 and planned["logs of ended jobs"] == 0


# ---- folders ---------------------------------------------------------------------------------------------------------


def gone(parent: Path, name: str) -> int:
    """Remove a folder, and return in how many steps."""
    handle = os.open(parent, os.O_RDONLY)
    try:
        return sum(1 for _ in remove_folder(handle, name))
    finally:
        os.close(handle)


def test_whatever_a_job_has_put_into_its_folder_goes_and_nothing_that_a_link_names(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "precious").write_text("kept")
    jobs = tmp_path / "jobs"
    path = jobs / "1-abc"
    (path / "closed" / "within").mkdir(parents=True)
    (path / "closed" / "within" / "file").touch()
    (path / "folder").symlink_to(beside)
    (path / "file").symlink_to(beside / "precious")
    (path / "closed" / "up").symlink_to("../../..")
    (path / ".removed-1").mkdir()
    (path / ".removed-1" / "full").touch()
    (path / ".removed-2").touch()
    (path / "pipe").mkdir()
    os.mkfifo(path / "pipe" / "unread")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path / "socket"))
    (path / "closed" / "within").chmod(0o000)
    (path / "closed").chmod(0o500)
    gone(jobs, "1-abc")
    assert not os.path.lexists(path) and (beside / "precious").read_text() == "kept"
    (jobs / "2-abc").symlink_to(beside)
    gone(jobs, "2-abc")
    gone(jobs, "3-abc")  # there is none
    assert not any(jobs.iterdir()) and (beside / "precious").read_text() == "kept"


def test_a_tree_that_is_deeper_than_any_path_goes_with_few_open_folders(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    os.mkdir("1-abc", dir_fd=here)
    place = os.open("1-abc", os.O_RDONLY, dir_fd=here)
    for _ in range(1200):
        os.mkdir("below", dir_fd=place)
        below = os.open("below", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    before = set(os.listdir("/proc/self/fd"))
    most = 0
    for _ in remove_folder(here, "1-abc"):
        most = max(most, len(set(os.listdir("/proc/self/fd")) - before))
    os.close(here)
    assert most <= 3 and not (tmp_path / "1-abc").exists()


def test_folders_of_jobs_that_an_earlier_version_forgot_go_and_those_of_running_gangs_stay(bench: Bench) -> None:
    jobs = bench.site.state / "jobs"
    for name in ("1-gone", "2-runs", "3-written", "999-later", "seats", "notes"):
        (jobs / name).mkdir(parents=True)
        (jobs / name / "log").touch()
    with bench.store.transaction() as db:
        bench.store.set_meta(db, "last_job", "10")
        bench.store.set_meta(db, "origin", "1e9")
    bench.clock.at = 30 * DAY_S
    for path in (*jobs.glob("*/log"), *jobs.iterdir()):
        os.utime(path, (1e9, 1e9))
    os.utime(jobs / "3-written" / "log", (1e9 + 29 * DAY_S,) * 2)
    lease = jobs.resolve() / "2-runs" / "lease-1.json"
    gang = subprocess.Popen(["sleep", "600"], env={"EUNOMIA_LEASE_FILE": str(lease)})
    until(Path(f"/proc/{gang.pid}/environ").read_bytes)  # the kernel shows it a moment after the start
    record = {"job": "2-runs", "pid": gang.pid, "start": start_time(gang.pid)}
    (jobs / "2-runs" / "supervisor-1.json").write_text(json.dumps(record))
    for path in (jobs / "2-runs").iterdir():
        os.utime(path, (1e9, 1e9))
    os.utime(jobs / "2-runs", (1e9, 1e9))
    try:
        assert {one.what: one.count for one in removal(bench).plan()}["job folders"] == 1
        removal(bench).sweep()
        assert {path.name for path in jobs.iterdir()} == {"2-runs", "3-written", "999-later", "seats", "notes"}
    finally:
        gang.kill()
        gang.wait()
    removal(bench).sweep()
    assert {path.name for path in jobs.iterdir()} == {"3-written", "999-later", "seats", "notes"}


# ---- kills -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["removal.folder", "removal.rows"])
def test_wherever_a_removal_dies_the_next_one_goes_on_and_all_counts_agree(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    old = [run_one(bench) for _ in range(4)]
    live = bench.submit(duration_s=1e7).body["id"]
    launched(bench)
    paths = [folder(bench, job) for job in (*old, live)]
    bench.writer.snapshot()
    bench.clock.at += 8 * DAY_S
    deaths = 0
    for hit in range(1, 100):
        monkeypatch.setenv("EUNOMIA_TEST_BUILD", "1")
        monkeypatch.setenv("EUNOMIA_FAULT_POINT", f"{point}:raise:{hit}")
        monkeypatch.setattr(fault_points, "_hits", Counter())
        try:
            removal(bench).sweep()
        except InjectedFault:
            deaths += 1
            monkeypatch.delenv("EUNOMIA_FAULT_POINT")
            bench.restart()
            agree(bench)
            assert bench.state(live) == "running" and (paths[-1] / "log").exists()
        else:
            break
    assert deaths >= 2 and [path.exists() for path in paths] == [False] * 4 + [True]
    assert counted(bench) == {"running": 1}
    agree(bench)


@pytest.mark.parametrize("point", ["removal.folder:kill:2", "removal.rows:kill:2"])
def test_a_command_that_is_killed_amid_a_removal_is_repeated(tmp_path: Path, point: str) -> None:
    bench = Bench(tmp_path, WEEK)
    old, live = run_one(bench), bench.submit(duration_s=1e7).body["id"]
    paths = [folder(bench, job) for job in (old, live)]
    bench.clock.at += 8 * DAY_S
    bench.submit(BOB)
    bench.store.close()
    command = [sys.executable, "-m", "eunomia", "store", "prune", str(bench.path)]
    variables = {**os.environ, "EUNOMIA_TEST_BUILD": "1", "EUNOMIA_FAULT_POINT": point}
    assert subprocess.run(command, check=False, env=variables, stdout=subprocess.DEVNULL).returncode == -signal.SIGKILL
    found = CliRunner().invoke(app, command[3:])
    assert found.exit_code == 0, found.output
    assert [path.exists() for path in paths] == [False, True]
    bench._open()
    agree(bench)
    assert bench.store.job(old) is None and bench.state(live) == "starting"
    bench.store.close()


# ---- the command and the keys ----------------------------------------------------------------------------------------


def test_the_command_says_what_goes_and_changes_nothing_until_it_is_to(tmp_path: Path) -> None:
    bench = Bench(tmp_path, WEEK.replace("= 7", "= 10"))  # a stop counts as 7 days at most
    path = folder(bench, run_one(bench))
    bench.clock.at += 8 * DAY_S
    bench.submit(BOB)

    def prune(*words: str) -> dict[str, Any]:
        found = CliRunner().invoke(app, ["store", "prune", str(bench.path), "--json", *words])
        assert found.exit_code == 0, found.output
        return dict(json.loads(found.stdout))

    planned = prune("--dry-run")  # while a service has the store
    assert planned["dry_run"] and path.exists() and rows_of(bench, "jobs") == 2
    counts = {one["what"]: one["count"] for one in planned["removed"]}
    assert counts == {"job folders": 1, "logs of ended jobs": 0, "ended jobs": 1, "forecasts": 0, "events": 4,
                      "idempotency keys": 1, "decisions": 0, "audit entries": 0}  # fmt: skip
    refused = CliRunner().invoke(app, ["store", "prune", str(bench.path)])
    assert refused.exit_code == 2 and "another service uses this folder" in refused.output
    bench.store.close()
    assert prune() == {**planned, "dry_run": False} and not path.exists()
    assert all(not one["count"] for one in prune("--dry-run")["removed"])


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_the_command_says_where_there_is_no_store(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, words: tuple[str, ...]
) -> None:
    path = tmp_path / "site.toml"
    path.write_text(SITE if kind == "sqlite" else on(request.getfixturevalue("database")))
    found = CliRunner().invoke(app, ["store", "prune", str(path), *words])
    assert found.exit_code == 2 and "there is no s" in found.output  # store here, or such folder


@pytest.mark.parametrize("key", ["history_days", "decision_days", "log_days", "logs_gib"])
def test_a_period_that_is_none_is_refused_with_its_line(tmp_path: Path, key: str) -> None:
    path = tmp_path / "site.toml"
    path.write_text(SITE.replace("[service]", f"[service]\n{key} = -1"))
    with pytest.raises(InvalidInput, match=rf"site\.toml:3: service\.{key}"):
        load_site(path)


def test_room_that_rows_leave_goes_back_to_the_disk(bench: Bench) -> None:
    file = bench.site.state / "store.db"
    for _ in range(60):
        run_one(bench, env={f"A{n}": "x" * 4000 for n in range(5)})
    bench.store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = file.stat().st_size
    bench.writer.snapshot()
    bench.writer.snapshot()
    bench.clock.at += 8 * DAY_S
    removal(bench).sweep()
    bench.store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert file.stat().st_size < before / 2
    agree(bench)


# ---- counts and sums -------------------------------------------------------------------------------------------------


def history(bench: Bench, seed: int) -> None:
    """Let jobs of two users be submitted, run, fail and be cancelled, over some days."""
    rng = random.Random(seed)
    for _ in range(70):
        bench.clock.at += rng.choice((0.0, 700.0, 3600.0, 20_000.0))
        if rng.random() < 0.6:
            bench.submit(rng.choice((ANN, BOB)), accelerators=rng.choice((1, 2)), duration_s=rng.choice((60.0, 9000.0)))
        launched(bench)
        for row in list(bench.controller.rows.values()):
            if row.state == "running" and rng.random() < 0.4:
                bench.do(GangEnded(row.id, row.epoch, rng.choice(("finished", "finished", "failed"))))


def summed(bench: Bench, since: float, tenant: str | None = None) -> list[dict[str, Any]]:
    """Return the summary as the service gives it."""
    sums, rows = Reader(bench.site.place).ended_since(since, tenant)
    live = [row for row in bench.controller.rows.values() if tenant in (None, row.tenant)]
    return summary([*rows, *live], bench.clock.at, sums)


def summed_by_rows(bench: Bench, since: float, tenant: str | None = None) -> list[dict[str, Any]]:
    """Return the summary of all jobs, looked at one by one."""
    every = Reader(bench.site.place).jobs(tenant=tenant, states=(), label=None, before=None, limit=10**6, first=True)
    return summary([row for row in every if row.is_live or row.ended >= since], bench.clock.at)


@pytest.mark.parametrize("seed", range(3))
def test_the_summary_and_the_counts_are_those_of_all_jobs_looked_at_one_by_one(bench: Bench, seed: int) -> None:
    history(bench, seed)
    agree(bench)
    assert len(counted(bench)) >= 3
    for since in (-1.0, 0.0, 3600.0, 5000.0, bench.clock.at / 2, bench.clock.at):
        for tenant in (None, "vision", "speech"):
            found, expected = summed(bench, since, tenant), summed_by_rows(bench, since, tenant)
            assert [one["jobs"] for one in found] == [one["jobs"] for one in expected]
            for one, other in zip(found, expected, strict=True):
                assert one == {
                    key: pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
                    for key, value in other.items()
                }


def test_lists_of_jobs_by_state_tenant_label_and_page_are_those_of_all_jobs(stored: Bench) -> None:
    for n in range(9):
        job = stored.submit((ANN, BOB)[n % 2], duration_s=60.0, labels={"n": str(n % 3)}).body["id"]
        launched(stored)
        if n < 6 and stored.state(job) == "running":
            stored.do(GangEnded(job, 1, ("finished", "failed")[n % 3 == 1]))
    reader = Reader(stored.site.place)
    every = reader.jobs(tenant=None, states=(), label=None, before=None, limit=99)
    assert [row.number for row in every] == list(range(9, 0, -1)) and len(reader.counts()) >= 3
    several = ("pending", "succeeded", "failed", "pending")
    for tenant, states, label, before, first in product(
        (None, "vision"), ((), several), (None, ("n", "1")), (None, 6), (False, True)
    ):
        wanted = [
            row.id
            for row in (reversed(every) if first else every)
            if tenant in (None, row.tenant)
            and (not states or row.state in states)
            and (label is None or row.spec["labels"]["n"] == label[1])
            and (before is None or row.number < before)
        ]
        found = reader.jobs(tenant=tenant, states=states, label=label, before=before, limit=3, first=first)
        assert [row.id for row in found] == wanted[:3], (tenant, states, label, before, first)


def test_a_store_of_before_gets_its_counts_and_sums_when_it_is_opened(stored: Bench) -> None:
    job = run_one(stored)
    history(stored, 4)
    forecast(stored, job)
    tables = {table: sorted(stored.store._db.execute(f"SELECT * FROM {table}").fetchall())
              for table in ("job_counts", "ended_hours")}  # fmt: skip
    with stored.store.transaction() as db:
        db.execute("INSERT INTO forecasts VALUES (999, '999-abc', 'vision', '{}', 1.0)")  # of a job that is removed
        for table in tables:
            db.execute(f"DROP TABLE {table}")
        for index in ("news_by_job", "jobs_by_end", "jobs_by_tenant_state", "labels_by_number", "keys_by_time"):
            db.execute(f"DROP INDEX {index}")
        if isinstance(stored.site.place, str):
            stored.store.set_meta(db, "version", "6")
        else:
            db.execute("PRAGMA user_version = 6")
        for table in COLUMNS:
            later = table in SINCE
            db.execute(f"DROP TABLE {table}" if later else f"ALTER TABLE {table} DROP COLUMN row_sum")
    stored.restart()
    agree(stored)
    for table, before in tables.items():
        after = sorted(stored.store._db.execute(f"SELECT * FROM {table}").fetchall())
        known = [one for one in before if table != "job_counts" or one[-1]]  # a count may have come to be 0
        assert [one[:-1] for one in after] == [one[:-1] for one in known]
    assert rows_of(stored, "forecasts") == 1
