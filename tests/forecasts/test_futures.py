"""The present state of a scheduler played forward: what comes if nothing is drawn is what the run itself does."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from eunomia.backends.simulated.simulation import Simulation
from eunomia.core.scheduler import Scheduler
from eunomia.forecasts import futures as futures_module
from eunomia.forecasts.changed_state import moved_to, same_totals, with_job, without_nodes
from eunomia.forecasts.comparison import compare_states
from eunomia.forecasts.drawn_run_times import draw_totals
from eunomia.forecasts.futures import PresentState, play_futures
from eunomia.forecasts.ranked_queue import RankedQueue
from eunomia.kernels import PROCESS, Kernel
from eunomia.model.decisions import Ask, SetTimer
from eunomia.model.events import Answered, Estimated, JobFinished, Moment, TimerFired
from eunomia.model.job import Job
from eunomia.records.run import InlinePolicyRunner
from eunomia.records.scheduler_digest import digest
from eunomia.scenario import scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import RunConfig
from eunomia.setup.workload import Workload

POLICIES = (
    "fifo", "fifo?backfill=skip", "fifo?backfill=easy", "las?quantum=300", "srtf", "smallest_first", "max_min_fairness",
)  # fmt: skip


def jobs_of(seed: int, count: int = 30) -> tuple[Job, ...]:
    rng = np.random.default_rng(seed)
    submitted = np.sort(rng.uniform(0.0, 4000.0, count))
    return tuple(
        Job(
            job_id=f"j{k:02}", total_steps=float(rng.lognormal(6.5, 1.0)), submitted=float(submitted[k]), sequence=k,
            scale_factor=int(rng.choice([1, 1, 2, 4])), job_type="any", tenant="ab"[k % 2],
        )
        for k in range(count)
    )  # fmt: skip


@cache
def set_up_run(policy: str, seed: int = 0, nodes: int = 2, kinds: int = 1) -> RunConfig:
    name, _, more = policy.partition("?")
    parameters = dict(pair.split("=") for pair in more.split("&")) if more else {}
    given = {key: float(value) if value.isdigit() else value for key, value in parameters.items()}
    data = {
        "cluster": {"nodes": [{"type": kind, "count": nodes // kinds, "accelerators": 4} for kind in "ab"[:kinds]]},
        "workload": {"trace": "made here"},
        "throughputs": {"source": "uniform"},
        "policy": {"name": name, **given},
        "overheads": {"start_s": 3.0, "checkpoint_s": 5.0, "restore_s": 7.0},
    }
    return set_up(scenario_from_dict(data, Path(), "test"), Workload(jobs=jobs_of(seed), notes=()))


def play(setup: RunConfig, until: float) -> tuple[PresentState, dict[str, float], dict[str, float]]:
    """Play a run; return its state at the first moment from `until` on, and all starts after it and all ends."""
    scheduler, runner = setup.scheduler(), InlinePolicyRunner(setup.policy)
    world = Simulation(setup.jobs, setup.topology, setup.truth, overheads=setup.overheads)
    kept: PresentState | None = None
    starts, ends, wake = dict[str, float](), dict[str, float](), math.inf
    for first in world.moments():
        following: Moment | None = first
        while following is not None:
            moment, following = following, None
            if any(isinstance(event, TimerFired) for event in moment.events):
                wake = math.inf
            decisions = scheduler.handle(moment)
            ends |= {event.job_id: moment.at for event in moment.events if isinstance(event, JobFinished)}
            for decision in decisions:
                if isinstance(decision, Ask):
                    following = Moment(moment.at, (Answered(decision.asked, runner.answer(decision)),))
                    continue
                if isinstance(decision, SetTimer):
                    wake = decision.at
                world.carry_out(decision)
                for name in getattr(decision, "jobs", ()) or [getattr(decision, "job_id", "")]:
                    if type(decision).__name__ in ("Start", "Starts") and kept is not None:
                        starts.setdefault(name, moment.at)
        if kept is None and first.at >= until and not world._reports:
            kept = PresentState(
                scheduler=scheduler.copy(), policy=setup.policy, speeds=setup.truth, at=first.at, wake=wake,
                overheads=setup.overheads,
            )  # fmt: skip
    assert kept is not None
    return kept, starts, ends


@pytest.mark.parametrize("policy", POLICIES)
def test_with_the_true_run_times_the_future_is_what_the_run_does(policy: str) -> None:
    setup = set_up_run(policy)
    present, starts, ends = play(setup, until=4000.0)
    state = present.scheduler.state
    assert state.waiting > 3 and len(state.running()) > 1
    before = digest(present.scheduler)
    found = play_futures(present, futures=4)
    assert len(found) == 1 and found.complete  # nothing is drawn
    for row in state.active.tolist():
        name = state.ids[row]
        assert found.finish[0, row] == pytest.approx(ends[name], rel=1e-9), name
        if state.jobs.on_type[row] < 0:
            assert found.start[0, row] == pytest.approx(starts[name], rel=1e-9), name
    assert digest(present.scheduler) == before


@pytest.mark.parametrize("kinds", [1, 2])
@pytest.mark.parametrize("policy", ["fifo", "fifo?backfill=skip", "smallest_first", "las?quantum=300", "srtf"])
def test_one_compiled_call_gives_the_same_bits_as_the_scheduler_and_the_simulation(
    policy: str, kinds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    present, _, _ = play(set_up_run(policy, kinds=kinds), until=3000.0)
    estimate_all(present.scheduler)
    monkeypatch.setattr("eunomia.forecasts.ranked_queue.FIRST_PART", 1)  # in several parts
    fast = play_futures(present, futures=5, seed=1)
    assert fast.compiled == (policy != "srtf")
    monkeypatch.setattr(futures_module, "_compiled_queue", lambda *_: None)
    slow = play_futures(present, futures=5, seed=1)
    assert not slow.compiled
    np.testing.assert_array_equal(fast.start, slow.start)
    np.testing.assert_array_equal(fast.finish, slow.finish)


def test_a_future_with_too_many_moments_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    present, _, _ = play(set_up_run("las?quantum=300"), until=3000.0)
    whole = play_futures(present)
    monkeypatch.setattr("eunomia.forecasts.ranked_queue.MOST_VISITS", 10 * present.scheduler.state.alive)
    cut = play_futures(present)
    assert whole.complete and not cut.complete
    known = np.isfinite(cut.finish)
    assert 0 < known.sum() < np.isfinite(whole.finish).sum()
    np.testing.assert_array_equal(cut.finish[known], whole.finish[known])


def test_waiting_while_a_kernel_is_compiled_gives_a_forecast_no_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for another process that compiles, or for a core of a busy machine."""
    monkeypatch.setattr(PROCESS, "is_background", True)  # so that it does not wait for other tests
    monkeypatch.setattr(PROCESS, "compiling_s", 0.0)
    begun = futures_module._played_s()
    with Kernel(lambda: None, {})._compiling():
        time.sleep(0.3)
    assert futures_module._played_s() > begun - 0.1


@pytest.mark.parametrize("policy", ["max_min_fairness", "las?quantum=60"])
def test_a_budget_that_is_used_up_cuts_the_first_future_too_and_what_is_known_stays_right(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    present, _, _ = play(set_up_run(policy), until=3000.0)
    monkeypatch.setattr("eunomia.forecasts.ranked_queue.FIRST_PART", 8)
    whole, cut = play_futures(present), play_futures(present, budget_s=1e-9)
    assert whole.complete and not cut.complete and len(cut) == 1 and cut.compiled == policy.startswith("las")
    assert present.at <= cut.until < whole.finish[np.isfinite(whole.finish)].max()
    known = cut.finish < cut.until
    np.testing.assert_array_equal(cut.finish[known], whole.finish[known])


def test_states_are_compared_up_to_the_time_to_which_both_were_played(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = set_up_run("fifo?backfill=skip")
    present, _, _ = play(setup, until=3000.0)
    other = set_up_run("las?quantum=300")
    whole = compare_states(present, moved_to(present, other.scheduler(), other.policy))
    monkeypatch.setattr("eunomia.forecasts.ranked_queue.MOST_VISITS", 10 * present.scheduler.state.alive)
    cut = compare_states(present, moved_to(present, other.scheduler(), other.policy))
    assert whole.complete and whole.until == np.inf and not cut.complete and present.at < cut.until < np.inf

    def up_to_then(times: tuple[float, float] | None) -> list[float]:
        assert times is not None
        return [one if one < cut.until else np.inf for one in times]

    assert [(list(one.before or ()), list(one.after)) for one in cut.jobs] == [
        (up_to_then(one.before), up_to_then(one.after)) for one in whole.jobs
    ]
    finishes = [one.after[1] for one in cut.jobs]
    assert 0 < np.isfinite(finishes).sum() < len(finishes)
    assert sum(sum(counts) for _, *counts, _ in cut.tenants()) < len(cut.jobs)


def estimate_all(scheduler: Scheduler) -> None:
    for row in scheduler.state.active.tolist():
        total = float(scheduler.belief.total[row])
        scheduler.belief.estimate(row, Estimated(scheduler.state.ids[row], total, total / 4, total * 4, 5))


def test_drawn_totals_are_beyond_what_was_done_and_spread_over_the_interval() -> None:
    present, _, _ = play(set_up_run("fifo"), until=3000.0)
    scheduler = present.scheduler
    estimate_all(scheduler)
    totals = draw_totals(scheduler, present.at, 40, seed=3)
    waiting = [row for row in scheduler.state.active.tolist() if scheduler.belief.done[row] == 0]
    middle = np.median(totals[:, waiting], axis=0) / scheduler.belief.total[waiting]
    assert (middle > 0.5).all() and (middle < 2.0).all()
    inside = np.abs(np.log(totals[:, waiting] / scheduler.belief.total[waiting])) <= math.log(4.0)
    assert 0.7 <= inside.mean() <= 0.9
    for row in scheduler.state.running().tolist():
        done = scheduler.belief.done[row] + max(present.at - scheduler.belief.since[row], 0.0)
        assert (totals[:, row] > done).all()
    again = draw_totals(scheduler, present.at, 40, seed=3)
    np.testing.assert_array_equal(totals, again)


def test_a_declared_job_that_has_run_longer_is_expected_to_end_later_than_now() -> None:
    present, _, _ = play(set_up_run("fifo"), until=3000.0)
    running = present.scheduler.state.running().tolist()
    present.scheduler.belief.total[running] = 1.0
    found = play_futures(present, futures=8)
    assert (found.finish[:, running] > present.at).all()


@pytest.mark.parametrize("policy", ["fifo", "las?quantum=300"])
def test_the_same_jobs_under_a_fresh_scheduler_have_the_same_future(policy: str) -> None:
    setup = set_up_run(policy)
    present, _, _ = play(setup, until=4000.0)
    moved = moved_to(present, setup.scheduler(), setup.policy)
    ids = moved.scheduler.state.ids
    one = play_futures(present)
    two = play_futures(moved, totals=same_totals(present, moved, draw_totals(present.scheduler, present.at, 1, 0)))
    rows = [present.scheduler.state.row_of[name] for name in ids]
    np.testing.assert_allclose(one.finish[0, rows], two.finish[0], rtol=1e-9)


def test_a_node_more_makes_no_job_of_a_queue_without_gaps_later_and_one_less_none_sooner() -> None:
    setup = set_up_run("fifo?backfill=skip")
    present, _, _ = play(setup, until=3000.0)
    wide = set_up_run("fifo?backfill=skip", nodes=4)
    more = compare_states(present, moved_to(present, wide.scheduler(), wide.policy))
    assert more.changed() and np.mean([one.later_s for one in more.jobs]) < -100.0
    less = compare_states(present, without_nodes(present, [1]))
    assert less.changed() and np.mean([one.later_s for one in less.jobs]) > 100.0
    assert {tenant for tenant, *_ in more.tenants()} <= {"a", "b"}


def test_a_further_job_has_a_future_and_changes_nothing_for_those_before_it() -> None:
    present, _, _ = play(set_up_run("fifo"), until=3000.0)
    estimate_all(present.scheduler)
    before = digest(present.scheduler)
    job = replace(jobs_of(0)[0], job_id="new", submitted=present.at, sequence=1000, scale_factor=4)
    found = compare_states(present, with_job(present, job), seed=2)
    (new,) = [one for one in found.jobs if one.before is None]
    assert new.job_id == "new" and present.at <= new.after[0] < new.after[1]
    assert all(one.before == one.after for one in found.jobs if one.before is not None)
    assert digest(present.scheduler) == before


def test_a_changed_deadline_and_weight_hold_under_another_policy() -> None:
    present, _, _ = play(set_up_run("fifo"), until=3000.0)
    state, other = present.scheduler.state, set_up_run("edf")
    row = int(state.active[0])
    state.jobs.deadline[row], state.jobs.weight[row] = 123.0, 7.0
    moved = moved_to(present, other.scheduler(), other.policy).scheduler.state
    found = moved.row_of[state.ids[row]]
    assert (moved.jobs.deadline[found], moved.jobs.weight[found]) == (123.0, 7.0)


def test_another_policy_is_compared_from_the_same_seats() -> None:
    present, _, _ = play(set_up_run("fifo"), until=3000.0)
    other = set_up_run("smallest_first")
    found = compare_states(present, moved_to(present, other.scheduler(), other.policy))
    assert found.complete and len(found.jobs) == present.scheduler.state.alive
    running = present.scheduler.state.running().tolist()
    now = {one.job_id: one for one in found.jobs}
    for row in running:
        one = now[present.scheduler.state.ids[row]]
        assert one.before is not None and one.before[0] == one.after[0]


def test_tenants_go_on_as_before_when_arrivals_are_drawn() -> None:
    present, _, _ = play(set_up_run("smallest_first"), until=3000.0)
    plain = play_futures(present, futures=4)
    busy = play_futures(present, futures=4, arrivals=True)
    rows = present.scheduler.state.active
    assert (busy.finish[:, rows] >= plain.finish[:1, rows] - 1e-6).mean() > 0.8
    assert np.nanmean(busy.finish[:, rows]) > np.nanmean(plain.finish[:, rows])


def test_a_paused_job_starts_when_it_is_resumed_or_its_predecessor_has_ended() -> None:
    present, _, _ = play(set_up_run("fifo"), until=3000.0)
    scheduler = present.scheduler
    *_, one, other, last = [row for row in scheduler.state.active.tolist() if scheduler.state.jobs.on_type[row] < 0]
    for row in (one, other, last):
        scheduler._sched.pause(row, present.at)
    running = int(scheduler.state.running()[0])
    held = replace(present, resumes_at={one: present.at + 5000.0}, follows={other: frozenset([running])})
    found = play_futures(held)
    assert found.start[0, one] >= present.at + 5000.0
    assert found.start[0, other] >= found.finish[0, running]
    assert math.isinf(found.start[0, last])


def test_a_copied_scheduler_knows_nothing_of_what_happens_to_the_first_one() -> None:
    setup = set_up_run("max_min_fairness")
    present, _, _ = play(setup, until=3000.0)
    copied, before = present.scheduler.copy(), digest(present.scheduler)
    assert digest(copied) == before
    running = int(copied.state.running()[0])
    name, epoch = copied.state.ids[running], int(copied.state.jobs.epoch[running])
    copied.handle(Moment(present.at + 1.0, (JobFinished(name, epoch),)))
    assert digest(copied) != before == digest(present.scheduler)


def test_no_answer_is_known_of_policies_that_rank_by_what_is_believed_or_reserve() -> None:
    for policy in ("srtf", "max_min_fairness", "fifo?backfill=easy"):
        present, _, _ = play(set_up_run(policy), until=3000.0)
        state = present.scheduler, present.policy, present.overheads
        assert RankedQueue.of(*state, present.at, present.wake, math.inf) is None
