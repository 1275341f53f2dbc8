"""Scripts that cannot save: they are not preempted, what stops cost them is counted, and those in vain are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import ANN, BOB, SITE, Bench
from typer.testing import CliRunner

from eunomia.backends.reports import GangEnded, Launched, StepsSaved
from eunomia.cli.app import app
from eunomia.records.scheduler_digest import digest
from eunomia.service import living_state
from eunomia.service.forecast_answers import ForecastAnswers
from eunomia.service.messages import Halt
from eunomia.service.pages import render
from eunomia.service.site import load_site, plan
from eunomia.service.starter_site import starter_site
from eunomia.service.store.reader import Reader

ONE = SITE.replace("{ cpu = 2 }", "{ cpu = 1 }").replace("quantum = 60", "quantum = 20")
ROUNDS = ONE.replace('"las"\nquantum = 20', '"max_min_fairness"')
PLAIN = {"interruptible": None}  # as people submit scripts


def halted(bench: Bench) -> list[str]:
    return [order.job_id for order in bench.orders if isinstance(order, Halt)]


def why(bench: Bench, job: str) -> dict[str, Any]:
    return living_state.why(bench.controller, bench.controller.rows[job], 0.0)


@pytest.mark.parametrize("text", [ONE, ROUNDS], ids=["las", "rounds"])
def test_three_plain_scripts_on_one_seat_each_run_to_their_end(tmp_path: Path, text: str) -> None:
    bench = Bench(tmp_path, text)
    jobs = [bench.submit(who, duration_s=60, **PLAIN).body["id"] for who in (ANN, BOB, ANN)]
    done: list[str] = []
    for at in range(0, 400, 5):
        bench.clock.at = float(at)
        bench.do()
        assert halted(bench) == []
        for job in set(jobs) - set(done):
            row = bench.controller.rows[job]
            if row.state == "starting":
                bench.do(Launched(job, 1))
            elif row.state == "running" and at >= row.started + 60:
                bench.do(GangEnded(job, 1, "finished"))
                done.append(job)
    assert done == jobs


@pytest.mark.parametrize(
    ("document", "reports", "is_preempted"),
    [
        ({}, (), False),
        ({"interruptible": True}, (), True),
        ({"checkpoint": {"grace_s": 30}}, (), True),  # it says how it is to be asked to save
        ({}, (StepsSaved("", 1, 0.0),), True),  # it has opened a lease
        ({}, (StepsSaved("", 1, 7.0),), True),
        ({"interruptible": False}, (StepsSaved("", 1, 7.0),), False),
    ],
)
def test_a_job_that_declares_or_shows_that_it_can_save_is_preempted_and_no_other(
    tmp_path: Path, document: dict[str, Any], reports: tuple[StepsSaved, ...], is_preempted: bool
) -> None:
    for text in (ONE, ROUNDS):
        folder = tmp_path / ("rounds" if text is ROUNDS else "las")
        folder.mkdir()
        bench = Bench(folder, text)
        job = bench.submit(ANN, duration_s=1000, **PLAIN | document).body["id"]
        bench.do(Launched(job, 1), *(StepsSaved(job, 1, one.steps) for one in reports))
        bench.submit(BOB, duration_s=1000, **PLAIN)
        found = list[str]()
        for at in range(10, 800, 90):
            bench.clock.at = float(at)
            bench.do()
            found += halted(bench)
        assert (job in found) is is_preempted
        row = bench.controller.rows[job]
        assert row.shown(0.0)["interruptible"] is row.can_save is is_preempted
        before = digest(bench.controller.scheduler)
        bench.restart()
        assert digest(bench.controller.scheduler) == before


def test_an_operator_may_allow_one_restart_in_the_first_seconds(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ONE.replace("[cluster]", "restart_within_s = 60\n[cluster]"))
    long = bench.submit(ANN, duration_s=1000, **PLAIN).body["id"]
    bench.do(Launched(long, 1))
    bench.clock.at = 30.0
    short = bench.submit(BOB, duration_s=10, **PLAIN).body["id"]
    assert halted(bench) == [long]
    bench.do(GangEnded(long, 1, "stopped"), Launched(short, 1))
    assert why(bench, long)["saving"] == "30.0 s of its time on accelerators were lost by stops"
    bench.clock.at = 40.0
    bench.do(GangEnded(short, 1, "finished"))
    bench.do(Launched(long, 2))
    bench.submit(BOB, duration_s=10, **PLAIN)
    for at in (50.0, 100.0, 500.0):
        bench.clock.at = at
        bench.do()
        assert halted(bench) == []
    text = "nothing shows that it can save, so it is not preempted; a stop would lose all that it did since 1970-01-01"
    assert text in why(bench, long)["saving"]


def test_a_script_that_saves_and_fails_at_one_moment_has_failed_or_was_stopped_and_not_both(tmp_path: Path) -> None:
    """What it saved shows that it can save, so the policy may stop it before its failure is taken in."""
    bench = Bench(tmp_path, ONE)
    job = bench.submit(ANN, duration_s=1000, **PLAIN).body["id"]
    bench.do(Launched(job, 1))
    bench.submit(BOB, duration_s=10, **PLAIN)
    bench.clock.at = 500.0
    bench.do(StepsSaved(job, 1, 5.0), GangEnded(job, 1, "failed", "exit code 1"))
    row = bench.controller.rows.get(job)
    assert bench.state(job) == "failed" if row is None else (row.holds, row.failures) == ([], 0)
    bench.controller.check()


def test_the_window_closes_for_who_runs_longer(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ONE.replace("[cluster]", "restart_within_s = 60\n[cluster]"))
    long = bench.submit(ANN, duration_s=1000, **PLAIN).body["id"]
    bench.do(Launched(long, 1))
    bench.clock.at = 61.0
    bench.submit(BOB, duration_s=10, **PLAIN)
    assert halted(bench) == []


def test_when_and_belief_know_what_a_stop_has_lost(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ONE)
    job = bench.submit(ANN, duration_s=1000, **PLAIN).body["id"]
    bench.do(Launched(job, 1))
    bench.clock.at = 900.0
    bench.do(GangEnded(job, 1, "lost", "its machine was switched off"))
    number = bench.controller.scheduler.state.row_of[job]
    assert bench.controller.scheduler.belief.done[number] == 0.0
    found = ForecastAnswers(bench.site).answer({"ask": "when", "job": job, "now": 900.0})
    assert found["finish"][1] == pytest.approx(1900.0, abs=1.0)
    shown = bench.controller.rows[job].shown(0.0)
    assert (shown["lost_s"], shown["starts_without_progress"]) == (900.0, 1)


def test_a_job_that_made_no_progress_in_three_starts_is_named(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ONE)
    idle = bench.submit(ANN, duration_s=1000, **PLAIN).body["id"]
    named = list[bool]()
    for epoch in (1, 2, 3):
        bench.do(Launched(idle, epoch))
        bench.clock.at += 100.0
        bench.do(GangEnded(idle, epoch, "lost", "its machine was switched off"))
        named.append("3 starts made no progress" in why(bench, idle).get("saving", ""))
    assert named == [False, False, True]
    kinds = [kind for _, _, kind, _ in Reader(bench.site.place).job_news(idle)]
    assert kinds.count("no_progress") == 1
    text = render.job_page("ann", bench.controller.rows[idle].shown(0.0), why(bench, idle), "", [])
    assert "its last 3 starts made no progress" in text
    bench.do(Launched(idle, 4), StepsSaved(idle, 4, 50.0))
    bench.clock.at += 100.0
    bench.do(GangEnded(idle, 4, "lost", "its machine was switched off"))
    assert "no progress" not in why(bench, idle)["saving"]


def test_the_starter_site_is_that_of_the_examples_and_stops_no_job(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "service" / "site.toml"
    has_driver = starter_site().splitlines()[8].startswith("discover = true")
    assert has_driver or starter_site() == example.read_text()
    runner, file = CliRunner(), tmp_path / "site.toml"
    made = runner.invoke(app, ["site", "init", str(file), "--accelerators", "v100=4,cpu=2"])
    assert made.exit_code == 0, made.output
    assert "4 v100, 2 cpu" in made.output and "preempted: never" in made.output
    assert load_site(file).setup.policy.info.name == "slurm_fair_share"
    assert runner.invoke(app, ["site", "init", str(file)]).exit_code == 2  # it exists
    assert runner.invoke(app, ["site", "init", str(tmp_path / "b.toml"), "--accelerators", "v100=x"]).exit_code == 2
    assert not (tmp_path / "b.toml").exists()
    kept = file.read_bytes()
    for wrong in ("v100=x", "v100", "v100=2,v100=3", "v100=0"):
        assert runner.invoke(app, ["site", "init", str(file), "--force", "--accelerators", wrong]).exit_code == 2, wrong
        assert file.read_bytes() == kept


def test_the_plan_of_a_site_says_which_jobs_may_be_stopped(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(ONE.replace("[cluster]", "restart_within_s = 60\n[cluster]"))
    said = "jobs that have shown or declared that they can save; others once, in the first 60 s after their first start"
    assert f"preempted: {said}" in plan(load_site(tmp_path / "site.toml"))
