"""What users used: the sums by hour agree with the log of moments, whatever happens; calendar periods and roles."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sqlite3
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from tests.service import simulated
from tests.service.bench import ADMIN, ANN, BOB, SITE, Bench
from tests.service.simulated import simulate
from tests.service.test_controller import launched
from tests.service.test_event_loop import asked, served
from tests.service.test_removal import removal
from tests.service.test_stores import site_on

from eunomia.backends.reports import EnergyUsed, GangEnded
from eunomia.service import usage
from eunomia.service.calendar_periods import read_span
from eunomia.service.credentials import TokenRegistry, new_token, write_tokens
from eunomia.service.http.api import application
from eunomia.service.http.routes import ROUTES
from eunomia.service.job_document import InvalidRequest
from eunomia.service.job_row import JobRow
from eunomia.service.messages import Principal
from eunomia.service.store import usage_sums
from eunomia.service.usage import NAMES, hour_at, hours_between

BERLIN = ZoneInfo("Europe/Berlin")
ENDING = {"JobFinished", "JobFailed", "JobPaused", "JobCancelled"}


def spans_of(db: sqlite3.Connection) -> list[tuple[str, int, float, float]]:
    """Return from the log of moments alone: job, first seat, from, to, once a seat that was held."""
    since: dict[str, tuple[float, list[int]]] = {}
    found = list[tuple[str, int, float, float]]()

    def close(job: str, at: float) -> None:
        begun, seats = since.pop(job, (at, []))
        found.extend((job, seat, begun, at) for seat in seats)

    for at, lines in db.execute("SELECT at, lines FROM moments ORDER BY seq").fetchall():
        first, *decisions = map(json.loads, lines.splitlines())
        for event in first["events"]:
            if event["is"] in ENDING:
                close(event["job_id"], at)
        for decision in (one["decision"] for one in decisions):
            if decision["is"] == "Stop":
                for job in decision["job_ids"]:
                    close(job, at)
            elif decision["is"] in ("Start", "Starts"):
                for job in [decision["job_id"]] if "job_id" in decision else decision["job_ids"]:
                    since[job] = at, decision["seats"]
    assert not since
    return found


def stored_usage(db: Any) -> dict[tuple[int, str, str, str], dict[str, float]]:
    text = f'SELECT hour, tenant, "user", type, {", ".join(NAMES)} FROM usage_hours'
    return {tuple(key): dict(zip(NAMES, sums, strict=True)) for *key, sums in
            ((*row[:4], row[4:]) for row in db.execute(text).fetchall())}  # fmt: skip


def expected(db: sqlite3.Connection, types: list[str], zone: Any) -> dict[tuple[int, str, str, str], dict[str, float]]:
    """Return the same, added up from moments, events and the rows of ended jobs."""
    origin = float(db.execute("SELECT value FROM meta WHERE key = 'origin'").fetchone()[0])
    rows = {row.id: row for (body,) in db.execute("SELECT body FROM jobs") for row in [JobRow.of(body)]}
    sums: defaultdict[tuple[int, str, str, str], dict[str, float]] = defaultdict(lambda: dict.fromkeys(NAMES, 0.0))
    last: dict[str, str] = {}
    began: dict[tuple[str, float], str] = {}
    for job, seat, begin, end in spans_of(db):
        row, last[job] = rows[job], types[seat]
        began[job, begin] = types[seat]
        at = origin + begin
        while at < origin + end:  # a second way to find the borders: by the clocks of the zone
            local = datetime.fromtimestamp(at + 1e-6, zone)
            hour = round(at - local.minute * 60 - local.second - local.microsecond / 1e6)
            until = min(hour + usage.HOUR_S, origin + end)
            sums[hour, row.tenant, row.owner, types[seat]]["accelerator_s"] += until - at
            at = until
    for row in rows.values():
        ends = {"succeeded": "succeeded", "failed": "failed", "cancelled": "cancelled"}.get(row.state, "refused")
        at = origin + row.ended
        local = datetime.fromtimestamp(at, zone)
        hour = round(at - local.minute * 60 - local.second - local.microsecond / 1e6)
        sums[hour, row.tenant, row.owner, last.get(row.id, "")][ends] += 1
    return sums


@pytest.mark.parametrize("seed", range(8))
def test_the_sums_are_those_of_the_log_to_the_second_whatever_fails(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = ("UTC", "Asia/Kolkata", "Europe/Berlin")[seed % 3]
    text = simulated.SITE.replace("[service]", f'[service]\ntime_zone = "{zone}"')
    monkeypatch.setattr(simulated, "SITE", text)
    found = simulate(tmp_path, seed, 150)
    db = sqlite3.connect(found.bench.site.state / "store.db")
    stored, truth = stored_usage(db), expected(db, list(found.bench.controller.device_types), ZoneInfo(zone))
    for name in ("accelerator_s", "succeeded", "failed", "cancelled", "refused"):
        keys = {key for key, one in (*stored.items(), *truth.items()) if one[name]}
        for key in keys:
            assert stored[key][name] == pytest.approx(truth[key][name], abs=1e-3), (name, key)
    rows = [JobRow.of(body) for (body,) in db.execute("SELECT body FROM jobs")]
    started = [row for row in rows if row.first_started == row.first_started]
    assert sum(one["starts"] for one in stored.values()) == len(started)
    waited = sum(row.first_started - row.submitted for row in started)
    assert sum(one["wait_s"] for one in stored.values()) == pytest.approx(waited, abs=1e-3)
    assert sum(one["failures"] for one in stored.values()) == sum(row.failures for row in rows)
    lost = sum(row.lost_s * row.spec.get("accelerators", 1) for row in rows)
    assert sum(one["lost_s"] for one in stored.values()) == pytest.approx(lost, abs=1e-3)
    db.close()


def total(bench: Bench, name: str) -> float:
    return sum(one[name] for one in stored_usage(bench.store._db).values())


def end(bench: Bench, job: str, outcome: str = "finished") -> None:
    row = bench.controller.rows[job]
    bench.do(GangEnded(job, row.epoch, outcome))


@pytest.fixture(params=["sqlite", "postgres"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    found = Bench(tmp_path, site_on(request))
    yield found
    found.store.close()


def test_sums_stay_when_the_jobs_are_removed_and_a_restart_loses_and_doubles_nothing(stored: Bench) -> None:
    bench, held, job = stored, 0.0, ""
    for day in range(120):
        job = bench.submit(accelerators=1 + day % 2, duration_s=60).body["id"]
        launched(bench)
        bench.clock.at += 5000.0
        held += 5000.0 * (1 + day % 2)
        if day % 3 == 0:
            bench.restart()
            bench.do()
        end(bench, job)
        bench.clock.at += 81_400.0
    before = stored_usage(bench.store._db)
    sweep = removal(bench)
    assert dict(sweep.sweep())["ended jobs"] > 0
    sweep.reader.close()
    assert stored_usage(bench.store._db) == before
    assert total(bench, "accelerator_s") == pytest.approx(held, abs=1e-3)
    assert total(bench, "succeeded") == 120


def test_gangs_that_run_are_added_up_by_the_hour_and_what_is_shown_has_the_rest(bench: Bench) -> None:
    bench.submit(accelerators=2)
    launched(bench)
    shown = []
    for _ in range(30):
        bench.clock.at += 1000.0
        bench.do()
        extra = usage.running(
            bench.controller.rows.values(), bench.controller.usage.counted, bench.clock.at, bench.writer.origin, UTC
        )
        shown.append(total(bench, "accelerator_s") + sum(sums.accelerator_s for _, sums in extra))
        if len(shown) % 7 == 0:
            bench.restart()
    assert shown == pytest.approx([2000.0 * n for n in range(1, 31)])
    assert total(bench, "accelerator_s") >= 2 * (30_000 - 3600)  # the last whole hour is stored


def test_a_changed_site_goes_on_counting_and_another_type_begins_anew(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    job = bench.submit(accelerators=2).body["id"]
    launched(bench)
    bench.clock.at = 100.0
    bench.do()
    bench.restart(SITE.replace("quantum = 60", "quantum = 90"))
    bench.clock.at = 150.0
    bench.restart(SITE.replace("cpu = 2", "epyc = 2").replace("quantum = 60", "quantum = 90"))
    assert bench.state(job) == "running"
    bench.clock.at = 300.0
    end(bench, job)
    by_type = {key[3]: one["accelerator_s"] for key, one in stored_usage(bench.store._db).items()}
    assert by_type == {"cpu": pytest.approx(200.0), "epyc": pytest.approx(400.0)}  # the first restart's clock is 100 s
    bench.store.close()


def test_energy_is_counted_where_it_was_measured(bench: Bench) -> None:
    job = bench.submit(accelerators=2).body["id"]
    launched(bench)
    bench.do(EnergyUsed(job, 1, 7.2e6, 60.0), EnergyUsed(job, 0, 1e9, 1.0), EnergyUsed("9-none", 1, 1e9, 1.0))
    bench.do(EnergyUsed(job, 1, 3.6e6, 60.0))
    assert total(bench, "energy_j") == 1.08e7 and total(bench, "metered_s") == 120.0


# ---- calendar --------------------------------------------------------------------------------------------------------


def test_hours_begin_by_the_clocks_of_the_zone() -> None:
    at = datetime(2026, 10, 1, 12, 0, tzinfo=UTC).timestamp()
    assert hour_at(at + 5, UTC) == at and hour_at(at + 5, ZoneInfo("Asia/Kolkata")) == at - 1800
    parts = list(hours_between(at + 600, at + 9000, UTC))
    assert parts == [(at, 3000.0), (at + 3600, 3600.0), (at + 7200, 1800.0)]


def test_months_days_and_weeks_are_those_of_the_zone_also_where_its_clocks_change() -> None:
    now = datetime(2026, 10, 25, 12, tzinfo=UTC).timestamp()
    month = read_span("2026-10-01", "2026-11-01", "month", BERLIN, now)
    assert [(b - a) / 3600 for a, b in month.periods()] == [31 * 24 + 1]
    days = read_span("2026-10-24", "2026-10-27", "day", BERLIN, now).periods()
    assert [(b - a) / 3600 for a, b in days] == [24, 25, 24]
    assert len(read_span("2026-10-25", "2026-10-26", "hour", BERLIN, now).periods()) == 25
    weeks = read_span("2026-10-01", "2026-10-20", "week", BERLIN, now)
    assert [weeks.shown(a)[:10] for a, _ in weeks.periods()] == ["2026-10-01", "2026-10-05", "2026-10-12", "2026-10-19"]
    months = read_span("2025-12-15", "2026-02-03", "month", BERLIN, now)
    assert [months.shown(a)[:10] for a, _ in months.periods()] == ["2025-12-15", "2026-01-01", "2026-02-01"]
    present = read_span(None, None, "", BERLIN, now)
    assert (present.shown(present.begin)[:10], present.end) == ("2026-10-01", now + 3600)


@pytest.mark.parametrize(
    ("begin", "end", "unit", "field", "rule"),
    [("soon", None, "", "from", "is a date"), ("2026-10-02", "2026-10-01", "", "to", "ends before"),
     ("2026-10-01T08:30", None, "", "from", "by the hour"), ("1990-01-01", "2026-01-01", "", "from", "at most 3,660"),
     ("2020-01-01", "2026-01-01", "hour", "by", "10,000 periods"),
     ("9999-12-31", "0001-01-01", "", "to", "ends before"),
     ("2026-10-01T00:00:00+99:00", None, "", "from", "is a date"), ("1" * 5000, None, "", "from", "is a date")],
)  # fmt: skip
def test_a_span_that_cannot_be_counted_is_refused_by_its_field(
    begin: str, end: str | None, unit: str, field: str, rule: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_span(begin, end, unit, UTC, datetime(2026, 10, 25, 12, tzinfo=UTC).timestamp())
    assert caught.value.problems[0].field == field
    assert rule in caught.value.problems[0].rule


# ---- the route -------------------------------------------------------------------------------------------------------


def answers(bench: Bench, *questions: tuple[Principal, str]) -> list[Any]:
    """Return what the route answers to principals."""
    found = list[Any]()

    async def run() -> None:
        service, _ = served(bench)
        app = application(service, ROUTES)
        for who, query in questions:
            token, text = new_token(who.user, who.tenant, who.role, 0.0)
            with bench.store.transaction() as db:
                write_tokens(db, [token])
            service.tokens = TokenRegistry(bench.store.tokens())
            code, body = await asyncio.wait_for(asked(app, f"/v1/usage{query}", text), 120)
            found.append(json.loads(body) if body.startswith(b"{") else body.decode())
            assert code == (200 if "problems" not in found[-1] else found[-1]["status"])
        service.forecasts.close()
        service.feed.close()
        service.reader.close()

    asyncio.run(run())
    return found


def used(bench: Bench) -> None:
    """Let three users of two tenants use accelerators on two days; one job runs on."""
    for who in (ANN, ADMIN, BOB):
        job = bench.submit(who, accelerators=1, duration_s=60).body["id"]
        launched(bench)
        bench.clock.at += 3600.0
        end(bench, job)
    bench.clock.at += 86_400.0
    bench.submit(ANN, accelerators=2)
    launched(bench)
    bench.clock.at += 1800.0


OPERATOR = Principal("op", "operators", "operator")


def test_users_see_their_own_an_administrator_the_tenants_and_an_operator_all(bench: Bench) -> None:
    used(bench)
    begin = datetime.fromtimestamp(bench.writer.origin, UTC).date().isoformat()
    query = f"?from={begin}"
    reader = Principal("ann", "vision", "viewer")
    ann, eve, bob, op, viewer = answers(bench, *((who, query) for who in (ANN, ADMIN, BOB, OPERATOR, reader)))
    rows = [[(one["tenant"], one["user"], one["type"], round(one["accelerator_hours"], 3)) for one in found["usage"]]
            for found in (ann, eve, bob, op)]  # fmt: skip
    assert rows[0] == [("vision", "ann", "cpu", 2.0)]
    assert rows[1] == [("vision", "ann", "cpu", 2.0), ("vision", "eve", "cpu", 1.0)]
    assert rows[2] == [("speech", "bob", "cpu", 1.0)]
    assert rows[3] == [*rows[2], *rows[1]]
    assert viewer["usage"] == ann["usage"]
    assert round(op["total"]["accelerator_hours"], 3) == 4.0 and op["total"]["succeeded"] == 3
    assert op["total"]["energy_kwh"] is None and op["exact_from"] is None and op["next"] is None


def test_pages_have_whole_periods_and_together_they_are_all(bench: Bench) -> None:
    used(bench)
    begin = datetime.fromtimestamp(bench.writer.origin, UTC).date().isoformat()
    (every,) = answers(bench, (OPERATOR, f"?from={begin}&by=user,day"))
    assert [one["user"] for one in every["usage"]][-1] == "ann" and set(every["usage"][0]) >= {"begins_at", "user"}
    assert "tenant" not in every["usage"][0]
    rows, cursor = list[Any](), ""
    while cursor is not None:
        (page,) = answers(bench, (OPERATOR, f"?from={begin}&by=user,day&limit=1&cursor={cursor}"))
        rows, cursor = rows + page["usage"], page["next"]
    assert rows == every["usage"]
    hours = answers(bench, (OPERATOR, f"?from={begin}&by=hour"))[0]["usage"]
    assert sum(one["accelerator_hours"] for one in hours) == pytest.approx(every["total"]["accelerator_hours"])
    assert all(one["accelerator_hours"] <= 2.0 for one in hours)


def test_csv_has_the_same_rows_and_wrong_parameters_are_named(bench: Bench) -> None:
    used(bench)
    begin = datetime.fromtimestamp(bench.writer.origin, UTC).date().isoformat()
    table, by, kind, span = answers(
        bench, (OPERATOR, f"?from={begin}&format=csv"), (ANN, "?by=user,colour"), (ANN, "?format=xls"),
        (ANN, "?from=soon&to=late"),
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [(row["user"], row["succeeded"]) for row in rows] == [("bob", "1"), ("ann", "1"), ("eve", "1")]
    assert by["problems"][0]["field"] == "by" and kind["problems"][0]["field"] == "format"
    assert [one["field"] for one in span["problems"]] == ["from", "to"]


# ---- a store of an earlier version -----------------------------------------------------------------------------------


def test_a_store_of_before_has_its_jobs_added_up_once_and_says_from_when_on_it_is_exact(stored: Bench) -> None:
    bench = stored
    used(bench)
    bench.do()
    now = bench.controller.at
    with bench.store.transaction() as db:  # as an earlier version left it
        before = stored_usage(db)
        db.execute("DELETE FROM usage_hours")
        db.execute("DELETE FROM meta WHERE key IN (?, ?)", usage_sums.FACTS)
        for number, body in db.execute("SELECT number, body FROM jobs").fetchall():
            row = JobRow.of(body)
            row.held, row.held_type = (), ""
            db.execute("UPDATE jobs SET body = ? WHERE number = ?", (row.body(), number))
        usage_sums.sum_up_usage(db)
        after = stored_usage(db)
    sums = {name: sum(one[name] for one in after.values()) for name in NAMES}
    assert sums["accelerator_s"] == pytest.approx(4 * 3600.0) and sums["succeeded"] == 3 and sums["starts"] == 4
    assert {key[3] for key in after} == {"cpu"}
    kept = {key: one["succeeded"] for key, one in before.items() if one["succeeded"]}
    assert {key: one["succeeded"] for key, one in after.items() if one["succeeded"]} == kept
    assert bench.store.number(usage_sums.EXACT) == now
    bench.restart()
    bench.clock.at += 7200.0
    bench.do()
    (job,) = bench.controller.rows
    end(bench, job)
    assert total(bench, "accelerator_s") == pytest.approx(4 * 3600.0 + 2 * 7200.0)
    (found,) = answers(bench, (OPERATOR, "?from=2020-01-01"))
    assert found["exact_from"] is not None
