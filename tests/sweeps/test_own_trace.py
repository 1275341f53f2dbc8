"""A sweep on one's own trace: its weeks are resampled, and the schedule as it was stands beside the policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Desk

WEEK = 7 * 86_400
SWEEP = 'scenario = "tiny.toml"\n[axes]\npolicy = ["as_it_was", "fifo", "srtf"]\nseed = [0, 1]\n'


def trace(weeks: int) -> str:
    """Return jobs of which a long one and short ones come together each week; all started one after the other."""
    rows = ["job_id,submitted_s,scale_factor,job_type,duration_s,started_s,ran_on"]
    for week in range(weeks):
        at = start = week * WEEK
        for k, length in enumerate((3600 + 60 * week, 600, 600)):
            start += 1800
            rows.append(f"{week}-{k},{at},2,LM,{length},{start},gpu")
            start += length
    return "\n".join(rows) + "\n"


def test_weeks_are_resampled_and_the_past_is_the_baseline(desk: Desk) -> None:
    """Completion times average 7800 + 60 w s in week w as it was, and 2200 + 20 w s under srtf."""
    desk.write("jobs.csv", trace(8))
    desk.write("sweep.toml", SWEEP)
    found = desk.sweep()
    assert [run["policy"] for run in found["runs"]][:2] == ["as_it_was", "as_it_was"]
    assert found["verdict"][0].startswith(
        "Use srtf: jobs complete sooner on average than under as_it_was (−72 %, −72 %"
    )
    assert "8 resampled weeks of the trace" in " ".join(found["verdict"])
    assert any(
        line.startswith("srtf against as_it_was, average completion time: better (") for line in found["verdict"]
    )
    assert "srtf" in (desk.folder / "out" / "report.html").read_text(encoding="utf-8")


def test_a_short_trace_holds_for_its_jobs(desk: Desk) -> None:
    desk.write("jobs.csv", trace(1))
    desk.write("sweep.toml", SWEEP)
    assert "This holds for these jobs" in " ".join(desk.sweep()["verdict"])


def test_the_past_has_neither_another_load_nor_a_trace_without_starts(desk: Desk) -> None:
    assert desk.problems(SWEEP) == [("jobs.csv", None, "started_s")]
    desk.write("jobs.csv", trace(1))
    assert desk.problems(SWEEP + "load = [2.0]\n") == [("jobs.csv", None, "load")]
