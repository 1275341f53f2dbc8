"""The workload of searches: apps, their jobs and their accelerator-time as published."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import generate
from eunomia.traces.generators import COMPUTE_BOUND


def test_apps_and_jobs_have_the_published_quantiles() -> None:
    trace = generate("searches", 0, jobs=60_000)
    jobs = np.array(list(Counter(trace.app).values()))
    for count, share in ((1, 0.05), (21, 0.37), (79, 0.5), (90, 0.8)):
        assert np.mean(jobs <= count) == pytest.approx(share, abs=0.05)
    minutes = trace.duration_s * trace.scale_factor / 60
    assert np.quantile(minutes, [0.3, 0.5, 0.8, 0.95]) == pytest.approx([150, 230, 340, 500], rel=0.03)


def test_the_jobs_of_an_app_are_alike_and_come_together() -> None:
    trace = generate("searches", 3, jobs=2_000, rate_per_hour=2.0)
    of_app = list(
        zip(trace.app, trace.scale_factor.tolist(), trace.job_type or (), trace.submitted_s.tolist(), strict=True)
    )
    assert len(set(of_app)) == len(set(trace.app))
    assert set(trace.scale_factor.tolist()) == {2, 4}
    assert trace.tenant == trace.app
    assert len(trace) == 2_000


def test_apps_arrive_at_their_rate_and_can_be_wide() -> None:
    trace = generate("searches", 1, jobs=60_000, rate_per_hour=2.0, gangs="network", most_per_app=20)
    apps = len(set(trace.app))
    assert trace.submitted_s[-1] / 3600 == pytest.approx(apps / 2.0, rel=0.1)
    assert set(trace.scale_factor.tolist()) == {4, 8}
    assert max(Counter(trace.app).values()) == 20


def test_gangs_that_are_unknown_are_refused() -> None:
    with pytest.raises(InvalidInput, match="these gangs are not known"):
        generate("searches", 0, gangs="huge")


def test_so_large_a_share_of_apps_as_is_asked_for_is_network_bound() -> None:
    for share in (0.0, 0.5, 1.0):
        trace = generate("searches", 0, jobs=60_000, network_bound=share)
        model = dict(zip(trace.app, trace.job_type or (), strict=True)).values()
        assert np.mean([name not in COMPUTE_BOUND for name in model]) == pytest.approx(share, abs=0.05)
    with pytest.raises(InvalidInput, match="network_bound"):
        generate("searches", 0, network_bound=1.5)
