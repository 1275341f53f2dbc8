"""The rules of every policy, each a function of a policy and a seed that raises AssertionError. Needs no pytest."""

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

from eunomia.core.answer_check import ColumnFacts, check_answer, check_kind
from eunomia.core.answer_rows import PendingAsk
from eunomia.model.answers import ANYWHERE, ONE_MACHINE, Answer, Grants, Order, Shares
from eunomia.model.arrays import Array
from eunomia.model.decisions import Ask, Stop
from eunomia.model.events import Answered, Progressed
from eunomia.model.policy import LeaseTerms, Policy
from eunomia.model.rank import Rank, first_fall
from eunomia.model.rounding import rounded
from eunomia.model.tolerance import RELATIVE, SOLVED
from eunomia.model.view import UndeclaredColumn, View
from eunomia.placement.selection import replanned
from eunomia.records.record import from_json, to_json
from eunomia.testing.sample_views import a_view, only, part_of, permuted, with_running_jobs, without_jobs, without_ties
from eunomia.testing.small_worlds import WorldRun, draw, play

SEEDS = range(8)
LEASE_TERMS = (  # to try, whatever the default of the policy
    LeaseTerms(length_s=60.0, aligned=True),
    LeaseTerms(recall=True),
    LeaseTerms(length_s=60.0),
)
MAX_ASKS = 2  # per cause at one instant; the second if leases ended that the answer did not name
Worth = typing.Callable[[View, Answer], Any]


def require(holds: object, message: str) -> None:
    """Raise AssertionError unless it holds, also where Python leaves assertions out."""
    if not holds:
        raise AssertionError(message)


def plain(answer: Answer) -> str:
    """Return an answer as text, for comparison."""
    return json.dumps(to_json(answer), sort_keys=True)


def order_of(policy: Policy, view: View) -> Order:
    """Return the answer of a policy that makes promises of its order."""
    answer = policy.decide(view)
    require(isinstance(answer, Order), "what it promises is of an order, and it answers otherwise")
    assert isinstance(answer, Order)
    return answer


# ---- rules -----------------------------------------------------------------------------------------------------------


def check_fits(policy: Policy, seed: int) -> None:
    """An answer fits the view: the rules of a run."""
    view = a_view(policy, seed)
    answer = policy.decide(view)
    check_kind(answer, policy.info, view.at)
    facts = ColumnFacts(policy.info, view, full_view(seed).columns, lambda m: m)
    check_answer(answer, facts, PendingAsk(0, facts.active))


def check_pure(policy: Policy, seed: int) -> None:
    """The same view gets the same answer."""
    view = a_view(policy, seed)
    again = copy.deepcopy(view)
    same = plain(policy.decide(view)) == plain(policy.decide(again))
    require(same, "two asks with the same view get two answers; draw from view.rng() only, and keep nothing in self")


def check_view_unchanged(policy: Policy, seed: int) -> None:
    """An answer leaves the view as it was."""
    view = a_view(policy, seed)
    before = copy.deepcopy((dict(view.columns), dict(view.memory)))
    policy.decide(view)
    for old, now in zip(before, (view.columns, view.memory), strict=True):
        for name, column in old.items():
            if isinstance(column, np.ndarray):
                same = np.array_equal(column, now[name], equal_nan=column.dtype.kind == "f")
                require(same, f"view.{name} was changed; work on a copy, view.{name}.copy()")


def check_columns(policy: Policy, seed: int) -> None:
    """Every column that it reads is among its needs, and another is refused by name."""
    view = a_view(policy, seed)
    policy.decide(view)  # has just the columns of `needs`
    for name in sorted(policy.info.needs):
        try:
            getattr(only(policy.info.needs - {name}, view), name)
        except UndeclaredColumn as error:
            require(name in str(error), f"the refusal does not name {name}: {error}")
        else:
            raise AssertionError(f"{name} can be read though it is not declared")


def check_memory(policy: Policy, seed: int) -> None:
    """The memory survives being written down."""
    view = a_view(policy, seed)
    first = policy.decide(view)
    written = from_json(json.loads(json.dumps(to_json(first.memory))))
    require(set(first.memory) == set(written), "the memory has other names after it was written and read")
    direct, read = (replace(view, memory={**view.memory, **memory}) for memory in (first.memory, written))
    same = plain(policy.decide(direct)) == plain(policy.decide(read))
    require(same, "it answers otherwise after its memory was written and read; keep arrays of numbers in it")


def check_promises(policy: Policy, seed: int) -> None:
    """What its card promises holds."""
    promised, view = policy.info.promises, a_view(policy, seed)
    if promised.covers_all_jobs:
        check_complete(policy, view, full_view(seed))
    if promised.jobs_independent:
        check_separable(policy, view)
    if promised.lone_starts:
        check_lone_starts(policy, view, full_view(seed), seed)
    if promised.rank is not None:
        check_ranks(policy, promised.rank, view, full_view(seed), seed)
    if promised.renews_leases:
        check_renews(policy, with_running_jobs(view, seed))


def check_empty(policy: Policy, seed: int) -> None:
    """A view without jobs is answered."""
    answer = policy.decide(without_jobs(a_view(policy, seed), policy.info.memory_columns))
    check_kind(answer, policy.info, 0.0)
    require(not isinstance(answer, Order | Grants) or len(answer.rows) == 0, "it names jobs where there are none")


def check_row_order(policy: Policy, seed: int, worth: Worth | None = None) -> None:
    """Jobs in another order get the same."""
    worth = worth or (lambda view, answer: comparable(answer))
    view = without_ties(a_view(policy, seed), seed)
    order = np.random.default_rng(seed).permutation(view.jobs)
    shuffled = permuted(view, order, policy.info.memory_columns)
    expected = worth(view, policy.decide(view))
    actual = worth(view, renamed(policy.decide(shuffled), order))
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=SOLVED, err_msg=f"seed {seed}")


def check_parameters(policy: Policy, refused: Sequence[Mapping[str, Any]]) -> None:
    """Parameters out of range are refused by name."""
    for parameters in refused:
        name, kind = next(iter(parameters)), type(policy)
        given = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        try:
            kind(**parameters)
        except ValueError as error:
            require(
                name in str(error), f"{kind.__name__}({given}) is refused without the name of the parameter: {error}"
            )
        else:
            raise AssertionError(f"{kind.__name__}({given}) is accepted; raise ValueError that names {name}")


def check_asks(policy: Policy, seed: int, terms: LeaseTerms) -> None:
    """A run ends however time is cut, and one cause makes at most two asks."""
    most = asks_for_one_cause(play(policy, draw(seed, jobs=8), terms=terms, seed=seed))
    require(most <= MAX_ASKS, f"one cause made {most:g} asks; let again_at come later")


def check_held_jobs(policy: Policy, seed: int) -> None:
    """A run in which every other job cannot save ends, and none of these is stopped."""
    world = draw(seed, jobs=8)
    jobs = tuple(replace(job, interruptible=job.sequence % 2 == 0) for job in world.jobs)
    played = play(policy, replace(world, jobs=jobs), seed=seed, checked=True)
    stopped = {name for _, one in played.decisions if isinstance(one, Stop) for name in one.job_ids}
    held = {job.job_id for job in jobs if not job.interruptible}
    require(stopped.isdisjoint(held), f"jobs that cannot save were stopped: {sorted(stopped & held)}")
    require(set(played.counts) <= {"finished", "rejected"}, f"jobs ended otherwise: {dict(played.counts)}")


def check_world(policy: Policy, seed: int, *, may_refuse: bool = False) -> None:
    """A small world ends with every job done, or with `may_refuse` refused."""
    counts = play(policy, draw(seed, jobs=10), seed=seed, checked=True).counts
    ended = counts["finished"] + (counts["rejected"] if may_refuse else 0)
    require(ended == 10 and counts["finished"] > 0, f"of 10 jobs {dict(counts)}; none may wait for ever")


# ---- what they are made of -------------------------------------------------------------------------------------------


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


def check_complete(policy: Policy, view: View, full: View) -> None:
    """Raise AssertionError unless every job is ranked on all types that can run it, the fastest first."""
    answer = order_of(policy, view)
    require(not answer.refuse, "covers_all_jobs is promised, and it refuses a job")
    plain = answer.rows.partner is None and answer.rows.shape is None and answer.rows.within is None
    require(plain, "covers_all_jobs is promised, and its rows name partners, shapes or levels")
    can = (full.throughput > 0) & (full.scale_factor[:, None] <= full.capacity)
    for m in range(view.jobs):
        by_speed = np.argsort(-full.throughput[m], kind="stable")
        named, wanted = answer.rows.type[answer.rows.job == m].tolist(), [int(j) for j in by_speed if can[m, j]]
        what = f"covers_all_jobs is promised, and job {m} is named on types {named}; the fastest first, it is {wanted}"
        require(named == wanted, what)
    if view.jobs and (view.scale_factor.sum() <= view.capacity).all():
        require(math.isinf(answer.again_at), "all jobs fit, and it asks to be asked again")


def check_separable(policy: Policy, view: View) -> None:
    """Raise AssertionError unless a subset of jobs has the same order as among all jobs, and misfits are skipped."""
    answer = order_of(policy, view)
    require(answer.misfit == "skip", f"jobs_independent is promised, and misfit is {answer.misfit!r}; it is 'skip'")
    some = np.flatnonzero(np.random.default_rng(0).random(view.jobs) < 1 / 2)
    subset = order_of(policy, view.part(some, view.capacity))
    same = some[subset.rows.job].tolist() == [m for m in answer.rows.job.tolist() if m in some]
    require(same, "jobs_independent is promised, and a part of the jobs stands in another order than among all")


def check_lone_starts(policy: Policy, view: View, full: View, seed: int) -> None:
    """Raise AssertionError unless jobs that all fit are all named, consolidated or not, and no time is set."""
    can = ((full.throughput > 0) & (full.scale_factor[:, None] <= full.capacity)).any(axis=1)
    waits = np.random.default_rng(seed).permutation(np.flatnonzero((full.on_type < 0) & can))
    some = np.sort(np.append(np.flatnonzero((full.on_type >= 0) & can), waits[:1]))
    if full.scale_factor[some].sum() > full.capacity.min():
        some = waits[:1]
    answer, facts = order_of(policy, part_of(view, some)), part_of(full, some)
    require(math.isinf(answer.again_at), "lone_starts is promised, and where all jobs fit it asks to be asked again")
    plain = answer.rows.partner is None and answer.rows.shape is None and not answer.refuse
    require(plain, "lone_starts is promised, and rows name partners or shapes, or a job is refused")
    named = np.array_equal(np.unique(answer.rows.job), np.arange(len(some)))
    require(named, "lone_starts is promised, and where all jobs fit it does not name each")
    tensor = np.where(np.isnan(facts.largest_tensor_fraction), 0.0, facts.largest_tensor_fraction)
    close = (tensor > policy.info.promises.spread_up_to) & (facts.scale_factor > 1)
    within = np.full(len(answer.rows), ANYWHERE) if answer.rows.within is None else answer.rows.within
    right = np.array_equal(within == ONE_MACHINE, close[answer.rows.job])
    require(right, "lone_starts is promised, and other gangs are consolidated than spread_up_to says")


def check_ranks(policy: Policy, rank: Rank, view: View, full: View, seed: int) -> None:
    """Raise AssertionError unless jobs are ranked by what the policy says, and it asks again when it says."""
    promised, by_level = policy.info.promises, rank.key == "service"
    if by_level:  # jobs of several levels
        seen = "service" in view.columns
        require(seen, "a rank by service is promised, and attained service is not in info.needs")
        service = rank.quantum * np.random.default_rng(seed).uniform(0.0, 4.0, view.jobs)
        view, full = (replace(one, columns={**one.columns, "service": service}) for one in (view, full))
    answer = order_of(policy, view)
    require(promised.covers_all_jobs, "only a policy that covers all jobs can say what it ranks by")
    misfit = "skip" if promised.jobs_independent else "reserve" if promised.reserves else "stop"
    require(answer.misfit == misfit, f"misfit is {answer.misfit!r}; of a policy that says its rank it is {misfit!r}")
    key = rank_keys(rank.key, rank.quantum, full)
    line = np.argsort(key, kind="stable")
    rows, runs_first = answer.rows, np.sort(np.unique(answer.rows.job, return_index=True)[1])
    what = f"levels of {rank.quantum} accelerator-seconds" if by_level else rank.key
    expected = [m for m in line.tolist() if m in rows.job]
    require(rows.job[runs_first].tolist() == expected, f"the order is not that of {what}, then submission")
    again_at = math.inf
    if by_level:
        sizes, free = full.scale_factor, full.capacity.astype(np.int64)
        runs = replanned(rows.job, rows.type, sizes[rows.job], view.jobs, free) >= 0
        again_at = view.at + first_fall(line, runs, key, full.service, sizes, rank.quantum)
        again_at = max(again_at, math.nextafter(view.at, math.inf))
    require(answer.again_at == again_at, "it asks to be asked again at another time than its rank changes")


def rank_keys(key: str, quantum: float, view: View) -> Array:
    """Return what jobs are ranked by, (job,), the least first; `quantum` is of levels of service."""
    if key == "service":
        return np.floor(view.service / quantum + RELATIVE)
    if key in ("remaining_time", "remaining_service"):
        best = np.where(view.scale_factor[:, None] <= view.capacity, view.throughput, 0.0).max(axis=1)
        left = np.divide(view.remaining, best, out=np.full(view.jobs, np.inf), where=best > 0)
        return rounded(left * view.scale_factor if key == "remaining_service" else left)
    if key == "weight":
        return rounded(-view.weight)
    return view.scale_factor if key == "scale_factor" else np.zeros(view.jobs)


def check_renews(policy: Policy, view: View) -> None:
    """Raise AssertionError unless exactly the jobs whose leases have ended are renewed on their seats."""
    answer = policy.decide(view)
    require(isinstance(answer, Grants), "renews_leases is a promise of grants")
    assert isinstance(answer, Grants)
    require(len(answer.stop) == 0 and not answer.refuse, "renews_leases is promised, and it stops or refuses jobs")
    ended = np.flatnonzero(view.lease_end <= view.at)
    kept = np.array_equal(np.sort(answer.rows.job), ended)
    require(kept, "renews_leases is promised, and while no job waits it names others than those whose leases ended")
    kept = np.array_equal(answer.rows.type, view.on_type[answer.rows.job])
    kept = kept and np.array_equal(answer.rows.job[answer.row], view.holder[answer.device])
    require(kept, "renews_leases is promised, and a job is moved while no job waits")
