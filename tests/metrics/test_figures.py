"""Figures worked out by hand."""

from __future__ import annotations

import math

import pytest

from eunomia.metrics import Metrics
from eunomia.model.decisions import Start, Stop
from eunomia.model.events import JobFinished, JobSubmitted, Moment, NodeJoined, NodeLost
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology
from eunomia.policies.order.fifo import Fifo
from eunomia.testing.small_worlds import SmallWorld, line_up, one_type, play

# Two accelerators at 3.6 US$ an hour, which is 0.001 a second. a 0–100, b 0–50, c waits for both and has 100–200.
THREE = SmallWorld(
    nodes=(Node(type="gpu", accelerators=2),), jobs=line_up((0, 100), (0, 50), (10, 100, 2)), speeds=one_type()
)


def test_completion_times_and_waits() -> None:
    """JCTs are 50, 100, 190; the 95th percentile lies 0.95 · 2 = 1.9 steps in: 100 + 0.9 · 90."""
    summary = play(Fifo(), THREE).figures.summary
    assert summary["jct_mean_s"] == pytest.approx(340 / 3)
    assert summary["jct_p50_s"] == 100
    assert summary["jct_p95_s"] == pytest.approx(181)
    assert summary["jct_p99_s"] == pytest.approx(188.2)
    assert summary["queueing_mean_s"] == pytest.approx((0 + 0 + 90) / 3)
    assert summary["makespan_s"] == summary["end_s"] == 200


def test_utilization_and_cost() -> None:
    """Busy: 100 + 50 + 2 · 100 = 350 of 2 · 200 accelerator-seconds."""
    summary = play(Fifo(), THREE, prices={"gpu": 3.6}).figures.summary
    assert summary["utilization"] == summary["utilization_gpu"] == pytest.approx(350 / 400)
    assert summary["cost_usd"] == pytest.approx(0.350)


def test_a_used_type_without_a_price_has_no_cost_rather_than_a_wrong_one() -> None:
    assert play(Fifo(), THREE, prices={"gpu": None}).figures.summary["cost_usd"] is None


def test_what_is_out_of_service_is_not_available() -> None:
    """Two machines of 1; the second is away 20–60 of 100 s: 160 are available, a works for 100 of them."""
    topology = Topology.of([Node(type="gpu", accelerators=1)] * 2)
    metrics = Metrics(topology, one_type(), {"gpu": 1.0})
    job = Job(job_id="a", total_steps=100)
    metrics.observe(Moment(0, (JobSubmitted(job),)), [Start("a", 1, (0,), math.inf)])
    metrics.observe(Moment(20, (NodeLost(1),)), [])
    metrics.observe(Moment(60, (NodeJoined(1),)), [])
    metrics.observe(Moment(100, (JobFinished("a", 1),)), [])
    assert metrics.figures().summary["utilization"] == pytest.approx(100 / 160)


def test_a_report_of_a_node_that_is_repeated_counts_once() -> None:
    """Two machines of 1; the second is away 20–60 of 100 s, whatever is reported twice."""
    metrics = Metrics(Topology.of([Node(type="gpu", accelerators=1)] * 2), one_type(), {"gpu": 1.0})
    first = JobSubmitted(Job(job_id="a", total_steps=100)), NodeJoined(0), NodeJoined(1)
    metrics.observe(Moment(0, first), [Start("a", 1, (0,), math.inf)])
    for at, event in zip([20, 30, 60, 70], [NodeLost(1)] * 2 + [NodeJoined(1)] * 2, strict=True):
        metrics.observe(Moment(at, (event,)), [])
    metrics.observe(Moment(100, (JobFinished("a", 1),)), [])
    assert metrics.figures().summary["utilization"] == pytest.approx(100 / 160)


def test_two_that_share_an_accelerator_keep_one_accelerator_busy_and_each_is_served() -> None:
    """a and b share one accelerator 0–10; a goes, b stays to 15: busy 15 of 15."""
    metrics = Metrics(Topology.of([Node(type="gpu", accelerators=1)]), one_type(), {"gpu": 3600.0})
    jobs = [Job(job_id=name, total_steps=10) for name in "ab"]
    metrics.observe(Moment(0, tuple(JobSubmitted(job) for job in jobs)), [Start("a", 1, (0,), math.inf, 0, "b", 1)])
    metrics.observe(Moment(10, (JobFinished("a", 1),)), [])
    metrics.observe(Moment(15, (JobFinished("b", 1),)), [])
    figures = metrics.figures()
    assert figures.summary["utilization"] == pytest.approx(1.0)
    assert figures.summary["cost_usd"] == pytest.approx(15.0)
    assert figures.jobs["attained_service_s"].tolist() == [10, 15]


def test_a_stop_without_a_checkpoint_is_no_preemption() -> None:
    metrics = Metrics(Topology.of([Node(type="gpu", accelerators=1)]), one_type(), {})
    metrics.observe(Moment(0, (JobSubmitted(Job(job_id="a", total_steps=9)),)), [Start("a", 1, (0,), math.inf)])
    metrics.observe(Moment(1, ()), [Stop(("a",), (1,)), Start("a", 2, (0,), math.inf)])
    metrics.observe(Moment(2, (NodeLost(0),)), [Stop(("a",), (2,), save=False)])
    assert metrics.figures().summary["preemptions"] == 1


def test_themis_rho_of_two_jobs_on_one_accelerator() -> None:
    """a has the accelerator 0–10 while two are present: ρ = 10 / (10 · 2). b ends at 20, and 1.5 were present on
    the average: ρ = 20 / (10 · 1.5).
    """
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=1),), jobs=line_up((0, 10), (0, 10)), speeds=one_type())
    figures = play(Fifo(), world).figures
    assert figures.jobs["rho_themis"].tolist() == pytest.approx([1 / 2, 4 / 3])
    assert figures.summary["rho_themis_max"] == pytest.approx(4 / 3)
    assert figures.summary["rho_themis_mean"] == pytest.approx((1 / 2 + 4 / 3) / 2)


def test_themis_rho_of_an_app_counts_its_jobs_together() -> None:
    """One accelerator, one app of two jobs of 10 s: alone on the cluster it needs 20 s, and takes them: ρ = 1."""
    jobs = [Job(job_id=name, total_steps=10, sequence=i, app="search") for i, name in enumerate("ab")]
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=1),), jobs=tuple(jobs), speeds=one_type())
    assert play(Fifo(), world).figures.jobs["rho_themis"].tolist() == pytest.approx([1, 1])


def test_what_never_happened_is_null_and_never_nan() -> None:
    metrics = Metrics(Topology.of([Node(type="gpu", accelerators=1)]), one_type(), {})
    summary = metrics.figures().summary
    assert summary["jct_mean_s"] is None
    assert summary["makespan_s"] is None
    assert not any(isinstance(value, float) and math.isnan(value) for value in summary.values())
