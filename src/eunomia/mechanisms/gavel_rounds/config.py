"""What Gavel's rounds can be set to. The defaults are its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from eunomia.core.mechanism import MechanismConfig
from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.policy import AnswerType, PolicyInfo
from eunomia.model.spelling_suggestions import nearest

_Count = Annotated[int, Rule(least=0, what="at least 0")]
DEFAULT_VISIT = ("v100", "p100", "k80")


@dataclass(frozen=True, slots=True, kw_only=True)
class GavelRounds(MechanismConfig):
    """The round mechanism of Gavel's simulator, each of its oddities a field.

    `round_s` longest round; it ends when its last gang has done its steps. `solve_gap_s` least time between two asks
    of the policy. `credit_s` time that a new job, and every job at an ask, is credited as received on each type; None
    = half a round. `visit` types in the order in which they are filled: one that is not named is never used; () = all
    in the cluster's order. `shuffled` draws that order anew for each round. `fill` lets jobs without a share there
    have what is left over. `pairs` accounts every pair of jobs of one size. `global_queue` makes one list of all
    types instead of one each. `overtake` lets narrower gangs pass one that does not fit. `sticky` leaves a gang on
    its seats of the round before. `idle_arrivals` lets jobs that the last answer does not know take seats and leave
    them idle; else they run in what is left over. `charge_gaps` counts idle time before a round as received.
    `most_failures` rounds in a row in which a worker of the gang had no step to do, after which a job is dropped; 0 =
    never: a step is then a fraction. `split_steps` divides the steps of a gang among its workers, so that one can
    have none, unless steps are fractions; else the gang does them as one. `expected` jobs in all, 0 = unknown: with
    none left to come and no job running, the policy is asked at once.
    Raises ValueError for lengths that are not above 0.
    """

    name: ClassVar[str] = "gavel"
    mechanism: ClassVar[str] = "eunomia.mechanisms.gavel_rounds.mechanism:GavelMechanism"
    answers: ClassVar[frozenset[AnswerType]] = frozenset({"shares", "order"})
    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"backend", "overheads", "status", "failures", "noise", "physics", "uninterruptible"}
    )
    because: ClassVar[str] = "the mechanism gavel counts rounds as Gavel's simulator does, which does not model that"
    not_settable: ClassVar[frozenset[str]] = frozenset({"expected"})

    round_s: Annotated[float, Rule(above=0.0, what="above 0 and finite: seconds of the longest round")] = 360.0
    solve_gap_s: Annotated[float, Rule(least=0.0, endless=True, what="at least 0")] = 1920.0
    credit_s: Annotated[float, Rule(least=0.0, what="at least 0 and finite")] | None = None
    visit: tuple[str, ...] = DEFAULT_VISIT
    shuffled: bool = False
    fill: bool = True
    pairs: bool = False
    global_queue: bool = False
    overtake: bool = True
    sticky: bool = True
    idle_arrivals: bool = True
    charge_gaps: bool = True
    most_failures: _Count = 5
    split_steps: bool = True
    expected: _Count = 0

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def credit(self) -> float:
        """Seconds credited to every job when counting begins."""
        return self.round_s / 2.0 if self.credit_s is None else self.credit_s

    @property
    def lease_s(self) -> float:
        """Seconds that a lease given now lasts at most."""
        return self.round_s

    @property
    def aligned(self) -> bool:
        """Whether all leases end together."""
        return True

    @classmethod
    def for_policy(cls, info: PolicyInfo) -> dict[str, Any]:
        """Return what Gavel's clock does differently from policy to policy."""
        return {"pairs": "packed_throughput" in info.needs, "fill": info.backfills}

    @classmethod
    def of(cls, said: Mapping[str, Any], jobs: int) -> Self:
        """Return the configuration of a run of so many jobs."""
        visit = {"visit": tuple(said["visit"])} if "visit" in said else {}
        return cls(**{**said, **visit, "expected": jobs})

    @classmethod
    def wrong(cls, said: Mapping[str, Any], types: Sequence[str]) -> list[tuple[str, str, str, str]]:
        """Return what is wrong with the order in which types are filled: one that is not named is never used."""
        visit = said.get("visit", DEFAULT_VISIT)
        if not isinstance(visit, list | tuple) or not all(isinstance(name, str) for name in visit):
            return [("visit", "must be a list of accelerator types", 'give ["v100", "k80"]', str(visit))]
        if len(set(visit)) < len(visit):
            twice = next(name for name in visit if list(visit).count(name) > 1)
            return [("visit", "names a type twice", "name each type once", twice)]
        if tuple(visit) != DEFAULT_VISIT:
            unknown = [name for name in visit if name not in types]
            return [("visit", "the cluster has no such type", nearest(name, types), name) for name in unknown]
        if set(visit) & set(types):
            return []
        rule = f"no type of the cluster is ever used: Gavel visits {', '.join(visit)} alone"
        return [("visit", rule, "give visit = [], which is the cluster's order", ", ".join(types))]

    def notes(self, types: Sequence[str]) -> tuple[str, ...]:
        """Return a note about types of the cluster that are never visited."""
        idle = [name for name in types if self.visit and name not in self.visit]
        return (f"mechanism.visit names no {', '.join(idle)}: no job ever runs there.",) if idle else ()
