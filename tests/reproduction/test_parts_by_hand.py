"""The pieces that other systems' clocks are made of, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.mechanisms.leases import Leases
from eunomia.model.job import Job
from eunomia.model.topology import Node
from eunomia_reproduction import learned_order
from eunomia_reproduction.peers import blox, systems
from eunomia_reproduction.peers.pollux import scattered
from eunomia_reproduction.peers.pollux.profile import Profile, Validation, split
from eunomia_reproduction.peers.pollux.training import PolluxJob as EpochTraining
from eunomia_reproduction.peers.preemption_cost_sim import CostlyStops
from eunomia_reproduction.peers.running import lives
from eunomia_reproduction.peers.shockwave.inputs import read_trace
from eunomia_reproduction.peers.shockwave.regimes import foreseen, grown
from eunomia_reproduction.peers.shockwave.rounds import ShockwaveRounds
from eunomia_reproduction.peers.shockwave.training import BatchScalingJob as StepTraining
from eunomia_reproduction.table import Request

RECALL = Leases(recall=True)


def job(name: str, submitted: float, seconds: float, accelerators: int = 1) -> Job:
    return Job(job_id=name, sequence=ord(name), submitted=submitted, total_steps=seconds, scale_factor=accelerators)


def ends(jobs: list[Job], nodes: list[int], policy: str, leases: Leases = RECALL) -> dict[str, float]:
    found = lives(jobs, [Node(type="gpu", accelerators=size) for size in nodes], policy, leases)
    return {name: life.end for name, life in found.items()}


def test_shortest_service_lets_a_narrow_job_pass_a_wide_one_that_ends_sooner() -> None:
    jobs = [job("a", 0, 10, 2), job("b", 0, 15)]
    assert ends(jobs, [2], "srtf") == {"a": 10, "b": 25}
    assert ends(jobs, [2], "srtf?measure=service") == {"a": 25, "b": 15}


def test_equals_stand_by_submission_or_as_they_stood_in_the_last_order() -> None:
    # At 0 s b (15) stands before a (20); at 5 s both have 10 left, and c takes one of three accelerators.
    jobs = [job("a", 0, 10, 2), job("b", 0, 15), job("c", 5, 1)]
    assert ends(jobs, [3], "srtf?measure=service") == {"a": 10, "b": 16, "c": 6}
    assert ends(jobs, [3], "srtf?measure=service&ties=last") == {"a": 11, "b": 15, "c": 6}


def test_the_smallest_gang_interrupts_a_wider_one() -> None:
    assert ends([job("a", 0, 10, 2), job("b", 2, 3)], [2], "smallest_first") == {"a": 13, "b": 5}


WIDE_AND_NARROW = [job("a", 0, 10), job("b", 0, 10), job("c", 1, 4, 2), job("d", 2, 5, 2), job("e", 3, 1)]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("consolidated", {"a": 10, "b": 10, "c": 5, "d": 10, "e": 11}),  # e waits behind d
        ("consolidated?order=remaining", {"a": 10, "b": 10, "c": 5, "d": 11, "e": 6}),  # d behind e
        # d stops a and b at 2, e and a stop d at 3, d stops a at 4, and a and b go on when c ends at 5.
        ("consolidated?order=remaining&preempt=true", {"a": 12, "b": 13, "c": 5, "d": 8, "e": 4}),
    ],
)
def test_a_consolidated_gang_waits_for_a_machine_of_its_own(policy: str, expected: dict[str, float]) -> None:
    assert ends(WIDE_AND_NARROW, [2, 2], policy, Leases()) == expected


def test_no_job_overtakes_a_consolidated_gang_that_waits_for_a_machine() -> None:
    jobs = [job("a", 0, 10), job("c", 1, 4, 2), job("d", 2, 5, 2), job("e", 3, 1)]
    assert ends(jobs, [2, 2], "consolidated", Leases()) == {"a": 10, "c": 5, "d": 10, "e": 6}


def test_a_consolidated_queue_fills_every_type_the_fastest_first() -> None:
    nodes = [Node(type="fast", accelerators=2), Node(type="slow", accelerators=2)]
    found = lives([job("a", 0, 10, 2), job("b", 0, 10, 2)], nodes, "consolidated", Leases())
    assert {name: life.start for name, life in found.items()} == {"a": 0, "b": 0}


def test_blox_goes_by_declared_work_though_it_credits_whole_rounds(tmp_path: Path) -> None:
    # One accelerator. Both are seen at 300 s and take two rounds; b declares less and goes first.
    case = tmp_path / "tiny"
    case.mkdir()
    (case / "trace.csv").write_text("job_id,num_gpu,submit_time,work_s\na,1,10,590\nb,1,20,310\n")
    (case / "summary.csv").write_text("policy,machines,gpus_per_machine\nSrtf,1,1\n")
    (case / "jobs_srtf.csv").write_text("job_id,end_time\na,1500\nb,900\n")
    equal, jct, _ = blox.reproduce(tmp_path, Request()).rows
    assert (equal.measured, equal.note) == (2, "")
    assert jct.measured == (1490 + 880) / 2


TRACE, RESULTS = "a,1,10,590\nb,1,20,310\n", "a,1500\nb,900\n"


@pytest.mark.parametrize(
    ("trace", "results", "reported"),
    [
        ("a,1,10,590\nb,2,20,310\n", RESULTS, r"trace\.csv:3: num_gpu is '2\.0': .* at most the 1 accelerators"),
        ("a,0.5,10,590\nb,1,20,310\n", RESULTS, r"trace\.csv:2: num_gpu is '0\.5': is a whole number"),
        (TRACE, RESULTS + "a,1500\n", r"jobs_srtf\.csv:4: job_id is 'a': a job has one result"),
        (TRACE, RESULTS + "c,1500\n", r"results of 1 jobs that were not run, such as 'c'"),
    ],
)
def test_a_case_that_cannot_be_played_is_refused_with_its_line(
    trace: str, results: str, reported: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=reported):
        blox.reproduce(blox_case(tmp_path, trace, results), Request())


def blox_case(folder: Path, trace: str = TRACE, results: str = RESULTS) -> Path:
    case = folder / "blox" / "tiny"
    case.mkdir(parents=True)
    (case / "trace.csv").write_text(f"job_id,num_gpu,submit_time,work_s\n{trace}")
    (case / "summary.csv").write_bytes(b"\xef\xbb\xbfpolicy,machines,gpus_per_machine\r\nSrtf,1,1\r\n")  # as Excel does
    (case / "jobs_srtf.csv").write_text(f"job_id,end_time\n{results}")
    return folder / "blox"


def test_what_is_wrong_with_one_system_leaves_the_others(tmp_path: Path) -> None:
    blox_case(tmp_path)
    other = tmp_path / "helios" / "tiny"
    other.mkdir(parents=True)
    (other / "trace.csv").write_text("job_id,num_gpu,submit_time,duration\na,1,0,nan\n")
    (other / "cluster.csv").write_text("nodes,gpus_per_node\n1,1\n")
    table = systems.reproduce(Request(reference=tmp_path))
    (lost,) = table.outside
    assert (lost.series, lost.quantity) == ("helios", "runs that failed")
    assert "trace.csv:2: duration is 'nan'" in lost.note
    assert [row.within for row in table.rows if row.series.startswith("blox")] == [True] * 3
    with pytest.raises(InvalidInput, match=r"trace\.csv:2: duration is 'nan'"):
        systems.reproduce(Request(reference=tmp_path / "helios"))


@pytest.mark.parametrize(
    ("place", "text", "reported"), [(7, "often", "mode 'often' is none of"), (8, "-1", "weight is -1")]
)
def test_a_shockwave_job_of_no_known_mode_or_weight_is_refused(
    place: int, text: str, reported: str, tmp_path: Path
) -> None:
    fields = ["ResNet-18 (batch size 32)", "", "", "", "", "100", "1", "static", "1", "", "", "0"]
    rates = {("ResNet-18", 32, 1): 10.0}
    path = tmp_path / "some.trace"
    path.write_text("\t".join(fields) + "\n")
    assert len(read_trace(path, rates)) == 1
    path.write_text("\t".join([*fields[:place], text, *fields[place + 1 :]]) + "\n")
    with pytest.raises(InvalidInput, match=reported):
        read_trace(path, rates)


def test_a_stop_costs_work_and_what_is_not_made_up_stays_owed() -> None:
    # a runs 0-2 and owes 7, runs 5-6 and owes 7 more, and has 10 - 3 + 14 seconds left at 7 s.
    jobs = [job("a", 0, 10), job("b", 2, 3), job("c", 6, 1)]
    world = CostlyStops(jobs, lambda accelerators: 7.0 * accelerators)
    found = lives(jobs, [Node(type="gpu", accelerators=1)], "srtf", RECALL, world=world)
    assert {name: life.end for name, life in found.items()} == {"a": 28, "b": 5, "c": 7}


@pytest.mark.parametrize("engine", [True, False])
def test_between_scattered_points_the_delaunay_triangle_counts(engine: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine and not scattered.has_qhull():
        pytest.skip("SciPy is not installed: the extra reproduce")
    monkeypatch.setattr(scattered, "has_qhull", lambda: engine)
    kite = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, -1.0], [2.0, 1.0]])
    values = np.array([[0.0, 5.0], [0.0, 5.0], [1.0, 5.0], [1.0, 5.0]])
    found = scattered.Scattered(kite, values)
    assert found.at(np.array([2.0, 0.0])) == pytest.approx([1.0, 5.0])  # on the short diagonal, not on the long one
    assert found.at(np.array([1.0, 0.0])) == pytest.approx([0.5, 5.0])


def profile(batches: tuple[int, ...] = (10,)) -> Profile:
    """An application whose step takes a second, and whose two epochs are worth 5 and 7 steps."""
    flat = np.ones(2)
    run = Validation(progress=np.array([5.0, 12.0]), iteration=np.array([5.0, 12.0]), grad_sqr=flat, grad_var=flat)
    times = (np.array([4.0, 10.0]), np.array([[1.0, 0.25], [1.0, 0.25]]))
    return Profile(
        name="toy",
        validation=dict.fromkeys(batches, run),
        placed={(1,): times, (4,): times},
        elsewhere=scattered.Scattered(np.zeros((0, 3)), np.zeros((0, 2))),
        max_local_batch=10,
    )


def test_a_job_of_pollux_trains_its_epochs_after_a_restart() -> None:
    training = EpochTraining(name="t", profile=profile(), submitted=0.0, accelerators=1, batch=10)
    training.step(60.0)
    assert training.completed is None  # it had no seats
    training.place((1,))
    training.step(60.0)
    assert training.completed == 60 + 30 + 5 + 7


def test_a_larger_batch_is_worth_more_steps_and_takes_more_passes() -> None:
    wide = profile((10, 40))
    assert wide.gain(40, 0) == pytest.approx(2 / (1 / 4 + 1))
    assert split(wide, 40, 4) == split(wide, 39, 4)
    assert (split(wide, 40, 1).local, split(wide, 40, 1).accumulated) == (10, 3)
    assert split(wide, 20, 1, at_least=1).total(1) == 20


def test_a_language_model_of_shockwave_alone_ends_when_its_simulator_says() -> None:
    # Upstream's first job: 6 rounds at batch 10, 3 at 20, and the rest of its 23 epochs at 20 before it could grow.
    rates = {("LM", 10, 1): 94.91094148, ("LM", 20, 1): 68.05405097, ("LM", 40, 1): 46.82253256}
    only = StepTraining(
        name="0", model="LM", mode="gns", accelerators=1, submitted=0.0, batch=10, total=134583, weight=1.0, rates=rates
    )
    rounds = ShockwaveRounds(32, lambda jobs, now: np.ones(len(jobs)))
    assert rounds.run([only]) == pytest.approx(1182.612, abs=5e-4)
    assert rounds.asked == 1


def test_batches_grow_at_measured_epochs_and_no_further_than_the_largest() -> None:
    assert [grown("ResNet-18", 32, 1, epoch) for epoch in (20, 21, 31, 51, 500)] == [32, 64, 128, 256, 256]
    assert foreseen("LM", "accordion", 10, 1, 20)[9:12] == [10, 80, 80]
    assert foreseen("Transformer", "accordion", 16, 1, 3) == [16, 16, 16]


def test_of_the_shorter_half_of_the_jobs_those_slowed_more_than_five_times_are_counted() -> None:
    jobs = {"jct_s": np.array([60.0, 50.0, 9e9, 300.0, np.nan]), "slowdown": np.array([6.0, 5.0, 90.0, 1.0, np.nan])}
    row = learned_order.slowed("fifo", 1.0, jobs)  # they ran 10, 10, 1e8 and 300 s; the last did not end
    assert (row.series, row.measured) == ("venus, fifo", 0.5)
