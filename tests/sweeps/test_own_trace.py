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


def test_weeks_are_resampled_and_no_policy_is_credited_with_a_difference_to_the_past(desk: Desk) -> None:
    """Completion times average 7800 + 60 w s in week w as it was, and 2200 + 20 w s under srtf."""
    desk.write("jobs.csv", trace(8))
    desk.write("sweep.toml", SWEEP)
    found = desk.sweep()
    assert [run["policy"] for run in found["runs"]][:2] == ["as_it_was", "as_it_was"]
    assert found["verdict"][0].startswith("As it was, jobs completed after 2.23 h and waited ")
    assert "no policy is credited with it" in found["verdict"][0]
    assert found["verdict"][1] == (
        "Use srtf: jobs complete sooner on average than under fifo (−49 %, −49 % to −48 %). Nothing else here is worse "
        "for certain. srtf knows durations, which a real cluster does not: of the runs that do not know them the "
        "lowest average completion time is that of fifo (73.5 min)."
    )
    assert "8 resampled weeks of the trace" in " ".join(found["verdict"])
    assert any(line.startswith("as_it_was against fifo, average completion time: worse (") for line in found["verdict"])
    assert "srtf" in (desk.folder / "out" / "report.html").read_text(encoding="utf-8")


def test_a_short_trace_holds_for_its_jobs(desk: Desk) -> None:
    desk.write("jobs.csv", trace(1))
    desk.write("sweep.toml", SWEEP)
    assert "This holds for these jobs" in " ".join(desk.sweep()["verdict"])


def test_the_past_has_neither_another_load_nor_a_trace_without_starts(desk: Desk) -> None:
    assert desk.problems(SWEEP) == [("jobs.csv", None, "started_s")]
    desk.write("jobs.csv", trace(1))
    assert desk.problems(SWEEP + "load = [2.0]\n") == [("jobs.csv", None, "load")]
