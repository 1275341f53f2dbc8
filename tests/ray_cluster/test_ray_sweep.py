"""Sweeps on a real Ray cluster have the same bytes as on the local pool, and outlive nodes and workers."""

from __future__ import annotations

import shutil
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.engines.loopback import in_time
from tests.ray_cluster.loopback import RayCluster

from eunomia.inputs.problems import InvalidInput
from eunomia.sweeps import plan, ray_pool, read
from eunomia.sweeps.runner import SweepProgress, carry_out
from eunomia.sweeps.store import Store

SWEEP = """\
[scenario]
policy = { name = "fifo" }
cluster = { accelerators = { v100 = 4 } }
workload = { trace = "data/jobs.csv" }
throughputs = { source = "uniform" }
[axes]
policy = ["fifo", "las", "own.py:Own"]
seed = [0, 1, 2, 3]
"""
OWN = """\
import os
from eunomia import Policy
from eunomia.policies.order.fifo import Fifo
class Own(Fifo):
    pass
"""
WITHIN_S = 500.0
TASK = "ray::run_on_node"  # what Ray calls the process of a run
TIMES = "timing.json"  # how long a run took is its own


def sweep_in(folder: Path, text: str = SWEEP, own: str = OWN) -> Path:
    (folder / "data").mkdir(parents=True)
    rows = [f"j{n},{60 * n},{1 + n % 4},x,{600 + 100 * n}" for n in range(20)]
    (folder / "data" / "jobs.csv").write_text("job_id,submitted_s,scale_factor,job_type,duration_s\n" + "\n".join(rows))
    (folder / "own.py").write_text(own)
    (folder / "sweep.toml").write_text(text)
    return folder / "sweep.toml"


def runs_of(out: Path) -> dict[str, bytes]:
    files = sorted(file for file in (out / "runs").rglob("*") if file.is_file() and file.name != TIMES)
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


def test_a_sweep_on_ray_has_the_bytes_of_one_on_this_machine_and_sends_its_inputs(
    ray_cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = sweep_in(tmp_path / "here")
    sweep, rows = read(file), plan(read(file))
    local = carry_out(sweep, rows, tmp_path / "local", 2)
    aside = tmp_path / "aside"
    started = threading.Event()

    def hide(_: object) -> None:  # what the driver has read is not read again by the nodes
        if not started.is_set():
            started.set()
            shutil.move(tmp_path / "here", aside)

    run = partial(carry_out, sweep, rows, tmp_path / "ray", 1, hide, on=ray_cluster.address)
    on_ray = in_time(run, "the sweep has ended", WITHIN_S)
    assert not on_ray.failures and len(on_ray.rows) == len(local.rows) == 12
    assert runs_of(tmp_path / "ray") == runs_of(tmp_path / "local")
    assert started.is_set()


def test_a_sweep_that_loses_a_busy_node_in_the_middle_has_the_same_bytes(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    sleeps = "    def decide(self, view):\n        time.sleep(0.05)\n        return super().decide(view)"
    own = "import time\n" + OWN.replace("    pass", sleeps)  # so that at most moments one of the tasks runs
    sweep = read(sweep_in(tmp_path / "here", SWEEP.replace("[0, 1, 2, 3]", str(list(range(10)))), own))
    lost: list[str] = []

    def lose(progress: SweepProgress) -> None:
        if 3 * progress.done >= progress.runs and not lost:
            lost.extend(ray_cluster.busy(TASK)[:1])
            if lost:
                ray_cluster.remove(lost[0])

    run = partial(carry_out, sweep, plan(sweep), tmp_path / "ray", 4, lose, on=ray_cluster.address)
    on_ray = in_time(run, "the sweep has ended", WITHIN_S)
    ray_cluster.repair()
    assert lost and not on_ray.failures and len(on_ray.rows) == 30
    carry_out(sweep, plan(sweep), tmp_path / "local", 2)
    assert runs_of(tmp_path / "ray") == runs_of(tmp_path / "local")


def test_a_run_whose_process_always_dies_is_named_and_the_others_go_on_though_a_node_is_lost(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    note = f"open({str(tmp_path / 'tries')!r}, 'a').write('x')"
    dies = "import os\n" + OWN.replace("    pass", f"    def decide(self, view):\n        {note}\n        os._exit(9)")
    file = sweep_in(tmp_path / "here", own=dies)
    sweep = read(file)
    lost = threading.Event()

    def lose(_: object) -> None:
        if not lost.is_set():
            lost.set()
            ray_cluster.remove("k80-0")

    run = partial(carry_out, sweep, plan(sweep), tmp_path / "out", 4, lose, on=ray_cluster.address)
    found = in_time(run, "the sweep has ended", WITHIN_S)
    ray_cluster.repair()
    assert len(found.rows) == 8
    assert {failure.row.labels["policy"] for failure in found.failures} == {"own.py:Own"}
    assert len((tmp_path / "tries").read_text()) <= 3 * 4, "four runs were tried at most three times each"
    assert all("Ray gave it up after 3 tries" in failure.error for failure in found.failures)


def test_an_address_without_a_cluster_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the extra ray")
    file = sweep_in(tmp_path / "here")
    with pytest.raises(InvalidInput, match="Ray cluster"):
        carry_out(read(file), plan(read(file)), tmp_path / "out", 0, on="nowhere", anew=True)
    assert not (tmp_path / "out").exists(), "nothing was changed"


class FakeRay:
    """Stands in for Ray on a cluster of one core: each try of a task ends with the next of these."""

    class exceptions:
        RayError = type("RayError", (Exception,), {})
        RayTaskError = type("RayTaskError", (RayError,), {})
        NodeDiedError = type("NodeDiedError", (RayError,), {})
        ObjectLostError = type("ObjectLostError", (RayError,), {})
        WorkerCrashedError = type("WorkerCrashedError", (RayError,), {})

    def __init__(self, *ends: str) -> None:
        self.ends, self.begun = list(ends), 0

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 1.0}

    def put(self, value: object) -> object:
        return value

    def remote(self, **_: object) -> Any:
        return lambda _: SimpleNamespace(remote=self._begin)

    def _begin(self, *_: object) -> int:
        self.begun += 1
        return self.begun

    def wait(self, tries: list[int], num_returns: int) -> tuple[list[int], list[int]]:
        return tries[:num_returns], tries[num_returns:]

    def get(self, _: int) -> tuple[dict[str, str], dict[str, bytes]]:
        if end := self.ends.pop(0):
            raise getattr(self.exceptions, end)(end)
        return {}, {}


@pytest.mark.parametrize(
    ("ends", "error"),
    [
        (["WorkerCrashedError"] * 2 + ["NodeDiedError"] * 8 + ["ObjectLostError"] + [""], None),
        (["WorkerCrashedError"] * 3, "Ray gave it up after 3 tries"),
        (["NodeDiedError"] * 20 + ["WorkerCrashedError"] * 3, "Ray gave it up after 3 tries"),
        (["NodeDiedError"] * 23, "Ray gave it up after 3 tries"),
        (["RayTaskError"], "Ray gave it up after 1 try"),
    ],
)
def test_lost_nodes_are_no_tries_of_a_task_unless_all_nodes_that_take_it_are_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends: list[str], error: str | None
) -> None:
    ray = FakeRay(*ends)
    monkeypatch.setattr(ray_pool, "_connected", lambda _: (ray, False))
    monkeypatch.setattr(ray_pool, "PAUSE_S", 0.0)
    monkeypatch.setattr(ray_pool, "_inputs", lambda _: [])
    found: list[Any] = []
    with ray_pool.RayPool("auto", Store(tmp_path), 1) as pool:
        pool.run([{"hash": "a"}], lambda _, answer: found.append(answer))
    assert ray.begun == len(ends) and ray.ends == []
    assert [answer.get("error", "").split(":")[0] or None for answer in found] == [error]
