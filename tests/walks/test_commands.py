"""What simulate and compare write, and that it adds up."""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Desk

SUMMARY = ["jobs_submitted", "jobs_finished", "jobs_failed", "jobs_cancelled", "jobs_rejected", "jobs_unfinished",
           "jct_mean_s", "jct_p50_s", "jct_p95_s", "jct_p99_s", "queueing_mean_s", "makespan_s", "end_s",
           "utilization", "utilization_v100", "cost_usd", "preemptions", "rho_themis_max",
           "rho_themis_mean"]  # fmt: skip
JOBS = ["job_id", "tenant", "app", "job_type", "scale_factor", "submitted_s", "first_started_s", "finished_s", "jct_s",
        "attained_service_s", "preemptions", "status", "rho_themis"]  # fmt: skip
TIMING = [
    "wall_s", "cpu_s", "policy_cpu_s", "peak_rss_mib", "rounds", "solves", "round_cpu_ms_mean", "decision_ms_p50",
    "decision_ms_p99",
]  # fmt: skip


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def header(out: Path) -> dict[str, Any]:
    with gzip.open(out / "record.jsonl.gz", "rt") as file:
        head: dict[str, Any] = json.loads(file.readline())
    return head


def test_a_run_writes_its_figures_jobs_timing_and_report_and_a_record_on_request(desk: Desk) -> None:
    written = ["jobs.csv", "report.html", "summary.json", "tenants.csv", "timing.json"]
    assert sorted(path.name for path in desk.simulate(record=False, out="without").iterdir()) == written
    assert sorted(path.name for path in desk.simulate().iterdir()) == sorted([*written, "record.jsonl.gz"])


def test_the_summary_of_three_jobs_is_as_worked_out_by_hand(desk: Desk) -> None:
    """On 2 accelerators a (2) runs 0–100, then b 100–150 and c 100–130: 280 of 300 accelerator-seconds."""
    summary = json.loads((desk.simulate() / "summary.json").read_text())
    assert [name for name in SUMMARY if name not in summary] == []
    expected = {"jobs_submitted": 3, "jobs_finished": 3, "jct_mean_s": 370 / 3, "jct_p50_s": 120.0, "end_s": 150.0,
                "queueing_mean_s": 190 / 3, "makespan_s": 150.0, "utilization": 280 / 300,
                "preemptions": 0}  # fmt: skip
    assert {name: summary[name] for name in expected} == pytest.approx(expected)
    assert desk.type("simulate", "tiny.toml", "--out", "again", "--json") == 0
    assert json.loads(desk.stdout) == summary


def test_without_out_every_run_gets_a_folder_of_its_own(desk: Desk) -> None:
    for _ in range(3):
        assert desk.type("simulate", "tiny.toml", "--json") == 0, desk.stdout
    assert sorted(path.name for path in (desk.folder / "out").iterdir()) == ["tiny", "tiny-2", "tiny-3"]
    assert desk.type("simulate", "tiny.toml", "--out", "out/tiny", "--json") == 2


def test_every_job_has_a_row_that_adds_up(desk: Desk) -> None:
    out = desk.simulate("--set", "cluster.accelerators={ v100 = 2, k80 = 1 }", "--policy", "srtf")
    rows = table(out / "jobs.csv")
    assert list(rows[0])[: len(JOBS)] == JOBS
    assert {"received_v100_s", "received_k80_s"} <= set(rows[0])
    assert [row["job_id"] for row in rows] == ["a", "b", "c"]
    for row in rows:
        assert float(row["jct_s"]) == float(row["finished_s"]) - float(row["submitted_s"])
        received = float(row["received_v100_s"]) + float(row["received_k80_s"])
        assert float(row["attained_service_s"]) == pytest.approx(received * int(row["scale_factor"]))


def test_what_has_no_value_is_null_or_empty_and_the_ends_of_jobs_add_up(desk: Desk) -> None:
    desk.write("tiny.toml", desk.random_scenario(cancelled=1.0))
    out = desk.simulate("--check")
    text = (out / "summary.json").read_text()
    assert not re.search(r"NaN|Infinity", text)
    summary = json.loads(text)
    ends = ("finished", "failed", "cancelled", "rejected", "unfinished")
    assert sum(summary[f"jobs_{end}"] for end in ends) == summary["jobs_submitted"] == 15
    for row in table(out / "jobs.csv"):
        assert (row["status"] == "finished") == bool(row["finished_s"]) == bool(row["jct_s"])
        assert "nan" not in row.values()


def test_timing_has_the_cost_of_the_run(desk: Desk) -> None:
    timing = json.loads((desk.simulate() / "timing.json").read_text())
    assert [name for name in TIMING if name not in timing] == []
    assert timing["rounds"] == 2
    assert timing["peak_rss_mib"] > 1


def test_compare_writes_a_folder_a_run_one_table_and_a_report_with_its_numbers(desk: Desk) -> None:
    asked = ("--policy", "fifo", "--policy", "fifo?backfill=skip", "--load", "1", "--load", "2", "--seed", "3")
    assert desk.type("compare", "tiny.toml", "--out", "out", *asked, "--json") == 0
    said = json.loads(desk.stdout)
    out = desk.folder / "out"
    rows = table(out / "compare.csv")
    assert [list(row)[:3] for row in rows] == [["policy", "load", "seed"]] * 4
    assert set(SUMMARY) <= set(rows[0])
    assert {(row["policy"], float(row["load"]), row["seed"]) for row in rows} == {
        (policy, load, "3") for policy in ("fifo", "fifo?backfill=skip") for load in (1.0, 2.0)
    }
    assert [float(row["jct_mean_s"]) for row in rows] == [run["jct_mean_s"] for run in said]
    assert len([path for path in out.iterdir() if (path / "summary.json").is_file()]) == 4
    page = (out / "report.html").read_text()
    block = re.search(r'<script type="application/json" id="eunomia-data">(.*?)</script>', page, re.DOTALL)
    assert block
    json.loads(block[1])
    assert not re.search(r'(src|href)="(https?:)?//', page)


def test_seeds_that_change_nothing_are_noted(desk: Desk) -> None:
    note = "note: Nothing is random: the 2 seeds"
    for policies, seeds, expected in ((["fifo"], 2, True), (["fifo"], 1, False), (["fifo", "lottery"], 2, False)):
        asked = [word for name in policies for word in ("--policy", name)]
        asked += [word for seed in range(seeds) for word in ("--seed", str(seed))]
        assert desk.type("compare", "tiny.toml", "--out", "out", "--force", *asked) == 0
        assert (note in desk.stdout) == expected


def test_loads_that_look_alike_keep_their_own_folders(desk: Desk) -> None:
    assert desk.type("compare", "tiny.toml", "--out", "out", "--policy", "fifo", "--load", "1",
                     "--load", "1.00000001") == 0  # fmt: skip
    assert len(list((desk.folder / "out").glob("fifo*"))) == 2


@pytest.mark.parametrize(
    ("said", "mechanism"),
    [
        (["--policy", "fifo"], {"length": {"number": "inf"}, "aligned": False, "recall": False}),
        (["--policy", "srtf"], {"length": {"number": "inf"}, "aligned": False, "recall": True}),
        (["--policy", "max_min_fairness"], {"length": 360.0, "aligned": True, "recall": False}),
        (["--set", "mechanism.length_s=60"], {"length": 60.0, "aligned": True, "recall": False}),
        (["--set", "mechanism.length_s=inf", "--set", "mechanism.aligned=false"], {"length": {"number": "inf"}}),
    ],
)
def test_a_policy_has_default_leases_unless_the_scenario_sets_others(
    desk: Desk, said: list[str], mechanism: dict[str, Any]
) -> None:
    found = dict(header(desk.simulate(*said))["mechanism"]["map"])
    assert {name: found[name] for name in mechanism} == mechanism
