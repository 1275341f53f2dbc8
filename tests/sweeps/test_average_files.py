"""averages.csv, averages.tex and tenants.csv of a sweep: the numbers of the report, as files."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eunomia.report.sweep.files import averages_csv, averages_latex, latex
from eunomia.verdict.sweep_content import Group, Interval, SweepContent, SweepSetting

if TYPE_CHECKING:
    from conftest import Desk


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def setting(name: str, mean: float, half: float | None) -> SweepSetting:
    ends = (None, None) if half is None else (mean - half, mean + half)
    averages = {"jct_mean_s": Interval(mean=mean, low=ends[0], high=ends[1], seeds=1 if half is None else 3)}
    return SweepSetting(name=name, place=1.0, averages=averages, versus={})


def content(*settings: SweepSetting) -> SweepContent:
    return SweepContent(
        title="t", subtitle="", compared=tuple(one.name for one in settings), baseline=settings[0].name, along="load",
        places=(1.0,), groups=(Group(name="", settings=settings),), confidence=0.95, failures=(), notes=(),
        sweep_toml="",
    )  # fmt: skip


def test_a_table_for_a_paper_has_averages_and_half_their_intervals() -> None:
    assert averages_latex(content(setting("fifo", 7200.0, 1800.0), setting("las?types=a_b", 3600.0, None))) == (
        "% t; intervals hold 95% of the time\n"
        "\\begin{tabular}{lr}\n\\hline\n"
        " & JCT average, h \\\\\n\\hline\n"
        "fifo & 2.00 $\\pm$ 0.500 \\\\\n"
        "las?types=a\\_b & 1.00 \\\\\n"
        "\\hline\n\\end{tabular}\n"
    )


def test_every_character_that_latex_reads_is_escaped() -> None:
    assert latex(r"50 % of \a & b_c") == r"50 \% of \textbackslash{}a \& b\_c"


def test_an_average_without_an_interval_has_empty_ends() -> None:
    rows = list(csv.DictReader(averages_csv(content(setting("fifo", 7200.0, None))).splitlines()))
    assert [(row["mean"], row["low"], row["high"], row["change"], row["seeds"]) for row in rows] == [
        ("7200.0", "", "", "", "1")
    ]


@pytest.fixture
def swept(desk: Desk) -> Desk:
    """A sweep of two policies over two seeds that draw days of the trace anew."""
    days = "".join(f"d{k},{k * 43200},1,LM,{900 + 700 * (k % 5)},{'ab'[k % 2]}\n" for k in range(12))
    desk.write("jobs.csv", "job_id,submitted_s,scale_factor,job_type,duration_s,tenant\n" + days)
    sweep = 'scenario = "tiny.toml"\n[axes]\nworkload.resample = ["days"]\npolicy = ["fifo", "las"]\nseed = [0, 1]\n'
    desk.write("sweep.toml", sweep)
    assert desk.type("sweep", "sweep.toml", "--out", "out", "--jobs", "1") == 0, desk.stderr
    return desk


def test_the_files_of_a_sweep_agree_with_its_runs(swept: Desk) -> None:
    runs = swept.table()
    means = {
        row["compared"]: row for row in read(swept.folder / "out" / "averages.csv") if row["field"] == "jct_mean_s"
    }
    for policy in ("fifo", "las"):
        values = [run["jct_mean_s"] for run in runs if run["policy"] == policy]
        assert len(set(values)) == 2  # the seeds drew different days
        assert float(means[policy]["mean"]) == pytest.approx(statistics.fmean(values))
    tenants = read(swept.folder / "out" / "tenants.csv")
    assert sorted((row["policy"], row["tenant"]) for row in tenants) == [
        ("fifo", "a"), ("fifo", "b"), ("las", "a"), ("las", "b")
    ]  # fmt: skip
    for row in tenants:
        own = [
            float(line["jobs"])
            for run in runs
            if run["policy"] == row["policy"]
            for line in read(swept.folder / "out" / "runs" / run["scenario_hash"] / "tenants.csv")
            if line["tenant"] == row["tenant"]
        ]
        assert (row["seeds"], float(row["jobs_mean"])) == ("2", pytest.approx(statistics.fmean(own)))
