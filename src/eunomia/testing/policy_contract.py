"""The contract of every policy, as pytest tests. Subclass `PolicyContract` once for each policy."""

from __future__ import annotations

import copy
import json
import math
import typing
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from eunomia.model.answers import Answer, Grants, Order, Shares
from eunomia.model.arrays import Array
from eunomia.model.decisions import Ask, Stop
from eunomia.model.events import Answered, Progressed
from eunomia.model.policy import LeaseTerms, Policy, PolicyInfo
from eunomia.model.rounding import rounded
from eunomia.model.service_levels import first_fall, set_levels
from eunomia.model.view import UndeclaredColumn, View
from eunomia.placement.selection import replanned
from eunomia.records.record import from_json, to_json
from eunomia.testing.sample_views import a_view, only, permuted, with_running_jobs, without_jobs, without_ties
from eunomia.testing.small_worlds import WorldRun, draw, play

SEEDS = range(8)
CLOSE = 1e-6  # absolute tolerance of a share
LEASE_TERMS = (  # to try, whatever the default of the policy
    LeaseTerms(length_s=60.0, aligned=True),
    LeaseTerms(recall=True),
    LeaseTerms(length_s=60.0),
)
MAX_ASKS = 2  # per cause at one instant; the second if leases ended that the answer did not name


def plain(answer: Answer) -> str:
    """Return an answer as text, for comparison."""
    return json.dumps(to_json(answer), sort_keys=True)


class PolicyContract:
    """Contract tests of one policy: subclass it as Test… and set `policy`.

    `row_order_decides` is the reason, if any, why the order of rows changes the answer even without ties: the policy
    uses the order of submission, or draws random numbers row by row.
    """

    policy: ClassVar[Any]
    row_order_decides: ClassVar[str] = ""

    def worth(self, view: View, answer: Answer) -> Any:
        """Return the numbers that a permutation of jobs must not change; override if the optimum is not unique."""
        return comparable(answer)

    def refused(self) -> Sequence[Mapping[str, Any]]:
        """Return invalid parameters; by default one unknown word or invalid number for each field."""
        return bad_parameters(type(self.policy))

    def test_the_same_view_gets_the_same_answer(self) -> None:
        for seed in SEEDS:
            view = a_view(self.policy, seed)
            assert plain(self.policy.decide(view)) == plain(self.policy.decide(view)), f"seed {seed}"

    def test_an_answer_leaves_the_view_as_it_was(self) -> None:
        for seed in SEEDS:
            view = a_view(self.policy, seed)
            before = copy.deepcopy((dict(view.columns), dict(view.memory)))
            self.policy.decide(view)
            for old, now in zip(before, (view.columns, view.memory), strict=True):
                for name, column in old.items():
                    if isinstance(column, np.ndarray):
                        changed = f"{name} was changed, seed {seed}"
                        np.testing.assert_array_equal(column, now[name], err_msg=changed)

    def test_jobs_in_another_order_get_the_same(self) -> None:
        if self.row_order_decides:
            pytest.skip(self.row_order_decides)
        for seed in SEEDS:
            view = without_ties(a_view(self.policy, seed), seed)
            order = np.random.default_rng(seed).permutation(view.jobs)
            shuffled = permuted(view, order, self.policy.info.memory_columns)
            expected = self.worth(view, self.policy.decide(view))
            actual = self.worth(view, renamed(self.policy.decide(shuffled), order))
            np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=CLOSE, err_msg=f"seed {seed}")

    def test_every_column_it_needs_is_listed_and_another_is_refused_by_name(self) -> None:
        view = a_view(self.policy, 0)
        self.policy.decide(view)  # has just the columns of `needs`
        for name in sorted(self.policy.info.needs):
            reduced = only(self.policy.info.needs - {name}, view)
            with pytest.raises(UndeclaredColumn, match=name):
                getattr(reduced, name)

    def test_the_memory_survives_being_written_down(self) -> None:
        for seed in SEEDS:
            view = a_view(self.policy, seed)
            first = self.policy.decide(view)
            written = from_json(json.loads(json.dumps(to_json(first.memory))))
            assert set(first.memory) == set(written), f"seed {seed}"
            direct, read = (replace(view, memory={**view.memory, **memory}) for memory in (first.memory, written))
            assert plain(self.policy.decide(direct)) == plain(self.policy.decide(read)), f"seed {seed}"

    @pytest.mark.parametrize("seed", SEEDS)
    def test_an_answer_fits_the_view(self, seed: int) -> None:
        view = a_view(self.policy, seed)
        answer = self.policy.decide(view)
        full = full_view(seed)
        assert answer.again_at > view.at
        assert all(0 <= m < view.jobs for m in (*answer.refuse, *answer.why))
        for name in self.policy.info.memory_columns:
            assert name not in answer.memory or len(answer.memory[name]) == view.jobs
        match answer:
            case Shares():
                check_shares(answer, full)
            case Order():
                check_order(answer, full)
            case Grants():
                check_grants(answer, full)
            case _:
                pytest.fail(f"{type(answer).__name__} is no answer; see eunomia.model.answers")

    def test_what_it_promises_of_its_order_holds(self) -> None:
        info = self.policy.info
        for seed in SEEDS:
            view = a_view(self.policy, seed)
            if info.covers_all_jobs:
                check_complete(self.policy, view, full_view(seed))
            if info.jobs_independent:
                check_separable(self.policy, view)
            if info.ranks_by or info.service_quantum > 0:
                check_ranks(self.policy, view, full_view(seed), seed)
            if info.renews_leases:
                check_renews(self.policy, with_running_jobs(view, seed))

    def test_an_empty_view_is_answered(self) -> None:
        answer = self.policy.decide(without_jobs(a_view(self.policy, 0), self.policy.info.memory_columns))
        assert not isinstance(answer, Order | Grants) or len(answer.rows) == 0

    def test_parameters_out_of_range_are_refused_by_name(self) -> None:
        for parameters in self.refused():
            name, kind = next(iter(parameters)), type(self.policy)
            given = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
            try:
                kind(**parameters)
            except ValueError as error:
                if name not in str(error):
                    pytest.fail(f"{kind.__name__}({given}) is refused without the name of the parameter: {error}")
            else:
                pytest.fail(f"{kind.__name__}({given}) is accepted; raise ValueError that names {name}")

    @pytest.mark.parametrize(("seed", "terms"), list(enumerate(LEASE_TERMS)))
    def test_a_run_ends_however_time_is_cut_and_one_cause_makes_at_most_two_asks(
        self, seed: int, terms: LeaseTerms
    ) -> None:
        assert asks_for_one_cause(play(self.policy, draw(seed, jobs=8), terms=terms, seed=seed)) <= MAX_ASKS

    def test_a_job_that_cannot_save_is_never_stopped(self) -> None:
        world = draw(5, jobs=8)
        jobs = tuple(replace(job, interruptible=job.sequence % 2 == 0) for job in world.jobs)
        played = play(self.policy, replace(world, jobs=jobs), seed=5, checked=True)
        stopped = {name for _, one in played.decisions if isinstance(one, Stop) for name in one.job_ids}
        assert stopped.isdisjoint(job.job_id for job in jobs if not job.interruptible)
        assert set(played.counts) <= {"finished", "rejected"}

    @pytest.mark.parametrize("seed", SEEDS)
    def test_a_small_world_ends_with_every_job_done(self, seed: int) -> None:
        world = draw(seed, jobs=10)
        assert play(self.policy, world, seed=seed, checked=True).counts == {"finished": 10}


def asks_for_one_cause(played: WorldRun) -> float:
    """Return the largest ratio of asks to causes at one instant.

    Effects of an answer, such as a written checkpoint, are not causes.
    """
    asks, causes = Counter[float](), Counter[float]()
    for moment, decisions in played.story:
        asks[moment.at] += any(isinstance(decision, Ask) for decision in decisions)
        causes[moment.at] += not all(isinstance(event, Answered | Progressed) for event in moment.events)
    return max(asks[at] / causes[at] for at in asks)


def full_view(seed: int) -> View:
    """Return the view of `a_view` for that seed with all columns."""
    return a_view(typing.cast(Policy, _Everything()), seed)


class _Everything:
    class info:
        from eunomia.model.view import COLUMNS as needs

        memory_columns: ClassVar[dict[str, float]] = {}


def comparable(answer: Answer) -> Array:
    """Return an answer as numbers, with jobs as rows."""
    match answer:
        case Shares(x=x, rows=None):
            return x
        case Shares(x=x, rows=rows) if rows is not None:
            return np.stack([rows.job, rows.type, *rows.filled(), x])[:, np.lexsort((rows.type, rows.job))]
        case Order(rows=rows):
            return np.stack([rows.job, rows.type, *rows.filled()])
        case Grants(rows=rows):
            return np.stack([rows.job[answer.row], rows.type[answer.row], answer.device])
    raise TypeError(f"{type(answer).__name__} is no answer")


def renamed(answer: Answer, order: Array) -> Answer:
    """Return the answer with row i renamed to order[i], which inverts `permuted`."""
    if isinstance(answer, Shares) and answer.rows is None:
        return replace(answer, x=answer.x[np.argsort(order, kind="stable")])
    rows = answer.rows  # type: ignore[attr-defined]
    partner = None if rows.partner is None else np.where(rows.partner >= 0, order[rows.partner], -1)
    changed = replace(rows, job=order[rows.job], partner=partner)
    if isinstance(answer, Grants):
        return replace(answer, rows=changed, stop=order[answer.stop])
    return replace(answer, rows=changed)  # type: ignore[call-arg]


def bad_parameters(policy: type[Any]) -> list[dict[str, Any]]:
    """Return invalid values for each parameter of a policy: nan, a negative number, or an unknown word."""
    bad: list[dict[str, Any]] = []
    hints = typing.get_type_hints(policy)
    required = [f.name for f in fields(policy) if f.default is MISSING and f.default_factory is MISSING]
    for parameter in fields(policy):
        if required or hints[parameter.name] is bool:
            continue
        if hints[parameter.name] in (float, int):
            bad += [{parameter.name: -1}, *([{parameter.name: math.nan}] if hints[parameter.name] is float else [])]
        elif typing.get_origin(hints[parameter.name]) is typing.Literal:
            bad.append({parameter.name: "no-such-word"})
    return bad


def sizes(view: View, rows: Any) -> Array:
    """Return the number of accelerators of each candidate, (row,)."""
    _, shape, _ = rows.filled()
    return np.asarray(np.where(shape == 0, view.scale_factor[rows.job], view.shapes[rows.job, shape]))


def check_shares(answer: Shares, view: View) -> None:
    """Raise AssertionError unless the shares respect time, capacity, and the types on which jobs can run."""
    if answer.rows is None:
        job, type = np.nonzero(np.ones(answer.x.shape))
        assert answer.x.shape == (view.jobs, len(view.types))
        x, size, partner = answer.x.ravel(), view.scale_factor[job], np.full(len(job), -1)
        assert (answer.x[view.throughput == 0] == 0).all(), "a share where the job cannot run"
    else:
        job, type, x, size = answer.rows.job, answer.rows.type, answer.x, sizes(view, answer.rows)
        partner = answer.rows.filled()[0]
    assert ((x >= 0) & (x <= 1 + CLOSE)).all()
    time = np.bincount(job, weights=x, minlength=view.jobs)
    time += np.bincount(partner[partner >= 0], weights=x[partner >= 0], minlength=view.jobs)
    assert (time <= 1 + CLOSE).all(), "a job gets more than all of its time"
    used = np.bincount(type, weights=size * x, minlength=len(view.types))
    assert (used <= view.capacity * (1 + CLOSE) + CLOSE).all(), "more accelerators than there are"


def check_order(answer: Order, view: View) -> None:
    """Raise AssertionError unless each job's rows are contiguous and it can run on each of them."""
    job, type = answer.rows.job, answer.rows.type
    assert ((job >= 0) & (job < view.jobs) & (type >= 0) & (type < len(view.types))).all()
    changes = 1 + np.count_nonzero(np.diff(job)) if len(job) else 0
    assert changes == len(np.unique(job)), "the rows of one job are not contiguous"
    assert (view.throughput[job, type] > 0).all(), "a job is ordered to a type where it cannot run"
    assert (sizes(view, answer.rows) <= view.capacity[type]).all(), "a gang is ordered to a type that is too small"


def check_complete(policy: Policy, view: View, full: View) -> None:
    """Raise AssertionError unless every job is ranked on all types that can run it, the fastest first."""
    answer = policy.decide(view)
    assert isinstance(answer, Order)
    assert not answer.refuse
    assert {answer.rows.partner is None, answer.rows.shape is None, answer.rows.within is None} == {True}
    can = (full.throughput > 0) & (full.scale_factor[:, None] <= full.capacity)
    for m in range(view.jobs):
        by_speed = np.argsort(-full.throughput[m], kind="stable")
        assert answer.rows.type[answer.rows.job == m].tolist() == [j for j in by_speed if can[m, j]], f"job {m}"
    if view.jobs and (view.scale_factor.sum() <= view.capacity).all():
        assert math.isinf(answer.again_at), "all jobs fit, and it asks to be asked again"


def check_separable(policy: Policy, view: View) -> None:
    """Raise AssertionError unless a subset of jobs has the same order as among all jobs, and misfits are skipped."""
    answer = policy.decide(view)
    assert isinstance(answer, Order)
    assert answer.misfit == "skip"
    some = np.flatnonzero(np.random.default_rng(0).random(view.jobs) < 1 / 2)
    subset = policy.decide(view.part(some, view.capacity))
    assert isinstance(subset, Order)
    assert some[subset.rows.job].tolist() == [m for m in answer.rows.job.tolist() if m in some]


def check_ranks(policy: Policy, view: View, full: View, seed: int) -> None:
    """Raise AssertionError unless jobs are ranked by what the policy says, and it asks again when it says."""
    info = policy.info
    if info.service_quantum > 0:  # jobs of several levels
        assert "service" in view.columns, "service_quantum is promised, and attained service is not in info.needs"
        service = info.service_quantum * np.random.default_rng(seed).uniform(0.0, 4.0, view.jobs)
        view, full = (replace(one, columns={**one.columns, "service": service}) for one in (view, full))
    answer = policy.decide(view)
    assert isinstance(answer, Order)
    assert info.covers_all_jobs, "only a policy that covers all jobs can say what it ranks by"
    assert answer.misfit == ("skip" if info.jobs_independent else "stop")
    key = rank_keys(info, full)
    line = np.argsort(key, kind="stable")
    rows, runs_first = answer.rows, np.sort(np.unique(answer.rows.job, return_index=True)[1])
    what = info.ranks_by or f"levels of {info.service_quantum} accelerator-seconds"
    expected = [m for m in line.tolist() if m in rows.job]
    assert rows.job[runs_first].tolist() == expected, f"the order is not that of {what}, then submission"
    again_at = math.inf
    if info.service_quantum > 0:
        sizes, free = full.scale_factor, full.capacity.astype(np.int64)
        runs = replanned(rows.job, rows.type, sizes[rows.job], view.jobs, free) >= 0
        again_at = view.at + first_fall(line, runs, key, full.service, sizes, info.service_quantum)
        again_at = max(again_at, math.nextafter(view.at, math.inf))
    assert answer.again_at == again_at, "it asks to be asked again at another time than its rank changes"


def rank_keys(info: PolicyInfo, view: View) -> Array:
    """Return what a policy says that it ranks jobs by, (job,)."""
    if info.service_quantum > 0:
        level = np.empty(view.jobs)
        set_levels(view.service, info.service_quantum, level)
        return level
    if info.ranks_by in ("remaining_time", "remaining_service"):
        best = np.where(view.scale_factor[:, None] <= view.capacity, view.throughput, 0.0).max(axis=1)
        left = np.divide(view.remaining, best, out=np.full(view.jobs, np.inf), where=best > 0)
        return rounded(left * view.scale_factor if info.ranks_by == "remaining_service" else left)
    return view.scale_factor if info.ranks_by == "scale_factor" else np.zeros(view.jobs)


def check_renews(policy: Policy, view: View) -> None:
    """Raise AssertionError unless exactly the jobs whose leases have ended are renewed on their seats."""
    answer = policy.decide(view)
    assert isinstance(answer, Grants)
    assert len(answer.stop) == 0 and not answer.refuse
    assert np.array_equal(np.sort(answer.rows.job), np.flatnonzero(view.lease_end <= view.at))
    assert np.array_equal(answer.rows.type, view.on_type[answer.rows.job])
    assert np.array_equal(answer.rows.job[answer.row], view.holder[answer.device])


def check_grants(answer: Grants, view: View) -> None:
    """Raise AssertionError unless whole gangs get distinct seats of their type, free or freed by the answer."""
    rows = answer.rows
    assert len(rows.job) == len(np.unique(rows.job)), "a job is granted twice"
    assert len(answer.device) == len(np.unique(answer.device)), "a seat is given twice"
    assert np.array_equal(np.bincount(answer.row, minlength=len(rows)), sizes(view, rows)), "a gang is not whole"
    assert (view.topology.type[answer.device] == rows.type[answer.row]).all(), "a seat of another type"
    assert (view.throughput[rows.job, rows.type] > 0).all(), "a job is granted a type where it cannot run"
    assert len(answer.until) == len(rows)
    assert not (answer.until <= view.at).any(), "a lease that ends before it begins"
    holder = view.holder[answer.device]
    leaving = np.union1d(answer.stop, rows.job)
    assert ((holder == -1) | np.isin(holder, leaving)).all(), "a seat that another job keeps, or a lost one"
