"""A job that cannot save keeps its seats until it ends, whatever a policy answers and however time is cut."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from eunomia import simulate
from eunomia.inputs.problems import InvalidInput
from eunomia.model.answers import Grants, Rows
from eunomia.model.decisions import Start, Stop
from eunomia.model.events import JobCancelled, JobFinished, JobSubmitted, JobUpdated
from eunomia.model.job import Job
from eunomia.model.policy import LeaseTerms, Policy, PolicyInfo
from eunomia.model.view import View
from eunomia.policies.order.las import Las
from eunomia.policies.order.srtf import Srtf
from eunomia.policies.shares.max_min_fairness import MaxMinFairness
from eunomia.testing.small_worlds import DrawnRates, SmallWorld, draw, line_up, one_type, play

from .conftest import Desk

Sit = Callable[..., Desk]


def world(*jobs: Job, seats: int = 1) -> SmallWorld:
    drawn = draw(0)
    return replace(
        drawn, nodes=(replace(drawn.nodes[0], type="gpu", accelerators=seats),), jobs=jobs, speeds=one_type()
    )


@pytest.mark.parametrize(("can_save", "ends"), [(True, {"a": 300, "b": 110}), (False, {"a": 200, "b": 300})])
def test_a_shorter_job_waits_for_a_job_that_cannot_save(can_save: bool, ends: dict[str, float]) -> None:
    """One seat; b comes at 10 s and needs 100 s, a 200 s."""
    a, b = line_up((0, 200), (10, 100))
    assert play(Srtf(), world(replace(a, interruptible=can_save), b)).finished == ends


def test_its_seats_outlast_the_rounds_in_which_others_take_turns() -> None:
    """Two seats: a holds one to its end at 1000 s; b and c take turns on the other."""
    a, b, c = line_up((0, 1000), (0, 600), (0, 600))
    played = play(MaxMinFairness(), world(replace(a, interruptible=False), b, c, seats=2))
    assert played.finished["a"] == 1000
    stops = Counter(one.job_ids for _, one in played.decisions if isinstance(one, Stop))
    assert stops[("a",)] == 0
    assert stops[("b",)] + stops[("c",)] > 0


@dataclass(frozen=True)
class StopsAll:
    """Takes all seats back whenever it is asked, and gives accelerator 0 to the last job."""

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="stops_all", answer_type="grants", objective="", technique="", paper="", needs=frozenset()
    )

    def decide(self, view: View) -> Grants:
        last = np.array([view.jobs - 1])
        rows = Rows(last, np.zeros_like(last))
        return Grants(
            rows, np.zeros(1, dtype=int), np.zeros(1, dtype=int), np.full(1, np.nan), stop=np.arange(view.jobs)
        )


def submitted(name: str, *, interruptible: bool = True) -> JobSubmitted:
    return JobSubmitted(Job(job_id=name, total_steps=1000, sequence=ord(name), interruptible=interruptible))


def test_grants_cannot_take_its_seats_back(sit: Sit) -> None:
    desk = sit(StopsAll(), (2,))
    desk.tell(0, submitted("a", interruptible=False))
    assert not [one for one in desk.tell(10, submitted("b")) if isinstance(one, Stop | Start)]
    assert [one.job_id for one in desk.tell(20, JobFinished("a", 1)) if isinstance(one, Start)] == ["b"]
    assert [one.job_ids for one in desk.tell(30, submitted("c")) if isinstance(one, Stop)] == [("b",)]


@dataclass(frozen=True)
class Together(StopsAll):
    """The first two jobs share accelerator 0; of others the last has it."""

    def decide(self, view: View) -> Grants:
        if view.jobs != 2:
            return super().decide(view)
        rows = Rows(np.array([0]), np.array([0]), partner=np.array([1]))
        return Grants(rows, np.zeros(1, dtype=int), np.zeros(1, dtype=int), np.full(1, np.nan))


@pytest.mark.parametrize("cannot_save", ["a", "b"])
def test_a_pair_stays_until_the_job_that_cannot_save_has_ended(sit: Sit, cannot_save: str) -> None:
    speeds = DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, shared=0.5)
    desk = sit(Together(), (2,), speeds=speeds)
    desk.tell(0, *(submitted(name, interruptible=name != cannot_save) for name in "ab"))
    assert not [one for one in desk.tell(10, submitted("c")) if isinstance(one, Stop | Start)]
    (other,) = {"a", "b"} - {cannot_save}
    later = [*desk.tell(20, JobFinished(cannot_save, 1)), *desk.tell(30, submitted("d"))]
    assert other in {name for one in later if isinstance(one, Stop) for name in one.job_ids}


def test_its_user_may_still_cancel_it(sit: Sit) -> None:
    desk = sit(Srtf(), (1,))
    desk.tell(0, submitted("a", interruptible=False))
    assert [one.job_ids for one in desk.tell(5, JobCancelled("a")) if isinstance(one, Stop)] == [("a",)]


@pytest.mark.parametrize("terms", [LeaseTerms(recall=True), LeaseTerms(length_s=30.0)])
@pytest.mark.parametrize("policy", [Las(quantum=50.0), Srtf(), MaxMinFairness()])
def test_where_no_job_can_save_none_is_stopped(policy: Policy, terms: LeaseTerms) -> None:
    drawn = draw(3, jobs=12)
    jobs = tuple(replace(job, interruptible=False) for job in drawn.jobs)
    played = play(policy, replace(drawn, jobs=jobs), terms=terms)
    assert not [one for _, one in played.decisions if isinstance(one, Stop)]
    assert played.counts == {"finished": 12}


def scenario(tmp_path: Path, **tables: Any) -> dict[str, Any]:
    """One accelerator; a job of 1000 s, and from 10 s on one of 100 s."""
    (tmp_path / "jobs.csv").write_text(
        "job_id,submitted_s,scale_factor,job_type,duration_s,interruptible\na,0,1,any,1000,no\nb,10,1,any,100,yes\n"
        "c,20,1,any,50,\n"
    )
    return {
        "cluster": {"accelerators": {"v100": 1}},
        "workload": {"trace": str(tmp_path / "jobs.csv")},
        "throughputs": {"source": "uniform"},
        "policy": {"name": "srtf"},
        **tables,
    }


def test_a_trace_says_which_jobs_can_save_and_a_scenario_that_none_can(tmp_path: Path) -> None:
    asked = scenario(tmp_path)
    assert simulate(asked).jobs["finished_s"].tolist() == [1000, 1150, 1050]
    (tmp_path / "jobs.csv").write_text((tmp_path / "jobs.csv").read_text().replace(",no", ",yes"))
    assert simulate(asked).jobs["finished_s"].tolist() == [1150, 160, 70]
    asked["workload"]["interruptible"] = False
    assert simulate(asked).jobs["finished_s"].tolist() == [1000, 1150, 1050]


@pytest.mark.parametrize(("mechanism", "policy"), [("ideal", "max_min_fairness"), ("gavel", "max_min_fairness")])
def test_a_mechanism_that_divides_time_refuses_jobs_that_cannot_save(
    tmp_path: Path, mechanism: str, policy: str
) -> None:
    with pytest.raises(InvalidInput, match="jobs cannot be interrupted"):
        simulate(scenario(tmp_path, mechanism={"name": mechanism}, policy={"name": policy}))


def test_a_long_history_of_jobs_that_can_save_meets_one_that_cannot(tmp_path: Path) -> None:
    """The compiled loop, which answers for las, hands over before the first job that cannot save is submitted."""
    lines = ["job_id,submitted_s,scale_factor,job_type,duration_s,interruptible"]
    lines += [f"{k},{200 * k},1,any,{500 if k % 3 else 90},true" for k in range(60)]
    lines += ["held,12001,1,any,9000,false", *(f"late {k},{12_500 + 100 * k},1,any,50,true" for k in range(20))]
    asked = scenario(tmp_path, policy={"name": "las", "quantum": 100.0})
    (tmp_path / "jobs.csv").write_text("\n".join([*lines, ""]))
    jobs = simulate(asked).jobs
    place = jobs["job_id"].tolist().index("held")
    assert jobs["preemptions"].sum() > 0
    assert jobs["preemptions"][place] == 0
    assert jobs["finished_s"][place] - jobs["first_started_s"][place] == 9000


def window(name: str, seconds: float = 20.0) -> JobSubmitted:
    """A job that cannot save, and may be stopped once in its first seconds."""
    job = Job(job_id=name, total_steps=1000, sequence=ord(name), interruptible=False, restart_within_s=seconds)
    return JobSubmitted(job)


def stops(decisions: list[Any]) -> list[str]:
    return [name for one in decisions if isinstance(one, Stop) for name in one.job_ids]


def test_within_its_window_it_is_stopped_once_and_then_keeps_its_seats(sit: Sit) -> None:
    """`StopsAll` gives accelerator 0 to the last job whenever it is asked."""
    desk = sit(StopsAll(), (1,))
    desk.tell(0, window("a"))
    assert stops(desk.tell(10, submitted("b"))) == ["a"]
    assert [one.job_id for one in desk.tell(15, JobFinished("b", 1)) if isinstance(one, Start)] == ["a"]
    assert stops(desk.tell(16, submitted("c"))) == []  # within the window still, but for the second time


def test_after_its_window_it_keeps_its_seats(sit: Sit) -> None:
    desk = sit(StopsAll(), (1,))
    desk.tell(0, window("a"))
    assert stops(desk.tell(20, submitted("b"))) == []


def test_a_partner_that_can_save_may_be_stopped_once_the_job_with_a_window_has_ended(sit: Sit) -> None:
    speeds = DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, shared=0.5)
    desk = sit(Together(), (2,), speeds=speeds, terms=LeaseTerms(length_s=30.0))
    desk.tell(0, window("a"), submitted("b"))
    assert stops(desk.tell(25, submitted("c"))) == stops(desk.tell(60, submitted("d"))) == []
    jobs = desk.scheduler.state.jobs
    assert jobs.held[:2].all() and jobs.until[:2].tolist() == [math.inf, 30.0]  # b's lease is over once a has left
    assert stops(desk.tell(110, JobFinished("a", 1))) == ["b"]


def test_a_lease_that_ends_after_the_window_ends_no_more() -> None:
    """One seat, rounds of 30 s: a, with a window of 10 s, runs to its end at 200 s; with one of 40 s it is stopped."""
    ends = {}
    for seconds in (10.0, 40.0):
        a, b = line_up((0, 200), (5, 20))
        jobs = replace(a, interruptible=False, restart_within_s=seconds), b
        terms = LeaseTerms(length_s=30.0, aligned=True)
        ends[seconds] = play(Srtf(), world(*jobs), terms=terms).finished
    assert ends[10.0] == {"a": 200, "b": 220}
    assert ends[40.0] == {"b": 50, "a": 250}  # 30 s of work are lost


def test_a_job_that_shows_that_it_can_save_may_be_stopped_from_then_on(sit: Sit) -> None:
    desk = sit(StopsAll(), (1,))
    desk.tell(0, submitted("a", interruptible=False))
    assert stops(desk.tell(10, submitted("b"))) == []
    assert stops(desk.tell(20, JobUpdated("a", can_save=True))) == ["a"]


@pytest.mark.parametrize("exact", [False, True])
def test_a_job_that_is_stopped_though_it_cannot_save_starts_over(tmp_path: Path, exact: bool) -> None:
    """One accelerator: a is stopped at 10 s, after 10 s of work, for b of 100 s; then it needs its 1000 s again."""
    asked = scenario(tmp_path)
    (tmp_path / "jobs.csv").write_text(
        "job_id,submitted_s,scale_factor,job_type,duration_s,interruptible\na,0,1,any,1000,no\nb,10,1,any,100,yes\n"
        "c,200,1,any,50,\n"
    )
    asked["workload"]["restart_within_s"] = 60.0
    if exact:
        asked["physics"] = {"placement": "off", "neighbours": "off"}
        asked["world"] = {"job_failures_per_hour": 1e-9}
    jobs = simulate(asked).jobs
    assert jobs["finished_s"].tolist() == [1110, 110, 1160]
    assert jobs["preemptions"].tolist() == [1, 0, 0]
