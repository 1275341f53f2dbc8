"""Themis: what a job leaves before its lease ends stays with its app while the app can use it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eunomia.allocation import problem_of
from eunomia.allocation.view_from_problem import view_of
from eunomia.model.view import View
from eunomia.policies.grants.themis.app_leases import key_of, leases_after
from eunomia.policies.grants.themis.themis import Themis

LEASE_S = 1200.0


def freed(until: float, *, gang: int = 1) -> View:
    """Return two searches that wait for the one free accelerator; the first has it under a lease until then."""
    problem = {
        "types": ["gpu"],
        "capacity": [2],
        "throughput": [[1.0]] * 2,
        "steps_remaining": [1000.0] * 2,
        "scale_factor": [gang, 1],
        "elapsed_s": [0.0, 5000.0],
        "accelerators_per_node": [1],
    }
    view = view_of(problem_of(problem), Themis())
    holder = np.array([-1, -2])
    key = key_of(view.apps.names[0])
    memory = {**view.memory, "leased_to": np.array([key, 0]), "leased_until": np.array([until, -np.inf])}
    return replace(view, columns={**view.columns, "holder": holder}, memory=memory)


def test_another_job_of_the_app_has_it_until_the_same_end() -> None:
    answer = Themis(f=1.0).decide(freed(600.0))
    assert answer.rows.job.tolist() == [0]
    assert answer.until.tolist() == [600.0]


@pytest.mark.parametrize(
    ("policy", "view"),
    [
        (Themis(f=1.0), freed(0.0)),  # the lease is over
        (Themis(f=1.0), freed(600.0, gang=2)),  # no job of the app fits there
        (Themis(f=1.0, app_leases=False), freed(600.0)),
    ],
)
def test_otherwise_it_is_offered_to_the_worst_off(policy: Themis, view: View) -> None:
    answer = policy.decide(view)
    assert answer.rows.job.tolist() == [1]
    assert np.isnan(answer.until).all()


def test_the_memory_holds_who_has_what_until_when() -> None:
    view = freed(600.0)
    answer = Themis(f=1.0).decide(view)
    memory = leases_after(view, answer, LEASE_S)
    assert memory["leased_to"].tolist() == [key_of(view.apps.names[0]), 0]
    assert memory["leased_until"].tolist() == [600.0, -np.inf]


def test_keys_of_apps_differ_and_are_never_that_of_no_app() -> None:
    keys = {key_of(f"app-{k}") for k in range(1000)}
    assert len(keys) == 1000
    assert min(keys) > 0
