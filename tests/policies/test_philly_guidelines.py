"""What Philly's authors would do otherwise, worked out by hand: pre-runs, retries by reason, gangs kept apart.

An accelerator does a step a second and a gang as many as it has accelerators, so a job of 4000 steps and 4 accelerators
runs for 1000 s. Failures are written down, not drawn.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia import Result, simulate
from eunomia.backends.simulated.detailed_simulation import DetailedSimulation
from eunomia.backends.simulated.fault_model import FaultModel
from eunomia.backends.simulated.job_outcomes import OutcomeModel
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.failures.philly_reasons import REASONS
from eunomia.failures.retrying import BY_MACHINE, RECURRING, Adaptive
from eunomia.inputs.problems import InvalidInput
from eunomia.mechanisms.leases import Leases
from eunomia.metrics import Metrics
from eunomia.metrics.waits import WaitCauses
from eunomia.model.arrays import Floats
from eunomia.model.decisions import Decision, Refuse, Start, one_by_one
from eunomia.model.events import JobFailed, Moment
from eunomia.model.job import Job
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Node, Topology
from eunomia.policies.grants.philly import Philly
from eunomia.policies.grants.philly.free_devices import TOGETHER, FreeDevices
from eunomia.records.replay import first_difference
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.scenario import scenario_from_dict
from eunomia.setup.world_models import fault_model_of
from eunomia.testing.small_worlds import DrawnRates, draw, play
from eunomia.throughputs.placed_throughputs import PlacedThroughputs
from eunomia.throughputs.placement_level import ClusterUnits

LINEAR = DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, scaling=1.0)
ROW = {reason.name: row for row, reason in enumerate(REASONS)}


@dataclass(frozen=True)
class _Written:
    """OutcomeModel as they are written down, a column of jobs each."""

    reason: np.ndarray  # row of the table; -1 = does not fail
    share: np.ndarray
    seconds: tuple[float, ...]  # of running until each trial fails

    @property
    def enough(self) -> Floats:
        return np.ones(len(self.share))

    def name(self, row: int) -> str:
        return REASONS[self.reason[row]].name

    def time_to_failure(self, row: int, trial: int, left_s: float) -> float:
        return min(self.seconds[row], left_s) if self.reason[row] >= 0 else math.inf


@dataclass(frozen=True, kw_only=True)
class _Fates(OutcomeModel):
    by_job: tuple[tuple[str, str, float], ...] = ()

    def sample(self, jobs: Sequence[Job], least_s: Floats, rng: np.random.Generator) -> _Written:  # type: ignore[override]
        reported = {name: (reason, seconds) for name, reason, seconds in self.by_job}
        rows = [ROW[reported[job.job_id][0]] if job.job_id in reported else -1 for job in jobs]
        seconds = tuple(reported.get(job.job_id, ("", math.inf))[1] for job in jobs)
        return _Written(np.array(rows), np.ones(len(jobs)), seconds)


@dataclass(frozen=True)
class Story:
    """What a world came to."""

    starts: dict[str, list[tuple[float, int]]]  # when, on how many accelerators
    failures: dict[str, list[float]]
    refused: dict[str, float]
    status: dict[str, str]
    finished: dict[str, float]
    lost: float  # accelerator-seconds of jobs that failed
    waits: WaitCauses
    end_s: float


class _Ear:
    def __init__(self) -> None:
        self.received: list[tuple[Moment, list[Decision]]] = []

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        self.received.append((moment, list(one_by_one(decisions))))


def tell(
    policy: Philly,
    nodes: Sequence[int],
    jobs: Sequence[Job],
    failing: Sequence[tuple[str, str, float]],
    *,
    adaptive: Adaptive | None = None,
    blacklist_s: float = 0.0,
    tenants: dict[str, Tenant] | None = None,
) -> Story:
    topology = Topology.of([Node(type="gpu", accelerators=size) for size in nodes])
    belief = Belief(LINEAR, None)
    scheduler = Scheduler(
        topology, policy.info, Leases(), belief, checked=True, price=np.ones(1), comes_again=adaptive, tenants=tenants
    )
    speeds = PlacedThroughputs(LINEAR, ClusterUnits(topology), None, None)
    faults = FaultModel(outcomes=_Fates(by_job=tuple(failing)), blacklist_s=blacklist_s)
    world = DetailedSimulation(jobs, topology, speeds, faults=faults)
    metrics, ear, waits = Metrics(topology, LINEAR, {"gpu": 1.0}), _Ear(), WaitCauses()
    run(scheduler, world, InlinePolicyRunner(policy), [metrics, ear, waits])
    columns = metrics.figures(bins=5).jobs
    by_id = {str(name): m for m, name in enumerate(columns["job_id"])}
    starts: dict[str, list[tuple[float, int]]] = {name: [] for name in by_id}
    failures: dict[str, list[float]] = {name: [] for name in by_id}
    refused = {}
    for moment, decisions in ear.received:
        for event in moment.events:
            if isinstance(event, JobFailed):
                failures[event.job_id].append(moment.at)
        for order in decisions:
            if isinstance(order, Start):
                starts[order.job_id].append((moment.at, len(order.seats)))
            if isinstance(order, Refuse):
                refused[order.job_id] = moment.at
    return Story(
        starts,
        failures,
        refused,
        {name: str(columns["status"][m]) for name, m in by_id.items()},
        {name: float(columns["finished_s"][m]) for name, m in by_id.items()},
        world.losses(metrics.end_s).lost["failed_jobs"],
        waits,
        metrics.end_s,
    )


def job(name: str, at: float, steps: float, size: int, *, retries: int = 0, shapes: tuple[int, ...] = (1,)) -> Job:
    return Job(
        job_id=name,
        sequence=ord(name),
        submitted=at,
        total_steps=steps,
        scale_factor=size,
        retries=retries,
        other_shapes=shapes if size > 1 else (),
    )


FOUR = (
    job("a", 0, 4000, 4),
    job("b", 0, 4000, 4, retries=1),  # a mistake that shows after 100 s, in both trials
    job("c", 0, 50, 1),
    job("d", 600, 4000, 4),  # a mistake that shows after 400 s
)
MISTAKES = (("b", "Semantic error", 100.0), ("d", "Semantic error", 400.0))
NODES = (4, 4, 1)
PRE = Philly(prerun_s=300.0, pool=0.1)  # 1 accelerator of 9: the machine that has no more


def test_without_a_pool_a_mistake_costs_what_its_gang_holds() -> None:
    reported = tell(Philly(), NODES, FOUR, MISTAKES)
    assert reported.starts == {"a": [(0, 4)], "b": [(0, 4), (100, 4)], "c": [(0, 1)], "d": [(600, 4)]}
    assert reported.lost == pytest.approx(2 * 100 * 4 + 400 * 4)


def test_with_a_pool_it_costs_one_accelerator_while_it_shows_within_the_pre_run() -> None:
    # a runs in the pool until 300, then b, which fails at 400 and again, after its second try there, at 500; so b
    # never has 4. d passes at 900 and fails 100 s later. a has 4000 − 300 steps left at 300: 925 s on 4.
    reported = tell(PRE, NODES, FOUR, MISTAKES)
    assert reported.starts["a"] == [(0, 1), (300, 4)]
    assert reported.starts["b"] == [(300, 1), (400, 1)]
    assert reported.starts["c"] == [(0, 1)]
    assert reported.starts["d"] == [(600, 1), (900, 4)]
    assert reported.failures == {"a": [], "b": [400, 500], "c": [], "d": [1000]}
    assert reported.finished["a"] == pytest.approx(1225)
    assert reported.lost == pytest.approx(2 * 100 + 300 + 100 * 4)


def test_with_a_pool_for_every_job_those_of_one_accelerator_run_there_first_too() -> None:
    # a and c come at 0, the pool has 1: a until 300, then b until its two tries fail at 500, then c until 550, when its
    # 50 steps are done; d comes at 600 and passes at 900.
    reported = tell(replace(PRE, prerun="all"), NODES, FOUR, MISTAKES)
    assert reported.starts["a"] == [(0, 1), (300, 4)]
    assert reported.starts["b"] == [(300, 1), (400, 1)]
    assert reported.starts["c"] == [(500, 1)]
    assert reported.finished["c"] == pytest.approx(550)


def test_a_job_of_one_accelerator_that_passed_leaves_the_pool_and_does_not_return() -> None:
    reported = tell(replace(PRE, prerun="all"), NODES, (job("a", 0, 1000, 1), job("b", 0, 1000, 1)), ())
    assert reported.starts == {"a": [(0, 1), (300, 1)], "b": [(300, 1), (600, 1)]}
    assert reported.finished == pytest.approx({"a": 1000, "b": 1300})


def test_a_wait_for_the_pool_is_neither_fair_share_nor_fragmentation() -> None:
    reported = tell(PRE, NODES, FOUR, MISTAKES)
    fair_share, fragmentation, other = reported.waits.seconds(reported.end_s).T
    assert other.tolist() == [0, 300, 0, 0]
    assert fair_share.sum() == fragmentation.sum() == 0


def test_who_has_no_shape_of_one_accelerator_does_not_run_before_it_runs() -> None:
    reported = tell(PRE, NODES, [job("a", 0, 4000, 4, shapes=(2,)), job("b", 0, 40, 4)], ())
    assert reported.starts["a"] == [(0, 4)]
    assert reported.starts["b"] == [(0, 1)]  # 40 steps: it is done before its time in the pool is over


def test_while_a_gang_waits_that_only_the_whole_cluster_holds_there_is_no_pool() -> None:
    # a has all 9 until 100, and then b runs in the pool until 400. As c waits, which is as wide as a, d does not run
    # before it runs: it starts on 4 at once. b has 40 steps left at 400, and gives c its last seats at 410.
    jobs = [job("a", 0, 900, 9), job("b", 10, 340, 4), job("c", 110, 900, 9), job("d", 120, 400, 4)]
    reported = tell(PRE, NODES, jobs, ())
    assert reported.starts == {"a": [(0, 9)], "b": [(100, 1), (400, 4)], "c": [(410, 9)], "d": [(120, 4)]}
    assert reported.refused == {}


def test_the_pool_counts_against_no_quota() -> None:
    # x owns 4 of the 8 outside the pool, and may not borrow: beside a its b may still run in the pool
    two = [replace(job(name, 0, 4000, 4), tenant="x") for name in "ab"]
    reported = tell(PRE, NODES, two, (), tenants={"x": Tenant(quota=4, borrows=False), "y": Tenant(quota=4)})
    assert reported.starts["b"][0] == (300, 1)
    assert reported.starts["b"][1] == (reported.finished["a"], 4)


@pytest.mark.parametrize("seed", range(6))
def test_with_a_pool_and_gangs_of_several_sizes_every_world_ends(seed: int) -> None:
    small = draw(seed, jobs=20, elastic=True)
    policy = Philly(prerun_s=40.0, prerun="all" if seed % 2 else "gangs", pool=0.05, isolate=True, defragment=1)
    assert play(policy, small, seed=seed).counts == {"finished": 20}


@pytest.mark.parametrize(
    ("name", "value"), [("prerun_s", -1.0), ("prerun_s", math.inf), ("pool", 0.0), ("pool", 1.0), ("prerun", "some")]
)
def test_a_pool_that_cannot_be_is_refused_by_name(name: str, value: float | str) -> None:
    with pytest.raises(ValueError, match=name):
        Philly(**{name: value})


# ---- which failures are tried again ----------------------------------------------------------------------------------

TRIED = (job("a", 0, 4000, 4, retries=2), job("b", 0, 4000, 4, retries=2), job("c", 0, 100, 1))
REASONED = (("a", "Incorrect inputs", 100.0), ("b", "MPI runtime failure", 100.0))


def test_with_blind_retries_every_failure_is_tried_as_often() -> None:
    reported = tell(Philly(), NODES, TRIED, REASONED)
    assert reported.failures == {"a": [100, 200, 300], "b": [100, 200, 300], "c": []}
    assert reported.lost == pytest.approx(2 * 3 * 100 * 4)
    assert reported.refused == {}


def test_with_adaptive_retries_only_those_that_may_pass_are_tried_again() -> None:
    reported = tell(Philly(), NODES, TRIED, REASONED, adaptive=Adaptive())
    assert reported.failures == {"a": [100], "b": [100, 200, 300], "c": []}
    assert reported.refused == {"a": 100}
    assert reported.status == {"a": "failed", "b": "failed", "c": "finished"}
    assert reported.lost == pytest.approx((1 + 3) * 100 * 4)


def test_a_job_without_retries_left_is_not_refused_besides() -> None:
    reported = tell(Philly(), NODES, [job("a", 0, 4000, 4)], REASONED[:1], adaptive=Adaptive())
    assert (reported.failures["a"], reported.refused, reported.status["a"]) == ([100], {}, "failed")


def test_the_reasons_are_the_tables() -> None:
    names = {reason.name for reason in REASONS}
    assert names >= RECURRING | BY_MACHINE and not BY_MACHINE & RECURRING
    assert {name for name in names if Adaptive()("ann", name)} == RECURRING


@pytest.mark.parametrize(
    ("words", "again"),
    [
        ("exit code 1: ModuleNotFoundError: No module named 'apex'", True),
        ("exit code 1: FileNotFoundError: [Errno 2] No such file or directory: 'train.csv'", True),
        ("exit code 1: ncclSystemError: System call (socket) failed", False),
        ("chance", False),
        ("its lease ended and was not renewed", False),
    ],
)
def test_of_a_real_job_the_words_of_its_log_decide(words: str, again: bool) -> None:
    assert Adaptive()("ann", words) is again


def test_where_tenants_are_users_what_their_jobs_failed_for_before_is_not_tried_again() -> None:
    # a dumps its core at 100 and again at 200, which is once too often for ann; her b is not tried again at all. bo's
    # c is: his user's first. d fails for a reason of no user, so it is retried whatever ann's others did.
    jobs = [replace(job(name, at, 4000, 4, retries=2), tenant=whose) for name, at, whose in
            (("a", 0, "ann"), ("b", 250, "ann"), ("c", 250, "bo"), ("d", 700, "ann"))]  # fmt: skip
    failing = [(name, "Core dump", 100.0) for name in "abc"] + [("d", "MPI runtime failure", 100.0)]
    reported = tell(Philly(), (4, 4), jobs, failing, adaptive=Adaptive(by_tenant=True))
    assert reported.failures == {"a": [100, 200], "b": [350], "c": [350, 450], "d": [800, 900, 1000]}
    assert reported.refused == {"a": 200, "b": 350, "c": 450}
    blind = tell(Philly(), (4, 4), jobs, failing, adaptive=Adaptive())
    assert {name: len(found) for name, found in blind.failures.items()} == dict.fromkeys("abcd", 3)


def test_a_failure_after_which_no_retry_is_left_counts_against_the_tenant_too() -> None:
    ann = Adaptive(by_tenant=True)
    jobs = [
        replace(job(name, at, 4000, 4, retries=more), tenant="ann") for name, at, more in (("a", 0, 0), ("b", 9, 1))
    ]
    reported = tell(Philly(), (4, 4), jobs, [(name, "Core dump", 100.0) for name in "ab"], adaptive=ann)
    assert reported.refused == {"b": 109}


def test_no_job_answers_for_jobs_without_a_tenant() -> None:
    rule = Adaptive(by_tenant=True)
    assert [rule(tenant, "Core dump") for tenant in ("", "", "ann", "ann", "bo")] == [False, False, False, True, False]


# ---- machines that an error lies in ---------------------------------------------------------------------------------

WORN = (job("a", 0, 4000, 3, retries=1), job("b", 0, 4000, 4), job("d", 0, 300, 1))  # a and d share the first machine
ECC = (("a", "GPU ECC error", 100.0),)


def test_after_an_ecc_error_its_machine_is_out_of_service_until_it_is_repaired() -> None:
    # d leaves the machine with 200 s to do. Both are back on it at 600, and a fails again at 700; d, with 100 s left,
    # waits for b's machine, which is free at 1000.
    reported = tell(Philly(), (4, 4), WORN, ECC, blacklist_s=500.0)
    assert reported.starts["a"] == [(0, 3), (600, 3)]
    assert reported.failures["a"] == [100, 700]
    assert reported.starts["d"] == [(0, 1), (600, 1), (1000, 1)]
    assert reported.finished["d"] == pytest.approx(1100)
    assert reported.status == {"a": "failed", "b": "finished", "d": "finished"}


@pytest.mark.parametrize(("reason", "blacklist_s"), [("GPU ECC error", 0.0), ("MPI runtime failure", 500.0)])
def test_after_another_error_or_if_it_is_not_asked_for_machines_stay(reason: str, blacklist_s: float) -> None:
    reported = tell(Philly(), (4, 4), WORN, [("a", reason, 100.0)], blacklist_s=blacklist_s)
    assert reported.failures["a"] == [100, 200]
    assert reported.finished["d"] == pytest.approx(300)


def test_of_a_gang_on_several_machines_all_go_as_the_faulty_one_is_unknown() -> None:
    jobs = (job("a", 0, 8000, 8), job("c", 150, 40, 4))
    assert tell(Philly(), (4, 4), jobs, ECC, blacklist_s=500.0).starts["c"] == [(600, 4)]


# ---- gangs kept apart ------------------------------------------------------------------------------------------------


def _rooms(taken: Sequence[int], gangs: Sequence[int]) -> tuple[Topology, FreeDevices, FreeDevices]:
    """Machines of 4, 4, 4 and 2, with these devices taken; return a room that shares machines and one that does not."""
    topology = Topology.of([Node(type="gpu", accelerators=size) for size in (4, 4, 4, 2)])
    free, up, gang = np.ones(14, dtype=bool), np.ones(14, dtype=bool), np.zeros(14, dtype=bool)
    free[list(taken)], gang[list(gangs)] = False, True
    return topology, FreeDevices(topology, free, up), FreeDevices(topology, free, up, gang)


@pytest.mark.parametrize(
    ("size", "shared", "apart"),
    [
        (2, {0}, {3}),  # a gang of 2 shares it with the gang there, or takes the machine of 2
        (3, {1}, {2}),  # the smallest hole is beside a single one; the third machine is idle
        (1, {0}, {3}),  # two holes of 2 are the smallest: one is beside the gang
    ],
)
def test_a_gang_takes_an_idle_machine_and_a_single_accelerator_one_without_a_gang(
    size: int, shared: set[int], apart: set[int]
) -> None:
    # a gang of 2 sits on machine 0 and a single accelerator on machine 1
    topology, sharing, isolating = _rooms([0, 1, 4], [0, 1])
    for room, expected in ((sharing, shared), (isolating, apart)):
        found = room.find(0, size, TOGETHER)
        assert found is not None
        assert set(topology.node[found].tolist()) == expected


def test_where_no_machine_is_idle_a_gang_shares_one_rather_than_wait() -> None:
    topology, _, isolating = _rooms([0, 4, 8, 12], [])
    found = isolating.find(0, 3, TOGETHER)
    assert found is not None
    assert set(topology.node[found].tolist()) == {0}


def test_what_has_just_been_seated_counts() -> None:
    topology, _, isolating = _rooms([], [])
    for size, expected in ((2, {3}), (2, {0}), (1, {1})):
        found = isolating.find(0, size, TOGETHER)
        assert found is not None
        assert set(topology.node[found].tolist()) == expected
        isolating.take(found)


# ---- as scenarios ----------------------------------------------------------------------------------------------------


def _scenario(**world: Any) -> dict[str, Any]:
    return {
        "cluster": {"accelerators": {"gpu": 16}},
        "workload": {"generator": "philly-like", "jobs": 60, "rate_per_hour": 2, "elastic": "halves"},
        "throughputs": {"source": "linear", "reference_type": "gpu"},
        "policy": {"name": "philly", "prerun_s": 300.0, "pool": 0.05},
        "world": world,
        "physics": {"fates": "philly", "failing": 0.6},
    }


@functools.cache
def played(**world: Any) -> Result:
    """Return a run of the scenario; several tests ask for the same."""
    return simulate(_scenario(**world))


@pytest.mark.slow
def test_a_run_with_retries_by_reason_is_replayed_and_loses_less_to_failures(tmp_path: Path) -> None:
    blind = played()
    found = simulate(_scenario(retry="adaptive"), record_to=tmp_path / "record.jsonl.gz")
    assert found.record is not None
    assert first_difference(found.record) is None
    assert (found.jobs["status"] == blind.jobs["status"]).all()
    assert 20 < found.summary["jobs_failed"] < 50
    lost = "lost_failed_jobs_accelerator_s"
    assert found.summary[lost] < blind.summary[lost]


def test_a_word_for_retries_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(InvalidInput, match="retry") as reported:
        simulate(_scenario(retry="never"))
    assert "adaptive" in str(reported.value)


def test_switches_that_find_nothing_to_act_on_are_reported() -> None:
    rigid = _scenario(retry="adaptive") | {"workload": {"generator": "philly-like", "jobs": 5, "rate_per_hour": 2}}
    shapes, reasons = simulate(rigid | {"physics": {}}).notes[-2:]
    assert "all jobs have one" in shapes and 'elastic = "halves"' in shapes
    assert "physics.fates" in reasons
    used = " ".join(played(retry="adaptive").notes)
    assert "all jobs have" not in used and "physics.fates" not in used


def test_a_run_with_retries_by_tenant_is_replayed_and_tries_less_again(tmp_path: Path) -> None:
    def said(by: str) -> dict[str, Any]:
        asked: dict[str, Any] = _scenario(retry="adaptive", retry_by=by)
        asked["workload"] |= {"tenants": 3}
        return asked

    by_job, by_tenant = simulate(said("job")), simulate(said("tenant"), record_to=tmp_path / "record.jsonl.gz")
    assert by_tenant.record is not None
    assert by_tenant.record.header["retry_by"] == "tenant"
    assert first_difference(by_tenant.record) is None
    assert (by_tenant.jobs["status"] == by_job.jobs["status"]).all()
    lost = "lost_failed_jobs_accelerator_s"
    assert by_tenant.summary[lost] < by_job.summary[lost]


def test_retries_by_tenant_that_find_nothing_to_act_on_are_reported() -> None:
    few = {"workload": {"generator": "philly-like", "jobs": 5, "rate_per_hour": 2}}
    blind = " ".join(simulate(_scenario(retry_by="tenant") | few).notes)
    assert 'changes nothing without world.retry = "adaptive"' in blind
    reported = " ".join(simulate(_scenario(retry="adaptive", retry_by="tenant") | few).notes)
    assert "changes nothing as no job names a tenant" in reported


def test_machines_are_shut_out_for_a_day_where_retries_are_adaptive_and_a_note_says_so() -> None:
    def away(**world: Any) -> float:
        return fault_model_of(scenario_from_dict(_scenario(**world), Path())).blacklist_s

    assert (away(), away(retry="adaptive"), away(retry="adaptive", blacklist_s=60)) == (0.0, 86_400.0, 60.0)
    assert "out of service for 86,400 s" in " ".join(played(retry="adaptive").notes)
    assert "out of service" not in " ".join(played().notes)


@pytest.mark.parametrize(("key", "value", "fix"), [("blacklist_s", -1.0, "0"), ("retry_by", "user", "tenant")])
def test_a_value_that_cannot_be_is_named_with_what_can(key: str, value: object, fix: str) -> None:
    with pytest.raises(InvalidInput, match=f"world.{key}") as reported:
        simulate(_scenario(retry="adaptive", **{key: value}))
    assert fix in str(reported.value)
