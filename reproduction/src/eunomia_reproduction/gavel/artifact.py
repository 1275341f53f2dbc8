"""What the published policies do otherwise than ours, so that runs can be compared: for the comparison only.

Agnostic finish times and makespans take every type to be a V100; makespans are searched by bisection, and the answer is
a middle one; the plain queue is in `queue`, Gandiva's pairs are in `packing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from eunomia.model.answers import Answer, Shares
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
_FIRST_S, _LAST_S, _NEAR = 100.0, 1e6, 1.05  # where the bisection begins, and how near its ends come


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
# Beside the point where the published solver stops, in a fifth of the time: for curves of many thousand questions.
NEARBY: dict[str, Builder] = POLICIES | {
    "finish_time_fairness": lambda more, _: SeenOnReference(FinishTimeFairness(**_INSIDE)),
    "finish_time_fairness_perf": lambda more, _: FinishTimeFairness(**_INSIDE),
    "max_min_fairness": lambda more, _: SeenOnReference(MaxMinFairness(**_INSIDE)),
    "max_min_fairness_perf": lambda more, _: MaxMinFairness(**_INSIDE),
    "max_min_fairness_packed": lambda more, _: MaxMinFairness(space_sharing=True, **_INSIDE),
}
