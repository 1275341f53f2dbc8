"""The pieces of ASTRAEA's claims: which jobs are played, and how tenants' fairness is measured."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eunomia.backends.simulated import Simulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.inputs.problems import InvalidInput
from eunomia.mechanisms.leases import Leases
from eunomia.model.job import Job
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Node, Topology
from eunomia.policies import build
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.throughputs import load
from eunomia.traces.table import trace_of
from eunomia_reproduction import astraea, philly_window
from eunomia_reproduction.philly_window import Tenancy
from eunomia_reproduction.run_cache import RunRequest
from eunomia_reproduction.table import FigureTable, Request

HOUR = 3600.0
TWO = {"ann": Tenant(weight=3.0), "bo": Tenant(weight=1.0)}


def fairness(jobs: list[Job], hours: int) -> list[list[float]]:
    """Return tenants' fairness by hour under FIFO on 8 accelerators."""
    topology, policy = Topology.of([Node(type="gpu", accelerators=8)]), build("fifo")
    speeds = load("uniform", topology.types)
    scheduler = Scheduler(topology, policy.info, Leases(), Belief(speeds), tenants=philly_window.with_quotas(TWO, 8))
    scheduler.state.keep_entitlements(frozenset({"tenant_hourly_usage"}))
    assert scheduler.state.entitlements is not None
    tenancy = Tenancy(scheduler.state.entitlements, scheduler.state.owners.tree)
    run(scheduler, Simulation(jobs, topology, speeds), InlinePolicyRunner(policy), [tenancy])
    found: list[list[float]] = tenancy.fairness(hours).round(3).tolist()
    return found


def test_tenants_are_judged_by_what_they_used_of_what_they_asked_for_within_their_quota() -> None:
    # ann holds all 8 for two hours: 8 of her 6. bo waits, deserves 2 and has nothing, then 2 of 2 for half an hour.
    jobs = [Job(job_id="a", total_steps=2 * HOUR, scale_factor=8, tenant="ann"),
            Job(job_id="b", sequence=1, total_steps=HOUR / 2, scale_factor=4, tenant="bo")]  # fmt: skip
    jobs.append(Job(job_id="c", sequence=2, submitted=3 * HOUR, total_steps=HOUR, tenant="ann"))
    one, two = fairness(jobs, 1), fairness(jobs, 2)
    assert one[:2] == [[1.333, 0.0]] * 2
    assert np.isnan(one[2][0]) and one[2][1] == 2.0
    assert two[2] == [1.333, round(2 / 3, 3)]  # bo: 4 × 0.5 h used of 2 × 1.5 h


def test_jobs_are_those_of_the_days_that_some_tenant_may_run() -> None:
    day = 86400.0
    trace = replace(
        trace_of("here", list("abcde"), np.array([0.0, 9, 10, 20, 30]) * day, np.array([1, 2, 1, 800, 600])),
        tenant=("ann", "ann", "zoe", "ann", "bo"),
        duration_s=np.array([1.0, 99 * day, 1.0, 1.0, 1.0]),
    )
    work = philly_window.played(trace, 5, 20, 0, TWO)
    asked = 800 * 1.0 + 2 * day
    assert work.machines == max(round(asked / (philly_window.LOAD * 20 * day * 8)), 1) == 1
    assert [(job.job_id, job.submitted, job.total_steps) for job in work.jobs] == [("b", 4 * day, day)]
    assert [int(note.split()[0]) for note in work.notes] == [1, 1, 1, 1]  # c is of who has no weight, d is wider than 6


def test_jobs_that_name_no_tenant_are_drawn_one_among_those_of_the_same_days() -> None:
    day, names = 86400.0, ("bo", *("ann", "", "") * 20)
    submitted = np.concatenate(([0.0], np.full(60, 5.5 * day)))  # bo's comes before these days
    trace = replace(
        trace_of("here", list(map(str, range(61))), submitted, np.ones(61, dtype=np.int64)),
        tenant=names,
        duration_s=np.full(61, HOUR),
    )
    assert {job.tenant for job in philly_window.played(trace, 5, 1, 0, TWO).jobs} == {"ann"}
    draws = [tuple(job.tenant for job in philly_window.played(trace, 0, 6, seed, TWO).jobs) for seed in (0, 0, 1)]
    assert len(draws[0]) == 61
    assert draws[0] == draws[1]
    assert draws[0][1::3] == ("ann",) * 20


def test_who_serves_its_worst_off_tenant_better_is_ahead() -> None:
    ours, worse = philly_window.WindowFairness(100.0, 0.9, 2.0, 0.0), philly_window.WindowFairness(200.0, 0.3, 8.0, 0.5)
    even = philly_window.WindowFairness(200.0, 0.9, 2.0, 0.0)
    rows = astraea._ahead({"ASTRAEA": {0: ours, 1: ours}, "FIFO": {0: worse, 1: even}})
    values = {row.quantity: row.measured for row in rows}
    assert values["tenant_fairness_min"] == pytest.approx(3.0**0.5, abs=1e-4)
    assert values["seeds ahead"] == 2
    assert [values[f"jct_mean{end}"] for end in ("", ", low", ", high")] == [0.5, 0.5, 0.5]
    low, high = values["tenant_fairness_min, low"], values["tenant_fairness_min, high"]
    assert low is not None and high is not None and low < 3.0**0.5 < high
    assert not FigureTable(rows=tuple(rows)).outside
    assert FigureTable(rows=tuple(astraea._ahead({"ASTRAEA": {0: worse}, "FIFO": {0: ours}}))).outside


def test_leases_with_common_ends_are_reported_beside_ours_and_not_checked() -> None:
    ours, better = philly_window.WindowFairness(100.0, 0.8, 2.0, 0.0), philly_window.WindowFairness(50.0, 0.9, 2.0, 0.0)
    rows = astraea._ahead({"ASTRAEA": {0: ours}, "ASTRAEA, common ends": {0: better}})
    assert {row.quantity: row.published for row in rows} == {"tenant_fairness_min": None, "jct_mean": None}


def test_a_tenant_that_got_nothing_makes_no_factor() -> None:
    ours, none = philly_window.WindowFairness(100.0, 0.8, 2.0, 0.0), philly_window.WindowFairness(100.0, 0.0, 2.0, 0.0)
    row = astraea._ahead({"ASTRAEA": {0: ours}, "FIFO": {0: none}})[0]
    assert (row.measured, row.note) == (None, "a tenant got nothing at all under a seed")


def test_a_run_that_failed_is_outside_and_the_others_are_compared_without_it(
    monkeypatch: pytest.MonkeyPatch, philly_like: Path
) -> None:
    def all_but_the_first(
        orders: dict[object, RunRequest], *_: object
    ) -> tuple[dict[object, object], dict[object, str]]:
        first, *others = orders
        return dict.fromkeys(others, philly_window.WindowFairness(100.0, 0.9, 2.0, 0.0)), {first: "it stopped"}

    monkeypatch.setattr(astraea, "make_all", all_but_the_first)
    table = astraea.reproduce(Request(reference=philly_like, seeds=99))
    (lost,) = table.outside
    assert (lost.series, lost.note) == ("Themis, 3.5 days from day 49", "it stopped")
    ahead = {row.series: (row.published, row.measured) for row in table.rows if row.quantity == "seeds ahead"}
    assert ahead == {
        f"ASTRAEA beside {name}": (10, 10) for name in ("Tiresias", "static quotas", "capacity queues", "FIFO")
    } | {"ASTRAEA beside Themis": (9, 9)}
    assert "99 seeds were asked for" in table.notes[-1]


@pytest.mark.slow
def test_all_policies_play_a_seed_and_what_was_played_is_not_played_again(philly_like: Path, tmp_path: Path) -> None:
    reported: list[str] = []
    request = Request(reference=philly_like, keep=tmp_path / "runs", tell=reported.append)
    table = astraea.reproduce(request)
    assert {row.series for row in table.rows if row.x == 49.0} == set(astraea.POLICIES)
    assert len(reported) == len(astraea.POLICIES)
    assert astraea.reproduce(request) == table
    assert reported[-1] == f"{len(astraea.POLICIES)} of {len(astraea.POLICIES)} runs are there already"


@pytest.fixture
def philly_like(tmp_path: Path) -> Path:
    """Return a folder with a trace of two virtual clusters: a job of half a day in every half hour of 40 days."""
    names = ("6214e9", "11cb48", "")
    rows = ["first,0,1,60,60,11cb48,Pass"]
    rows += [f"{k},{48 * 86400 + 1800 * k},{1 + k % 2},43200,43200,{names[k % 3]},Pass" for k in range(40 * 48)]
    lines = ["job_index,submit_s,gpus,span_s,service_s,vc,status", *rows]
    (tmp_path / "philly_jobs.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return tmp_path


def test_days_without_jobs_are_refused(philly_like: Path) -> None:
    path = philly_like / "philly_jobs.csv.gz"
    path.write_bytes(gzip.compress(b"\n".join(gzip.decompress(path.read_bytes()).splitlines()[:2])))
    with pytest.raises(InvalidInput, match=r"no job of a tenant with a weight from day 49 to day 52\.5"):
        astraea.reproduce(Request(reference=philly_like))


def test_a_folder_without_the_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"philly_jobs\.csv\.gz"):
        astraea.reproduce(Request(reference=tmp_path))
