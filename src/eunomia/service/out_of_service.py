"""What is out of service, or will be: drained nodes and accelerators, and spans of maintenance, as they are stored."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

NODE = -1  # the place of a drain of a whole node
DrainKey: TypeAlias = tuple[int, int]  # node, and place of an accelerator on it, or `NODE`
PLANNED, BEGUN, ENDED, CANCELLED = "planned", "begun", "ended", "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A node, or one of its accelerators, that gets no new gang. Times are seconds of the service's time."""

    node: int
    place: int  # of the accelerator on the node; `NODE` = all of it
    reason: str
    user: str  # who drained it
    since: float
    until: float = math.inf  # when gangs that are left are stopped; inf = they run until they end
    empty: float = math.nan  # when the last process had left; nan = some are there
    maintenance: int = 0  # number of the maintenance that it is for; 0 = of none

    @property
    def key(self) -> DrainKey:
        """Node and place."""
        return self.node, self.place


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """Nodes that are kept free of jobs for a span, and come back by themselves."""

    number: int
    nodes: tuple[str, ...]  # names
    begins: float  # seconds of the service's time
    ends: float
    reason: str
    user: str
    state: str = PLANNED
