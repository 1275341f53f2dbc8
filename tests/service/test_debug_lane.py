"""The debug lane: short jobs start at once on a full cluster, and never take more than their share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.service.bench import ANN, SITE, Bench, LiveService, until

from eunomia.backends.reports import GangEnded, Launched
from eunomia.inputs.problems import InvalidInput
from eunomia.model.job import Job
from eunomia.policies import build
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.scenario.load import scenario_from_dict
from eunomia.service.debug_lane import DebugLane
from eunomia.service.messages import Halt
from eunomia.service.site import load_site
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import virtual_backend
from eunomia.setup.workload import Workload

LANE = SITE.replace("[cluster]", "debug_lane = 0.5\n[cluster]")
CLUSTER = {
    "cluster": {"accelerators": {"v100": 32, "k80": 32}, "accelerators_per_node": 4},
    "overheads": {"checkpoint_s": 10, "restore_s": 10, "start_s": 5},
}


def waits_of_debug_jobs(policy: str, folder: Path, seed: int) -> np.ndarray:
    """Return the first waits of 500 debug jobs, a day long, on a cluster full of preemptible jobs, in seconds."""
    rng = np.random.default_rng(seed)
    day = np.sort(rng.uniform(3600, 90_000, 500))
    jobs = [
        Job(job_id=f"long-{n}", total_steps=float(rng.uniform(1e4, 4e5)), scale_factor=int(rng.choice([1, 2, 4, 8])),
            submitted=float(n * 20), sequence=n, tenant=f"t{n % 5}")
        for n in range(150)
    ] + [
        Job(job_id=f"debug-{n}", total_steps=float(rng.uniform(5, 600)), scale_factor=int(rng.choice([1, 1, 2, 4])),
            submitted=float(at), sequence=1000 + n, tenant=f"t{n % 5}", debug=True)
        for n, at in enumerate(day)
    ]  # fmt: skip
    scenario = scenario_from_dict({**CLUSTER, "throughputs": {"source": "uniform"}, "workload": {"trace": "x"},
                                   "policy": {"name": "fifo"}}, folder)  # fmt: skip
    work = Workload(jobs=tuple(sorted(jobs, key=lambda job: job.submitted)), notes=())
    setup = set_up(scenario, work, DebugLane(build(policy), 0.25))
    begun: dict[str, float] = {}

    class Starts:
        def observe(self, moment, decisions):
            for decision in decisions:
                found = decision.each() if hasattr(decision, "each") else [decision]
                for one in found:
                    if type(one).__name__ == "Start":
                        begun.setdefault(one.job_id, moment.at)

    run(setup.scheduler(), virtual_backend(setup), InlinePolicyRunner(setup.policy), [Starts()])
    return np.array([begun[job.job_id] - job.submitted for job in jobs if job.debug])


@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_on_a_full_cluster_99_of_100_debug_jobs_start_within_a_minute(policy: str, tmp_path: Path) -> None:
    waits = waits_of_debug_jobs(policy, tmp_path, seed=1)
    checkpoint_s = 10.0  # of those that make room
    assert (waits + checkpoint_s <= 60).mean() >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_over_twenty_days_drawn_at_random_99_of_100_debug_jobs_start_within_a_minute(
    policy: str, tmp_path: Path
) -> None:
    waits = np.concatenate([waits_of_debug_jobs(policy, tmp_path, seed) for seed in range(1, 21)])
    assert (waits + 10.0 <= 60).mean() >= 0.99


def test_a_debug_job_preempts_the_last_started_and_a_second_waits_beyond_the_share(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LANE.replace('"las"', '"fifo"').replace("quantum = 60\n", ""))
    first, second = (bench.submit(name=f"job-{n}").body["id"] for n in range(2))
    bench.do(Launched(first, 1), Launched(second, 1))
    bench.clock.at = 50.0
    lane = bench.submit(debug=True).body["id"]
    assert [(type(o).__name__, o.job_id) for o in bench.orders] == [("Halt", second), ("Launch", lane)]
    assert next(o for o in bench.orders if isinstance(o, Halt)).save
    bench.do(GangEnded(second, 1, "stopped"), Launched(lane, 1))
    later = bench.submit(debug=True).body["id"]
    assert bench.orders == []
    assert bench.state(later) == "pending"
    bench.clock.at = 650.0
    bench.do()
    assert bench.state(lane) == "failed"  # longer than its ten minutes
    assert bench.controller.rows[later].seats != ()
    bench.controller.check()
    bench.restart()
    bench.store.close()


def test_a_site_without_a_lane_refuses_debug_jobs_and_one_with_shares_cannot_have_a_lane(bench: Bench) -> None:
    refused = bench.submit(ANN, debug=True)
    assert (refused.status, refused.problems[0].field) == (422, "debug")
    bench.path.write_text(LANE.replace('"las"', '"max_min_fairness"').replace("quantum = 60\n", ""))
    with pytest.raises(InvalidInput, match="a debug lane needs an order"):
        load_site(bench.path)


def test_without_debug_jobs_the_order_is_that_of_the_inner_policy(tmp_path: Path) -> None:
    def records(text: str, name: str) -> list[tuple[str, ...]]:
        (tmp_path / name).mkdir()
        bench = Bench(tmp_path / name, text, numbered=True)
        found = []
        for n in range(6):
            bench.clock.at += 10.0
            bench.submit(name=f"job-{n}", accelerators=1 + n % 2)
            found.append(tuple(f"{type(o).__name__} {o.job_id}" for o in bench.orders))
        bench.store.close()
        return found

    for policy in ('"las"\nquantum = 60', '"fifo"'):
        plain, lane = (text.replace('"las"\nquantum = 60', policy) for text in (SITE, LANE))
        assert records(plain, policy[1:4] + "a") == records(lane, policy[1:4] + "b")


def test_a_running_service_makes_room_for_a_debug_job(live: LiveService) -> None:
    (live.folder / "site.toml").write_text(LANE)
    live.start()
    client = live.client("ann", "vision")
    long = [client.submit({"command": ["sleep", "600"], "interruptible": True})["id"] for _ in range(2)]
    until(lambda: all(client.get(f"/v1/jobs/{job}")["state"] == "running" for job in long))
    quick = client.submit({"command": ["true"], "debug": True})["id"]
    until(lambda: client.get(f"/v1/jobs/{quick}")["state"] == "succeeded")
    for job in long:
        client.send("DELETE", f"/v1/jobs/{job}")
