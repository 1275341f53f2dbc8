"""A desk at which a test plays both the world and the adviser, and reads what the core decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.model.answers import Answer
from eunomia.model.decisions import Ask, Decision, one_by_one
from eunomia.model.events import Answered, Event, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.model.policy import LeaseTerms, Policy
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Node, Topology
from eunomia.testing.small_worlds import one_type


@dataclass
class Desk:
    """A core that is reported what happens; questions are answered by the policy at once, or by the test."""

    scheduler: Scheduler
    policy: Policy
    asks: list[Ask] = field(default_factory=list)
    moments: int = 0

    def tell(self, at: float, *events: Event) -> list[Decision]:
        """Tell what happened at one instant; return all that is decided then, answers included, asks left out."""
        decided = self.observe(at, *events)
        while (decided and isinstance(decided[-1], Ask)) or any(isinstance(d, Ask) for d in decided):
            ask = next(d for d in decided if isinstance(d, Ask))
            decided = [d for d in decided if d is not ask]
            decided += self.observe(at, Answered(ask.asked, self.policy.decide(ask.view)))
        return decided

    def observe(self, at: float, *events: Event) -> list[Decision]:
        """Tell what happened; leave a question open."""
        self.moments += 1
        decided = one_by_one(self.scheduler.handle(Moment.of(at, events)))
        self.asks += [d for d in decided if isinstance(d, Ask)]
        return decided

    def answer(self, at: float, answer: Answer) -> list[Decision]:
        """Answer the last question."""
        return self.observe(at, Answered(self.asks[-1].asked, answer))

    def submit(self, at: float, *names: str, **asked: object) -> list[Decision]:
        """Submit jobs of 100 s on one accelerator, unless something else is asked."""
        fresh = [
            {"total_steps": 100.0, "submitted": at, "sequence": self.moments + i, **asked} for i in range(len(names))
        ]
        return self.tell(at, *(JobSubmitted(Job(job_id=n, **f)) for n, f in zip(names, fresh, strict=True)))  # type: ignore[arg-type]


Sit = Callable[..., Desk]


@pytest.fixture
def sit() -> Sit:
    """Return a function that sits a policy down before a cluster: `sit(policy, sizes of nodes)`."""

    def sit_down(
        policy: Policy, sizes: Sequence[int] = (1,), *, terms: LeaseTerms | None = None, speeds: Speeds | None = None
    ) -> Desk:
        believed = one_type() if speeds is None else speeds
        topology = Topology.of([Node(type=believed.types[0], accelerators=size) for size in sizes])
        cut = terms or policy.info.mechanism
        mechanism = Leases(length=cut.length_s, aligned=cut.aligned, recall=cut.recall)
        return Desk(Scheduler(topology, policy.info, mechanism, Belief(believed), checked=True), policy)

    return sit_down
