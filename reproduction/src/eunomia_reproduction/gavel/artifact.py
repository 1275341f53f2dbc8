"""What the published policies do otherwise than ours, so that runs can be compared: for the comparison only.

Agnostic finish times and makespans take every type to be a V100; makespans are searched by bisection, and the answer is
a middle one; the queues are in `published_fifo`, Gandiva's pairs are in `packing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from eunomia.model.answers import Answer, Rows, Shares
from eunomia.model.certificate import Certificate
from eunomia.model.equal_share import alone_throughput
from eunomia.model.policy import ROUNDS, Policy, PolicyInfo
from eunomia.model.view import View
from eunomia.policies.shares.finish_time_fairness import FinishTimeFairness
from eunomia.policies.shares.max_min_fairness import MaxMinFairness, fair_need
from eunomia.solvers.analytic_center import middle
from eunomia.solvers.max_min import highest_level
from eunomia_reproduction.gavel.ecos_emulation import NotSolved, solve
from eunomia_reproduction.gavel.packing import PublishedGandiva
from eunomia_reproduction.gavel.published_fifo import PublishedFifo, PublishedFifoPacked
from eunomia_reproduction.gavel.shared_time import SharedTime

REFERENCE_TYPE = "v100"
_HARDLY, _LAST_DIGITS = 1e-9, 1e-9
_FIRST_S, _LAST_S, _NEAR = 100.0, 1e6, 1.05  # where the bisection begins, and how near its ends come


@dataclass(frozen=True)
class AsPublished:
    """Another policy, whose answers are played to the letter: the published ones need not fit jobs and cluster."""

    inner: Policy

    info: ClassVar[PolicyInfo] = FinishTimeFairness.info  # each instance shows the inner policy's card

    def __post_init__(self) -> None:
        object.__setattr__(self, "info", replace(self.inner.info, published=True))

    def decide(self, view: View) -> Answer:
        """Return what the inner policy answers."""
        return self.inner.decide(view)


@dataclass(frozen=True)
class SeenOnReference:
    """Another policy, to which every type looks like the reference type."""

    inner: Policy

    info: ClassVar[PolicyInfo] = FinishTimeFairness.info  # each instance shows the inner policy's card

    def __post_init__(self) -> None:
        object.__setattr__(self, "info", self.inner.info)

    def decide(self, view: View) -> Answer:
        """Return what the inner policy answers."""
        return self.inner.decide(self.seen(view))

    def seen(self, view: View) -> View:
        """Return the view as the inner policy has it."""
        alike = view.throughput
        if REFERENCE_TYPE in view.types:
            alike = np.repeat(alike[:, [view.types.index(REFERENCE_TYPE)]], len(view.types), axis=1)
        columns = {**view.columns, "throughput": alike}
        if "equal_share_throughput" in columns:
            columns["equal_share_throughput"] = alone_throughput(alike, view.scale_factor, view.capacity)
        return replace(view, columns=columns)


@dataclass(frozen=True)
class MakespanByBisection:
    """The middle of all X under which the last job ends within 5 % of the least makespan."""

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="makespan_by_bisection",
        answer_type="shares",
        objective="a makespan within 5 % of the least",
        technique="bisection, analytic centre",
        paper="Narayanan et al., Gavel, OSDI 2020, its published code",
        needs=frozenset({"throughput", "scale_factor", "capacity", "remaining"}),
        oracle=True,
        mechanism=ROUNDS,
    )

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        T, z, C, r = view.throughput, view.scale_factor.astype(float), view.capacity, view.remaining
        highest = highest_level(T, z, C, r)
        if not highest.objective > 0:
            return Shares(np.zeros_like(T))
        end = _searched(1 / highest.objective)
        try:
            x = solve(SharedTime(T, z, C, r / end))
        except NotSolved:
            x = middle(T, z, C, r, highest.objective, 1 / end)
        return Shares(x, certificate=Certificate(objective=1 / end, bound=highest.bound))


def _searched(least: float) -> float:
    """Return the last makespan that the bisection finds possible, `least` being the least possible one."""
    low, high = _FIRST_S, _LAST_S
    while high < least:
        low, high = high, 10 * high
    while _NEAR * low < high:
        middle = (low + high) / 2
        low, high = (low, middle) if middle >= least else (middle, high)
    return high


@dataclass(frozen=True)
class MaxMinAsSolved:
    """Max-min fairness, answered where the published policy's solver stops."""

    info: ClassVar[PolicyInfo] = replace(MaxMinFairness.info, name="max_min_fairness_as_solved")

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        T, z = view.throughput, view.scale_factor.astype(float)
        worth = fair_need(T, view)
        try:
            return Shares(solve(SharedTime(T / worth[:, None], z, view.capacity)))
        except NotSolved:
            answer = MaxMinFairness(point="interior").decide(view)
            assert isinstance(answer, Shares)
            return answer


@dataclass(frozen=True)
class EveryPair:
    """Another policy with space sharing, to which all pairs of one size look as if they could run, at almost no speed.

    The published program has a variable for each pair and type, also where the two cannot run together. Such a variable
    takes up time at the point where an interior-point solver stops.
    """

    inner: Policy

    info: ClassVar[PolicyInfo] = MaxMinFairness.info  # each instance shows the inner policy's card

    def __post_init__(self) -> None:
        object.__setattr__(self, "info", self.inner.info)

    def decide(self, view: View) -> Shares:
        """Return rows with partners; those of pairs that cannot run are left out."""
        beside, kind, T = view.packed_throughput, view.job_class, view.throughput
        hardly = np.zeros(len(beside))
        np.maximum.at(hardly, kind, _HARDLY * T.max(axis=1, initial=0.0))
        seen = np.where(beside > 0, beside, hardly[:, None, None])
        answer = self.inner.decide(replace(view, columns={**view.columns, "packed_throughput": seen}))
        assert isinstance(answer, Shares) and answer.rows is not None and answer.rows.partner is not None
        job, type, partner = answer.rows.job, answer.rows.type, answer.rows.partner
        mine, other = kind[job], kind[partner]
        runs = (partner < 0) | ((beside[mine, other, type] > 0) & (beside[other, mine, type] > 0))
        return replace(answer, x=answer.x[runs], rows=Rows(job[runs], type[runs], partner=partner[runs]))


@dataclass(frozen=True)
class Untied:
    """Another policy, whose shares differ in the last digits, as those of the published solver do.

    To equal jobs that solver gives shares that are equal to about nine digits, ours to the last one. Equal jobs come to
    equal priorities in turn, and ties go to the older one. One object serves one run, since it keeps drawing.
    """

    inner: Policy
    seed: int
    _random: np.random.Generator = field(init=False, repr=False, compare=False)

    info: ClassVar[PolicyInfo] = MaxMinFairness.info  # each instance shows the inner policy's card

    def __post_init__(self) -> None:
        object.__setattr__(self, "info", self.inner.info)
        object.__setattr__(self, "_random", np.random.default_rng(self.seed))

    def decide(self, view: View) -> Answer:
        """Return what the inner policy answers, each share less by up to a billionth."""
        answer = self.inner.decide(view)
        assert isinstance(answer, Shares)
        return replace(answer, x=answer.x * (1 - _LAST_DIGITS * self._random.random(answer.x.shape)))


def _max_min(more: Mapping[str, Any]) -> Policy:
    """Return the policy as solved there, unless another point is asked for."""
    return MaxMinFairness(**more) if more.get("point", "interior") != "interior" else MaxMinAsSolved()


Builder = Callable[[Mapping[str, Any], int], Policy]  # parameters, and the seed of the run
POLICIES: dict[str, Builder] = {
    "finish_time_fairness": lambda more, _: SeenOnReference(FinishTimeFairness(**more)),
    "min_total_duration": lambda more, _: SeenOnReference(MakespanByBisection()),
    "min_total_duration_perf": lambda more, _: MakespanByBisection(),
    "max_min_fairness": lambda more, _: SeenOnReference(_max_min(more)),
    "max_min_fairness_perf": lambda more, _: _max_min(more),
    "fifo": lambda more, seed: PublishedFifo(seed),
    "fifo_packed": lambda more, _: PublishedFifoPacked(**more),
    "gandiva": lambda more, seed: PublishedGandiva(seed),
}
_INSIDE: dict[str, Any] = {"point": "interior"}
_AS_SOLVED = ("max_min_fairness", "max_min_fairness_perf")
# For curves of many thousand questions: near the point where the published solver stops, in a fifth of the time.
NEARBY: dict[str, Builder] = POLICIES | {
    "finish_time_fairness": lambda more, _: SeenOnReference(FinishTimeFairness(**_INSIDE)),
    "finish_time_fairness_perf": lambda more, _: FinishTimeFairness(**_INSIDE),
    "max_min_fairness": lambda more, seed: Untied(SeenOnReference(MaxMinFairness(**_INSIDE)), seed),
    "max_min_fairness_perf": lambda more, seed: Untied(MaxMinFairness(**_INSIDE), seed),
    "max_min_fairness_packed": lambda more, seed: Untied(
        EveryPair(MaxMinFairness(space_sharing=True, **_INSIDE)), seed
    ),
}
# At that point where it matters: max-min fairness with gangs.
AS_SOLVED = NEARBY | {name: (lambda more, seed, of=POLICIES[name]: Untied(of(more, seed), seed)) for name in _AS_SOLVED}
