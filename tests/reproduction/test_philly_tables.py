"""What the generator draws has Philly's mix of ends and reasons, and what gangs wait for is reported by size."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eunomia import traces
from eunomia.failures.run_times import failing_by_class, size_class
from eunomia.inputs.problems import InvalidInput
from eunomia.model.job import Job
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Node
from eunomia.policies.grants.philly import Philly
from eunomia.setup.tenants import PHILLY as WEIGHT
from eunomia.testing.small_worlds import SmallWorld, line_up, one_type, play
from eunomia.traces import Trace
from eunomia.traces.table import trace_of
from eunomia_reproduction.philly import delays, failures, played, quotas, reproduce, table_runs, traced
from eunomia_reproduction.philly.averages import range_note
from eunomia_reproduction.philly.figure4 import waits_by_spread
from eunomia_reproduction.philly.filled import ended, running_jobs
from eunomia_reproduction.philly.owners import GPU_HOURS, DrawnOwners
from eunomia_reproduction.philly.played import Waited
from eunomia_reproduction.philly.tries import FirstStart, Tallied, Tally
from eunomia_reproduction.philly.tries import size_class as size_of
from eunomia_reproduction.table import Request

REAL = Path(__file__).parents[3] / "shared" / "data" / "traces" / "philly" / "philly_jobs.csv.gz"


@pytest.mark.slow
@pytest.mark.nightly
def test_jobs_of_the_simulated_world_end_and_fail_as_on_philly() -> None:
    found = [failures.played(seed) for seed in range(10)]
    rows = [*failures.statuses(found), *failures.reasons(found)]
    checked = [row for row in rows if row.within is not None]
    assert not [row for row in checked if not row.within]
    assert sum(row.quantity == "rtf_p50" for row in checked) >= 5
    assert sum(row.quantity == "jobs" for row in checked) == 3
    assert sum(row.quantity == "trials" for row in checked) >= 12


def test_wide_gangs_fail_more_often_and_all_together_as_often_as_was_said() -> None:
    sizes = np.repeat([1, 4, 8], [9000, 600, 400])
    part = failing_by_class(sizes, 0.172)
    assert part[0] < part[1] < part[2] <= 1
    assert float(part[size_class(sizes)].mean()) == pytest.approx(0.172, rel=1e-9)


# ---- Table 2 ---------------------------------------------------------------------------------------------------------

SIX = (6, 6)  # accelerators of two machines


def world(sizes: Sequence[int], jobs: tuple[Job, ...]) -> SmallWorld:
    return SmallWorld(nodes=tuple(Node(type="gpu", accelerators=size) for size in sizes), jobs=jobs, speeds=one_type())


def test_each_try_that_begins_without_a_place_counts_once_and_those_beside_enough_idle_ones_are_reported_apart() -> (
    None
):
    # 3 and 1 of 6 are free, and c wants 4 on one machine: it begins to try at 1, 300 and 570, and at 840 takes two
    there = world(SIX, line_up((0, 5000, 3), (0, 2000, 5), (1, 10, 4)))
    policy = Tallied(Philly())
    assert [at for at, order in play(policy, there).starts if order.job_id == "c"] == [840.0]
    assert policy.tally.tries.tolist() == policy.tally.scattered.tolist() == [[0, 0], [0, 3], [0, 0], [0, 0]]
    assert policy.tally.delays.tolist() == [[0, 0], [0, 1], [0, 0], [0, 0]]  # one wait


def test_a_try_of_a_job_over_its_quota_is_fair_shares() -> None:
    # x owns 4 of 12 and holds 8, which it borrows in part. Its b wants 5 and may hold none, so it tries at 1 and again
    # at 300, without a pause. c is within y's quota.
    asked = ((0, 8, "x"), (1, 5, "x"), (2, 1, "y"))
    jobs = tuple(
        Job(job_id=str(m), sequence=m, submitted=at, total_steps=400.0, scale_factor=size, tenant=tenant)
        for m, (at, size, tenant) in enumerate(asked)
    )
    policy = Tallied(Philly())
    reported_of = play(policy, world(SIX, jobs), tenants={"x": Tenant(quota=4), "y": Tenant(quota=8)})
    assert [at for at, _ in reported_of.starts] == [0.0, 2.0, 400.0]
    assert policy.tally.tries.tolist() == [[0, 0], [0, 0], [2, 0], [0, 0]]
    assert policy.tally.delays.tolist() == [[0, 0], [0, 0], [1, 0], [0, 0]]
    assert policy.tally.scattered.sum() == policy.tally.delays_scattered.sum() == 0


def test_a_try_over_the_quota_beside_enough_idle_accelerators_is_counted_apart() -> None:
    # x owns 4 of 12 and holds 8; 4 of 12 are idle, 2 on each machine, where its b wants 4 together
    jobs = tuple(
        Job(job_id=str(m), sequence=m, submitted=at, total_steps=400.0, scale_factor=4, tenant="x")
        for m, at in enumerate((0.0, 0.0, 1.0))
    )
    policy = Tallied(Philly())
    play(policy, world(SIX, jobs), tenants={"x": Tenant(quota=4), "y": Tenant(quota=8)})
    assert policy.tally.tries.tolist() == policy.tally.scattered.tolist() == [[0, 0], [2, 0], [0, 0], [0, 0]]


def test_a_start_overtakes_where_an_older_job_of_its_virtual_cluster_waits() -> None:
    # 1 of 6 is free: b of x waits for 4; c of x overtakes it, before d no job of y waits
    asked = ((0, 5, "x"), (1, 4, "x"), (2, 1, "x"), (3, 1, "y"))
    jobs = tuple(
        Job(job_id=str(m), sequence=m, submitted=at, total_steps=400.0, scale_factor=size, tenant=tenant)
        for m, (at, size, tenant) in enumerate(asked)
    )
    policy = Tallied(Philly())
    play(policy, world((6,), jobs), tenants={"x": Tenant(weight=1), "y": Tenant(weight=1)})
    assert (policy.tally.overtaking, policy.tally.starts) == (1, 4)


def test_figure_4_has_the_waits_of_wide_gangs_on_few_machines_and_on_more() -> None:
    starts = [FirstStart(8, 1, 60.0), FirstStart(8, 1, 6000.0), FirstStart(6, 2, 120.0), FirstStart(16, 3, 180.0)]
    rows = {
        (row.series, row.x): row.measured for row in waits_by_spread(starts, "here") if row.quantity[5:] == "longest"
    }
    few, more = ("Figure 4 here: on the fewest machines", "Figure 4 here: on more")
    assert rows == {(few, "5-8"): 100.0, (more, "5-8"): 2.0, (few, ">8"): None, (more, ">8"): 3.0}


def test_if_each_start_has_a_delay_there_are_as_many_as_jobs_and_failed_trials() -> None:
    rows = delays.if_one_a_start(np.array([1, 2, 4, 5, 16]))
    assert [(row.x, row.published, row.measured) for row in rows] == [("2-4", 12735, 7600), (">4", 17904, 6151)]


def test_tries_of_jobs_that_were_there_before_do_not_count() -> None:
    policy = Tallied(Philly(), after_s=1.0)
    play(policy, world(SIX, line_up((0, 5000, 3), (0, 2000, 5), (1, 10, 4))))
    assert policy.tally.tries.sum() == policy.tally.delays.sum() == policy.tally.scattered.sum() == 0
    assert policy.tally.starts == 0


Counts = list[list[float]]


def _waited(seconds: Counts, size: list[int], tries: Counts, scattered: Counts, delays: Counts | None = None) -> Waited:
    there = Tally(np.array(tries), np.array(scattered), np.array(delays or tries), np.array(scattered), 8, 2)
    return Waited(np.array(seconds), np.array(size), 0.5, there)


def test_by_size_the_parts_of_tries_jobs_and_seconds_are_reported() -> None:
    one = _waited(
        [[5.0, 1.0, 0.0], [0.0, 3.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 9.0]],
        [2, 4, 8, 16],
        [[9, 9], [3, 1], [1, 3], [0, 0]],
        [[9, 0], [1, 1], [1, 3], [0, 0]],
        [[9, 0], [2, 2], [4, 4], [0, 0]],
    )
    rows = {(row.series.removeprefix("Table 2 here: "), row.x): row.measured for row in delays.delays([one], "here")}
    assert {x: rows["tries for fragmentation", x] for x in delays.CLASSES} == {"2-4": 0.25, "5-8": 0.75, ">8": None}
    beside = "tries beside enough idle accelerators"
    assert {x: rows[beside, x] for x in delays.CLASSES} == {"2-4": 0.5, "5-8": 1.0, ">8": None}
    assert rows[beside, "all gangs"] == 0.75
    apart = "tries over the quota beside enough idle accelerators"
    assert {x: rows[apart, x] for x in delays.CLASSES} == {"2-4": 0.25, "5-8": 0.25, ">8": None}
    assert {x: rows["delays for fragmentation", x] for x in delays.CLASSES} == {"2-4": 0.5, "5-8": 0.5, ">8": None}
    once = "delays beside enough idle accelerators"
    assert {x: rows[once, x] for x in delays.CLASSES} == {"2-4": 0.5, "5-8": 0.5, ">8": None}
    assert rows["starts that overtake a job of their virtual cluster", ""] == 0.25
    mostly = "jobs that mostly waited for it"
    assert {x: rows[mostly, x] for x in delays.CLASSES} == {"2-4": 0.5, "5-8": 1.0, ">8": None}
    assert {x: rows["tries without a place", x] for x in delays.CLASSES} == {"2-4": 2.0, "5-8": 4.0, ">8": 0.0}
    assert {x: rows["jobs that waited", x] for x in delays.CLASSES} == {"2-4": 1.0, "5-8": 1.0, ">8": 0.0}
    assert (rows["waiting for fragmentation", ""], rows["preempted", ""]) == (0.5, 0.5)


def test_wider_gangs_should_wait_more_for_fragmentation_under_each_seed_that_has_both() -> None:
    nothing = [[0.0, 0.0, 0.0]] * 3
    first = _waited(nothing, [2, 8, 16], [[0, 0], [1, 1], [3, 1], [0, 2]], [[0, 0]] * 4)
    second = _waited(nothing, [2, 8, 16], [[0, 0], [0, 0], [0, 3], [3, 1]], [[0, 0]] * 4)
    rows = delays.orderings([first, second], "here")
    assert [(row.published, row.measured, row.within) for row in rows] == [(1, 0, False), (2, 1, False)]
    assert [row.within for row in delays.orderings([first], "here")] == [False, True]


def test_four_virtual_clusters_own_what_they_do_on_philly() -> None:
    owners = DrawnOwners.drawn(4, np.random.default_rng(5))
    assert len(set(owners.names)) == 4 and owners.weights == {name: WEIGHT[name] for name in owners.names}
    assert owners.part.sum(axis=1).tolist() == pytest.approx([1.0] * 4)
    drawn = owners.of(np.repeat([1, 3, 8, 32], 5000), np.random.default_rng(6))
    by_class = np.array(drawn).reshape(4, 5000)
    seen = [[(mine == name).mean() for name in owners.names] for mine in by_class]
    np.testing.assert_allclose(seen, owners.part, atol=0.03)


def test_gangs_of_a_size_without_such_jobs_are_owned_as_all_of_their_work_is() -> None:
    owners = DrawnOwners.among(["103959", "6214e9"])  # neither has gangs of more than 8
    total = {name: sum(GPU_HOURS[name]) for name in owners.names}
    assert owners.part[3].tolist() == pytest.approx([total[name] / sum(total.values()) for name in owners.names])
    assert owners.part[1].tolist() == pytest.approx([22981 / 33080, 10099 / 33080])


def test_the_workload_is_played_and_no_second_of_waiting_is_without_a_cause() -> None:
    found = played.waited(0, jobs=150, load=60.0)
    assert len(found.size) == 150
    assert found.seconds[:, 2].sum() == 0 < found.tally.tries.sum()
    assert (found.tally.delays_scattered <= found.tally.scattered).all()
    assert (found.tally.scattered <= found.tally.tries).all() and (found.tally.delays <= found.tally.tries).all()
    assert found.tally.starts >= len(found.size)
    assert len(found.tally.first_starts) == (found.size > 4).sum()


def test_the_jobs_that_run_at_first_fill_the_cluster_and_are_those_that_run_long() -> None:
    owners = DrawnOwners.among(["ed69ec", "6c71a0"])
    found = running_jobs(3, 560.0, owners)
    assert 560 - 32 < sum(job.scale_factor for job in found) <= 560
    assert {job.tenant for job in found} == set(owners.names)
    _, ran_s = ended(np.random.default_rng(0), 100_000)
    left_s = np.concatenate([[job.total_steps for job in running_jobs(seed, 560.0, owners)] for seed in range(30)])
    # of a length-biased draw, a uniform part is left: E[left] = E[d²] / 2 E[d]
    assert left_s.mean() == pytest.approx((ran_s**2).mean() / ran_s.mean() / 2, rel=0.15)


# ---- from the trace --------------------------------------------------------------------------------------------------


def _trace(rows: list[tuple[float, int, str, str]]) -> Trace:
    """Return a trace of jobs of an hour: submission, size, tenant and status of each."""
    at, size, tenant, status = (list(column) for column in zip(*rows, strict=True))
    names = [str(m) for m in range(len(rows))]
    bare = trace_of("here", names, np.array(at), np.array(size), duration_s=np.full(len(rows), 3600.0))
    return replace(bare, tenant=tuple(tenant), status=tuple(status))


def test_jobs_without_an_owner_go_to_those_whose_failed_jobs_the_trace_does_not_name_by_size() -> None:
    passed = [(0.0, 1, "6214e9", "finished")] * 3 + [(0.0, 1, "ed69ec", "finished"), (0.0, 8, "b436b2", "finished")]
    reported = [(0.0, 1, "ee9e8c", "finished")] * 50 + [(0.0, 8, "ed69ec", "failed")] * 50
    nameless = [(0.0, 1, "", "failed")] * 4000 + [(0.0, 8, "", "failed")] * 10
    found = traced.owned(_trace(passed + reported + nameless), 0).tenant
    assert found[:105] == tuple(row[2] for row in passed + reported)
    one, eight = found[105:4105], found[4105:]
    assert set(eight) == {"b436b2"} and set(one) == {"6214e9", "ed69ec"}
    assert one.count("6214e9") / 4000 == pytest.approx(0.75, abs=0.03)


def test_only_jobs_from_october_on_count() -> None:
    before, begin = traced.SINCE_S - 60.0, traced.SINCE_S
    found = traced.waited(_trace([(before, 8, "6214e9", ""), (begin, 8, "ed69ec", ""), (begin + 9, 4, "x", "")]), 0)
    assert found.size.tolist() == [8, 4]
    assert found.tally.tries.sum() == 0


def test_a_play_is_made_once_and_what_it_showed_comes_back_as_it_was(tmp_path: Path) -> None:
    lines = ["job_index,submit_s,gpus,span_s,service_s,vc,status"]
    lines += [f"{m},{traced.SINCE_S + 60 * m},{8 if m % 3 else 16},36000,36000,6214e9,Pass" for m in range(200)]
    (tmp_path / "philly_jobs.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    reported: list[str] = []
    request = Request(reference=tmp_path, keep=tmp_path / "runs", processes=1, tell=reported.append)
    play = quotas.Play("weight", "a quarter of an hour", "no preemption")
    first, failed = table_runs.made((), (play,), request)
    mine = quotas.waited(traced.three_weeks(traced.read(tmp_path)), play)
    assert failed == {} and mine.tally.tries.sum() > 0 < len(mine.tally.first_starts)
    assert (first[play].seconds == mine.seconds).all() and (first[play].size == mine.size).all()
    assert first[play].preempted == mine.preempted
    assert repr(first[play].tally) == repr(mine.tally)
    again, _ = table_runs.made((), (play,), request)
    assert reported[-1] == "1 of 1 runs are there already"
    assert repr(again) == repr(first)


def test_a_folder_without_the_trace_is_named_with_what_should_be_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"philly_jobs\.csv\.gz") as reported_of:
        reproduce(Request(reference=tmp_path))
    assert "data/traces/philly" in str(reported_of.value)


@pytest.mark.skipif(not REAL.is_file(), reason="the trace is not in the project")
def test_the_virtual_clusters_work_is_what_the_trace_has() -> None:
    trace = traces.read(REAL, "philly")
    tenant, passed = np.array(trace.tenant), np.array([status == "finished" for status in trace.status])
    counted = passed & (trace.submitted_s >= traced.SINCE_S)
    hours, size = trace.scale_factor * trace.duration_s / 3600.0, size_of(trace.scale_factor)
    found = {name: [hours[counted & (tenant == name) & (size == k)].sum() for k in range(4)] for name in GPU_HOURS}
    np.testing.assert_allclose(list(found.values()), list(GPU_HOURS.values()), atol=0.5)
    assert int(counted.sum()) == 57_202
    assert set(tenant[counted]) - set(GPU_HOURS) == {"795a4c"}
    asked = (hours[trace.submitted_s >= traced.SINCE_S]).sum() / (43 * 24 * 2490)
    assert asked == pytest.approx(played.LOAD, abs=0.005)


@pytest.mark.skipif(not REAL.is_file(), reason="the trace is not in the project")
def test_every_job_of_the_trace_gets_an_owner_and_the_four_that_are_reported_get_none_more() -> None:
    trace = traced.three_weeks(traced.read(REAL.parent))
    before, after = np.array(trace.tenant), np.array(traced.owned(trace, 1).tenant)
    assert trace.submitted_s.max() < traced.UNTIL_S
    assert (after != "").all() and (after[before != ""] == before[before != ""]).all()
    assert not set(after[before == ""]) & set(traced.FULLY_NAMED)


def test_an_interval_is_reported_with_its_seeds() -> None:
    assert range_note([1.0, 3.0]).endswith("over 2 seeds")
    assert (range_note([1.0]), range_note([])) == ("one seed", "none was drawn")
