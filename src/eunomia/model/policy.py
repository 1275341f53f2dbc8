"""The policy interface: a pure function of a view, and its description."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Protocol

from eunomia.model.answers import Answer
from eunomia.model.finish_time import IdealTime
from eunomia.model.promises import Promises
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import COLUMNS, View

AnswerType = Literal["shares", "order", "grants"]
Named = Literal["accelerator type", "app"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """A policy's default mechanism.

    Rounds are leases with a common end; endless leases end with the job, and are preemptible (`recall`) or not.

    length_s: seconds after which a lease ends and the policy is asked again; inf = with the job.
    aligned: whether all leases end together, as rounds do.
    recall: whether the policy may stop a job before its lease ends.
    """

    length_s: float = math.inf
    aligned: bool = False
    recall: bool = False


ENDLESS = LeaseTerms()
RECALLABLE = LeaseTerms(recall=True)
ROUNDS = LeaseTerms(length_s=360.0, aligned=True)
BY_ANSWER_TYPE = LeaseTerms()  # a card that says nothing: shares change hands in rounds, others hold endless leases


_MEASURES: Mapping[str, str] = {"jct": "jct_mean_s", "cost": "cost_usd", "deadline": "deadlines_missed"}  # by objective
# Columns that are made of a setting of jobs.
_COLUMNS_OF: Mapping[str, frozenset[str]] = {
    "weight": frozenset({"weight", "fair_share_service"}), "deadline_s": frozenset({"deadline"}),
}  # fmt: skip
_PROMISED_BY: Mapping[str, AnswerType] = {"renews_leases": "grants", "covers_all_jobs": "order", "lone_starts": "order"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInfo:
    """A policy's card: what it is, which `eunomia policies` shows, and what must be known to ask it."""

    name: str
    answer_type: AnswerType
    objective: str
    technique: str
    paper: str
    needs: frozenset[str]
    taxonomy: Taxonomy | None = None  # where it stands in the survey of the field; every policy of ours says it
    oracle: bool = False  # uses what only an oracle knows, such as the remaining steps
    memory_columns: Mapping[str, float] = field(default_factory=dict)  # by job: its value for a new one
    mechanism: LeaseTerms = BY_ANSWER_TYPE  # left out: ROUNDS for shares, ENDLESS for others
    explains_waits: bool = False  # its reason for a wait begins with its cause: fair share, fragmentation or another
    measure: str = ""  # number of summary.json that it is meant to keep small; "" = that of its first objective
    usage_half_life_s: float = math.inf  # of the column `tenant_usage`; inf = nothing is forgotten
    # Answers of a published system, played to the letter beside its own logs: only their fields are checked, and not
    # whether they fit the jobs and the cluster.
    published: bool = False
    # Capabilities that callers go by; none of them asks for the name.
    backfills: bool = True  # in rounds, time that is left over may go to jobs without a share
    # Keys of a scenario's tenants that it goes by: weight, quota, …; None = all, if it needs the column `tenants`.
    tenant_settings: frozenset[str] | None = None
    reads_nested_quotas: bool = True  # if it reads quotas: those of tenants below others too
    learnt_from: str = ""  # what its model was trained on, for those who read its results
    ideal: IdealTime | None = None  # the reading of T_id by which it goes, and by which its runs are measured
    names: Mapping[str, Named] = field(default_factory=dict)  # parameters that name one; "" = none
    fallback: str = ""  # the policy that answers in the service where this one fails; it needs no other columns
    promises: Promises = field(default_factory=Promises)  # by which many questions are spared

    def __post_init__(self) -> None:
        if self.mechanism is BY_ANSWER_TYPE:
            object.__setattr__(self, "mechanism", ROUNDS if self.answer_type == "shares" else ENDLESS)
        unknown = sorted(self.needs - COLUMNS)
        if unknown:
            raise ValueError(f"policy {self.name!r} needs {unknown}, which no view has; it has {sorted(COLUMNS)}")
        promised = next((name for name, door in _PROMISED_BY.items() if getattr(self.promises, name)), None)
        if promised is not None and self.answer_type != _PROMISED_BY[promised]:
            raise ValueError(
                f"policy {self.name!r} answers with {self.answer_type}, and {promised} is a promise of "
                f"{_PROMISED_BY[promised]}; leave it out"
            )
        half_life_s = self.usage_half_life_s
        if not half_life_s > 0:
            raise ValueError(
                f"half_life_s is {half_life_s}; it is a number of seconds above 0, or inf to forget nothing"
            )

    def knows(self, setting: str) -> bool:
        """Say whether the policy goes by a setting of jobs, as `deadline_s`, or of tenants, as `tenants.quota`.

        Raises KeyError for another one.
        """
        table, _, name = setting.rpartition(".")
        if table == "tenants":
            given = self.tenant_settings
            return "tenants" in self.needs and (given is None or name in given)
        return not self.needs.isdisjoint(_COLUMNS_OF[setting])

    @property
    def own_measure(self) -> str:
        """Return the number of summary.json that the policy is meant to keep small; "" = none."""
        objective = self.taxonomy.objectives[0] if self.taxonomy is not None and self.taxonomy.objectives else ""
        return self.measure or _MEASURES.get(objective, "")

    @property
    def may_renew_in_time(self) -> bool:
        """Whether an answer can renew a lease that ends now: grants must name the job, so they must see the ends."""
        return self.answer_type != "grants" or not self.needs.isdisjoint({"lease_end", "longest_lease"})


class Policy(Protocol):
    """A frozen dataclass whose fields are its parameters. Pure: the same view, the same answer."""

    info: ClassVar[PolicyInfo]

    def decide(self, view: View) -> Answer:
        """Answer one question about the jobs in `view`."""
        ...


def also_needs(policy: Policy, columns: Iterable[str]) -> None:
    """Add columns to the needs of this policy instance. For a `__post_init__`; needs a class without slots.

    One whose parameters add the column `shapes` changes the sizes of gangs.
    """
    info, more = policy.info, frozenset(columns) - policy.info.needs
    if more:
        oracle, taxonomy = info.oracle or "remaining" in more, info.taxonomy
        if taxonomy is not None and "shapes" in more:
            taxonomy = replace(taxonomy, elastic=True)
        object.__setattr__(policy, "info", replace(info, needs=info.needs | more, oracle=oracle, taxonomy=taxonomy))


def set_usage_half_life(policy: Policy, half_life_s: float) -> None:
    """Set the half-life of the column `tenant_usage`, inf = no decay. For a `__post_init__`, as `also_needs`.

    Raises ValueError unless it is above 0.
    """
    object.__setattr__(policy, "info", replace(policy.info, usage_half_life_s=half_life_s))


def set_promises(policy: Policy, promises: Promises) -> None:
    """Set the promises of this policy instance. For a `__post_init__`, as `also_needs`."""
    object.__setattr__(policy, "info", replace(policy.info, promises=promises))
