"""Jobs that do not finish are counted, with reasons, beside the averages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Desk

GAVEL = ("--set", "mechanism.name=gavel", "--set", "mechanism.visit=[]")
TOO_SHORT = (*GAVEL, "--set", "mechanism.round_s=0.001")  # a step lasts 1 s at speed 1
REASON = "rejected: one of its workers had no step to do in 5 rounds in a row (3)"


def test_rounds_too_short_for_a_step_reject_every_job_with_a_reason(desk: Desk) -> None:
    out = desk.simulate(*TOO_SHORT, "--policy", "max_min_fairness", record=False)
    counts = "max_min_fairness: 0 of 3 jobs finished; 3 were rejected"
    assert desk.stdout.splitlines()[:2] == [counts, f"  {REASON}"]
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "max_min_fairness finished 0 of 3 jobs; 3 were rejected." in report
    assert f"max_min_fairness: {REASON}" in report


def test_a_comparison_names_the_run_that_left_jobs_behind(desk: Desk) -> None:
    words = ("compare", "tiny.toml", "--policy", "fifo", "--policy", "las", "--out", "out")
    assert desk.type(*words, "--set", "world.cancel_fraction=1", "--set", "world.cancel_after_s=1") == 0
    cancelled = "0 of 3 jobs finished; 3 were cancelled"
    assert desk.stdout.splitlines()[:2] == [f"fifo: {cancelled}", f"las: {cancelled}"]


def test_when_all_jobs_finish_no_reasons_are_shown(desk: Desk) -> None:
    desk.simulate(record=False)
    assert desk.stdout.startswith("all 3 jobs finished\n")


def test_a_sweep_keeps_why_jobs_did_not_finish_among_its_notes(desk: Desk) -> None:
    mechanism = '{ name = "gavel", visit = [], round_s = 0.001 }'
    desk.write("sweep.toml", f'scenario = "tiny.toml"\n[set]\nmechanism = {mechanism}\npolicy = "max_min_fairness"\n')
    assert desk.type("sweep", "sweep.toml", "--out", "out", "--jobs", "1") == 0, desk.stderr
    assert f"max_min_fairness: {REASON}" in (Path("out") / "report.html").read_text(encoding="utf-8")


TRIALS = "job_id,submitted_s,scale_factor,job_type,duration_s,app\n" + "".join(
    f"{app}{m},0,1,LM,{100 + m},{app}\n" for app in ("s", "t") for m in range(4)
)


def test_of_searches_the_terminal_tells_apps_first(desk: Desk) -> None:
    desk.write("jobs.csv", TRIALS)
    desk.simulate("--set", "apps.tuner=halving", record=False)
    counts, head, row, *_ = desk.stdout.splitlines()
    assert counts.startswith("fifo: 2 of 8 jobs finished; 6 were ended by their searches")
    assert head.split()[:5] == ["run", "apps", "mean", "app", "done"]
    assert row.split()[1] == "2/2"


def test_searches_that_end_without_a_model_are_counted(desk: Desk) -> None:
    desk.write("jobs.csv", TRIALS)
    leaving = ("--set", "world.cancel_fraction=1", "--set", "world.cancel_after_s=1")
    out = desk.simulate("--set", "apps.tuner=all", *leaving, record=False)
    assert "fifo: 2 searches ended without a model" in desk.stdout
    assert "0/2" in desk.stdout
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "fifo finished 0 of 2 apps; 2 searches ended without a model." in report
