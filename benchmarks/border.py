"""The check of a policy's answer against the whole decision that it is a part of: view, answer, check, seats."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.side_by_side import Comparison, compare
from eunomia.core.answer_rows import PendingAsk
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.model.decisions import Ask
from eunomia.model.events import Answered, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.model.policy import Policy
from eunomia.model.topology import Node, Topology
from eunomia.policies import build
from eunomia.testing.small_worlds import DrawnRates

JOBS, NODES, PER_NODE = 2_048, 32, 8  # nodes of each type
CALLS, REPEATS = 10, 5
POLICIES = ("las?quantum=600", "srtf", "proportional", "max_min_fairness", "consolidated")
SIZES, PARTS = (1, 2, 4, 8), (0.7, 0.1, 0.1, 0.1)
SPEEDS = DrawnRates(
    types=("v100", "p100", "k80"), by_kind={"cnn": (4.0, 2.0, 1.0), "lm": (3.0, 2.5, 0.0), "rl": (1.0, 0.8, 0.7)}
)


def _asked(policy: Policy) -> tuple[Scheduler, Ask]:
    """Return a scheduler to which all jobs have just come, and its ask."""
    rng = np.random.default_rng(0)
    jobs = [
        Job(
            job_id=f"job-{m}", sequence=m, total_steps=float(rng.uniform(1e3, 1e5)),
            job_type=str(rng.choice(list(SPEEDS.by_kind))), scale_factor=int(rng.choice(SIZES, p=PARTS)),
        ) for m in range(JOBS)
    ]  # fmt: skip
    topology = Topology.of([Node(type=name, accelerators=PER_NODE) for name in SPEEDS.types for _ in range(NODES)])
    cut = policy.info.mechanism
    leases = Leases(length=cut.length_s, aligned=cut.aligned, recall=cut.recall)
    scheduler = Scheduler(topology, policy.info, leases, Belief(SPEEDS))
    (ask,) = (one for one in scheduler.handle(Moment.of(0.0, map(JobSubmitted, jobs))) if isinstance(one, Ask))
    return scheduler, ask


def cases() -> Iterator[Comparison]:
    """Yield one comparison for each policy."""
    for name in POLICIES:
        yield _compared(name, build(name))


def _compared(name: str, policy: Policy) -> Comparison:
    scheduler, ask = _asked(policy)
    answer, question = policy.decide(ask.view), scheduler.asks.pending
    assert question is not None
    fresh = [scheduler.copy() for _ in range(CALLS * (REPEATS + 1))]

    def decide() -> None:
        for _ in range(CALLS):
            one = fresh.pop()
            one.mechanism.columns(0.0, question.active)
            one.handle(Moment(0.0, (Answered(ask.asked, policy.decide(ask.view)),)))

    def check() -> None:
        for _ in range(CALLS):
            scheduler.asks.check(answer, PendingAsk(0, question.active), 0.0, 0.0)

    decide()
    check()
    return compare(f"check of an answer: {name}", JOBS, check, decide, "whole decision", repeats=REPEATS)
