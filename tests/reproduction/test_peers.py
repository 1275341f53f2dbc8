"""Other systems' results, job by job."""

from __future__ import annotations

from pathlib import Path

import pytest

from eunomia_reproduction.peers import blox, helios, pollux, shockwave, tiresias
from eunomia_reproduction.peers.job_comparison import JobComparison
from eunomia_reproduction.peers.peer_sheet import read
from eunomia_reproduction.peers.pollux.comparison import RESULTS, completions
from eunomia_reproduction.peers.pollux.inputs import MEASURED, WORKLOADS, profiles, trainings
from eunomia_reproduction.table import Request

REQUEST = Request()


def outside(found: JobComparison) -> list[str]:
    """Return what is further off than it may be, readable; there has to be something to compare."""
    assert found.rows
    return [
        f"{row.series} {row.quantity}: {row.published} {row.measured} {row.note}"
        for row in found.rows
        if row.within is False
    ]


@pytest.mark.slow
def test_tiresias_starts_and_ends_every_job_when_its_simulator_does(peers: Path) -> None:
    found = tiresias.reproduce(peers / "tiresias", REQUEST)
    assert not outside(found)
    asked = [row for row in found.rows if row.quantity == "jobs_equal" and row.tolerance is not None]
    assert sum(row.published or 0 for row in asked) == 7 * (480 + 60) + 3 * 480  # dlas-gpu-2 and yarn on w480 alone
    reported = {row.series for row in found.rows} - {row.series for row in asked}
    assert len(reported) == 2 + 5  # gittins, whose past jobs are not there, and our policy


def test_blox_ends_every_tracked_job_when_its_simulator_does(peers: Path) -> None:
    found = blox.reproduce(peers / "blox", REQUEST)
    assert not outside(found)
    assert {row.series.split()[-1] for row in found.rows} == {"fifo", "las", "srtf", "tiresias"}


def test_helios_starts_and_ends_every_job_when_its_simulator_does(peers: Path) -> None:
    found = helios.reproduce(peers / "helios", REQUEST)
    assert not outside(found)
    assert {row.series.split()[-1] for row in found.rows} == {"fifo", "sjf", "srtf"}


def test_pollux_tiresias_ends_every_job_of_its_first_workload_when_its_simulator_does(peers: Path) -> None:
    data = peers.parent
    if not (data / WORKLOADS).is_file() or not (data / MEASURED).is_dir():
        pytest.skip(f"{data / WORKLOADS} or {data / MEASURED} is absent")
    jobs = trainings(data / WORKLOADS, profiles(data / MEASURED))["workload-1"]
    published = read(peers / "pollux" / RESULTS, numbers=("tiresias",), texts=("workload", "name"))
    rows = zip(published.texts["workload"], published.texts["name"], published.numbers["tiresias"], strict=True)
    theirs = {name: jct for workload, name, jct in rows if workload == "workload-1"}
    ends = completions(jobs, "tiresias")
    assert {job.name: ends[job.name].end - job.submitted for job in jobs} == theirs


@pytest.mark.nightly
@pytest.mark.slow
def test_pollux_tiresias_and_optimus_are_as_near_as_interpolation_allows(peers: Path) -> None:
    found = pollux.reproduce(peers / "pollux", REQUEST)
    assert not outside(found)
    equal = {row.series: row for row in found.rows if row.quantity == "jobs_equal"}
    assert len(equal) == 16
    queues = [row for series, row in equal.items() if series.endswith("tiresias")]
    assert (
        sum(row.measured or 0 for row in queues) >= 1271
    )  # of 1,280; the others run on placements that were not measured


def test_shockwave_simulated_runs_are_within_three_per_cent(peers: Path) -> None:
    found = shockwave.reproduce(peers / "shockwave", REQUEST)
    simulated = [row for row in found.rows if "physical" not in row.series and row.tolerance is not None]
    assert len(simulated) == 16
    assert not [f"{row.series} {row.quantity} {row.ratio}" for row in simulated if not row.within]
