"""Curves of a run are whole however many points they have."""

from __future__ import annotations

import numpy as np

from eunomia.metrics.collector import MetricsCollector
from eunomia.metrics.job_timelines import POINT
from eunomia.metrics.step_functions import CurveBlock, steps_of
from eunomia.model.events import JobCancelled, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology

JOBS, STAY_S = 70_000, 1.0  # an instant of two moments each: more points than a block holds


def test_a_long_curve_has_one_point_an_instant_and_all_of_them() -> None:
    collector = MetricsCollector(Topology.of([Node(type="gpu", accelerators=8)]))
    collector.expect(JOBS)
    begin = np.arange(JOBS) * 1.0
    events = [(at, 1, JobSubmitted(Job(job_id=str(m), total_steps=1.0))) for m, at in enumerate(begin.tolist())]
    events += [(at + STAY_S, 0, JobCancelled(str(m))) for m, at in enumerate(begin.tolist())]
    for at, _, event in sorted(events, key=lambda one: one[:2]):
        collector.observe(Moment(at, (event,)), ())
    times, place = np.unique(np.concatenate((begin, begin + STAY_S)), return_inverse=True)
    change = np.bincount(place, np.repeat([1.0, -1.0], JOBS))
    at, present = collector.present()
    assert np.array_equal(at, times)
    assert np.array_equal(present, np.cumsum(change))


def test_a_curve_that_is_new_has_no_points_in_earlier_blocks() -> None:
    early = CurveBlock.of(np.array([(0.0, 5, 0), (1.5, 6, 1), (1.5, 7, 0)], dtype=POINT), curves=2)
    late = CurveBlock.of(np.array([(2.0, 1, 2), (2.5, 8, 0)], dtype=POINT), curves=3)
    assert [part.tolist() for part in steps_of(0, [early, late])] == [[0.0, 1.5, 2.5], [5.0, 7.0, 8.0]]
    assert [part.tolist() for part in steps_of(1, [early, late])] == [[1.5], [6.0]]
    assert [part.tolist() for part in steps_of(2, [early, late])] == [[2.0], [1.0]]
    assert [part.tolist() for part in steps_of(2, [early])] == [[], []]
