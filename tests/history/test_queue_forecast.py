"""Forecasts of another scheduler's queue: by hand, on Slurm's text and on Kueue's objects."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from tests.history.kueue_schema import wrong_fields
from typer.testing import CliRunner

from eunomia.backends.slurm.commands import records
from eunomia.backends.slurm.queue import read_queue
from eunomia.cli.app import app
from eunomia.history.kueue_queue import kueue_queue
from eunomia.history.queue_forecast import EarlierJob, QueueJob, QueueSnapshot, calibrated_starts, forecast_starts
from eunomia.inputs.problems import InvalidInput

THIRD = {"ann": [1 / 3] * 9}  # jobs use a third of their limits


def running(name: str, size: int, limit_s: float, elapsed_s: float = 0.0) -> QueueJob:
    return QueueJob(
        job_id=name, user="ann", size=size, types=("v100",), limit_s=limit_s, elapsed_s=elapsed_s, runs=True
    )


def waiting(name: str, size: int, limit_s: float, priority: float, types: tuple[str, ...] = ("v100",)) -> QueueJob:
    return QueueJob(job_id=name, user="ann", size=size, types=types, limit_s=limit_s, priority=priority)


def starts(*jobs: QueueJob, **capacity: int) -> dict[str, float]:
    queue = QueueSnapshot(capacity=capacity or {"v100": 4}, jobs=jobs, shares=THIRD)
    return {one.job_id: round(one.p50_s) for one in forecast_starts(queue)}


def test_a_job_starts_when_the_one_before_it_has_run_as_long_as_its_like() -> None:
    assert starts(running("r", 4, 300.0, 40.0), waiting("a", 4, 60.0, 2), waiting("b", 4, 60.0, 1)) == {
        "a": 60,
        "b": 80,
    }


def test_a_short_job_is_backfilled_and_a_long_one_waits_behind_the_reservation() -> None:
    # r holds 3 of 4, to 300 s by its limit and to 100 s in truth; `a` needs all 4 and has the reservation.
    jobs = running("r", 3, 300.0), waiting("a", 4, 300.0, 3)
    assert starts(*jobs, waiting("short", 1, 90.0, 2)) == {"a": 100, "short": 0}
    assert starts(*jobs, waiting("long", 1, 600.0, 2)) == {"a": 100, "long": 200}


def test_a_job_takes_any_of_its_types_and_one_that_never_fits_has_no_start() -> None:
    found = starts(running("r", 4, 300.0), waiting("any", 2, 60.0, 1, ("v100", "k80")), v100=4, k80=2)
    assert found == {"any": 0}
    queue = QueueSnapshot(capacity={"v100": 4}, jobs=[waiting("wide", 8, 60.0, 1)])
    [one] = forecast_starts(queue)
    assert math.isinf(one.p50_s) and "at most 4 are in service" in one.reason


def test_an_interval_has_the_spread_of_earlier_jobs_and_the_reason_says_what_is_free() -> None:
    queue = QueueSnapshot(
        capacity={"v100": 4}, jobs=[running("r", 4, 100.0), waiting("a", 2, 60.0, 1)],
        shares={"ann": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]},
    )  # fmt: skip
    [one] = forecast_starts(queue)
    assert 10 <= one.p10_s < 30 < one.p50_s < 70 < one.p90_s <= 90
    assert one.reason == "it needs 2; free: 0 of 4 v100; no job is before it"
    assert forecast_starts(queue) == [one], "the same queue has the same forecast"


def late_queue(jobs: int) -> QueueSnapshot:
    """One accelerator; each job begins 200 s after the one before it has ended, which no forecast knows."""
    earlier, free = [], 0.0
    for n in range(jobs):
        job = replace(waiting(f"e{n}", 1, 300.0, 0), submitted=max(free - 100.0, 0.0))
        began = free + 200.0
        free = began + 100.0
        earlier.append(EarlierJob(job=job, started=began, ended=free))
    jobs_now = [running("r", 1, 300.0), waiting("a", 1, 300.0, 1)]
    return QueueSnapshot(capacity={"v100": 1}, jobs=jobs_now, shares=THIRD, earlier=earlier)


def test_intervals_are_wider_when_earlier_jobs_began_outside_of_theirs() -> None:
    queue = late_queue(80)
    [plain], [wide] = forecast_starts(queue), calibrated_starts(queue)
    assert plain.p90_s < 150 and wide.p90_s > 200, "100 s to the end of the job that runs, and the delay"
    assert wide.p50_s == plain.p50_s and wide.reason == plain.reason


def test_a_few_earlier_jobs_and_those_that_did_not_wait_teach_nothing() -> None:
    [plain], [few] = forecast_starts(late_queue(20)), calibrated_starts(late_queue(20))
    assert few.p90_s == pytest.approx(plain.p90_s)
    at_once = [replace(one, job=replace(one.job, submitted=one.started)) for one in late_queue(80).earlier]
    [same] = calibrated_starts(replace(late_queue(80), earlier=at_once))
    assert same.p90_s == pytest.approx(plain.p90_s)


SLURM = """\
JobId=7 JobName=train me JobState=COMPLETED
   UserId=ann(1000) GroupId=ann(1000) Account=vision
   JobState=PENDING Reason=Resources Dependency=(null)
   Priority=42 TimeLimit=01:00:00 RunTime=00:00:00
   SubmitTime=2026-11-23T03:00:00 StartTime=2026-11-23T05:00:00
   NumNodes=2-2 NumCPUs=2 NumTasks=N/A
   NodeList=
   Features=a100&nvlink
   AdminComment=ab:1:2
   Comment=x AdminComment=zz:9:9
   TresPerNode=gres:gpu:4

JobId=8 ArrayJobId=8 ArrayTaskId=0-3,9%2 JobName=sweep
   UserId=bob(1001) Account=(null)
   JobState=RUNNING Reason=None RunTime=00:10:00 TimeLimit=UNLIMITED
   NumNodes=1 NodeList=v100-[0-1],k80-0 StartTime=Unknown SubmitTime=Unknown
   TresPerJob=gres:gpu:v100:6
"""


def test_slurm_s_jobs_are_read_with_gangs_types_limits_and_arrays() -> None:
    seven, eight = read_queue(records(SLURM), ("v100", "a100"))
    assert (seven.name, seven.state) == ("train me JobState=COMPLETED", "PENDING"), "a name cannot change a state"
    assert (seven.accelerators, seven.per_node, seven.nodes, seven.types) == (8, 4, 2, ("a100",))
    assert (seven.limit_s, seven.priority, seven.account, seven.mark) == (3600.0, 42, "vision", "ab:1:2")
    assert seven.waits and not seven.is_held and seven.started - seven.submitted == 7200
    assert (eight.accelerators, eight.per_node, eight.tasks, eight.types) == (6, 0, 5, ("v100",))
    assert (eight.limit_s, eight.elapsed_s, eight.runs, eight.account) == (math.inf, 600.0, True, "")


def workload(name: str, gpus: int, pods: int = 1, **more: object) -> dict[str, object]:
    container = {"name": "c", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}
    spec = {
        "queueName": "team",
        "podSets": [{"name": "main", "count": pods, "template": {"spec": {"containers": [container]}}}],
        "maximumExecutionTimeSeconds": 3600,
        **{key: value for key, value in more.items() if key != "status"},
    }
    metadata = {"name": name, "namespace": "lab", "creationTimestamp": "2026-11-23T03:00:00Z"}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata, "spec": spec,
            "status": more.get("status", {})}  # fmt: skip


def dump(path: Path, *workloads: dict[str, object], quota: str = "8", **of_local: str) -> Path:
    version = "kueue.x-k8s.io/v1beta2"
    flavors = [{"name": "v100", "resources": [{"name": "cpu", "nominalQuota": "64"},
                                              {"name": "nvidia.com/gpu", "nominalQuota": quota}]}]  # fmt: skip
    cluster = {"apiVersion": version, "kind": "ClusterQueue", "metadata": {"name": "main"}, "spec": {
        "namespaceSelector": {}, "stopPolicy": "None",
        "resourceGroups": [{"coveredResources": ["cpu", "nvidia.com/gpu"], "flavors": flavors}]}}  # fmt: skip
    local = {"apiVersion": version, "kind": "LocalQueue", "metadata": {"name": "team", "namespace": "lab"},
             "spec": {"clusterQueue": "main", "stopPolicy": "None", **of_local}}  # fmt: skip
    path.write_text(json.dumps({"kind": "List", "items": [cluster, local, *workloads]}))
    return path


def condition(kind: str, at: str) -> dict[str, str]:
    """Return a condition with all that Kubernetes requires of one."""
    return {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": at}


ADMITTED = {
    "admission": {
        "clusterQueue": "main",
        "podSetAssignments": [{"name": "main", "flavors": {"nvidia.com/gpu": "v100"}, "count": 2}],
    },
    "conditions": [
        condition("QuotaReserved", "2026-11-23T03:10:00Z"),
        condition("Admitted", "2026-11-23T03:10:00Z"),
    ],
}


def test_kueue_s_objects_are_read_with_quota_admission_and_gangs(tmp_path: Path) -> None:
    over = {"conditions": [condition("Finished", "2026-11-23T03:40:00Z")]}
    path = dump(
        tmp_path / "q.json", workload("runs", 4, 2, status=ADMITTED), workload("waits", 2, 2, priority=5),
        workload("over", 4, status=over), workload("elsewhere", 1, queueName="none"),
        workload("stopped", 1, active=False),
    )  # fmt: skip
    queue = kueue_queue(path)
    assert queue.capacity == {"main/v100": 8}
    by_name = {job.job_id: job for job in queue.jobs}
    assert set(by_name) == {"lab/runs", "lab/waits", "lab/elsewhere", "lab/stopped"}
    runs, waits = by_name["lab/runs"], by_name["lab/waits"]
    assert (runs.size, runs.runs, runs.types, runs.elapsed_s) == (8, True, ("main/v100",), 1800.0)
    assert (waits.size, waits.runs, waits.priority, waits.limit_s) == (4, False, 5.0, 3600.0)
    found = {one.job_id: one for one in forecast_starts(queue)}
    assert 0 < found["lab/waits"].p50_s < 3600
    assert "no LocalQueue 'none'" in found["lab/elsewhere"].reason and "not active" in found["lab/stopped"].reason


@pytest.mark.parametrize("spent", ["accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds"])
def test_kueue_s_quantities_partial_admission_stop_policy_and_earlier_run_time_count(
    tmp_path: Path, spent: str
) -> None:
    fewer = {**ADMITTED, "reclaimablePods": [{"name": "main", "count": 1}], spent: 600}
    path = dump(tmp_path / "q.json", workload("runs", 4, 3, status=fewer), workload("waits", 2), quota="1k",
                stopPolicy="Hold")  # fmt: skip
    queue = kueue_queue(path)
    assert queue.capacity == {"main/v100": 1000}, "Kubernetes writes 1000 so"
    runs, waits = sorted(queue.jobs, key=lambda job: job.job_id)
    assert (runs.size, runs.limit_s, runs.held) == (4, 3000.0, ""), "two of three pods were admitted; one is over"
    assert "is stopped" in waits.held
    with pytest.raises(InvalidInput, match="no quantity"):
        kueue_queue(dump(tmp_path / "q.json", quota="many"))


def test_the_objects_of_these_tests_have_the_fields_of_kueue_s_published_types(tmp_path: Path) -> None:
    status = {**ADMITTED, "reclaimablePods": [{"name": "main", "count": 1}], "accumulatedPastExecutionTimeSeconds": 600}
    runs = workload("runs", 4, 2, status=status)
    path = dump(tmp_path / "q.json", runs, workload("waits", 2, priority=5, active=False))
    for item in json.loads(path.read_text())["items"]:
        assert wrong_fields(item) == []
    runs["status"] = {**status, "admission": {"clusterQueues": "main"}, "reclaimablePods": [{"count": "1"}]}
    assert wrong_fields(runs) == ["status.admission.clusterQueues", "status.reclaimablePods[].count"]


def test_a_dump_without_a_cluster_queue_is_refused(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(json.dumps({"items": [workload("a", 1)]}))
    with pytest.raises(InvalidInput, match="no ClusterQueue"):
        kueue_queue(tmp_path / "q.json")
    (tmp_path / "bad.json").write_text("[1]")
    with pytest.raises(InvalidInput, match="no list of Kueue's objects"):
        kueue_queue(tmp_path / "bad.json")


def test_the_command_answers_for_one_job_and_for_all(tmp_path: Path) -> None:
    path = str(dump(tmp_path / "q.json", workload("runs", 4, 2, status=ADMITTED), workload("waits", 2, 2)))
    run = CliRunner().invoke
    shown = run(app, ["when", "--kueue", path])
    assert shown.exit_code == 0 and shown.stdout.startswith("lab/waits: starts in ")
    found = json.loads(run(app, ["when", "lab/waits", "--kueue", path, "--json"]).stdout)
    assert found["jobs"][0]["start_in"]["p10_s"] <= found["jobs"][0]["start_in"]["p90_s"]
    assert run(app, ["when", "lab/none", "--kueue", path]).exit_code == 2
    assert run(app, ["when"]).exit_code == 2
