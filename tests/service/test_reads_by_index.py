"""No route and no page looks through a table that grows with the history."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from tests.service.bench import ANN, BOB, SITE, Bench
from tests.service.test_controller import launched
from tests.service.test_event_loop import asked, served
from tests.service.test_removal import forecast, history

from eunomia.backends.reports import GangEnded
from eunomia.service import living_state
from eunomia.service.forecast_log import ForecastReader, ForecastScores
from eunomia.service.http.api import application
from eunomia.service.http.dashboard import page_routes
from eunomia.service.http.routes import ROUTES
from eunomia.service.store.reader import Reader
from eunomia.service.store.removal_reader import RemovalReader

GROWING = ("jobs", "news", "moments", "keys", "labels", "forecasts", "audit", "ended_hours", "tenant_hours",
           "usage_hours")  # fmt: skip
QUERIES = {
    "/v1/jobs": (
        "", "?state=pending,running,succeeded", "?state=failed&tenant=vision", "?tenant=vision", "?label=n=1",
        "?label=n=1&state=pending&tenant=vision", "?cursor=5&limit=3", "?state=failed&tenant=vision&cursor=5",
    ),
    "/v1/summary": ("", "?days=1", "?days=3650"),
    "/v1/usage": ("", "?from=2020-01-01&by=user,month", "?by=tenant,type,hour"),
    "/v1/audit": ("", "?user=ann&limit=2", "?cursor=3", "?after=2", "?from=2020-01-01"),
    "/v1/decisions": ("", "?at=2030-01-01T00:00:00Z"),
    "/v1/tenants": ("", "?days=30"),
    "/jobs": ("", "?state=pending"),
}  # fmt: skip


class TracingReader(RemovalReader, ForecastReader):
    """A reader of a file that notes its statements."""

    def __init__(self, place: Any, statements: set[str]) -> None:
        super().__init__(place)
        self._statements = statements

    def _connect(self) -> Any:
        db: Any = super()._connect()
        db.set_trace_callback(self._statements.add)
        return db


def scans(db: sqlite3.Connection, text: str) -> list[str]:
    """Return in which steps a statement looks through one of the tables, or sorts what it found there.

    One that takes the first rows of a table as they lie looks at no more than it shows.
    """
    names = {alias: table for table, alias in re.findall(r"\b(?:FROM|JOIN) (\w+)(?: (\w))?\b", text)}
    mine = {name for alias, table in names.items() if table in GROWING for name in (alias, table)}
    plan = [str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {text}").fetchall()]
    takes_first = re.search(r"WHERE 1 = 1 ORDER BY|FROM forecasts f JOIN jobs j ON .* ORDER BY f.number DESC", text)
    found = [step for step in plan if step.startswith("SCAN") and step.split()[1] in mine]
    found = [] if takes_first and "LIMIT" in text else found
    return found + [step for step in plan if mine and "TEMP B-TREE FOR ORDER BY" in step]


def test_the_check_of_scans_finds_them(bench: Bench) -> None:
    db = sqlite3.connect(bench.site.state / "store.db")
    for wrong in (
        "SELECT state, count(*) FROM jobs GROUP BY state",
        "SELECT seq FROM news WHERE kind = 'submitted'",
        "SELECT id FROM jobs j WHERE j.job_type = 'x' ORDER BY number LIMIT 5",
        "SELECT id FROM jobs WHERE state IN ('held', 'pending') ORDER BY number DESC LIMIT 5",
    ):
        assert scans(db, wrong), wrong
    assert not scans(db, "SELECT id FROM jobs WHERE state = 'held' ORDER BY number DESC LIMIT 5")
    db.close()


def test_pages_of_nodes_are_all_nodes_and_others_jobs_are_not_in_them(tmp_path: Path) -> None:
    site = SITE.replace("{ cpu = 2 }", "{ cpu = 450 }").replace("[policy]", "accelerators_per_node = 1\n[policy]")
    bench = Bench(tmp_path, site)
    jobs = {who: bench.submit(who, accelerators=150).body["id"] for who in (ANN, BOB)}

    async def run() -> None:
        service, token = served(bench)
        app = application(service, ROUTES, page_routes(service))

        async def nodes(path: str) -> dict[str, Any]:
            code, body = await asyncio.wait_for(asked(app, path, token), 120)
            assert code == 200
            return dict(json.loads(body))

        every = await nodes("/v1/nodes")
        assert len(every["nodes"]) == 450 and every["next"] is None
        assert Counter(name for one in every["nodes"] for name in one["jobs"]) == dict.fromkeys(jobs.values(), 150)
        pages, cursor = list[Any](), ""
        while cursor is not None:
            page = await nodes(f"/v1/nodes?limit=200&cursor={cursor}")
            pages, cursor = pages + page["nodes"], page["next"]
        assert pages == every["nodes"]
        assert (await nodes("/v1/nodes?limit=5&cursor=450"))["nodes"] == []
        assert (await asyncio.wait_for(asked(app, "/v1/nodes?limit=x", token), 120))[0] == 400
        _, shown = await asyncio.wait_for(asked(app, "/nodes", token), 120)
        assert shown.count(b"cpu-1") and b"/nodes?cursor=200" in shown and b"cpu-300" not in shown
        service.forecasts.close()
        service.feed.close()

    asyncio.run(run())
    seen = living_state.nodes(bench.controller, may_see=ANN.may_see)
    assert {name for one in seen for name in one["jobs"]} == {jobs[ANN]}
    bench.store.close()


def test_a_job_that_ends_while_the_summary_is_read_is_counted_once(bench: Bench) -> None:
    job = bench.submit(duration_s=60.0).body["id"]
    launched(bench)

    class LateReader(Reader):
        """A reader before whose sums the job ends."""

        def ended_since(self, *args: Any) -> Any:
            bench.do(GangEnded(job, 1, "finished"))
            return super().ended_since(*args)

    async def run() -> list[dict[str, Any]]:
        service, token = served(bench)
        found = []
        for reader in (LateReader(bench.site.place), Reader(bench.site.place)):
            service.reader = reader
            _, body = await asyncio.wait_for(asked(application(service, ROUTES, []), "/v1/summary", token), 120)
            found.append(json.loads(body)["users"])
        service.forecasts.close()
        service.feed.close()
        return [sum(one["jobs"].values()) for users in found for one in users]

    assert asyncio.run(run()) == [1, 1] and bench.state(job) == "succeeded"


def test_no_route_and_no_page_looks_through_a_table_that_grows(bench: Bench) -> None:
    history(bench, 1)
    jobs = [bench.submit(labels={"n": "1"}).body["id"], bench.submit(accelerators=2).body["id"]]
    forecast(bench, jobs[0])
    statements: set[str] = set()

    async def run() -> None:
        service, token = served(bench)
        service.reader = TracingReader(bench.site.place, statements)
        service.scores = ForecastScores(TracingReader(bench.site.place, statements))
        pages = page_routes(service)
        app = application(service, ROUTES, pages)
        paths = [route.path for route in ROUTES if route.method == "GET"]
        paths += [route.path for route in pages if "GET" in (route.methods or ())]
        for path in sorted(set(paths) - {"/v1/events", "/v1/jobs/{id}/session"}):
            for each in {path.replace("{id}", job) for job in jobs}:
                for query in QUERIES.get(path, ("?played=0",)):
                    code, body = await asyncio.wait_for(asked(app, f"{each}{query}", token), 120)
                    assert code == 200, (each, query, code, body[:300])
        service.reader.news(3)
        service.reader.ended_since(5000.0)
        reader: Any = service.reader
        reader.ended(0.0, 1e9, 10, (5000.0, 3))
        reader.known(jobs)
        service.forecasts.close()
        service.feed.close()

    asyncio.run(run())
    db = sqlite3.connect(bench.site.state / "store.db")
    found = {text: steps for text in sorted(statements) if text.startswith("SELECT") and (steps := scans(db, text))}
    db.close()
    assert len(statements) > 30 and not found
