"""What each policy maximises, as a number: to compare our answer with a logged one to the same question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Array, Floats
from eunomia.model.equal_share import alone_throughput
from eunomia.model.policy import Policy
from eunomia.model.products import dot, row_dots
from eunomia.model.view import View
from eunomia.policies.shares.finish_time_fairness import alone_time
from eunomia.policies.shares.makespan import Makespan
from eunomia.policies.shares.share_inputs import equal_share
from eunomia_reproduction.gavel.artifact import SeenOnReference

Value = Callable[[View, Floats, Floats], float]  # view, throughput as the policy sees it, X → the larger the better


def _normalised(view: View, T: Floats, X: Floats) -> float:
    """Return the lowest throughput relative to equal time, by weight and gang."""
    got, equal = row_dots(T, X), dot(T, equal_share(view))
    return float((view.scale_factor * got / (view.weight * equal)).min())


def _finish(view: View, T: Floats, X: Floats) -> float:
    """Return minus the largest ρ."""
    got = row_dots(T, X)
    alone = alone_throughput(T, view.scale_factor, view.capacity)
    with np.errstate(divide="ignore"):
        late = (view.at - view.submitted + view.remaining / got) / (alone_time(view) + view.remaining / alone)
    return -float(late.max())


def _duration(view: View, T: Floats, X: Floats) -> float:
    with np.errstate(divide="ignore"):
        return -float((view.remaining / row_dots(T, X)).max())


def _sum(view: View, T: Floats, X: Floats) -> float:
    return float((T * X).sum())


def _sum_per_cost(view: View, T: Floats, X: Floats) -> float:
    return float((T / view.price * X).sum())


VALUES: Mapping[str, Value] = {
    "max_min_fairness": _normalised,
    "max_min_fairness_perf": _normalised,
    "max_min_fairness_water_filling_perf": _normalised,
    "finish_time_fairness": _finish,
    "finish_time_fairness_perf": _finish,
    "min_total_duration": _duration,
    "min_total_duration_perf": _duration,
    "max_sum_throughput_perf": _sum,
    "max_sum_throughput_normalized_by_cost_perf": _sum_per_cost,
}
EXACT: Mapping[str, Policy] = {  # where the policy that is run answers less than the best on purpose
    "min_total_duration": SeenOnReference(Makespan()),
    "min_total_duration_perf": Makespan(),
}


@dataclass(frozen=True)
class Objective:
    """The objective of one of the published policies, and ours that answers for it."""

    value: Value
    policy: Policy

    @classmethod
    def of(cls, name: str, policy: Policy) -> Objective | None:
        """Return the objective of a policy, None for one that optimises nothing."""
        return cls(VALUES[name], EXACT.get(name, policy)) if name in VALUES else None

    def judge(self, view: View, logged: Shares) -> tuple[float, Mapping[str, Array]]:
        """Return by how much our answer is worse than the logged one, relative, and what it wants to remember."""
        mine = self.policy.decide(view)
        assert isinstance(mine, Shares)
        seen = view.throughput
        if isinstance(self.policy, SeenOnReference):
            seen = self.policy.seen(view).throughput
        ours, theirs = (self.value(view, seen, _dense(view, shares)) for shares in (mine, logged))
        return max(0.0, (theirs - ours) / max(abs(theirs), 1e-300)), mine.memory


def _dense(view: View, shares: Shares) -> Floats:
    """Return X (job, type); pairs are left out."""
    if shares.rows is None:
        return shares.x
    X = np.zeros((view.jobs, len(view.types)))
    alone = slice(None) if shares.rows.partner is None else shares.rows.partner < 0
    X[shares.rows.job[alone], shares.rows.type[alone]] = shares.x[alone]
    return X
