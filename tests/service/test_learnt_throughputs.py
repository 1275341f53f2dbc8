"""The service learns how fast job types are from what their jobs report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.service.bench import SITE, Bench, LiveService, until

from eunomia.backends.reports import GangEnded, Launched, StepsSaved
from eunomia.service import living_state
from eunomia.throughputs import load

MEASURED = SITE + '[belief]\nkind = "measured"\nmeasure_s = 10\n'


def rates(bench: Bench) -> dict[str, tuple[float, str]]:
    rows = living_state.throughputs(bench.controller)
    return {row["job_type"]: (row["steps_per_s"], row["origin"]) for row in rows}


def report(bench: Bench, at: float, job: str, steps: float) -> None:
    bench.clock.at = at
    bench.do(StepsSaved(job, bench.controller.rows[job].epoch, steps))


def test_reports_of_a_job_change_what_is_believed_of_its_type_and_a_restart_keeps_that(tmp_path: Path) -> None:
    bench = Bench(tmp_path, MEASURED)
    first = bench.submit(job_type="resnet", total_steps=1e6).body["id"]
    other = bench.submit(total_steps=1e6).body["id"]
    for job in (first, other):
        bench.do(Launched(job, 1))
    for at, steps in ((5.0, 10.0), (12.0, 24.0), (25.0, 50.0)):
        report(bench, at, first, steps)
        report(bench, at, other, 7 * steps)
    assert rates(bench) == {
        "resnet": (2.0, "measured")
    }  # (50 − 10) steps in 20 s; a job without a type teaches nothing
    scheduler = bench.controller.scheduler
    assert scheduler.belief.throughput[scheduler.state.row_of[first], 0] == 2.0
    assert scheduler.belief.throughput[scheduler.state.row_of[other], 0] == 1.0
    said = living_state.why(bench.controller, bench.controller.rows[first], 0.0)["speed"]
    assert said == "it runs at 2 steps/s on cpu, measured over 20 s"
    assert "speed" not in living_state.why(bench.controller, bench.controller.rows[other], 0.0)
    bench.restart()
    assert rates(bench) == {"resnet": (2.0, "measured")}
    report(bench, 30.0, first, 62.0)
    report(bench, 50.0, first, 122.0)  # 3 steps/s from now on: the average of both
    assert rates(bench) == {"resnet": (2.5, "measured")}
    later = bench.submit(job_type="resnet", duration_s=100.0).body["id"]
    assert bench.controller.rows[later].total_steps == 250.0  # at the speed that was learnt


def test_a_type_on_which_all_starts_failed_is_named_by_why_and_a_restart_does_not_try_it_anew(tmp_path: Path) -> None:
    bench = Bench(tmp_path, MEASURED.replace("cpu = 2", "a100 = 1, k80 = 1") + "explore = 0.5\n")
    jobs = [bench.submit(job_type="resnet", total_steps=1e6).body["id"] for _ in range(9)]
    given_up = "not tried any more after 3 starts without progress"

    def speed(job: str) -> str:
        return str(living_state.why(bench.controller, bench.controller.rows[job], bench.clock.at)["speed"])

    assert "on a100, to be tried at the upper end of its interval" in speed(jobs[-1])
    for job in jobs[:-1]:
        row = bench.controller.rows[job]
        if row.state == "starting":
            bench.do(Launched(job, row.epoch))
            bench.do(GangEnded(job, row.epoch, "failed", "no driver"))
    said = speed(jobs[-1])
    assert said == f"it runs at 1 steps/s on a100, estimated, {given_up}; 1 on k80, estimated, {given_up}"
    bench.restart()
    assert speed(jobs[-1]) == said
    bench.submit(job_type="resnet", total_steps=1e6)  # worth a trial, if one were still to be made
    assert speed(jobs[-1]) == said


def test_a_job_that_is_refused_leaves_no_job_type_among_those_that_are_learnt(tmp_path: Path) -> None:
    bench = Bench(tmp_path, MEASURED)
    bench.submit(job_type="resnet", total_steps=1e6)
    assert bench.submit(job_type="bert", accelerators=99).status == 422
    assert bench.submit(job_type="resnet", accelerators=99).status == 422
    rows = living_state.throughputs(bench.controller)
    assert [(row["job_type"], row["scale_factor"]) for row in rows] == [("resnet", 1)]


def test_a_service_that_is_not_asked_to_learns_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    job = bench.submit(job_type="resnet", total_steps=1e6).body["id"]
    bench.do(Launched(job, 1))
    report(bench, 5.0, job, 10.0)
    report(bench, 500.0, job, 5000.0)
    assert rates(bench) == {} and not bench.controller.scheduler.belief.learnt


SCRIPT = """
import sys, time
from eunomia.lease import Lease
with Lease() as lease:
    state = lease.load({"step": 0})
    begun = time.monotonic()
    for step in lease.steps(10_000, start=state["step"]):
        time.sleep(max(begun + (step + 1) / float(sys.argv[1]) - time.monotonic(), 0))
        lease.progress(step + 1)
"""


@pytest.mark.slow
def test_the_service_learns_three_job_types_from_real_processes(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    (tmp_path / "train.py").write_text(SCRIPT)
    site = MEASURED.replace("measure_s = 10", "measure_s = 3").replace("cpu = 2", "cpu = 3")
    service = LiveService(tmp_path, site)
    try:
        service.start()
        ann = service.client("ann", "vision")
        speeds = {"resnet": 4.0, "bert": 8.0, "a3c": 16.0}
        for name, speed in speeds.items():
            command = [sys.executable, str(tmp_path / "train.py"), str(speed)]
            ann.submit({"command": command, "job_type": name, "total_steps": 10_000})

        def measured() -> dict[str, float]:
            rows = ann.get("/v1/throughputs")["throughputs"]
            return {row["job_type"]: row["steps_per_s"] for row in rows if row["origin"] == "measured"}

        found = until(lambda: len(rates := measured()) == 3 and rates)
        assert found.keys() == speeds.keys()
        for name, speed in speeds.items():
            assert speed / 1.5 < found[name] < speed * 1.5
        answers = service.operator.address.url, service.operator.address.token
        command = [sys.executable, "-m", "eunomia", "throughputs", "--out", str(tmp_path / "learnt.csv")]
        shown = subprocess.run(
            command, env={**os.environ, "EUNOMIA_URL": answers[0], "EUNOMIA_TOKEN": answers[1]},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert "bert" in shown.stdout and "measured" in shown.stdout
        table = load(str(tmp_path / "learnt.csv"), ["cpu"])
        assert {name: float(table.solo_throughput(name, 1)[0]) for name in speeds}.keys() == speeds.keys()
        assert not table.estimated("bert", 1).any()
    finally:
        if service.process is not None and service.process.poll() is None:
            service.kill(15)
        service.stop_jobs()
