"""What a store promises, for each of them; and what holds while services take turns at a PostgreSQL database."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.bench import ANN, BOB, SITE, Bench, LiveService, until
from tests.service.simulated import simulate
from tests.service.test_controller import launched
from tests.service.test_observability import rho_of

from eunomia.backends.reports import GangEnded, Launched
from eunomia.cli.app import app
from eunomia.inputs.problems import InvalidInput
from eunomia.service.client import Address, Client
from eunomia.service.followed_state import FollowedState, LogReader
from eunomia.service.job_document import parse_job
from eunomia.service.job_row import JobRow
from eunomia.service.messages import ChangeJob, Request, Submit
from eunomia.service.store import StoreProblem, open_store
from eunomia.service.store.base import ROWS_AT_ONCE
from eunomia.service.store.old_rows import Limits
from eunomia.service.store.reader import Reader
from eunomia.service.store.schema import VERSION
from eunomia.service.turn import Turn


def on(database: str) -> str:
    """Return the site with its store in a database."""
    return SITE.replace("[service]", f'[service]\ndatabase = "{database}"')


def site_on(request: pytest.FixtureRequest, more: str = "") -> str:
    """Return the site with these lines in its [service], on the kind of store that a fixture is made for."""
    text = SITE if request.param == "sqlite" else on(request.getfixturevalue("database"))
    return text.replace("[service]", f"[service]\n{more}")


@pytest.fixture(params=["sqlite", "postgres"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A controller on either store."""
    found = Bench(tmp_path, site_on(request))
    yield found
    found.store.close()


# ---- either store ----------------------------------------------------------------------------------------------------


def test_everything_stored_is_there_after_a_restart_and_for_readers(stored: Bench) -> None:
    done = stored.submit(duration_s=60, job_type="cifar").body["id"]
    launched(stored)
    stored.clock.at = 5.0
    stored.do(GangEnded(done, 1, "finished"))
    jobs = [stored.submit(key=f"key-{n}-key", accelerators=2, labels={"n": str(n)}, env={"A": "é"}).body["id"]
            for n in range(3)]  # fmt: skip
    stored.writer.snapshot()
    stored.clock.at = 7.0
    later = stored.submit(after=[jobs[0]]).body["id"]
    orders, clock = stored.store.unsent(), stored.store.clock()
    rows = [row.body() for row in stored.store.live_jobs()[0]]
    generation = stored.store.generation
    stored.restart()
    assert [row.body() for row in stored.store.live_jobs()[0]] == rows
    assert [order.job_id for order in stored.orders] == [o["job_id"] for o in orders.values()]
    assert stored.store.clock() == clock and stored.store.generation > generation
    assert stored.store.key("vision", "key-1-key") is not None and stored.store.run_times() == [
        ("vision", "cifar", 5.0)
    ]
    reader = LogReader(stored.site.place)
    assert reader.counts() == {"succeeded": 1, "starting": 1, "pending": 3}
    only = reader.jobs(tenant="vision", states=["pending"], label=("n", "2"), before=99, limit=5)
    assert [row.id for row in only] == jobs[2:]
    assert [row.id for row in reader.held_jobs()] == [later] and reader.outcomes() == []
    assert reader.news_range() == (reader.news(0)[0][0], reader.news(0)[-1][0])
    assert [number for number, *_ in reader.news(1, 3)] == [2, 3]
    assert stored.store.memory_used() == {} and stored.store.problems() == []
    follower = FollowedState(stored.site)
    assert follower.present(9.0).at == 9.0
    assert follower.seq == stored.store.last_seq()


def test_what_tenants_received_and_their_rho_are_stored_for_as_long_as_history_is(stored: Bench) -> None:
    day, job = 24 * 3600.0, stored.submit(ANN, duration_s=9 * 24 * 3600).body["id"]
    stored.do(Launched(job, 1))
    for hours in range(1, 72):  # as the writer does, which wakes up at least once a minute
        stored.clock.at = hours * 3600.0
        stored.do()
    stored.clock.at += 30.0
    second = stored.submit(BOB, duration_s=9000).body["id"]
    stored.do(Launched(second, 1))
    stored.clock.at += 20.0
    stored.do(GangEnded(second, 1, "finished"))  # its ρ is stored with it
    active_time = stored.controller.fairness.active_time
    stored.restart()
    assert stored.controller.fairness.active_time == active_time
    stored.do()
    assert rho_of(stored, "speech") == (1, 1.0, 1.0)  # it ran at once, as alone on its half of the two seats
    stored.clock.at += 1950.0
    stored.do(GangEnded(job, 1, "finished"))
    # 3 days, a minute before the restart at most is missing
    hour = int(stored.clock.at // 3600)
    reader = Reader(stored.site.place)
    earlier = reader.tenant_hours(hour, 24, 3, None)
    assert [(back, name) for back, name, _ in earlier] == [(1, "vision"), (2, "vision")]  # days before the last one
    assert reader.tenant_hours(hour, 24, 3, "speech") == []
    last = [one.sums.received for one in stored.store.tenant_hours(hour) if one.tenant == "vision"]
    received = sum(last) + sum(sums.received for _, _, sums in earlier)
    assert stored.clock.at - 60 <= received <= stored.clock.at
    assert rho_of(stored, "vision")[1:] == (pytest.approx(1.0, rel=1e-3), pytest.approx(1.0, rel=1e-3))
    at = 366 * day + 30 * 3600.0
    while stored.store.remove_aged(Limits(history=at, decisions=at)):
        pass
    # hours are kept a year longer than jobs
    assert [back for back, _, _ in reader.tenant_hours(hour, 1, 72, None)] == [*range(24, 42)]


def test_a_list_is_stored_with_every_job_label_and_event_and_repeated_labels_once(stored: Bench) -> None:
    count = sum(ROWS_AT_ONCE) + 3
    jobs = tuple(parse_job({"command": ["train"], "labels": {"n": str(n), "all": "yes"}}) for n in range(count))
    (reply,) = stored.do(Request(Submit(jobs, "one-key-for-all", "d", several=True), ANN))
    assert reply is not None and len(set(reply.body["ids"])) == count
    reader = Reader(stored.site.place)
    every = reader.jobs(tenant=None, states=(), label=("all", "yes"), before=None, limit=count + 1, first=True)
    assert [row.id for row in every] == reply.body["ids"]
    assert [row.spec["labels"]["n"] for row in every] == [str(n) for n in range(count)]
    submitted = [job for _, _, job, _, kind, _ in reader.news(0) if kind == "submitted"]
    assert submitted == reply.body["ids"]
    stored.clock.at = 3.0
    stored.do(Request(ChangeJob(every[0].id, {"labels": {"all": "yes", "n": "other"}}), ANN))
    for text in ("0", "other"):  # the earlier labels go on finding it
        assert reader.jobs(tenant=None, states=(), label=("n", text), before=None, limit=5)[0].id == every[0].id


def test_decisions_until_a_time_are_those_that_were_made_by_then(stored: Bench) -> None:
    for at in (10.0, 20.0, 20.0, 35.0):
        stored.clock.at = at
        stored.submit()
    reader = LogReader(stored.site.place)
    every = [one.at for one in reader.decisions(100)]
    assert sorted(every, reverse=True) == every
    assert len(every) > 4
    for at_most in (0.0, 9.9, 10.0, 19.0, 20.0, 34.0, 35.0, 99.0):
        assert [one.at for one in reader.decisions(100, at_most)] == [at for at in every if at <= at_most]
    assert len(reader.decisions(1, 20.0)) == 1


def test_a_turn_that_cannot_be_stored_whole_leaves_nothing(stored: Bench) -> None:
    first = stored.submit().body["id"]
    row = stored.store.job(stored.submit(accelerators=2).body["id"])
    assert row is not None and row.seats == ()
    other = JobRow.of(row.body())
    other.seats, other.epoch = stored.controller.rows[first].seats, 1
    with pytest.raises(stored.store.errors):
        stored.store.commit(Turn(3.0, rows={other.id: other}, nodes={0: "moved"}), stored.clock.stored(3.0))
    unchanged = stored.store.job(row.id)
    assert unchanged is not None and unchanged.body() == row.body() and stored.store.drained(9) == {}
    stored.submit()  # and the store goes on


def test_a_changed_audit_log_is_named(stored: Bench) -> None:
    for _ in range(3):
        stored.submit()
    assert stored.store.problems() == []
    stored.store._db.execute("UPDATE audit SET \"user\" = 'mallory' WHERE seq = 2")
    assert stored.store.problems() == ["the audit log was changed at entry 2"]


def test_a_backup_is_put_back_and_no_id_or_generation_comes_twice(stored: Bench, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    def store(*words: str) -> str:
        found = CliRunner().invoke(app, ["store", *words, "--state", str(stored.site.place)])
        assert found.exit_code == 0, found.output
        return found.output

    kept = stored.submit().body["id"]
    store("backup", str(tmp_path / "copy.db"))
    gone = stored.submit().body["id"]
    for _ in range(3):
        stored.restart()
    generation = stored.store.generation
    stored.store.close()
    assert store("check") == "the store is sound\n"
    assert "the old store is" in store("restore", str(tmp_path / "copy.db"))
    stored._open()
    assert stored.store.job(kept) is not None and stored.store.job(gone) is None
    assert stored.submit().body["id"] not in (kept, gone) and stored.store.problems() == []
    if isinstance(stored.site.place, str):
        assert stored.store.generation > generation


def test_whatever_fails_in_a_day_on_postgresql_no_accepted_job_is_lost(database: str, tmp_path: Path) -> None:
    found = simulate(tmp_path, 3, 100, database=database)
    assert found.commits > 25 and found.crashes > 0


# ---- services that take turns ----------------------------------------------------------------------------------------


def test_a_service_that_was_taken_over_from_writes_nothing(database: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, on(database))
    with pytest.raises(StoreProblem, match="another service uses it"):
        open_store(bench.site.place, bench.site.state)
    bench.store._db.execute("UPDATE leader SET renewed = renewed - interval '1 hour'")  # as if it had been frozen
    other = open_store(bench.site.place, bench.site.state)
    other.begin_generation()
    before = other.last_seq()
    with pytest.raises(StoreProblem, match="another service has taken over"):
        bench.submit()
    assert not bench.store.leads() and other.leads() and other.last_seq() == before and other.live_jobs() == ([], [])
    other.close()
    bench.store.close()


def test_a_service_that_freezes_within_a_transaction_is_cut_off(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eunomia.service.store import postgres

    monkeypatch.setattr(postgres, "TRANSACTION_S", 1)
    bench = Bench(tmp_path, on(database))

    def write_slowly() -> None:
        with bench.store.transaction() as db:
            bench.store.set_meta(db, "late", "1")
            time.sleep(1.5)

    with pytest.raises(bench.store.errors):
        write_slowly()
    other = postgres.connect(database)
    assert other.execute("SELECT * FROM meta WHERE key = 'late'").fetchone() is None
    other.close()
    bench.store.close()


@pytest.fixture
def pair(database: str, tmp_path: Path) -> Iterator[tuple[LiveService, LiveService]]:
    """Two services of one state folder and one database, not started."""
    pytest.importorskip("uvicorn", reason="needs the extra service")
    text = on(database).replace("[service]", f'[service]\nstate = "{tmp_path / "state"}"')
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log").touch()
        made.append(LiveService(tmp_path / name, text))
    yield made[0], made[1]
    for service in made:
        if service.process is not None and service.process.poll() is None:
            service.kill()
    for lease in (tmp_path / "state" / "jobs").glob("*/lease-*.json"):
        lease.write_text('{"end_s": 0, "stop": 0.0}')


def test_an_older_database_gets_the_tables_that_it_lacks(database: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, on(database))
    columns = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = ? ORDER BY column_name"
    tables = ("forecasts", "tenant_hours", "tokens")
    before = [list(bench.store._db.execute(columns, (table,))) for table in tables]
    job = bench.submit().body["id"]
    for table in ("forecasts", "tenant_hours"):
        bench.store._db.execute(f"DROP TABLE {table}")
    bench.store._db.execute("ALTER TABLE tokens DROP COLUMN parent")
    bench.store._db.execute("DROP INDEX IF EXISTS jobs_by_tenant")
    bench.store._db.execute("UPDATE meta SET value = '1' WHERE key = 'version'")
    bench.restart()
    assert bench.store.meta("version") == str(VERSION)
    assert [list(bench.store._db.execute(columns, (table,))) for table in tables] == before
    assert bench.state(job) == "starting"
    bench.store.close()


@pytest.mark.slow
def test_another_service_goes_on_when_the_leader_freezes_and_what_it_writes_later_changes_nothing(
    pair: tuple[LiveService, LiveService], tmp_path: Path
) -> None:
    first, second = pair
    first.start()
    token = (tmp_path / "state" / "operator.token").read_text().strip()
    client = Client(Address(first.url, token))
    job = client.send("POST", "/v1/jobs", {"command": ["sleep", "600"]})["id"]
    until(lambda: client.send("GET", f"/v1/jobs/{job}")["state"] == "running")
    waiting = threading.Thread(target=second.start)
    waiting.start()
    until(lambda: "standing by" in (tmp_path / "two" / "log").read_text())
    assert first.process is not None
    first.process.send_signal(signal.SIGSTOP)
    waiting.join(30.0)
    assert second.url, "no fail-over within 30 s"
    client = Client(Address(second.url, token))
    until(lambda: client.send("GET", f"/v1/jobs/{job}")["state"] == "running")
    before = client.send("GET", f"/v1/jobs/{job}")
    assert first.kill(signal.SIGCONT) == 1
    assert client.send("GET", f"/v1/jobs/{job}") == before  # it ran on, in the same epoch
    assert client.send("POST", "/v1/jobs", {"command": ["true"]})["id"]
    client.send("DELETE", f"/v1/jobs/{job}")
    until(lambda: client.send("GET", f"/v1/jobs/{job}")["state"] == "cancelled")
    assert second.kill(signal.SIGTERM) == 0


@pytest.mark.parametrize("address", ["postgresql://ann:s3cret@db/x", "postgresql://ann@db/x?password=s3cret", "s3cret"])
def test_a_site_with_a_password_or_no_address_of_a_database_is_refused_without_repeating_it(
    tmp_path: Path, address: str
) -> None:
    with pytest.raises(InvalidInput, match=r"service\.database") as refused:
        Bench(tmp_path, on(address))
    assert ("s3cret" in str(refused.value)) == (address == "s3cret")
