"""What Slurm's commands print, and what becomes of gangs when they time out, list nothing or lose jobs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.backends.fake_slurm import FakeSlurm, soon

import eunomia
from eunomia.backends.engines.engine import EngineAway, EngineEnd, EngineRefused, GangRequest, Mark
from eunomia.backends.engines.gang_state import EngineTimes
from eunomia.backends.engines.gangs import EngineGangs
from eunomia.backends.engines.node_names import assign
from eunomia.backends.orders import DrainNode, Halt, Launch
from eunomia.backends.reports import GangEnded, GangUnknown, Launched, NodeState, Report, SeatsTaken
from eunomia.backends.slurm.commands import Said, checked, records, rows
from eunomia.backends.slurm.engine import Slurm, completed, node_of
from eunomia.backends.slurm.states import accelerators
from eunomia.backends.world import WorldInputs
from eunomia.inputs.problems import InvalidInput
from eunomia.inputs.slurm_values import seconds
from eunomia.model.topology import Node, Topology

CLUSTER = Topology.of([Node(type="v100", accelerators=4), Node(type="k80", accelerators=8)])
REQUEST = GangRequest(mark=Mark("c", "a", 1), name="eu-a-1", parts=(), argv=(), stdin=Path(), log=Path(), grace_s=1.0)
TIMES = EngineTimes(poll_s=0.02, nodes_s=0.02, lost_start_s=0.1, vanished_s=0.3)


class World:
    """Gangs on the fake, and what was reported."""

    def __init__(self, folder: Path, slurm: FakeSlurm, **options: Any) -> None:
        self.slurm, self.reports = slurm, list[Report]()
        engine = Slurm(run=slurm, **options)
        inputs = WorldInputs(workdir=folder / "jobs", topology=CLUSTER, report=self.reports.append)
        self.gangs = EngineGangs(engine, inputs, times=TIMES)
        self.gangs.start()

    def launch(self, job_id: str = "a", epoch: int = 1, *, adopt_only: bool = False, **more: Any) -> None:
        spec = {"command": ["true"], **more}
        self.gangs.carry_out([Launch(1, job_id, epoch, (0, 1), spec, adopt_only=adopt_only)])

    def wait(self, report: Report) -> None:
        soon(lambda: report in self.reports)

    def ended(self) -> GangEnded:
        soon(lambda: any(isinstance(one, GangEnded) for one in self.reports))
        return next(one for one in self.reports if isinstance(one, GangEnded))


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
def world(tmp_path: Path, slurm: FakeSlurm) -> Iterator[World]:
    found = World(tmp_path, slurm)
    yield found
    slurm.fault = ""
    found.gangs.close()


def test_accelerators_are_read_in_every_form_that_slurm_prints() -> None:
    assert accelerators("gpu:v100:4(S:0-1),gpu:k80:2(IDX:0-1)") == {"v100": 4, "k80": 2}
    assert (
        accelerators("gres:gpu:v100:2")
        == accelerators("gres/gpu:v100=2")
        == accelerators("gpu:v100:2(IDX:0,3)")
        == {"v100": 2}
    )
    assert accelerators("gpu:8") == accelerators("gres/gpu=8,cpu=4") == {"gpu": 8}
    assert accelerators("(null)") == accelerators("") == accelerators("craynetwork:1") == {}


def test_durations_are_read_in_every_form_that_slurm_prints() -> None:
    assert (seconds("05:00"), seconds("2:00:00"), seconds("1-00:00:01"), seconds("2-12")) == (300, 7200, 86401, 216000)
    assert seconds("UNLIMITED") is seconds("INVALID") is None


def test_a_node_s_block_keeps_values_with_spaces() -> None:
    [record] = records(
        "NodeName=n1 Gres=gpu:v100:4\n   OS=Linux 6.1 #1 SMP\n   Reason=bad fan [root@2026-01-01T00:00:00]"
    )
    assert (record["OS"], record["Reason"]) == ("Linux 6.1 #1 SMP", "bad fan [root@2026-01-01T00:00:00]")


@pytest.mark.parametrize(
    ("state", "away"),
    [("IDLE", ""), ("MIXED", ""), ("ALLOCATED+COMPLETING", ""), ("IDLE+PLANNED", ""), ("IDLE+DRAIN", "idle+drain, fan"),
     ("DOWN*", "down*, fan"), ("IDLE*", "idle*, fan"), ("IDLE+DRAIN+INVALID_REG", "idle+drain+invalid_reg, fan"),
     ("IDLE+POWERED_DOWN", "idle+powered_down, fan")],
)  # fmt: skip
def test_a_node_is_in_service_unless_slurm_says_why_not(state: str, away: str) -> None:
    assert node_of({"NodeName": "n", "State": state, "Reason": "fan [root@x]", "Gres": "gpu:2"}).away == away


def test_a_truncated_line_is_no_answer() -> None:
    with pytest.raises(EngineAway, match="incomplete"):
        rows("1\x1fRUNNING\n", ("number", "state", "reason"))


def test_an_unreachable_controller_is_no_refusal() -> None:
    with pytest.raises(EngineAway):
        checked(Said(1, "", "sbatch: error: Batch job submission failed: Unable to contact slurm controller"), "sbatch")
    with pytest.raises(EngineAway):
        checked(Said(1, "", ""), "sbatch")
    with pytest.raises(EngineRefused, match="invalid partition"):
        checked(Said(1, "", "sbatch: error: invalid partition specified: x"), "sbatch")


def test_a_mark_survives_being_written_and_no_other_text_is_one() -> None:
    mark = Mark("ab12", "a job: 50%\n", 3)
    assert Mark.parse(str(mark)) == mark
    assert [Mark.parse(text) for text in ("", "(null)", "a:b", "a:b:c", "hello world", ":b:1")] == [None] * 6


def test_the_completion_log_is_read_by_name_and_number(tmp_path: Path) -> None:
    log = tmp_path / "jobcomp.txt"
    line = "JobId={} UserId=root(0) Name={} JobState={} NodeList=n ExitCode={}:0 \n"
    log.write_text(line.format(1, "eu-a-1", "FAILED", 3) + line.format(1, "other", "COMPLETED", 0))
    assert completed(log, "eu-a-1", "1") == EngineEnd("FAILED", 3)
    assert completed(log, "eu-a-1", "2") is None
    assert completed(tmp_path / "absent", "eu-a-1", "1") is None


def test_accounting_is_read_by_name_and_number() -> None:
    said = {
        "scontrol show job 12": Said(1, "", "slurm_load_jobs error: Invalid job id specified"),
        "scontrol show config": Said(0, "AccountingStorageType = accounting_storage/slurmdbd\n", ""),
        "sacct": Said(0, "7|COMPLETED|0:0|eu-a-1\n12|CANCELLED by 0|0:15|eu-a-1\n13|RUNNING|0:0|eu-a-1\n", ""),
    }
    slurm = Slurm(run=lambda argv, timeout_s: said["sacct" if argv[0] == "sacct" else " ".join(argv)])
    assert slurm.ended(REQUEST, "12") == EngineEnd("CANCELLED", 0)
    assert slurm.ended(REQUEST, "") == EngineEnd("CANCELLED", 0)
    said["sacct"] = Said(0, "7|COMPLETED|0:0|eu-a-1\n", "")
    assert slurm.ended(REQUEST, "12") is None


def test_nodes_keep_their_names_when_the_engine_lists_more(tmp_path: Path) -> None:
    engine = Slurm(run=FakeSlurm())
    assert assign(CLUSTER, engine.nodes(), tmp_path, "Slurm") == {0: "v100-0", 1: "k80-0"}
    first = node_of({"NodeName": "a", "State": "IDLE", "Gres": "gpu:v100:4"})
    assert assign(CLUSTER, [first, *engine.nodes()], tmp_path, "Slurm") == {0: "v100-0", 1: "k80-0"}
    with pytest.raises(InvalidInput, match="no node for 1 of the declared ones, of type k80"):
        assign(CLUSTER, [first], tmp_path, "Slurm")


def test_a_gang_is_submitted_with_mark_nodes_and_typed_accelerators(world: World, slurm: FakeSlurm) -> None:
    world.launch(max_run_s=100.0)
    world.wait(Launched("a", 1))
    [argv] = slurm.calls("sbatch")
    wanted = {"--job-name=eu-a-1", f"--comment={world.gangs.cluster}:a:1", "--nodelist=v100-0", "--gres=gpu:v100:2",
              "--no-requeue", "--signal=B:TERM@10", "--time=2"}  # fmt: skip
    assert wanted <= set(argv)
    assert Path(argv[-1]).stat().st_mode & 0o777 == 0o600
    slurm.finish("1")
    world.wait(GangEnded("a", 1, "finished"))


@pytest.mark.parametrize("fault", ["timeout", "unreachable", "truncated", "empty"])
def test_without_an_answer_nothing_changes_and_the_gang_is_unknown(world: World, slurm: FakeSlurm, fault: str) -> None:
    world.launch()
    world.wait(Launched("a", 1))
    slurm.fault = fault
    soon(lambda: any(isinstance(one, GangUnknown) for one in world.reports))
    world.launch("b")
    slurm.fault = ""
    soon(lambda: world.reports.count(Launched("a", 1)) == 2)
    world.wait(Launched("b", 1))
    assert not any(isinstance(one, GangEnded) for one in world.reports)
    assert len(slurm.jobs) == 2


def test_a_start_that_took_effect_without_an_answer_is_found_by_its_mark(world: World, slurm: FakeSlurm) -> None:
    slurm.fault = "lost answer"
    world.launch()
    soon(lambda: slurm.jobs)
    slurm.fault = ""
    world.wait(Launched("a", 1))
    assert len(slurm.jobs) == 1


def test_a_start_that_had_no_effect_is_tried_again(world: World, slurm: FakeSlurm) -> None:
    soon(lambda: slurm.calls("squeue"))
    slurm.fault = "unreachable"
    world.launch()
    soon(lambda: slurm.calls("sbatch"))
    slurm.fault = ""
    world.wait(Launched("a", 1))
    assert len(slurm.jobs) == 1


def test_a_job_that_vanished_is_unknown_then_lost_unless_its_record_says_more(world: World, slurm: FakeSlurm) -> None:
    world.launch()
    world.wait(Launched("a", 1))
    del slurm.jobs["1"]
    soon(lambda: any(isinstance(one, GangUnknown) for one in world.reports))
    assert world.ended() == GangEnded("a", 1, "lost", "Slurm does not know it any more")


def test_a_job_that_ended_and_was_forgotten_has_the_end_of_its_record(world: World, slurm: FakeSlurm) -> None:
    world.launch()
    world.wait(Launched("a", 1))
    slurm.finish("1", code=3)
    del slurm.jobs["1"]
    assert world.ended() == GangEnded("a", 1, "failed", "exit code 3")


def test_a_number_that_is_used_again_is_another_job_and_is_not_cancelled(world: World, slurm: FakeSlurm) -> None:
    world.launch()
    world.wait(Launched("a", 1))
    slurm.jobs["1"].name, slurm.jobs["1"].comment = "of-ann", "(null)"
    world.gangs.carry_out([Halt(2, "a", 1)])
    assert world.ended().outcome == "lost"
    assert slurm.jobs["1"].state == "RUNNING"


def test_a_gang_that_ends_before_it_is_called_back_is_no_failure_of_slurm() -> None:
    said = iter(
        [Said(1, "", "scancel: error: Kill job error on job id 1: Invalid job id specified"), Said(229, "", "")]
    )
    slurm = Slurm(run=lambda argv, timeout_s: next(said))
    slurm.call_back(REQUEST, "1")
    slurm.call_back(REQUEST, "1")
    assert not list(said)


def test_a_state_without_a_record_says_who_ended_it(world: World, slurm: FakeSlurm) -> None:
    world.launch()
    world.wait(Launched("a", 1))
    slurm.jobs["1"].state = "NODE_FAIL"
    assert world.ended() == GangEnded("a", 1, "lost", "Slurm: node fail")


def test_a_refused_start_fails_with_slurm_s_words(tmp_path: Path, slurm: FakeSlurm) -> None:
    world = World(tmp_path, slurm, partition="none")
    world.launch()
    assert world.ended() == GangEnded("a", 1, "failed", "Slurm: invalid partition specified: none")
    world.gangs.close()


def test_accelerators_that_others_hold_are_reported_as_taken(world: World, slurm: FakeSlurm) -> None:
    world.launch()
    world.wait(Launched("a", 1))
    slurm.used = 3  # two of them ours
    world.wait(SeatsTaken(((3, "another job of Slurm"),)))
    slurm.used = 2
    world.wait(SeatsTaken(()))


def test_a_gang_that_has_started_since_the_last_list_is_not_taken_for_a_job_of_others(
    world: World, slurm: FakeSlurm
) -> None:
    world.launch()
    world.wait(Launched("a", 1))
    slurm.jobs["1"].state = "PENDING"  # says the list still
    looks = len(slurm.calls("scontrol")) + len(slurm.calls("squeue"))
    soon(lambda: len(slurm.calls("scontrol")) + len(slurm.calls("squeue")) > looks + 6)
    slurm.used = 2
    soon(lambda: len(slurm.calls("scontrol")) + len(slurm.calls("squeue")) > looks + 20)
    assert not any(isinstance(one, SeatsTaken) for one in world.reports)


def test_nodes_are_drained_in_both_directions(world: World, slurm: FakeSlurm) -> None:
    world.wait(NodeState(0))
    slurm.node_state, slurm.reason = "IDLE+DRAIN", "fan"
    world.wait(NodeState(0, "reported by Slurm: idle+drain, fan"))
    world.gangs.carry_out([DrainNode(2, 1, "cables"), DrainNode(3, 1)])
    soon(lambda: len([one for one in slurm.calls("scontrol") if one[1] == "update"]) == 2)
    drain, resume = (one for one in slurm.calls("scontrol") if one[1] == "update")
    assert drain == ("scontrol", "update", "NodeName=k80-0", "State=DRAIN", "Reason=eunomia: cables")
    assert resume == ("scontrol", "update", "NodeName=k80-0", "State=RESUME")


def test_unknown_marks_of_ours_are_orphans_and_others_are_not(world: World, slurm: FakeSlurm) -> None:
    world.launch()
    world.wait(Launched("a", 1))
    job = slurm.jobs["1"]
    for number, comment in (("7", f"{world.gangs.cluster}:gone:2"), ("8", "ffff:gone:2"), ("9", "hello")):
        slurm.jobs[number] = type(job)("x", comment, job.spec)
    soon(lambda: world.gangs.orphans() == [("gone", 2)])
    assert slurm.calls("scancel") == []


def test_the_engine_says_which_devices_are_visible_unless_the_job_does(tmp_path: Path, slurm: FakeSlurm) -> None:
    world = World(tmp_path, slurm)
    world.launch("a")
    world.launch("b", env={"CUDA_VISIBLE_DEVICES": "1"})
    soon(lambda: len(slurm.jobs) == 2)
    found = [json.loads(job.spec.read_text())["environment"].get("CUDA_VISIBLE_DEVICES") for job in slurm.jobs.values()]
    assert found == [None, "1"]
    world.gangs.close()


def test_a_gang_that_was_queued_before_the_supervisor_moved_starts_by_the_path_in_its_command(tmp_path: Path) -> None:
    files = {name: str(tmp_path / name) for name in ("lease", "exit", "record", "finished", "claim", "log")}
    more = {"epoch": 1, "grace_s": 1.0, "detached": True, "log_bytes": 0, "locks": []}
    (tmp_path / "lease").write_text('{"end_s": null}')
    spec = json.dumps({"command": ["touch", str(tmp_path / "ran")], "cwd": "/", "environment": {}, **files, **more})
    before = Path(eunomia.__file__).with_name("backends") / "local" / "supervisor.py"
    subprocess.run([sys.executable, "-I", "-S", str(before)], input=f"{spec}\n", text=True, check=True)
    assert (tmp_path / "ran").exists()
    assert json.loads((tmp_path / "exit").read_text()) == {"code": 0, "cause": "exited", "epoch": 1}
