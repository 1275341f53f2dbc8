"""A core by hand: reported what happens, and showing at each moment all that a policy could see."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.model.answers import Order, Rows
from eunomia.model.decisions import Ask
from eunomia.model.events import Answered, Event, Moment
from eunomia.model.policy import RECALLABLE, PolicyInfo
from eunomia.model.speeds import Speeds
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Node, Topology
from eunomia.model.view import COLUMNS, View

HALF_LIFE_S = 3600.0  # of tenants' usage


@dataclass(frozen=True)
class Looker:
    """First come, first served, each on its fastest type if that holds the gang, with all columns in view."""

    shown: list[View] = field(default_factory=list)
    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="looker", answer_type="order", objective="", technique="", paper="", needs=COLUMNS, mechanism=RECALLABLE,
        usage_half_life_s=HALF_LIFE_S,
    )  # fmt: skip

    def decide(self, view: View) -> Order:
        self.shown.append(view)
        fastest = np.argmax(view.throughput, axis=1)
        job = np.flatnonzero(view.scale_factor <= view.capacity[fastest])
        return Order(Rows(job, fastest[job]))


class Watched:
    """A core on these nodes, and an observer of each moment."""

    def __init__(self, nodes: Sequence[Node], speeds: Speeds, tenants: Mapping[str, Tenant] | None = None):
        self.policy = Looker()
        leases = Leases(length=math.inf, aligned=False, recall=True)
        belief = Belief(speeds)
        self.core = Scheduler(Topology.of(nodes), self.policy.info, leases, belief, tenants=tenants, checked=True)

    def tell(self, at: float, *events: Event) -> View:
        decided = self.core.handle(Moment.of(at, events))
        for ask in [one for one in decided if isinstance(one, Ask)]:
            self.core.handle(Moment.of(at, (Answered(ask.asked, self.policy.decide(ask.view)),)))
        return self.policy.shown[-1]
