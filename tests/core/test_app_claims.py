"""How many apps there were on average, counted as they come, rest and go."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.core.entitlements import Entitlements
from eunomia.core.state import State
from eunomia.model.apps import PausedJobs
from eunomia.model.job import Job
from eunomia.model.tenants import Tenants
from eunomia.model.topology import Node, Topology

NO_TENANTS = Tenants.of((), {})


def submitted(claims: Entitlements, name: str, app: str, at: float = 0.0) -> None:
    claims.submit(Job(job_id=name, app=app, total_steps=1, submitted=at))


def test_an_app_is_a_rival_while_one_of_its_jobs_waits_or_runs() -> None:
    claims = Entitlements(frozenset({"apps"}))
    submitted(claims, "a", "x")
    submitted(claims, "b", "x")
    claims.advance(10.0, None, NO_TENANTS, 1.0)  # 10 s of x
    submitted(claims, "c", "y", 10.0)
    claims.advance(20.0, None, NO_TENANTS, 1.0)  # 10 s of x and y
    claims.end(0, 3.0, finished=True)  # x still has b
    claims.advance(30.0, None, NO_TENANTS, 1.0)  # 10 s of both
    claims.pause(1)  # all that is left of x rests
    claims.advance(40.0, None, NO_TENANTS, 1.0)  # 10 s of y
    found = claims.apps(40.0, np.array([2]), PausedJobs.none(1))
    assert found.names == ("y",)
    assert found.mean_rivals == pytest.approx([(20 + 20 + 10) / 30])
    claims.resume(1)
    claims.advance(50.0, None, NO_TENANTS, 1.0)  # 10 s of both
    found = claims.apps(50.0, np.array([1, 2]), PausedJobs.none(1))
    assert found.names == ("x", "y")
    assert found.mean_rivals == pytest.approx([(10 + 20 + 20 + 10 + 20) / 50, (20 + 20 + 10 + 20) / 40])
    assert found.service.tolist() == [3.0, 0.0]
    assert claims.apps_of(np.array([1, 2])).tolist() == [0, 1]
    assert claims.apps_of(np.array([2])).tolist() == [0]
    assert [column.tolist() for column in claims.among(np.array([0, 2]), np.array([1]))] == [[0], [0]]  # of x alone
    assert [column.tolist() for column in claims.among(np.array([0, 2]), np.array([1, 2]))] == [[0, 2], [0, 1]]
    assert not len(claims.among(np.array([0, 1]), np.array([2]))[0])


def test_what_is_kept_is_not_lost_when_more_is_asked_for() -> None:
    state = State(Topology.of([Node(type="gpu", accelerators=1)]))
    state.keep_entitlements(frozenset({"weight"}))
    assert state.entitlements is None
    state.keep_entitlements(frozenset({"apps", "weight"}))
    state.keep_entitlements(frozenset({"tenant_hourly_usage"}))
    assert state.entitlements is not None
    assert state.entitlements.kept == {"apps", "tenant_hourly_usage"}
