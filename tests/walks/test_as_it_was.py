"""The schedule as it was stands beside policies, and foreign words are read or asked about once."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

import eunomia

if TYPE_CHECKING:
    from conftest import Desk

HEADER = "job_id,submitted_s,scale_factor,job_type,duration_s,started_s,ran_on,status\n"
ROWS = "a,0,2,LM,100,0,v100,COMPLETED\nb,0,1,LM,50,120,v100,COMPLETED\nc,10,1,CNN,30,100,v100,FAILED\n"


def compared(desk: Desk, *words: str) -> dict[str, dict[str, str]]:
    assert desk.type("compare", "tiny.toml", "--out", "out", "--force", "--policy", "as_it_was", *words) == 0, (
        desk.stderr
    )
    with (desk.folder / "out" / "compare.csv").open(newline="") as file:
        return {row["policy"]: row for row in csv.DictReader(file)}


def test_the_schedule_as_it_was_has_the_starts_of_the_trace_and_stands_first(desk: Desk) -> None:
    """Completion times 100, 170 and 120 s; under fifo a 100, b 150 and c 120 s."""
    desk.write("jobs.csv", HEADER + ROWS)
    rows = compared(desk, "--policy", "fifo")
    assert list(rows) == ["as_it_was", "fifo"]
    past = rows["as_it_was"]
    assert float(past["jct_mean_s"]) == pytest.approx((100 + 170 + 120) / 3)
    assert float(past["queueing_mean_s"]) == pytest.approx((0 + 120 + 90) / 3)
    assert float(past["utilization"]) == pytest.approx((200 + 50 + 30) / (2 * 170))
    assert past["jobs_finished"] == "3"
    page = (desk.folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "as_it_was" in page


def test_the_past_is_a_result_like_any_other(desk: Desk) -> None:
    desk.write("jobs.csv", HEADER + ROWS)
    result = eunomia.simulate(desk.folder / "tiny.toml", policy="as_it_was")
    assert result.jobs["first_started_s"].tolist() == [0, 120, 100]
    assert result.jobs["received_v100_s"].tolist() == [100, 50, 30]


def test_words_of_other_systems_are_read_and_counted(desk: Desk) -> None:
    desk.write("jobs.csv", HEADER + ROWS)
    trace = eunomia.read_trace(desk.folder / "jobs.csv", "native")
    assert trace.status == ("finished", "finished", "failed")
    assert trace.notes == ("Of the column status, COMPLETED as finished (2 jobs), FAILED as failed (1 jobs) was read.",)


def test_an_unknown_word_is_asked_about_once_with_its_count(desk: Desk) -> None:
    many = "".join(f"j{k},0,1,LM,50,0,v100,EVICTED\n" for k in range(1500))
    desk.write("jobs.csv", HEADER + many)
    (problem,) = desk.refused("simulate", "tiny.toml", "--out", "x")["problems"]
    assert (problem["column"], problem["value"]) == ("status", "EVICTED")
    assert "(1,500 rows have this)" in problem["rule"]
    assert problem["rule"].startswith("must be one of finished, failed, cancelled")


def test_a_little_more_than_the_cluster_has_is_counted_as_it_was(desk: Desk) -> None:
    """Of 40 jobs that follow one another on both accelerators, the last starts 5 s before another ends."""
    rows = [f"j{k},{100 * k},2,LM,100,{100 * k},v100,\n" for k in range(39)]
    desk.write("jobs.csv", HEADER + "".join(rows) + "early,3890,2,LM,100,3895,v100,\n")
    result = eunomia.simulate(desk.folder / "tiny.toml", policy="as_it_was")
    assert result.jobs["jct_s"].tolist()[-2:] == [100, 105]
    note = (
        "jobs held up to 4 v100 at a time, and the cluster has 2; 0.12 % of their time there is beyond it, and counts."
    )
    assert f"as_it_was: {note}" in result.notes


@pytest.mark.parametrize(
    ("rows", "column"),
    [("a,0,2,LM,100,0,v100,\nb,0,1,LM,50,10,v100,\n", "started_s"), ("a,0,2,LM,100,,v100,\n", "started_s"),
     ("a,0,2,LM,100,0,h100,\n", "ran_on"), ("a,10,2,LM,100,5,v100,\n", "started_s")],
    ids=["too many at once", "no start", "no such type", "before its submission"],
)  # fmt: skip
def test_a_past_that_cannot_have_been_is_refused(desk: Desk, rows: str, column: str) -> None:
    desk.write("jobs.csv", HEADER + rows)
    refused = desk.refused("compare", "tiny.toml", "--out", "x", "--policy", "as_it_was")
    assert {problem["column"] for problem in refused["problems"]} == {column}


def test_a_gang_wider_than_its_type_is_refused(desk: Desk) -> None:
    desk.write("jobs.csv", HEADER + "a,0,2,LM,100,0,k80,\n")
    cluster = "cluster.accelerators={v100=2, k80=1}"
    refused = desk.refused("compare", "tiny.toml", "--out", "x", "--policy", "as_it_was", "--set", cluster)
    assert [problem["column"] for problem in refused["problems"]] == ["scale_factor"]


def test_a_changed_load_has_no_past(desk: Desk) -> None:
    desk.write("jobs.csv", HEADER + ROWS)
    refused = desk.refused("compare", "tiny.toml", "--out", "x", "--policy", "as_it_was", "--load", "2")
    assert refused["problems"][0]["column"] == "load"


def test_usual_names_of_columns_are_recognised(desk: Desk) -> None:
    desk.write("jobs.csv", "JobID,submit_time,num_gpus,model,runtime,user\na,0,1,LM,5,u\n")
    problems = desk.refused("simulate", "tiny.toml", "--out", "x")["problems"]
    fixes = {problem["column"]: problem["fix"] for problem in problems}
    assert fixes["num_gpus"] == "rename it to scale_factor"
    assert fixes["submit_time"] == "rename it to submitted_s"
    assert fixes["runtime"] == "rename it to duration_s"
    assert fixes["user"] == "rename it to tenant"
    assert json.dumps(problems)


def test_a_job_that_was_stopped_and_started_again_holds_nothing_in_between(desk: Desk) -> None:
    """Job a runs in [0, 50) and [80, 130), and b in between on the same accelerators; c is suspended for 40 s."""
    rows = 'a,0,2,LM,100,0,v100,130,"[[50, 80]]"\nb,0,2,LM,30,50,v100,,\nc,0,1,LM,60,200,v100,300,\n'
    desk.write(
        "jobs.csv", "job_id,submitted_s,scale_factor,job_type,duration_s,started_s,ran_on,ended_s,pauses\n" + rows
    )
    past = eunomia.simulate(desk.folder / "tiny.toml", policy="as_it_was").jobs
    assert past["first_started_s"].tolist() == [0, 50, 200]
    assert past["finished_s"].tolist() == [130, 80, 300]
    assert past["attained_service_s"].tolist() == [200, 60, 100]
    assert past["preemptions"].tolist() == [1, 0, 0]


def test_no_policy_starts_a_job_before_it_is_eligible_and_its_wait_counts_from_then(desk: Desk) -> None:
    """Job a may start from 60 s on, when c runs until 100 s: it waits for 40 s, and not before."""
    rows = "a,0,2,LM,30,110,60\nb,0,1,LM,10,0,\nc,50,2,LM,50,50,\n"
    desk.write("jobs.csv", "job_id,submitted_s,scale_factor,job_type,duration_s,started_s,eligible_s\n" + rows)
    for policy, waited in (("fifo", 40), ("las", 40), ("as_it_was", 50)):
        result = eunomia.simulate(desk.folder / "tiny.toml", policy=policy)
        jobs = {name: m for m, name in enumerate(result.jobs["job_id"].tolist())}
        assert result.jobs["first_started_s"][jobs["a"]] >= 60
        assert result.summary["not_eligible_mean_s"] == 20
        assert result.jobs["wait_not_eligible_s"][jobs["a"]] == 60
        assert result.jobs["submitted_s"].tolist() == [0, 50, 0]
        assert result.jobs["jct_s"].tolist() == (result.jobs["finished_s"] - result.jobs["submitted_s"]).tolist()
        assert result.summary["queueing_mean_s"] == pytest.approx(waited / 3)
        assert result.figures.tenants["jct_mean_s"].tolist() == [pytest.approx(result.summary["jct_mean_s"])]


def test_without_a_time_of_eligibility_no_figure_of_it_is_written(desk: Desk) -> None:
    desk.write("jobs.csv", HEADER + ROWS)
    result = eunomia.simulate(desk.folder / "tiny.toml", policy="fifo")
    assert "not_eligible_mean_s" not in result.summary
    assert "wait_not_eligible_s" not in result.jobs
