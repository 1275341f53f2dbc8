"""Figures of apps, worked out by hand: searches of trials of 10 s."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from eunomia.metrics import Figures, Metrics
from eunomia.model.decisions import Decision, Start
from eunomia.model.events import AppFinished, Event, JobCancelled, JobFinished, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Node, Topology
from eunomia.testing.small_worlds import DrawnRates, one_type

GPU = (Node(type="gpu", accelerators=1),)


def trial(name: str, app: str = "search", steps: float = 10) -> JobSubmitted:
    return JobSubmitted(Job(job_id=name, app=app, tenant="lab", total_steps=steps))


def sit(name: str, seat: int = 0) -> Start:
    return Start(name, 1, (seat,), math.inf)


def figures_of(
    *story: tuple[float, Sequence[Event], Sequence[Decision]],
    nodes: tuple[Node, ...] = GPU,
    speeds: Speeds | None = None,
) -> Figures:
    metrics = Metrics(Topology.of(nodes), speeds or one_type(), {})
    for at, events, decisions in story:
        metrics.observe(Moment(at, tuple(events)), decisions)
    return metrics.figures()


def test_a_search_ends_when_its_user_reports_it_and_its_work_is_that_of_its_trials() -> None:
    """a does its 10 s, b is cancelled after 6 of its 10: the search needed 16 s by itself and took 16: ρ = 1."""
    figures = figures_of(
        (0, [trial("a"), trial("b")], [sit("a")]),
        (10, [JobFinished("a", 1)], [sit("b")]),
        (16, [JobCancelled("b"), AppFinished("search", "a", 0.25)], []),
    )
    assert figures.jobs["status"].tolist() == ["finished", "cancelled"]
    assert figures.jobs["rho_themis"].tolist() == pytest.approx([1, 1])
    table = {name: column.tolist() for name, column in figures.apps.items()}
    assert table == {
        "app": ["search"], "tenant": ["lab"], "jobs": [2], "submitted_s": [0], "finished_s": [16], "jct_s": [16],
        "best_job": ["a"], "best_loss": [0.25], "attained_service_s": [16], "rho_themis": [1],
    }  # fmt: skip
    assert figures.summary["apps_finished"] == 1
    assert figures.summary["app_jct_mean_s"] == 16


def test_the_work_of_a_cancelled_trial_counts_as_on_its_fastest_type() -> None:
    """6 s on a type of half the speed are 3 s on the fastest. 10 + 3 s of work on two accelerators, but one trial
    alone takes 10: T_cluster = 10, and the search took 10.
    """
    speeds = DrawnRates(types=("fast", "slow"), by_kind={"": (2.0, 1.0)})
    nodes = (Node(type="fast", accelerators=1), Node(type="slow", accelerators=1))
    figures = figures_of(
        (0, [trial("a", steps=20), trial("b", steps=20)], [sit("a"), sit("b", 1)]),
        (6, [JobCancelled("b")], []),
        (10, [JobFinished("a", 1), AppFinished("search", "a", 0.5)], []),
        nodes=nodes,
        speeds=speeds,
    )
    assert figures.summary["rho_themis_max"] == pytest.approx(1.0)
    figures = figures_of(
        (0, [trial("a", steps=20), trial("b", steps=20)], [sit("b", 1)]),
        (6, [JobCancelled("b")], [sit("a")]),
        (16, [JobFinished("a", 1), AppFinished("search", "a", 0.5)], []),
        nodes=nodes,
        speeds=speeds,
    )
    assert figures.summary["rho_themis_max"] == pytest.approx(1.6)


def test_a_search_may_be_over_before_its_trials_are() -> None:
    """The user has enough at 10, and the trial that runs on to 14 is no longer waited for: ρ = 10 / 10."""
    figures = figures_of(
        (0, [trial("a"), trial("b")], [sit("a")]),
        (10, [JobFinished("a", 1), JobCancelled("b"), AppFinished("search", "a", 0.1)], []),
    )
    assert figures.apps["rho_themis"].tolist() == pytest.approx([1.0])


def test_an_app_without_a_reported_end_finishes_with_its_last_job_and_not_before() -> None:
    done = figures_of(
        (0, [trial("a"), trial("b")], [sit("a")]),
        (10, [JobFinished("a", 1)], [sit("b")]),
        (20, [JobFinished("b", 1)], []),
    )
    assert done.apps["finished_s"].tolist() == [20]
    assert done.apps["best_job"].tolist() == [""]
    open_ = figures_of((0, [trial("a"), trial("b")], [sit("a")]), (10, [JobFinished("a", 1), JobCancelled("b")], []))
    assert math.isnan(open_.apps["finished_s"][0])
    assert open_.summary["apps_finished"] == 0
    assert open_.summary["rho_themis_max"] is None


def test_a_search_without_a_model_has_not_finished_but_has_left() -> None:
    """b of the search y is cancelled at 5, and y is over with nothing found; a needs 10 s: ρ = 10 / (10 · 1.5)."""
    figures = figures_of(
        (0, [trial("a", app="x"), trial("b", app="y"), trial("c", app="y")], [sit("a")]),
        (5, [JobCancelled("b"), JobCancelled("c"), AppFinished("y", "", math.inf)], []),
        (10, [JobFinished("a", 1), AppFinished("x", "a", 0.5)], []),
    )
    assert figures.apps["app"].tolist() == ["x", "y"]
    assert figures.apps["rho_themis"].tolist()[0] == pytest.approx(10 / 15)
    for name in ("finished_s", "jct_s", "best_loss", "rho_themis"):
        assert math.isnan(figures.apps[name][1]), name
    assert np.isnan(figures.jobs["rho_themis"][1:]).all()
    counts = {name: figures.summary[name] for name in ("apps_submitted", "apps_finished", "apps_without_model")}
    assert counts == {"apps_submitted": 2, "apps_finished": 1, "apps_without_model": 1}
    assert figures.summary["app_jct_mean_s"] == 10
    assert figures.summary["rho_themis_mean"] == figures.summary["rho_themis_max"] == pytest.approx(10 / 15)
    assert figures.summary["jain_rho"] == 1


def test_an_app_that_is_not_over_is_not_one_without_a_model() -> None:
    open_ = figures_of((0, [trial("a"), trial("b")], [sit("a")]), (10, [JobFinished("a", 1)], []))
    assert (open_.summary["apps_finished"], open_.summary["apps_without_model"]) == (0, 0)


def test_an_app_that_has_left_no_longer_counts_as_present() -> None:
    """b of another app is cancelled at 5; a needs 10 s and has them 0–10. On average 1.5 were there: ρ = 10 / 15."""
    figures = figures_of(
        (0, [trial("a", app="x"), trial("b", app="y")], [sit("a")]),
        (5, [JobCancelled("b")], []),
        (10, [JobFinished("a", 1)], []),
        (90, [JobSubmitted(Job(job_id="c", submitted=90, total_steps=10))], [sit("c")]),
        (100, [JobFinished("c", 1)], []),
    )
    assert figures.jobs["rho_themis"].tolist()[0] == pytest.approx(10 / 15)


def test_the_worst_and_the_average_are_of_apps_and_not_of_jobs() -> None:
    """The search of two has ρ = 20 / 20, alone at 0–20; then c and d come together: 1/2 and 20 / (10 · 1.5)."""
    figures = figures_of(
        (0, [trial("a"), trial("b")], [sit("a")]),
        (10, [JobFinished("a", 1)], [sit("b")]),
        (20, [JobFinished("b", 1)], []),
        (20, [JobSubmitted(Job(job_id=name, submitted=20, total_steps=10)) for name in "cd"], [sit("c")]),
        (30, [JobFinished("c", 1)], [sit("d")]),
        (40, [JobFinished("d", 1)], []),
    )
    rho = [1, 1 / 2, 4 / 3]
    assert figures.summary["rho_themis_mean"] == pytest.approx(sum(rho) / 3)
    assert figures.summary["jain_rho"] == pytest.approx(sum(rho) ** 2 / (3 * sum(x * x for x in rho)))


def test_where_no_app_has_several_jobs_there_is_no_table() -> None:
    figures = figures_of((0, [trial("a")], [sit("a")]), (10, [JobFinished("a", 1)], []))
    assert figures.apps == {}
    assert figures.summary["apps_finished"] is None
