"""Which answers the core takes, which it drops, and which it refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from eunomia.model.answers import Answer, Grants, InvalidAnswer, Order, Rows, Shares
from eunomia.model.decisions import Start, Stop
from eunomia.model.events import Answered, JobCancelled, JobFinished, JobSubmitted, NodeLost
from eunomia.model.job import Job
from eunomia.model.policy import ENDLESS, RECALLABLE, ROUNDS, PolicyInfo
from eunomia.model.view import View
from eunomia.model.wait_reason import Reason


def ints(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


@dataclass(frozen=True)
class Reported:
    """Answers nothing by itself: the test does."""

    info: PolicyInfo

    def decide(self, view: View) -> Answer:
        raise AssertionError("the test answers by itself")


def reported(door: Any, **more: Any) -> Reported:
    terms = {"order": RECALLABLE, "grants": ENDLESS, "shares": ROUNDS}[door]
    needs = frozenset({"scale_factor"})
    card = PolicyInfo(
        name="reported", answer_type=door, objective="", technique="", paper="", needs=needs, mechanism=terms, **more
    )
    return Reported(card)


def submitted(*names: str, size: int = 1, **more: Any) -> list[JobSubmitted]:
    return [
        JobSubmitted(Job(job_id=name, total_steps=100, sequence=i, scale_factor=size, **more))
        for i, name in enumerate(names)
    ]


ONE, OTHER = Rows(ints(0), ints(0)), Rows(ints(1), ints(0))

BAD_ORDERS = {
    "a job outside 0 … 1": Order(Rows(ints(2), ints(0))),
    "a job outside": Order(Rows(ints(-1), ints(0))),
    "a type outside 0 … 0": Order(Rows(ints(0), ints(1))),
    "differ in length": Order(Rows(ints(0, 1), ints(0))),
    "pairs a job with itself": Order(Rows(ints(0), ints(0), partner=ints(0))),
    "a partner outside": Order(Rows(ints(0), ints(0), partner=ints(7))),
    "shape 3 of a job that has 1": Order(Rows(ints(0), ints(0), shape=ints(3))),
    "asked again at -1": Order(ONE, again_at=-1.0),
}
BAD_GRANTS = {
    "1 seats; its gang is 2": Grants(ONE, ints(0), ints(0), np.array([np.nan])),
    "one device twice": Grants(ONE, ints(0, 0), ints(1, 1), np.array([np.nan])),
    "granted until 0.0, but it is 0": Grants(ONE, ints(0, 0), ints(0, 1), np.array([0.0])),
    "a device outside 0 … 3": Grants(ONE, ints(0, 0), ints(3, 4), np.array([np.nan])),
}
BAD_SHARES = {
    r"x has shape \(1, 1\); it should be \(2, 1\)": Shares(np.ones((1, 1))),
    r"x has shape \(2,\) for 1 rows": Shares(np.ones(2), rows=ONE),
}
CASES = [
    (door, what, answer)
    for door, cases in (("order", BAD_ORDERS), ("grants", BAD_GRANTS), ("shares", BAD_SHARES))
    for what, answer in cases.items()
]


@pytest.mark.parametrize(("door", "what", "answer"), CASES, ids=[f"{door}: {what}" for door, what, _ in CASES])
def test_an_answer_that_cannot_be_carried_out_is_refused_and_says_why(
    sit: Any, door: str, what: str, answer: Answer
) -> None:
    desk = sit(reported(door), (2, 2))
    desk.observe(0, *submitted("a", "b", size=2))
    with pytest.raises(InvalidAnswer, match=what):
        desk.answer(0, answer)


def test_a_pair_of_gangs_of_two_sizes_is_refused(sit: Any) -> None:
    desk = sit(reported("order"), (4,))
    desk.observe(0, *submitted("a"), JobSubmitted(Job(job_id="b", total_steps=9, sequence=5, scale_factor=2)))
    with pytest.raises(InvalidAnswer, match="different scale factors"):
        desk.answer(0, Order(Rows(ints(0), ints(0), partner=ints(1))))


def test_what_is_no_answer_is_refused(sit: Any) -> None:
    desk = sit(reported("order"))
    desk.observe(0, *submitted("a"))
    with pytest.raises(
        InvalidAnswer, match="'reported' at 0 s: it answered Answer, and its card says answer_type='order'"
    ):
        desk.answer(0, Answer())


def test_a_job_that_ran_cannot_be_refused(sit: Any) -> None:
    desk = sit(reported("order"))
    desk.observe(0, *submitted("a"))
    desk.answer(0, Order(ONE))
    desk.observe(1, JobSubmitted(Job(job_id="b", total_steps=1, submitted=1, sequence=9)))
    with pytest.raises(InvalidAnswer, match="refused job 'a', which has run already"):
        desk.answer(1, Order(ONE, refuse={0: "no"}))


def test_an_answer_to_a_question_that_is_no_longer_open_is_dropped(sit: Any) -> None:
    desk = sit(reported("order"), (2,))
    desk.observe(0, *submitted("a", "b"))
    assert desk.answer(0, Order(ONE)) == [Start("a", 1, (0,), np.inf)]
    assert desk.observe(1, Answered(0, Order(OTHER))) == []


def test_of_a_late_answer_what_ended_meanwhile_is_dropped_and_the_rest_used(sit: Any) -> None:
    desk = sit(reported("order"))
    desk.observe(0, *submitted("a", "b"))
    assert desk.observe(5, JobCancelled("a")) == []  # the question of 0 is still open
    assert desk.answer(7, Order(Rows(ints(0, 1), ints(0, 0)))) == [Start("b", 1, (0,), np.inf)]


def test_a_late_grant_of_a_seat_that_went_is_dropped_whole(sit: Any) -> None:
    desk = sit(reported("grants"), (2, 2))
    desk.observe(0, *submitted("a", "b", size=2))
    desk.observe(5, NodeLost(0))
    both = Grants(Rows(ints(0, 1), ints(0, 0)), ints(0, 0, 1, 1), ints(0, 2, 1, 3), np.full(2, np.nan))
    assert [d for d in desk.answer(7, both) if isinstance(d, Start)] == []


def test_grants_are_changes_who_is_not_named_keeps_its_seats(sit: Any) -> None:
    desk = sit(reported("grants"), (2,))
    desk.observe(0, *submitted("a", "b"))
    desk.answer(0, Grants(ONE, ints(0), ints(0), np.array([np.nan])))
    desk.observe(1, JobSubmitted(Job(job_id="c", total_steps=1, submitted=1, sequence=9)))
    assert desk.answer(1, Grants(OTHER, ints(0), ints(1), np.array([np.nan]))) == [Start("b", 1, (1,), np.inf)]


def test_grants_may_stop_one_and_give_its_seats_to_another(sit: Any) -> None:
    desk = sit(reported("grants"))
    desk.observe(0, *submitted("a", "b"))
    desk.answer(0, Grants(ONE, ints(0), ints(0), np.array([np.nan])))
    desk.observe(1, JobSubmitted(Job(job_id="c", total_steps=1, submitted=1, sequence=9)))
    swap = Grants(OTHER, ints(0), ints(0), np.array([np.nan]), stop=ints(0))
    assert desk.answer(1, swap) == [Stop(("a",), (1,)), Start("b", 1, (0,), np.inf)]


def test_an_order_takes_no_seat_that_may_not_be_recalled(sit: Any) -> None:
    desk = sit(reported("order"), (1, 1), terms=ENDLESS)
    desk.observe(0, *submitted("a"))
    desk.answer(0, Order(ONE))
    desk.observe(1, JobSubmitted(Job(job_id="b", total_steps=1, submitted=1, sequence=9)))
    assert desk.answer(1, Order(Rows(ints(1, 0), ints(0, 0)))) == [Start("b", 1, (1,), np.inf)]


def test_memory_comes_back_with_jobs_in_their_rows_of_today(sit: Any) -> None:
    desk = sit(reported("order", memory_columns={"luck": -1.0}), (1,))
    desk.observe(0, *submitted("a", "b", "c"))
    assert desk.asks[-1].view.memory["luck"].tolist() == [-1, -1, -1]
    desk.answer(0, Order(ONE, memory={"luck": np.array([1.0, 2.0, 3.0]), "debt": np.array([7.0])}))
    desk.observe(1, JobFinished("a", 1), JobSubmitted(Job(job_id="d", total_steps=1, submitted=1, sequence=9)))
    assert desk.asks[-1].view.memory["luck"].tolist() == [2, 3, -1]
    assert desk.asks[-1].view.memory["debt"].tolist() == [7]


def test_every_question_has_a_seed_of_its_own(sit: Any) -> None:
    desk = sit(reported("order"), (1,))
    desk.observe(0, *submitted("a", "b"))
    desk.answer(0, Order(ONE))
    desk.observe(1, JobFinished("a", 1))
    seeds = [ask.view.seed for ask in desk.asks]
    assert len(set(seeds)) == len(seeds) == 2


def test_a_reason_to_wait_is_kept_for_explanations(sit: Any) -> None:
    desk = sit(reported("order"))
    desk.observe(0, *submitted("a", "b"))
    desk.answer(0, Order(ONE, why={1: "behind a"}))
    assert [desk.scheduler.asks.why_of(row) for row in (0, 1)] == [None, Reason("stated", text="behind a")]


def test_both_of_a_pair_leave_a_node_that_is_lost(sit: Any) -> None:
    desk = sit(reported("order"), (1, 1))
    desk.observe(0, *submitted("a", "b"))
    assert desk.answer(0, Order(Rows(ints(0), ints(0), partner=ints(1)))) == [Start("a", 1, (0,), np.inf, 0, "b", 1)]
    assert Stop(("a", "b"), (1, 1), save=False) in desk.observe(5, NodeLost(0))
