"""Configuration of the fluid mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from eunomia.core.mechanism import MechanismConfig
from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.policy import AnswerType


@dataclass(frozen=True, slots=True, kw_only=True)
class Fluid(MechanismConfig):
    """Time that can be divided at will: no seats, no rounds, no overheads.

    The policy is asked when jobs came or went, at most once in `solve_gap_s` seconds; its last answer holds until
    then. It is asked again `ask_every_s` seconds after its last answer, though none came or went. Raises ValueError for
    a gap below 0, and for an interval that is not above 0.
    """

    name: ClassVar[str] = "ideal"
    mechanism: ClassVar[str] = "eunomia.mechanisms.fluid.mechanism:FluidMechanism"
    answers: ClassVar[frozenset[AnswerType]] = frozenset({"shares"})
    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"backend", "overheads", "status", "failures", "measuring", "seats", "uninterruptible"}
    )
    because: ClassVar[str] = "under the mechanism ideal no gang has seats, so none is started, moved or lost"
    no_such_key: ClassVar[str] = ": it has neither leases nor rounds"
    divides_time: ClassVar[bool] = True

    solve_gap_s: Annotated[float, Rule(least=0.0, what="at least 0 and finite")] = 0.0
    ask_every_s: Annotated[float, Rule(above=0.0, endless=True, what="above 0")] = float("inf")

    def __post_init__(self) -> None:
        check_fields(self)
