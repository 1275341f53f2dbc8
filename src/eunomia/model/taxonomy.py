"""The taxonomy of policies: the axes by which the survey of the field classifies schedulers.

Rows A are objectives: A1a completion times, A1b utilisation, A1c cost, A2 fairness, A3 deadlines, A4 accuracy. Rows B
are features that a policy uses: B1 several types of accelerators, B2 sharing them, B3 gangs of several sizes.

Reference: W. Gao et al., "Deep Learning Workload Scheduling in GPU Datacenters: Taxonomy, Challenges and Vision", arXiv
2205.11913, 2022, tables of training schedulers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Objective = Literal["jct", "utilisation", "cost", "fairness", "deadline", "accuracy"]
Fairness = Literal["job", "tenant", "app", "instant", "long-term"]
Heterogeneity = Literal["no", "partial", "yes"]
Sharing = Literal["temporal", "spatial"]
Values = tuple[str, ...]

NONE: Values = ("none",)
_YES_OR_NO: Values = ("no", "yes")
_ROW_BY_OBJECTIVE: Mapping[str, str] = dict(
    zip(get_args(Objective), ("A1a", "A1b", "A1c", "A2", "A3", "A4"), strict=True)
)
_COLUMNS_BY_KNOWLEDGE: Mapping[str, frozenset[str]] = {
    "duration": frozenset({"remaining", "total"}),
    "loss": frozenset({"loss_curve"}),
    "profile": frozenset({"shape_throughput", "packed_throughput", "spread_throughput", "slowdown"}),
    "deadline": frozenset({"deadline"}),
    "price": frozenset({"price"}),
}
_SEARCH_COLUMNS = frozenset({"app", "apps", "loss_curve"})
AXES: Mapping[str, Values] = {  # the values that each axis may have
    "row": (*_ROW_BY_OBJECTIVE.values(), "B1", "B2", "B3", *NONE),
    "objective": (*get_args(Objective), *NONE),
    "fairness": (*get_args(Fairness), *NONE),
    "heterogeneity": get_args(Heterogeneity),
    "placement": _YES_OR_NO,
    "sharing": (*get_args(Sharing), *NONE),
    "elastic": _YES_OR_NO,
    "preemptive": _YES_OR_NO,
    "automl": _YES_OR_NO,
    "knowledge": (*_COLUMNS_BY_KNOWLEDGE, *NONE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Taxonomy:
    """Classification of a policy with its default parameters.

    `fairness`: between jobs, tenants or apps, and at each instant or over the long term. `heterogeneity`: "partial"
    sends jobs to their fastest type but makes no trade-off between types. `sharing`: jobs take turns on an accelerator,
    or share it at the same time.
    """

    objectives: tuple[Objective, ...]
    fairness: tuple[Fairness, ...] = ()
    heterogeneity: Heterogeneity = "no"
    placement: bool = False  # its answer depends on the machine of a seat
    sharing: tuple[Sharing, ...] = ()
    elastic: bool = False  # changes the sizes of gangs
    preemptive: bool = False  # stops jobs before they end

    def __post_init__(self) -> None:
        if ("fairness" in self.objectives) != bool(self.fairness):
            raise ValueError(
                "taxonomy: a policy names the parties of its fairness if, and only if, fairness is an objective"
            )

    def axes(self, needs: frozenset[str]) -> dict[str, Values]:
        """Return the values of every axis for a policy that reads these columns."""
        rows = [_ROW_BY_OBJECTIVE[objective] for objective in self.objectives]
        uses = {"B1": self.heterogeneity == "yes", "B2": bool(self.sharing), "B3": self.elastic}
        rows += [row for row, used in uses.items() if used]
        return {
            "row": tuple(rows) or NONE,
            "objective": self.objectives or NONE,
            "fairness": self.fairness or NONE,
            "heterogeneity": (self.heterogeneity,),
            "placement": _yes_no(self.placement),
            "sharing": self.sharing or NONE,
            "elastic": _yes_no(self.elastic),
            "preemptive": _yes_no(self.preemptive),
            "automl": _yes_no(bool(needs & _SEARCH_COLUMNS)),
            "knowledge": self._knowledge(needs) or NONE,
        }

    def _knowledge(self, needs: frozenset[str]) -> Values:
        """Return what must be known of jobs beforehand; throughputs count as a profile where types are traded off."""
        known = {word for word, columns in _COLUMNS_BY_KNOWLEDGE.items() if needs & columns}
        if self.heterogeneity == "yes":
            known.add("profile")
        return tuple(word for word in _COLUMNS_BY_KNOWLEDGE if word in known)


def _yes_no(holds: bool) -> Values:
    return ("yes",) if holds else ("no",)
