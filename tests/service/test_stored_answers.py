"""What a stored answer takes, and that a restart shows of it what was shown before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.bench import Bench

from eunomia.backends.reports import GangEnded, Launched, OrderTaken
from eunomia.core.answer_rows import PendingAsk
from eunomia.model.decisions import Ask
from eunomia.model.events import Answered, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.policies import POLICIES
from eunomia.records.moment_log import MomentLog
from eunomia.records.packed_objects import pack, unpack
from eunomia.records.record import Record, moment_line
from eunomia.records.replay import first_difference
from eunomia.records.scheduler_digest import digest
from eunomia.service.living_state import why
from eunomia.service.messages import Launch
from eunomia.service.site import load_site
from eunomia.service.store.backup import export
from eunomia.service.store.reader import Reader

SITE = """\
[service]
made_up = true
listen = "127.0.0.1:0"
submit_per_second = 10000
[cluster]
accelerators = { v100 = 4, p100 = 4, k80 = 4 }
accelerators_per_node = 4
[policy]
"""
WAITING = 2000
FEWER = {"strategy_proof": 100, "allox": 300, "makespan": 200, "finish_time_fairness": 200}  # as they decide slowly
MOST_BYTES = 10_000


def asked_about(policy: str, jobs: int, folder: Path) -> tuple[Any, Ask]:
    """Return a policy and what it is asked when so many jobs have been submitted."""
    path = folder / "site.toml"
    path.write_text(f'{SITE}name = "{policy}"\n')
    setup = load_site(path).setup
    submitted = [
        Job(job_id=f"job-{i}", sequence=i, total_steps=1000.0 + i % 97, scale_factor=(1, 1, 2, 4)[i % 4],
            job_type="x", tenant=f"team-{i % 10}", app=f"app-{i % 50}", deadline=1e6 + i)
        for i in range(jobs)
    ]  # fmt: skip
    scheduler, moment = setup.scheduler(), Moment.of(0.0, tuple(map(JobSubmitted, submitted)))
    while True:
        for decision in scheduler.handle(moment):
            if isinstance(decision, Ask):
                return setup.policy, decision
        moment = Moment(scheduler.mechanism.timer, ())


@pytest.mark.parametrize("policy", list(POLICIES))
def test_where_nothing_changed_an_answer_takes_little_and_is_read_as_it_was(policy: str, tmp_path: Path) -> None:
    decides, ask = asked_about(policy, FEWER.get(policy, WAITING), tmp_path)
    view, log, reader, rows = ask.view, MomentLog(), MomentLog(), np.arange(ask.view.jobs)
    for asked in range(2):
        answer = unpack(pack(decides.decide(unpack(pack(view)))))  # as its process gets it and gives it
        moment = Moment(view.at, (Answered(asked, answer),))
        lines = log.lines(moment, (), PendingAsk(asked, rows))
        (found,) = reader.read(lines).events
        assert isinstance(found, Answered) and dict(found.answer.why) == dict(answer.why)
        plain = Moment(view.at, (Answered(asked, replace(answer, why={}, late=tuple(answer.late))),))
        read = Moment(view.at, (replace(found, answer=replace(found.answer, why={})),))
        assert moment_line(read) == moment_line(plain)
        view = replace(view, at=view.at + 60, seed=(view.seed[0], asked + 1), memory={**view.memory, **answer.memory})
    assert len(lines) <= MOST_BYTES


def launch(bench: Bench) -> None:
    for order in [order for order in bench.orders if isinstance(order, Launch)]:
        bench.do(OrderTaken(order.number), Launched(order.job_id, order.epoch))


def shown(bench: Bench) -> list[Any]:
    """Return what users see of the state and of the last decisions."""
    controller, reader = bench.controller, Reader(bench.site.place)
    decisions = reader.decisions(100)
    reader.close()
    reasons = [why(controller, row, 0.0) for row in sorted(controller.rows.values(), key=lambda row: row.number)]
    return [reasons, decisions, digest(controller.scheduler), repr(controller.scheduler.certificate)]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> str:
    return "" if request.param == "sqlite" else f'database = "{request.getfixturevalue("database")}"\n'


@pytest.mark.parametrize("policy", ["max_min_fairness", "themis", "kueue_fair_share", "quotas", "las", "edf"])
def test_a_restart_shows_the_same_reasons_shares_and_decisions(policy: str, place: str, tmp_path: Path) -> None:
    site = SITE.replace("[cluster]", f"{place}[cluster]")
    bench = Bench(tmp_path, f'{site}name = "{policy}"\n')
    try:
        for number in range(36):
            bench.clock.at += 50.0
            if number % 3 == 2:
                runs = [row for row in bench.controller.rows.values() if row.state == "running"]
                bench.do(*(GangEnded(row.id, row.epoch, "finished") for row in runs[:1]))
            else:
                bench.submit(accelerators=1 + number % 3, duration_s=400.0 + number, deadline_s=900.0)
            launch(bench)
            if number in (12, 24):
                before = shown(bench)
                bench.writer.snapshot()
                bench.restart()
                assert shown(bench) == before
        before = shown(bench)
        bench.restart()
        assert shown(bench) == before and "after" in "".join(lines for _, lines, _ in bench.store.moments())
    finally:
        bench.store.close()
    export(bench.site, tmp_path / "record.jsonl.gz")
    assert first_difference(Record(tmp_path / "record.jsonl.gz")) is None
