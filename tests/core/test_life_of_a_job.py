"""These events give exactly these decisions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from eunomia.model.answers import Rows
from eunomia.model.decisions import Ask, Refuse, Renew, SetTimer, Start, Stop
from eunomia.model.events import (
    AcceleratorsTaken,
    GangAdopted,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobSubmitted,
    Moment,
    NodeJoined,
    NodeLost,
    Progressed,
    TimerFired,
)
from eunomia.model.job import Job
from eunomia.model.policy import LeaseTerms
from eunomia.policies.order.fifo import Fifo
from eunomia.policies.order.las import Las
from eunomia.policies.order.srtf import Srtf
from eunomia.policies.shares.max_min_fairness import MaxMinFairness

FOREVER = math.inf


def test_a_job_starts_on_free_seats_and_its_successor_on_those_it_leaves(sit: Any) -> None:
    desk = sit(Fifo())
    assert desk.submit(0, "a", "b") == [Start("a", 1, (0,), FOREVER)]
    assert desk.tell(100, JobFinished("a", 1)) == [Start("b", 1, (0,), FOREVER)]
    assert desk.tell(200, JobFinished("b", 1)) == []


def test_a_gang_sits_close_together_or_not_at_all(sit: Any) -> None:
    desk = sit(Fifo(), (2, 4))
    assert desk.submit(0, "a", scale_factor=4) == [Start("a", 1, (2, 3, 4, 5), FOREVER)]
    assert desk.submit(1, "b", scale_factor=3) == []
    assert desk.tell(2, JobFinished("a", 1)) == [Start("b", 1, (2, 3, 4), FOREVER)]


def test_a_running_job_that_is_cancelled_stops_without_a_checkpoint(sit: Any) -> None:
    desk = sit(Fifo())
    desk.submit(0, "a", "b")
    assert desk.tell(5, JobCancelled("a")) == [Stop(("a",), (1,), save=False), Start("b", 1, (0,), FOREVER)]
    assert desk.tell(6, JobFinished("a", 1)) == []  # too late


def test_a_waiting_job_that_is_cancelled_is_never_started(sit: Any) -> None:
    desk = sit(Fifo())
    desk.submit(0, "a", "b", "c")
    assert desk.tell(5, JobCancelled("b")) == []
    assert desk.tell(100, JobFinished("a", 1)) == [Start("c", 1, (0,), FOREVER)]


def test_a_job_may_be_cancelled_twice_or_after_its_end(sit: Any) -> None:
    desk = sit(Fifo())
    desk.submit(0, "a")
    assert desk.tell(1, JobFinished("a", 1)) == []
    assert desk.tell(2, JobCancelled("a")) == []
    assert desk.tell(3, JobCancelled("a")) == []


def test_a_gang_that_was_found_running_is_taken_back_on_the_accelerators_that_it_has(sit: Any) -> None:
    desk = sit(Fifo(), (4,))
    desk.tell(0, AcceleratorsTaken((0, 1, 2, 3)))
    assert desk.submit(1, "a", "b", scale_factor=2) == []
    assert desk.tell(5, AcceleratorsTaken((0, 1)), GangAdopted("b", 3, (2, 3), FOREVER)) == [
        Start("b", 3, (2, 3), FOREVER)
    ]
    assert desk.tell(6, AcceleratorsTaken(())) == [Start("a", 1, (0, 1), FOREVER)]
    assert desk.tell(7, JobFinished("b", 3)) == []
    assert desk.tell(8, JobFinished("a", 1)) == []


@pytest.mark.parametrize(
    "found",
    [
        GangAdopted("a", 2, (1,), FOREVER),  # it runs
        GangAdopted("b", 2, (0,), FOREVER),  # held by another
        GangAdopted("b", 2, (1, 2), FOREVER),  # of another size
        GangAdopted("b", 0, (1,), FOREVER),  # an earlier start
        GangAdopted("c", 1, (1,), FOREVER),  # it has ended
    ],
)
def test_a_gang_that_cannot_be_its_jobs_is_not_taken_back(sit: Any, found: GangAdopted) -> None:
    desk = sit(Fifo(), (3,))
    desk.submit(0, "a")
    desk.tell(1, AcceleratorsTaken((1, 2)))
    desk.submit(2, "b", "c")
    desk.tell(3, JobCancelled("c"))
    decided = desk.tell(4, AcceleratorsTaken((2,)) if len(found.devices) == 1 else AcceleratorsTaken(()), found)
    assert Start(found.job_id, found.epoch, found.devices, FOREVER) not in decided


def test_a_gang_that_loses_a_node_is_stopped_whole_and_waits_for_room(sit: Any) -> None:
    desk = sit(Fifo(), (2, 2))
    desk.submit(0, "wide", scale_factor=4)
    assert desk.tell(10, NodeLost(0)) == [Stop(("wide",), (1,), save=False)]
    assert desk.tell(20, NodeJoined(0)) == [Start("wide", 2, (0, 1, 2, 3), FOREVER)]


def test_a_gang_moves_to_the_node_that_is_left(sit: Any) -> None:
    desk = sit(Fifo(), (2, 2))
    desk.submit(0, "a", scale_factor=2)
    assert desk.tell(10, NodeLost(0)) == [Stop(("a",), (1,), save=False), Start("a", 2, (2, 3), FOREVER)]


@pytest.mark.parametrize("backfill", ["none", "skip", "easy"])
def test_a_gang_too_wide_for_what_is_in_service_holds_no_job_up(sit: Any, backfill: Any) -> None:
    desk = sit(Fifo(backfill=backfill), (2, 2))
    desk.tell(0, NodeLost(1))
    desk.submit(1, "wide", scale_factor=4)
    assert desk.submit(2, "small") == [Start("small", 1, (0,), FOREVER)]
    desk.tell(3, NodeJoined(1))
    assert desk.tell(102, JobFinished("small", 1)) == [Start("wide", 1, (0, 1, 2, 3), FOREVER)]


def test_a_node_may_be_lost_or_found_twice(sit: Any) -> None:
    desk = sit(Fifo(), (1, 1))
    assert desk.tell(0, NodeLost(0)) == []
    assert desk.tell(1, NodeLost(0)) == []
    assert desk.tell(2, NodeJoined(0)) == []
    assert desk.tell(3, NodeJoined(0)) == []
    assert desk.submit(4, "a", "b") == [Start("a", 1, (0,), FOREVER), Start("b", 1, (1,), FOREVER)]


def test_a_failed_job_without_retries_is_not_started_again(sit: Any) -> None:
    desk = sit(Fifo())
    desk.submit(0, "a", "b")
    assert desk.tell(10, JobFailed("a", 1, "out of memory")) == [Start("b", 1, (0,), FOREVER)]
    assert desk.tell(110, JobFinished("b", 1)) == []


def test_a_failed_job_is_started_again_as_often_as_it_may_be(sit: Any) -> None:
    desk = sit(Fifo())
    desk.submit(0, "a", retries=2)
    assert desk.tell(10, JobFailed("a", 1, "chance")) == [Start("a", 2, (0,), FOREVER)]
    assert desk.tell(20, JobFailed("a", 2, "chance")) == [Start("a", 3, (0,), FOREVER)]
    assert desk.tell(30, JobFailed("a", 3, "chance")) == []


@pytest.mark.parametrize("event", [JobFinished("a", 1), JobFailed("a", 1, "chance")])
def test_news_of_a_past_epoch_is_ignored(sit: Any, event: Any) -> None:
    desk = sit(Fifo())
    desk.submit(0, "a", retries=1)
    desk.tell(10, JobFailed("a", 1, "chance"))  # runs its second epoch now
    assert desk.tell(11, event) == []
    assert desk.tell(110, JobFinished("a", 2)) == []
    assert len(desk.scheduler.state.active) == 0


def test_a_shorter_job_interrupts_a_longer_one_which_resumes_later(sit: Any) -> None:
    desk = sit(Srtf())
    desk.submit(0, "long")
    assert desk.submit(10, "short", total_steps=5.0) == [Stop(("long",), (1,)), Start("short", 1, (0,), FOREVER)]
    assert desk.tell(15, JobFinished("short", 1)) == [Start("long", 2, (0,), FOREVER)]


def test_progress_that_was_lost_changes_who_is_shorter(sit: Any) -> None:
    desk = sit(Srtf(), (1,))
    desk.submit(0, "a")  # has 10 left at 90
    desk.tell(90, NodeLost(0), Progressed(("a",), (0.0,)))  # no: all 100 again
    desk.submit(91, "b", total_steps=50.0)
    assert desk.tell(95, NodeJoined(0)) == [Start("b", 1, (0,), FOREVER)]


def test_las_wants_to_be_woken_when_the_running_job_falls_behind(sit: Any) -> None:
    desk = sit(Las(quantum=30.0))
    assert desk.submit(0, "a", "b") == [Start("a", 1, (0,), FOREVER), SetTimer(30.0)]
    assert desk.tell(30, TimerFired()) == [Stop(("a",), (1,)), Start("b", 1, (0,), FOREVER), SetTimer(60.0)]
    assert desk.tell(60, TimerFired()) == [Stop(("b",), (1,)), Start("a", 2, (0,), FOREVER), SetTimer(90.0)]


def test_leases_that_end_apart_give_the_seats_to_the_next_in_line(sit: Any) -> None:
    desk = sit(Las(quantum=10.0), terms=LeaseTerms(length_s=50.0))
    assert Start("a", 1, (0,), 50.0) in desk.submit(0, "a", "b")
    assert Start("b", 1, (0,), 100.0) in desk.tell(50, TimerFired())


def test_in_rounds_a_job_that_arrives_takes_free_seats_at_once_until_the_common_end(sit: Any) -> None:
    desk = sit(MaxMinFairness(), (2,), terms=LeaseTerms(length_s=60.0, aligned=True))
    assert Start("a", 1, (0,), 60.0) in desk.submit(0, "a")
    decided = desk.submit(13, "b")
    assert Start("b", 1, (1,), 60.0) in decided
    assert not any(isinstance(d, Stop) for d in decided)


def test_in_rounds_a_job_that_arrives_takes_no_held_seat_before_the_common_end(sit: Any) -> None:
    desk = sit(MaxMinFairness(), terms=LeaseTerms(length_s=60.0, aligned=True))
    desk.submit(0, "a")
    assert not any(isinstance(d, Start | Stop) for d in desk.submit(13, "b"))


def test_a_rounds_renewals_are_one_order(sit: Any) -> None:
    desk = sit(MaxMinFairness(), (2,), terms=LeaseTerms(length_s=60.0, aligned=True))
    desk.submit(0, "a", "b", "c")
    decided = desk.tell(60, TimerFired())
    renewals = [d for d in decided if isinstance(d, Renew)]
    assert len(renewals) <= 1


def test_quiet_time_is_skipped_when_everybody_sits(sit: Any) -> None:
    desk = sit(MaxMinFairness(), (4,), terms=LeaseTerms(length_s=60.0, aligned=True))
    decided = desk.submit(0, "a", "b")
    assert [d.at for d in decided if isinstance(d, SetTimer)][-1:] in ([], [math.inf])
    assert len(desk.asks) == 1


def test_a_full_cluster_is_not_asked_about_when_no_job_can_be_moved(sit: Any) -> None:
    desk = sit(Fifo())
    desk.submit(0, "a")
    desk.submit(1, "b")
    desk.submit(2, "c")
    assert desk.asks == []


def test_what_happens_in_one_instant_is_decided_once_in_whatever_order_it_comes(sit: Any) -> None:
    new = [JobSubmitted(Job(job_id=name, total_steps=9, submitted=5, sequence=i)) for i, name in enumerate("xyz")]
    events = [JobFinished("a", 1), *new, NodeLost(1)]
    assert Moment.of(5, events) == Moment.of(5, events[::-1]) == Moment.of(5, [events[i] for i in (2, 4, 0, 3, 1)])


def test_a_question_shows_only_the_columns_that_are_needed(sit: Any) -> None:
    desk = sit(Fifo())
    desk.submit(0, "a", "b")
    assert set(desk.asks[0].view.columns) == Fifo.info.needs
    assert isinstance(desk.asks[0], Ask)


def test_refusals_leave_nothing_behind(sit: Any) -> None:
    desk = sit(Fifo(), (2,))
    both = [Job(job_id=name, total_steps=9, submitted=101, sequence=i) for i, name in enumerate("ab")]
    desk.observe(101, *(JobSubmitted(job) for job in both))
    order = desk.policy.decide(desk.asks[-1].view)
    refused = replace(order, rows=Rows(order.rows.job[:0], order.rows.type[:0]), refuse={0: "too late", 1: "late too"})
    assert desk.answer(101, refused) == [Refuse("a", "too late"), Refuse("b", "late too")]
    assert len(desk.scheduler.state.active) == 0


def test_an_arrival_that_fits_where_no_job_else_waits_is_seated_without_a_question(sit: Any) -> None:
    for policy in (Fifo(), Fifo(backfill="easy"), Srtf(), Las()):
        desk = sit(policy, (2,))
        assert desk.submit(0, "a") == [Start("a", 1, (0,), FOREVER)]
        assert desk.submit(1, "b") == [Start("b", 1, (1,), FOREVER)]
        assert desk.asks == []


def test_where_misfits_are_passed_over_the_only_one_that_fits_is_seated_without_a_question(sit: Any) -> None:
    desk = sit(Fifo(backfill="skip"), (2,))
    desk.submit(0, "a")
    assert desk.submit(1, "wide", scale_factor=2) == []
    assert desk.submit(2, "b") == [Start("b", 1, (1,), FOREVER)]
    assert desk.asks == []


def test_where_a_misfit_stops_the_queue_no_job_passes_it_unasked(sit: Any) -> None:
    desk = sit(Fifo(), (2,))
    desk.submit(0, "a")
    desk.submit(1, "wide", scale_factor=2)
    assert desk.submit(2, "b") == []


def test_a_policy_that_promises_nothing_is_asked_about_every_arrival(sit: Any) -> None:
    desk = sit(Fifo(types="agnostic"), (2,))
    desk.submit(0, "a")
    desk.submit(1, "b")
    assert len(desk.asks) == 2


def test_what_a_job_did_before_it_was_stopped_counts_though_no_checkpoint_was_reported(sit: Any) -> None:
    desk = sit(Srtf())
    desk.submit(0, "a")  # has 10 left at 90
    desk.submit(90, "short", total_steps=5.0)
    desk.submit(94, "b", total_steps=50.0)
    assert desk.tell(95, JobFinished("short", 1)) == [Start("a", 2, (0,), FOREVER)]
