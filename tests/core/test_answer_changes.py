"""Answers as what differs from the one before: what is read is what was written, to the last bit."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.core.answer_rows import PendingAsk
from eunomia.model.answers import Answer, Grants, Order, Rows, Shares
from eunomia.model.certificate import Certificate
from eunomia.model.events import Answered, Moment, TimerFired
from eunomia.model.wait_reason import Reason, WaitReasons
from eunomia.records.moment_log import MomentLog
from eunomia.records.record import moment_line, to_json
from eunomia.records.row_changes import RowMap

VALUES = np.array([0.0, -0.0, 0.5, np.nan, np.inf, 1 / 3])
REASONS: tuple[Reason | str, ...] = (
    "fair share: none left",
    Reason("all_leased"),
    Reason("auction_lost", numbers=(3,)),
)


def candidates(rng: np.random.Generator, n: int) -> Rows:
    """Return rows of the view, some of them with a partner, a shape and a place."""
    job = rng.permutation(n)[: rng.integers(0, n + 1)]
    others: dict[str, Any] = {}
    for name, low, high in (("partner", -1, n), ("shape", 0, 3), ("within", -1, 1)):
        if rng.random() < 0.3:
            others[name] = rng.integers(low, high, len(job))
    return Rows(job, rng.integers(0, 3, len(job)), **others)


def draw_answer(rng: np.random.Generator, n: int) -> Answer:
    rows, kind = candidates(rng, n), rng.integers(4)
    answer: Answer
    if kind == 0:
        answer = Shares(rng.choice(VALUES, (n, 3)))
    elif kind == 1:
        answer = Shares(rng.choice(VALUES, len(rows)), rows, fill=False)
    elif kind == 2:
        answer = Order(rows, misfit="reserve")
    else:
        seats = rng.integers(0, 9, 4)
        answer = Grants(rows, seats, seats + 1, rng.choice(VALUES, len(rows)), stop=rng.permutation(n)[:2])
    proof = Certificate(objective=0.1, bound=0.2, price=rng.choice(VALUES, 3), binding=rng.integers(0, 4, n))
    return replace(
        answer,
        again_at=float(rng.integers(5, 9)),
        late=tuple(rng.permutation(n)[:2].tolist()),
        refuse={int(m): "too wide" for m in rng.permutation(n)[:1]},
        memory={
            "luck": rng.choice(VALUES, n),
            "name": "ann",
            "own": rng.choice(VALUES, 2),
            "words": np.array(["a"] * 2),
        },
        why={int(m): REASONS[rng.integers(3)] for m in rng.permutation(n)[:3]},
        certificate=proof if rng.random() < 0.5 else None,
    )


def as_written(answer: Answer) -> Any:
    """Return all of an answer to the last bit, with its reasons as values by row."""
    why = sorted((int(m), str(Reason.of(said)), Reason.of(said).kind) for m, said in answer.why.items())
    return json.dumps([to_json(replace(answer, why={})), why])


@given(st.integers(0, 2**32 - 1))
def test_a_series_of_answers_about_jobs_that_come_and_go_is_read_as_it_was_written(seed: int) -> None:
    rng, log, reader, jobs = np.random.default_rng(seed), MomentLog(), MomentLog(), np.arange(6)
    answer = draw_answer(rng, 6)
    for asked in range(6):
        if rng.random() < 0.7:
            jobs = np.union1d(jobs[rng.random(len(jobs)) < 0.8], jobs.max(initial=0) + np.arange(rng.integers(1, 3)))
            if rng.random() < 0.2:
                jobs = np.arange(len(jobs))  # numbered anew, as where rows of ended jobs are dropped
            answer = draw_answer(rng, len(jobs))
        if rng.random() < 0.2:
            log.begin()
        moment = Moment.of(float(asked), (TimerFired(), Answered(asked, answer)))
        read = reader.read(log.lines(moment, (), PendingAsk(asked, jobs)))
        (found,) = (event for event in read.events if isinstance(event, Answered))
        assert (read.at, found.asked, len(read.events)) == (asked, asked, 2)
        assert as_written(found.answer) == as_written(answer)
        if rng.random() < 0.2:
            reader = MomentLog()  # as at a restart from a snapshot, after which the writer begins anew
            log.begin()


def test_an_answer_whose_predecessor_was_not_read_is_refused() -> None:
    log, jobs = MomentLog(), np.arange(3)
    lines = [
        log.lines(Moment.of(1.0, (Answered(asked, Order(Rows(jobs, jobs * 0))),)), (), PendingAsk(asked, jobs))
        for asked in range(2)
    ]
    with pytest.raises(ValueError, match="differs from that to ask 0"):
        MomentLog().read(lines[1])


def test_moments_of_before_with_whole_answers_are_read() -> None:
    answer = Order(Rows(np.arange(3), np.zeros(3, dtype=np.int64)), why={1: "quota: none left"})
    moment = Moment.of(1.0, (Answered(0, answer),))
    assert moment_line(MomentLog().read(moment_line(moment))) == moment_line(moment)


def test_an_answer_that_changes_after_it_was_written_changes_nothing_that_is_read() -> None:
    log, reader, jobs, x = MomentLog(), MomentLog(), np.arange(500), np.linspace(0, 1, 1500).reshape(500, 3)
    for asked in range(3):
        lines = log.lines(Moment.of(1.0, (Answered(asked, Shares(x)),)), (), PendingAsk(asked, jobs))
        (found,) = reader.read(lines).events
        assert isinstance(found, Answered) and as_written(found.answer) == as_written(Shares(x))
        x[asked] = 0.125


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("gone", [0, 1, 300])
def test_an_order_is_written_as_what_moved_in_it_also_where_jobs_before_have_ended(gone: int, anew: bool) -> None:
    log, rng, n = MomentLog(), np.random.default_rng(1), 5000
    line, jobs = rng.permutation(n), np.arange(n)
    why = WaitReasons.of(n, line[:4000], Reason("queue_quota"))
    log.lines(Moment.of(0.0, (Answered(0, Order(Rows(line, line % 3), why=why)),)), (), PendingAsk(0, jobs))
    ended = rng.permutation(n)[:gone]
    stays = np.setdiff1d(jobs, ended)
    place = np.full(n, -1)
    place[stays] = np.arange(len(stays))
    left = line[np.isin(line, stays)]
    moved = np.concatenate((left[5:7], left[:5], left[7:]))
    answer = Order(Rows(place[moved], moved % 3), why=WaitReasons(why.code[stays], why.reasons))  # type: ignore
    if anew:  # rows of ended jobs are dropped in between
        log.renumber(place)
    lines = log.lines(Moment.of(1.0, (Answered(1, answer),)), (), PendingAsk(1, place[stays] if anew else stays))
    assert len(lines) < 600 + 4 * gone


@given(st.integers(0, 2**32 - 1))
def test_answers_between_which_rows_are_dropped_are_read_as_they_were_written(seed: int) -> None:
    rng, log, reader, jobs = np.random.default_rng(seed), MomentLog(), MomentLog(), np.arange(8)
    for asked in range(6):
        answer = draw_answer(rng, len(jobs))
        read = reader.read(log.lines(Moment.of(0.0, (Answered(asked, answer),)), (), PendingAsk(asked, jobs)))
        (found,) = read.events
        assert isinstance(found, Answered) and as_written(found.answer) == as_written(answer)
        rows = jobs.max(initial=-1) + 1
        for _ in range(rng.integers(0, 3)):  # also twice before the next answer
            stays = rng.random(rows) < 0.7
            row = np.where(stays, np.cumsum(stays) - 1, -1)
            log.renumber(row)
            jobs, rows = row[jobs][row[jobs] >= 0], int(stays.sum())
        jobs = np.append(jobs, rows + np.arange(rng.integers(1, 4)))


def test_numbers_that_do_not_rise_are_of_other_jobs() -> None:
    for old, new in (([2, 1], [0, 1]), ([0, 1], [2, 1]), ([2, 1], [2, 1])):
        rows = RowMap.between(np.array(old), np.array(new))
        assert rows.now.tolist() == [-2, -2, -1] and rows.before.tolist() == [-1, -1]
