"""No nonsense passes from a policy into the core: each kind of it, by each mechanism, in each world."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.core.nonsense import JOBS, PLAIN, SPEEDS, TOPOLOGY, all_nonsense
from tests.service.bench import Bench

from eunomia.allocation import AllocationProblem, solve
from eunomia.backends.simulated import Simulation
from eunomia.backends.simulated.detailed_simulation import DetailedSimulation
from eunomia.backends.simulated.fluid import FluidSimulation
from eunomia.core.belief import Belief
from eunomia.core.mechanism import MechanismConfig
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms import MECHANISMS, load
from eunomia.mechanisms.leases import Leases
from eunomia.model.answers import Answer, InvalidAnswer, Rows, Shares
from eunomia.model.decisions import Ask
from eunomia.model.events import Answered, JobSubmitted, Moment
from eunomia.model.policy import PolicyInfo
from eunomia.model.view import View
from eunomia.records.policy_call import ask_policy
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.records.scheduler_digest import digest
from eunomia.service.messages import PolicyAnswered, PolicyOverran
from eunomia.throughputs.placed_throughputs import ClusterUnits, PlacedThroughputs

KINDS = ("shares", "order", "grants")
NONSENSE = all_nonsense()
CUTS: dict[str, MechanismConfig] = {
    "endless": Leases(),
    "recall": Leases(recall=True),
    "rounds": Leases(length=60.0, aligned=True),
    "each its own end": Leases(length=60.0),
    **{name: load(name)() for name in MECHANISMS if name != Leases.name},
}


@dataclass(frozen=True)
class Says:
    """Answers always the same."""

    info: PolicyInfo
    answer: Any

    def decide(self, view: View) -> Answer:
        found: Answer = self.answer
        return found


def card(kind: Any) -> PolicyInfo:
    needs = frozenset({"scale_factor", "throughput", "capacity"})
    return PolicyInfo(
        name="nonsense", answer_type=kind, objective="", technique="", paper="", needs=needs,
        memory_columns={"luck": 0.0},
    )  # fmt: skip


def asked(kind: str, cut: MechanismConfig, speeds: Any = SPEEDS) -> Scheduler:
    return Scheduler(TOPOLOGY, card(kind), cut, Belief(speeds), checked=True)


def not_refused(kind: str, answer: Any, rule: str, play: Any) -> Iterator[str]:
    """Yield what is wrong with how an answer is received: it is not refused, or not by policy, moment and rule."""
    try:
        play(Says(card(kind), answer))
    except InvalidAnswer as error:
        if not re.search(f"^policy 'nonsense' at 0 s: .*({rule})", str(error)) or not error.fix:
            yield f"{rule!r} is refused as: {error}"
    else:
        yield f"{rule!r} passes: {answer}"


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in CUTS for kind in KINDS if kind in CUTS[name].answers]
)
def test_no_mechanism_takes_nonsense_and_the_state_stays_as_it_was(name: str, kind: str) -> None:
    scheduler = asked(kind, CUTS[name])
    (ask,) = (
        one for one in scheduler.handle(Moment.of(0.0, [JobSubmitted(job) for job in JOBS])) if isinstance(one, Ask)
    )
    before = digest(scheduler)

    def play(policy: Says) -> None:
        scheduler.handle(Moment(0.0, (Answered(ask.asked, ask_policy(policy, ask.view)),)))

    wrong = [text for one, rule, answer in NONSENSE if one == kind for text in not_refused(kind, answer, rule, play)]
    assert not wrong, "\n".join(wrong)
    assert digest(scheduler) == before and scheduler.asks.pending is not None
    play(Says(card(kind), PLAIN[kind]))
    assert digest(scheduler) != before


@pytest.mark.parametrize(
    ("world", "kind"), [*((w, k) for w in ("plain", "detailed") for k in KINDS), ("fluid", "shares")]
)
def test_no_world_goes_on_with_nonsense(world: str, kind: str) -> None:
    speeds = PlacedThroughputs(SPEEDS, ClusterUnits(TOPOLOGY)) if world == "detailed" else SPEEDS
    backend = {"plain": Simulation, "detailed": DetailedSimulation, "fluid": FluidSimulation}[world]

    def play(policy: Says) -> None:
        cut = CUTS["ideal" if world == "fluid" else "rounds"]
        run(asked(kind, cut, speeds), backend(JOBS, TOPOLOGY, speeds), InlinePolicyRunner(policy))  # type: ignore[arg-type]

    wrong = [text for one, rule, answer in NONSENSE if one == kind for text in not_refused(kind, answer, rule, play)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_decision_refuses_nonsense(kind: str) -> None:
    problem = AllocationProblem(
        types=SPEEDS.types, capacity=TOPOLOGY.capacity(), throughput=np.array([[2.0, 1.0], [2.0, 1.0], [2.0, 0.0]]),
        scale_factor=np.array([1, 2, 1]), weight=np.ones(3), job_ids=np.array(["a", "b", "c"]),
        accelerators_per_node=np.array([2.0, 1.0]), kind=np.array([0, 1, 2]),
        pairs=np.array([[[1.0, 0.5 if two < 2 else 0.0] for two in range(3)] for one in range(3)]),
    )  # fmt: skip

    def play(policy: Says) -> None:
        solve(policy, problem)

    wrong = [text for one, rule, answer in NONSENSE if one == kind for text in not_refused(kind, answer, rule, play)]
    assert not wrong, "\n".join(wrong)
    assert solve(Says(card(kind), PLAIN[kind]), problem).x[0, 0] > 0


SITE = """\
[service]
listen = "127.0.0.1:0"
[cluster]
nodes = [{ type = "v100", count = 1, accelerators = 2 }, { type = "k80", count = 1, accelerators = 1 }]
[policy]
name = "./said.py:Said"
"""
SAID = """\
from typing import ClassVar
from eunomia import PolicyInfo

class Said:
    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="nonsense", answer_type="KIND", objective="", technique="", paper="", memory_columns={"luck": 0.0},
        needs=frozenset({"scale_factor", "throughput", "capacity"}),
    )

    def decide(self, view):
        raise AssertionError("the test answers by itself")
"""


class Later:
    """Leaves every ask open."""

    def answer(self, ask: Ask) -> None:
        return None


@pytest.mark.parametrize("kind", KINDS)
def test_a_turn_of_the_service_is_kept_as_it_was(tmp_path: Path, kind: str) -> None:
    (tmp_path / "said.py").write_text(SAID.replace("KIND", kind))
    bench = Bench(tmp_path, SITE)
    bench.controller.runner = Later()
    names = [
        bench.submit(accelerators=size, **more).body["id"]
        for size, more in ((1, {}), (2, {}), (1, {"types": ["v100"]}))
    ]
    controller, wrong = bench.controller, []
    bench.do(PolicyOverran(0, "the other jobs came meanwhile"))
    for _, rule, answer in [each for each in NONSENSE if each[0] == kind][::4]:  # a turn commits to the store
        bench.clock.at += 360.0  # shares are asked for when a round begins
        while controller.due() <= bench.clock.at:
            bench.do()
        pending = controller.scheduler.asks.pending
        assert pending is not None and len(pending.active) == 3
        bench.do(PolicyAnswered(pending.asked, answer))
        said = controller.policy_problem
        for name, job in zip("abc", names, strict=True):
            said = said.replace(f"'{job}'", f"'{name}'")
        if not re.search(rule, said):
            wrong.append(f"{rule!r}: {said!r}")
    assert not wrong, "\n".join(wrong)
    if kind != "shares":  # under which idle seats go to any job, whatever is answered
        assert {bench.state(job) for job in names} == {"pending"}
    bench.store.close()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
def test_what_a_tolerance_leaves_where_a_job_cannot_run_is_no_candidate(sparse: bool, dtype: Any) -> None:
    """c cannot run on the k80, and b is too wide for it."""
    x = np.array([[0.5, 0.25], [0.5, 1e-8], [0.25, 1e-8]], dtype=dtype)
    job, type = (axis.ravel() for axis in np.indices(x.shape))
    answer = Shares(x.ravel(), rows=Rows(job, type), fill=False) if sparse else Shares(x, fill=False)
    scheduler = asked("shares", CUTS["rounds"])
    (ask,) = (
        one for one in scheduler.handle(Moment.of(0.0, [JobSubmitted(job) for job in JOBS])) if isinstance(one, Ask)
    )
    scheduler.handle(Moment(0.0, (Answered(ask.asked, answer),)))
    named = scheduler.mechanism.candidates
    assert named is not None
    assert set(zip(named.job.tolist(), named.type.tolist(), strict=True)) == {(0, 0), (0, 1), (1, 0), (2, 0)}
