"""Every preemption of a job is found, with the jobs that got its accelerators: as the decisions themselves say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from eunomia import policies
from eunomia.backends.simulated import Simulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.metrics import Metrics
from eunomia.model.decisions import Decision, Start, Stop, one_by_one
from eunomia.model.events import Moment
from eunomia.records.preemptions import Preemption, PreemptionLog
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.testing.small_worlds import draw

POLICIES = ("srtf", "las?quantum=500", "tiresias", "max_min_fairness", "gandiva", "themis", "quincy")


class Watch:
    """Keeps what the decisions say, and what the logs of all jobs find in the states."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.logs: defaultdict[str, PreemptionLog] = defaultdict(PreemptionLog)
        self.started: dict[tuple[float, str], tuple[int, ...]] = {}  # seats
        self.stopped: dict[tuple[float, str], tuple[int, ...]] = {}
        self.seats: dict[str, tuple[int, ...]] = {}

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        for decision in one_by_one(decisions):
            if isinstance(decision, Stop):
                for name in decision.job_ids:
                    self.stopped[moment.at, name] = self.seats.pop(name)
            if isinstance(decision, Start):
                for one in (decision.job_id, decision.partner_id):
                    if one is not None:
                        self.started[moment.at, one] = self.seats[one] = decision.seats
        for row, name in enumerate(self.scheduler.state.ids):
            self.logs[name].note(moment, self.scheduler, row)


def check(at: float, name: str, one: Preemption, watch: Watch) -> None:
    """Compare one preemption with the decisions of its moment."""
    seats = set(watch.stopped[at, name])
    others = {who: set(got) for (when, who), got in watch.started.items() if when == at and who != name}
    direct = {who for who, got in others.items() if got & seats}
    assert one.moved == ((at, name) in watch.started)
    if one.moved:
        assert one.by == ()
        return
    assert set(one.by) <= set(others), "whoever is named started at that moment"
    if direct:
        assert set(one.by) == direct


@pytest.mark.parametrize("spelling", POLICIES)
def test_preemptions_are_those_of_the_decisions_and_name_the_jobs_that_started_there(spelling: str) -> None:
    found = 0
    for seed in range(2):
        world, policy = draw(seed, jobs=10), policies.build(spelling)
        terms = policy.info.mechanism
        leases = Leases(length=terms.length_s, aligned=terms.aligned, recall=terms.recall)
        price = np.ones(len(world.topology.types))
        scheduler = Scheduler(world.topology, policy.info, leases, Belief(world.speeds), seed=seed, price=price)
        watch, metrics = Watch(scheduler), Metrics(world.topology, world.speeds, {})
        run(
            scheduler,
            Simulation(world.jobs, world.topology, world.speeds),
            InlinePolicyRunner(policy),
            [watch, metrics],
        )
        jobs = metrics.figures(bins=20).jobs
        for name, count in zip(jobs["job_id"], jobs["preemptions"], strict=True):
            log = watch.logs[str(name)].found
            assert len(log) == count, f"seed {seed}, {name}: {log}"
            for one in log:
                check(one.at, str(name), one, watch)
                found += bool(one.by)
    assert found, "some job was preempted by another"
