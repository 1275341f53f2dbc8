"""Seeds of faults, a kill at every commit, and bugs put in on purpose, each of which the simulation must catch.

SEEDS=100-400 EVENTS=5000 make test-service plays other seeds, and longer.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.simulated import Simulation, simulate

from eunomia.backends.driver import Driver
from eunomia.backends.reports import GangEnded
from eunomia.core import ended_jobs
from eunomia.core.scheduler_state import SchedulerState
from eunomia.core.state import State
from eunomia.model.job import Job
from eunomia.records import scheduler_digest
from eunomia.service import recovery, user_requests, world_reports
from eunomia.service import writer as writer_module
from eunomia.service.controller import Controller
from eunomia.service.job_row import JobRow
from eunomia.service.messages import Cancel, Launch, Reply
from eunomia.service.store.sqlite import SqliteStore

FIRST, LAST = (int(text) for text in os.environ.get("SEEDS", "0-6").split("-"))
EVENTS = int(os.environ.get("EVENTS", "200"))
KILLS = 100  # commits at which one run is killed, before and after each


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_whatever_fails_every_accepted_job_comes_to_one_end_and_no_seat_has_two_holders(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr(ended_jobs, "SPARE", 4)  # rows of ended jobs go soon, as in a service of thousands of jobs
    found = simulate(tmp_path, seed, EVENTS)
    assert found.commits > EVENTS / 4
    assert (found.bench.controller.scheduler.state.forgotten > 0) == (seed % 2 == 1)


def test_the_same_seed_gives_the_same_moments(tmp_path: Path) -> None:
    def lines(place: str) -> list[str]:
        (tmp_path / place).mkdir()
        simulate(tmp_path / place, 21, 100)
        db = sqlite3.connect(next((tmp_path / place).glob("*/state/store.db")))
        found = [line for (line,) in db.execute("SELECT lines FROM moments ORDER BY seq")]
        db.close()
        return found

    assert lines("one") == lines("two") != []


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_each_commit_loses_and_doubles_nothing(tmp_path: Path, after: bool) -> None:
    kills = 0
    for commit in range(1, KILLS + 1):
        kills += simulate(tmp_path, 3, 60, crash_at_commit=commit, after=after).crashes > 0
    assert kills == KILLS


# ---- bugs put in on purpose ------------------------------------------------------------------------------------------

Patch = pytest.MonkeyPatch


def _wrap(patch: Patch, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    patch.setattr(owner, name, make(getattr(owner, name)))


def reply_before_commit(patch: Patch) -> None:
    """A submission is answered though its turn was never stored."""

    def make(old: Any) -> Any:
        def commit(self: SqliteStore, turn: Any, clock: Any) -> None:
            if not turn.keys or len(turn.rows) % 2:
                old(self, turn, clock)

        return commit

    _wrap(patch, SqliteStore, "commit", make)


def no_idempotency_keys(patch: Patch) -> None:
    """A repeated submission makes another job."""
    patch.setattr(SqliteStore, "key", lambda *_: None)
    _wrap(
        patch, SqliteStore, "write", lambda old: lambda self, db, turn, clock: old(self, db, _without_keys(turn), clock)
    )


def _without_keys(turn: Any) -> Any:
    return replace(turn, keys=[])


def old_epochs_are_believed(patch: Patch) -> None:
    """Reports of an earlier start are taken for those of the present one."""

    def make(old: Any) -> Any:
        def report(jobs: Controller, message: Any) -> None:
            row = jobs.rows.get(getattr(message, "job_id", ""))
            old(jobs, message if row is None else replace(message, epoch=row.epoch))

        return report

    _wrap(patch, world_reports, "take_report", make)


def seats_are_freed_twice(patch: Patch) -> None:
    """A stopped gang's row keeps its seats."""

    def make(old: Any) -> Any:
        def stop(self: Controller, row: JobRow, epoch: int, save: bool) -> None:
            seats = row.seats
            old(self, row, epoch, save)
            row.seats = seats

        return stop

    _wrap(patch, Controller, "_stop", make)


def halts_are_forgotten(patch: Patch) -> None:
    """The order to stop a gang is not sent."""

    def make(old: Any) -> Any:
        def stop(self: Controller, row: JobRow, epoch: int, save: bool) -> None:
            old(self, row, epoch, save)
            self.driver.orders = [order for order in self.driver.orders if isinstance(order, Launch)]

        return stop

    _wrap(patch, Controller, "_stop", make)


def launches_are_lost_at_a_restart(patch: Patch) -> None:
    """Orders that had not been taken are not sent again."""
    patch.setattr(Controller, "resend", lambda self, rows: [])


def cancelled_gangs_are_forgotten(patch: Patch) -> None:
    """A cancelled job counts as gone while its gang still runs, so a restart does not stop it."""
    patch.setattr(JobRow, "is_live", property(lambda self: not self.is_over))


def cancel_only_changes_the_row(patch: Patch) -> None:
    """A cancelled job stays in the scheduler, which starts it again."""
    _wrap(patch, Controller, "emit", lambda old: lambda self, job, *events: old(
        self, job, *(one for one in events if type(one).__name__ != "JobCancelled")))  # fmt: skip


def holds_are_not_released(patch: Patch) -> None:
    """A released job stays paused in the scheduler."""
    _wrap(patch, Controller, "emit", lambda old: lambda self, job, *events: old(
        self, job, *(one for one in events if type(one).__name__ != "JobResumed")))  # fmt: skip


def a_moment_takes_two_words_about_a_job(patch: Patch) -> None:
    """Requests about one job in one turn are not put into moments of their own."""

    def make(old: Any) -> Any:
        def emit(self: Controller, job_id: str, *events: Any) -> None:
            self._touched.discard(job_id)
            old(self, job_id, *events)

        return emit

    _wrap(patch, Controller, "emit", make)


def timers_are_lost_at_a_restart(patch: Patch) -> None:
    """A job that waits for its next attempt waits for ever after a restart."""
    patch.setattr(Controller, "set_timers", lambda self, row: None)


def wake_time_is_lost_at_a_restart(patch: Patch) -> None:
    """The scheduler is never woken again after a restart, so what waits for a round waits for ever."""
    _wrap(patch, recovery, "_replay", lambda old: lambda store, scheduler: (old(store, scheduler)[0], float("inf")))


def snapshots_leave_out_the_queue(patch: Patch) -> None:
    """A snapshot has no waiting jobs."""

    def make(old: Any) -> Any:
        def capture(scheduler: Any) -> bytes:
            state, kept = scheduler.state, scheduler.state.counts.copy()
            state.counts[1] = 0
            found: bytes = old(scheduler)
            state.counts[:] = kept
            return found

        return capture

    _wrap(patch, writer_module, "capture", make)


def followers_are_forgotten(patch: Patch) -> None:
    """A job that follows another one is never released."""
    patch.setattr(Controller, "is_met", lambda self, needed: None)


def drained_nodes_are_forgotten(patch: Patch) -> None:
    """After a restart a drained node cannot be put back into service."""
    patch.setattr(SqliteStore, "drained", lambda self, nodes: {})


def a_finished_gang_runs_again(patch: Patch) -> None:
    """A lost supervisor's job is counted as finished."""

    def make(old: Any) -> Any:
        def ended(self: Controller, row: JobRow, report: GangEnded) -> None:
            old(self, row, replace(report, outcome="finished") if report.outcome in ("lost", "stopped") else report)

        return ended

    _wrap(patch, world_reports, "_gang_ended", make)


def failures_free_no_seat(patch: Patch) -> None:
    """The scheduler does not learn of a failure."""
    _wrap(patch, Controller, "emit", lambda old: lambda self, job, *events: old(
        self, job, *(one for one in events if type(one).__name__ != "JobFailed")))  # fmt: skip


def outbox_is_never_emptied(patch: Patch) -> None:
    """Orders that the world has taken are kept for ever."""
    _wrap(
        patch,
        SqliteStore,
        "write",
        lambda old: lambda self, db, turn, clock: old(self, db, replace(turn, taken=[]), clock),
    )


def ids_begin_again(patch: Patch) -> None:
    """Job numbers are used again after a restart."""
    patch.setattr(SqliteStore, "next_job", lambda self: 1)


def half_a_list_is_accepted(patch: Patch) -> None:
    """A list is answered with fewer jobs than were stored."""

    def make(old: Any) -> Any:
        def submit(self: Controller, action: Any, who: Any) -> Reply:
            reply: Reply = old(self, action, who)
            ids = reply.body.get("ids")
            return reply if not ids else replace(reply, body={"ids": ids[:-1]})

        return submit

    from eunomia.service.messages import Submit

    patch.setitem(user_requests.HANDLERS, Submit, make(user_requests.HANDLERS[Submit]))


def a_node_that_is_drained_keeps_its_seats(patch: Patch) -> None:
    """The scheduler does not take a drained node out of service."""
    patch.setattr(SchedulerState, "lose", lambda self, node: None)


def digests_are_of_nothing(patch: Patch) -> None:
    """A snapshot of another state is not noticed, and the state is restored without its seats."""
    patch.setattr(recovery, "digest", lambda scheduler, like="": "same")

    def make(old: Any) -> Any:
        def restored(fresh: Any, content: bytes) -> None:
            old(fresh, content)
            fresh.state.holder[:] = -1

        return restored

    _wrap(patch, recovery, "restore", make)
    assert scheduler_digest.digest is not recovery.digest


def taken_seats_are_given_away(patch: Patch) -> None:
    """Accelerators that others use stay in the scheduler's hands."""
    patch.setattr(State, "set_taken", lambda self, devices: None)


def taken_seats_never_come_back(patch: Patch) -> None:
    """An accelerator that others have left stays out of service."""
    _wrap(patch, State, "set_taken", lambda old: lambda self, devices: old(
        self, sorted({*devices, *np.flatnonzero(self.taken).tolist()})))  # fmt: skip


def seats_are_taken_too_late(patch: Patch) -> None:
    """A seat that others use beside a gang is given to the next one when the gang leaves."""
    patch.setattr(Controller, "_add_taken", lambda self, events: None)


def order_numbers_are_used_twice(patch: Patch) -> None:
    """Two orders get the same number."""

    def make(old: Any) -> Any:
        def launch(self: Driver, job: Any, adopt_only: bool = False) -> None:
            old(self, job, adopt_only)
            self.next_order -= 1

        return launch

    _wrap(patch, Driver, "launch", make)


def replaced_orders_are_kept(patch: Patch) -> None:
    """Orders that a restart sends again stay in the outbox under their old numbers too."""
    patch.setattr(SqliteStore, "clear_outbox", lambda self: None)


def resumed_nodes_get_no_jobs(patch: Patch) -> None:
    """A node that is put back into service stays lost for the scheduler."""
    _wrap(patch, Controller, "emit", lambda old: lambda self, job, *events: old(
        self, job, *(one for one in events if type(one).__name__ != "NodeJoined")))  # fmt: skip


def a_cancel_is_answered_and_not_done(patch: Patch) -> None:
    """A cancel is acknowledged though nothing was changed."""
    cancel = user_requests.HANDLERS[Cancel]

    def forgetful(jobs: Controller, action: Cancel, who: Any) -> Reply:
        row = jobs.row(action.job_id)
        return cancel(jobs, action, who) if row is None or row.is_over else Reply(200, {"id": row.id})

    patch.setitem(user_requests.HANDLERS, Cancel, forgetful)


def failures_are_not_counted(patch: Patch) -> None:
    """A job is tried again though its retries are used up."""
    patch.setattr(Job, "may_retry", lambda self, failures: True)


def waiting_jobs_are_counted_wrongly(patch: Patch) -> None:
    """A job that starts is taken off the tenant's waiting jobs twice."""

    def make(old: Any) -> Any:
        def move(self: Controller, row: JobRow, state: str, reason: str) -> None:
            self.waiting[row.tenant] -= state == "starting"
            old(self, row, state, reason)

        return move

    _wrap(patch, Controller, "move", make)


def snapshots_forget_the_timer(patch: Patch) -> None:
    """A snapshot does not say when the scheduler wants to be woken."""
    _wrap(patch, SqliteStore, "add_snapshot", lambda old: lambda self, seq, digest, wake, content: old(
        self, seq, digest, float("inf"), content))  # fmt: skip


def moments_are_replayed_in_another_order(patch: Patch) -> None:
    """A restart replays the stored moments from the last to the first."""
    _wrap(patch, SqliteStore, "moments", lambda old: lambda self, after=0: reversed(list(old(self, after))))


BUGS = (
    reply_before_commit, no_idempotency_keys, old_epochs_are_believed, seats_are_freed_twice, halts_are_forgotten,
    launches_are_lost_at_a_restart, cancelled_gangs_are_forgotten, cancel_only_changes_the_row, holds_are_not_released,
    a_moment_takes_two_words_about_a_job, timers_are_lost_at_a_restart, wake_time_is_lost_at_a_restart,
    snapshots_leave_out_the_queue, followers_are_forgotten, drained_nodes_are_forgotten, a_finished_gang_runs_again,
    failures_free_no_seat, outbox_is_never_emptied, ids_begin_again, half_a_list_is_accepted,
    a_node_that_is_drained_keeps_its_seats, digests_are_of_nothing, taken_seats_are_given_away,
    taken_seats_never_come_back, seats_are_taken_too_late, order_numbers_are_used_twice, replaced_orders_are_kept,
    resumed_nodes_get_no_jobs, a_cancel_is_answered_and_not_done, failures_are_not_counted,
    waiting_jobs_are_counted_wrongly, snapshots_forget_the_timer, moments_are_replayed_in_another_order,
)  # fmt: skip
TRIES = 40  # seeds


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_bug_put_in_on_purpose_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: Callable[[Patch], None]
) -> None:
    bug(monkeypatch)
    for seed in range(TRIES):
        try:
            simulate(tmp_path, seed, 150)
        except Exception:  # any check that fails, or the service that stops itself
            return
    pytest.fail(f"{TRIES} seeds did not catch it: {bug.__doc__}")


def test_every_bug_is_described_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    assert Simulation.__doc__
    for bug in BUGS:
        assert (bug.__doc__ or "").strip() in page
