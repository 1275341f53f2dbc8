"""Configuration of leases, and their ends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from eunomia.core.mechanism import MechanismConfig
from eunomia.core.placement_pass import ALL_SEATS, ENDED, EXTENDED
from eunomia.core.state import State
from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Leases(MechanismConfig):
    """`length` inf = endless; `aligned` = all end together at its multiples (rounds); `recall` = at any moment.

    A policy that shares time is asked at most once in `solve_gap` seconds; its last answer holds until then. While jobs
    are there and an answer could change anything, it is asked again `ask_every` seconds after its last answer, though
    nothing came or went. Raises ValueError for a length that is not above 0, for aligned leases without an end, and for
    an `ask_every` below the `solve_gap`.
    """

    name: ClassVar[str] = "leases"
    mechanism: ClassVar[str] = "eunomia.mechanisms.leases.mechanism:LeaseMechanism"
    length: Annotated[float, Rule(above=0.0, endless=True, what="above 0: seconds that a lease lasts")] = math.inf
    aligned: bool = False
    recall: bool = False
    solve_gap: float = 0.0
    ask_every: float = math.inf

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "length", float(self.length))  # or its whole multiples are times that are no floats
        if self.aligned and math.isinf(self.length):
            raise ValueError(
                "aligned leases need a common end: give a finite length_s, for example 360, or aligned = false"
            )
        if not (self.ask_every > 0 and self.ask_every >= self.solve_gap):
            raise ValueError(
                f"ask_every_s is {self.ask_every:g} and solve_gap_s {self.solve_gap:g}; the most seconds between two "
                "calls are above 0, and not below the least"
            )

    @property
    def lease_s(self) -> float:
        """Seconds that a lease given now lasts at most."""
        return self.length

    def is_boundary(self, at: float) -> bool:
        """Return whether all leases end now."""
        return self.aligned and round(at / self.length) * self.length == at

    def next_boundary(self, at: float) -> float:
        """Return the common end after `at`; inf when leases have none."""
        if not self.aligned:
            return math.inf
        nearest = round(at / self.length) * self.length
        return nearest if nearest > at else (round(at / self.length) + 1) * self.length

    def until(self, at: float) -> float:
        """Return the end of a lease that is given now."""
        return self.next_boundary(at) if self.aligned else at + self.length

    def opening(self, at: float) -> int:
        """Return which seats are reassignable now, a constant of `core.placement_pass`."""
        if self.recall:
            return ALL_SEATS
        return EXTENDED if self.is_boundary(at) else ENDED

    def next_end(self, state: State) -> float:
        """Return when the next lease ends by itself; inf when none does."""
        if not state.own_lease_ends and (self.aligned or math.isinf(self.length)):
            return math.inf
        running = state.running()
        return float(state.jobs.until[running].min()) if len(running) else math.inf
