"""The compiled clock in the core and the obvious one, in drawn worlds: the same rounds, the same ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gavel_rounds import Allocation, Members, Obvious

from eunomia.backends.simulated import Simulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.gavel_rounds import GavelRounds
from eunomia.mechanisms.gavel_rounds.mechanism import GavelMechanism
from eunomia.mechanisms.gavel_rounds.progress_accounting import DONE, DROPPED
from eunomia.model.answers import Answer, Rows, Shares
from eunomia.model.decisions import Decision
from eunomia.model.events import Moment
from eunomia.model.job import Job
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.topology import Node, Topology
from eunomia.model.view import View
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.testing.small_worlds import DrawnRates

TYPES = ("k80", "p100", "v100")


@dataclass(frozen=True)
class Drawn:
    """Answers shares that are drawn, many of them alike or nothing, and remembers when it said them."""

    pairs: bool = False
    said: list[tuple[float, Allocation]] = field(default_factory=list)
    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="drawn", answer_type="shares", objective="", technique="", paper="",
        needs=frozenset({"scale_factor", "submitted", "throughput", "capacity"}), mechanism=ROUNDS,
    )  # fmt: skip

    def decide(self, view: View) -> Answer:
        rng = view.rng()
        first, second = [], []
        for m in range(view.jobs):
            first.append(m)
            second.append(-1)
            for mate in range(m) if self.pairs else ():
                if view.scale_factor[m] == view.scale_factor[mate]:
                    first.append(mate)
                    second.append(m)
        x = rng.choice([0.0, 0.0, 0.2, 0.5, 1.0], size=(len(first), len(view.types))) / max(view.jobs, 1)
        one, two, size = np.array(first), np.array(second), view.scale_factor[first]
        runs = (view.throughput[one] > 0) & ((two < 0)[:, None] | (view.throughput[two] > 0))
        x[~runs | (size[:, None] > view.capacity)] = 0.0
        time = np.bincount(one, x.sum(axis=1), view.jobs)
        time += np.bincount(two[two >= 0], x[two >= 0].sum(axis=1), view.jobs)
        x /= max(1.0, time.max(), ((x * size[:, None]).sum(axis=0) / view.capacity).max())
        names = rows_of(view)
        said = {
            tuple(names[m] for m in (a, b) if m >= 0): dict(zip(view.types, row.tolist(), strict=True))
            for a, b, row in zip(first, second, x, strict=True)
        }
        self.said.append((view.at, said))
        row, kind = np.nonzero(x)
        return Shares(x[row, kind], Rows(np.array(first)[row], kind, partner=np.array(second)[row]))


def rows_of(view: View) -> list[int]:
    """Jobs are submitted at times that name them."""
    return [round(at * 1e6) % 1000 for at in view.submitted.tolist()]


SLOW = 0.002  # steps/s: none fits in a round


@st.composite
def worlds(draw: st.DrawFn, *, slow: bool = True) -> tuple[list[Job], list[str], DrawnRates]:
    """Draw up to 9 jobs, up to 12 accelerators, and speeds some of which are 0 or, if `slow`, very low."""
    kinds = ("a", "b", "c")
    speed = st.sampled_from([0.0, SLOW if slow else 0.3, 0.5, 1.0, 2.5, 7.3])
    by_kind = {kind: tuple(draw(st.tuples(speed, speed, speed))) for kind in kinds}
    by_kind["a"] = (1.0, *by_kind["a"][1:])
    devices = [kind for kind in TYPES for _ in range(draw(st.integers(1, 4)))]
    jobs = []
    for row in range(draw(st.integers(1, 9))):
        jobs.append(
            Job(
                job_id=str(row),
                total_steps=draw(st.sampled_from([1.0, 3.0, 50.0, 900.0, 2000.5])),
                submitted=draw(st.sampled_from([0.0, 100.0, 400.0, 3000.0, 9000.0])),
                scale_factor=draw(st.sampled_from([1, 1, 2, 4])),
                job_type=draw(st.sampled_from(kinds)),
            )
        )
    jobs.sort(key=lambda job: job.submitted)
    named = [
        Job(job_id=str(m), total_steps=job.total_steps, submitted=job.submitted + m * 1e-6, sequence=m,
            scale_factor=job.scale_factor, job_type=job.job_type)
        for m, job in enumerate(jobs)
    ]  # fmt: skip
    return named, devices, DrawnRates(types=TYPES, by_kind=by_kind)


class Watch:
    """Notes every round that the clock opens, and demands that the core's state is that round."""

    def __init__(self, mechanism: GavelMechanism):
        self.mechanism, self.rounds = mechanism, list[tuple[float, dict[Members, tuple[int, ...]]]]()

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        clock = self.mechanism.clock
        if clock.opened > len(self.rounds):
            sits: dict[Members, tuple[int, ...]] = {}
            if clock.now is not None:
                for g, (a, b) in enumerate(zip(clock.now.first.tolist(), clock.now.second.tolist(), strict=True)):
                    seats = clock.now.seats[clock.now.start[g] : clock.now.start[g + 1]]
                    sits[(a,) if b < 0 else (a, b)] = tuple(seats.tolist())
                self.demand(sits)
            self.rounds += [(moment.at, sits)] * (clock.opened - len(self.rounds))

    def demand(self, sits: dict[Members, tuple[int, ...]]) -> None:
        state = self.mechanism.state
        assert {m for members in sits for m in members} == set(state.running().tolist())
        for (first, *mates), seats in sits.items():
            assert sorted(state.seats_of(first).tolist()) == sorted(seats)
            assert state.jobs.partner[first] == (mates[0] if mates else -1)
            assert all(state.jobs.partner[mate] == first for mate in mates)


RULES: dict[str, dict[str, Any]] = {
    "as published": {},
    "shuffled types": {"shuffled": True},
    "nothing but shares": {"fill": False},
    "pairs": {"pairs": True},
    "one list": {"global_queue": True},
    "no overtaking": {"overtake": False},
    "no job keeps its seats": {"sticky": False},
    "arrivals run": {"idle_arrivals": False},
    "gaps are free": {"charge_gaps": False},
    "other lengths": {"round_s": 100.0, "solve_gap_s": 350.0, "credit_s": 10.0},
    "a gang does its steps as one": {"split_steps": False},
    "one type unknown": {"visit": ("v100", "k80")},
}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@given(data=st.data(), seed=st.integers(0, 99))
@settings(max_examples=25)
def test_the_clock_and_the_obvious_simulation_tell_the_same(
    rules: dict[str, Any], data: st.DataObject, seed: int
) -> None:
    # A pair without a step to do is tried for ever, and time stands still.
    jobs, devices, rates = data.draw(worlds(slow=not rules.get("pairs", False)))
    rounds = GavelRounds(**rules, expected=len(jobs))
    topology = Topology.of([Node(type=kind, accelerators=1) for kind in devices])
    policy = Drawn(pairs=rounds.pairs)
    scheduler = Scheduler(topology, policy.info, rounds, Belief(rates), seed=seed, checked=True)
    mechanism = scheduler.mechanism
    assert isinstance(mechanism, GavelMechanism)
    watch = Watch(mechanism)
    runnable = all((rates.solo_throughput(job.job_type, 1) > 0).any() for job in jobs)
    run(scheduler, Simulation(jobs, topology, rates), InlinePolicyRunner(policy), [watch])
    mechanism.clock.close()

    def rate(members: Members, kind: str) -> tuple[float, ...]:
        j, (first, *others) = TYPES.index(kind), members
        mine, size = jobs[first], jobs[first].scale_factor
        if not others:
            return (float(rates.solo_throughput(mine.job_type, size)[j]),)
        mate = jobs[others[0]]
        return tuple(
            float(rates.packed_throughput(a.job_type, b.job_type, size)[j]) for a, b in ((mine, mate), (mate, mine))
        )

    said = iter(policy.said)

    def allocate(at: float, rows: list[int]) -> Allocation:
        when, answer = next(said) if rows else (at, {})
        assert when == at
        return answer

    obvious = Obvious(jobs, devices, rate, allocate, rounds, seed).play()
    reported = [one for one in obvious.rounds if one[1]]
    seen = [one for one in watch.rounds if one[1]]
    assert [(at, {m: tuple(sorted(s)) for m, s in sits.items()}) for at, sits in seen] == [
        (at, {m: tuple(sorted(s)) for m, s in sits.items()}) for at, sits in reported
    ]
    outcome, ended = mechanism.clock.jobs.outcome, mechanism.clock.jobs.ended
    here = {
        m: float(ended[m]) if outcome[m] == DONE else None for m in range(len(jobs)) if outcome[m] in (DONE, DROPPED)
    }
    assert here == obvious.ended
    assert mechanism.clock.busy.sum() == pytest.approx(obvious.busy)
    assert runnable or len(here) < len(jobs)
