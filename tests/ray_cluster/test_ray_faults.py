"""What a gang leaves when Ray kills its actor, and what is left to other users of the cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.engines.loopback import until
from tests.ray_cluster.loopback import RayCluster
from tests.ray_cluster.test_ray_contract import RayDriver

from eunomia.backends.engines.engine import EngineAway
from eunomia.backends.ray import client
from eunomia.testing import Work
from eunomia.testing.world_contract import OVER, all_of, seats_on

WITHIN_S = 240.0


def test_a_gang_whose_actor_is_killed_ends_with_all_its_processes_and_leaves_its_accelerators(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    from ray._private import state

    works = {"a": Work(steps=400, step_s=0.1, has_child=True), "b": Work(steps=2, step_s=0.1)}
    world = RayDriver(ray_cluster, tmp_path, works)
    try:
        world.launch("a", 1, all_of(world, 0))
        world.until(lambda: world.status("a", 1) == "running" and world.processes("a") >= 2, WITHIN_S)
        [actor] = [one for one in state.actors(actor_state_name="ALIVE").values() if one["Name"].endswith(":a:1")]
        os.kill(actor["Pid"], signal.SIGKILL)
        world.until(lambda: world.status("a", 1) in OVER, WITHIN_S)
        world.until(lambda: world.processes("a") == 0, WITHIN_S)
        world.launch("b", 1, all_of(world, 0))
        world.until(lambda: world.status("b", 1) == "finished", WITHIN_S)
    finally:
        world.close()


SLEEPS = {"argv": [sys.executable, "-c", "import time; time.sleep(600)"], "stdin": "/dev/null"}


def started(ray_cluster: RayCluster, agent: Any, name: str, log: Path) -> int:
    """Start a gang on the first node; return the number of its actor's process."""
    from ray._private import state

    agent.submit(name, [["v100-0", {"GPU": 4}]], {**SLEEPS, "log": str(log)})
    found: list[Any] = []

    def runs() -> bool:
        found[:] = [one for one in state.actors(actor_state_name="ALIVE").values() if one["Name"] == name]
        return bool(found)

    until(runs, f"{name} runs", WITHIN_S)
    until(lambda: ray_cluster.free()["v100-0"] == 0, "Ray's table of free accelerators has it", WITHIN_S)
    return int(found[0]["Pid"])


def die(name: str, process: int) -> None:
    """Kill the actor's process, and wait until Ray knows it."""
    from ray._private import state

    os.kill(process, signal.SIGKILL)
    dead = lambda: any(one["Name"] == name for one in state.actors(actor_state_name="DEAD").values())  # noqa: E731
    until(dead, f"Ray knows that {name} is dead", WITHIN_S)


def test_a_gang_that_starts_and_dies_between_two_lists_is_listed_and_leaves_its_accelerators(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    from eunomia.backends.ray import agent

    one = agent.Agent("eunomia")
    one.gangs()
    die("ab:short:1", started(ray_cluster, one, "ab:short:1", tmp_path / "log"))
    assert {"name": "ab:short:1", "state": "DEAD"} in one.gangs()
    until(lambda: ray_cluster.free()["v100-0"] == 4, "the accelerators are free", WITHIN_S)
    until(lambda: one.gangs() == [], "the gang is listed no more", WITHIN_S)


def test_a_gang_that_dies_while_no_agent_runs_leaves_its_accelerators_though_thousands_have_ended_before(
    ray_cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eunomia.backends.ray import agent

    die("ab:orphan:1", started(ray_cluster, agent.Agent("eunomia"), "ab:orphan:1", tmp_path / "log"))
    table = agent.placement_group_table

    def of_one(*group: Any) -> Any:
        assert group, "the table of all placement groups that there ever were is not asked for"
        return table(*group)

    monkeypatch.setattr(agent, "placement_group_table", of_one)
    other = agent.Agent("eunomia")
    assert {"name": "ab:orphan:1", "state": "DEAD"} in other.gangs()
    until(lambda: ray_cluster.free()["v100-0"] == 4, "the accelerators are free", WITHIN_S)


def test_groups_and_actors_of_others_are_left_alone_whatever_their_names(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    from ray.util.placement_group import placement_group, placement_group_table

    class Stranger:
        def here(self) -> bool:
            return True

    ray = ray_cluster.ray
    group = placement_group([{"CPU": 1}], name="train")
    actor = ray.remote(Stranger).options(name="train", num_cpus=0).remote()
    assert ray.get(actor.here.remote(), timeout=120)
    ray.kill(actor)
    world = RayDriver(ray_cluster, tmp_path, {"a": Work(steps=2, step_s=0.1)})
    try:
        world.launch("a", 1, seats_on(world, 0, 1))
        world.until(lambda: world.status("a", 1) == "finished", WITHIN_S)
        assert placement_group_table(group)["state"] == "CREATED"
    finally:
        world.close()


def test_a_gang_that_starts_while_the_states_are_asked_for_is_not_taken_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("ray", reason="needs the extra ray")
    from eunomia.backends.ray import agent

    actor = {"Name": "ab:a:1", "ActorID": "1", "ActorClassName": "RayGang", "State": "PENDING_CREATION"}

    def actors(actor_id: str = "", actor_state_name: str = "") -> dict[str, Any]:
        if actor_id:
            return actor
        return {"1": actor} if actor["State"] == actor_state_name and not is_missed else {}

    is_missed, one = False, agent.Agent("tests")
    removed: list[object] = []
    monkeypatch.setattr(one, "_group", lambda name: name)
    monkeypatch.setattr(agent.state, "actors", actors)
    monkeypatch.setattr(agent, "remove_placement_group", removed.append)
    monkeypatch.setattr(agent.state, "available_resources_per_node", dict)
    monkeypatch.setattr(agent, "placement_group_table", lambda *of: {"state": "PENDING"} if of else {})
    assert [each["name"] for each in one.gangs()] == ["ab:a:1"]
    is_missed = True
    for actor["State"] in ("ALIVE", "PENDING_CREATION", "ALIVE"):
        assert [each["name"] for each in one.gangs()] == ["ab:a:1"]
    assert not removed


CUT_OFF = """\
import json, os, sys, time
import ray
from eunomia.backends.ray.agent import Agent
address, command = sys.argv[1:]
ray.init(address=address, namespace="others", log_to_driver=False)
never = ray.remote(num_cpus=0)(lambda: time.sleep(600))
Agent("eunomia").submit("ab:cut:1", [["v100-0", {"GPU": 4}]], {**json.loads(command), "log": never.remote()})
os._exit(0)
"""


def test_a_gang_whose_start_was_cut_off_by_the_death_of_the_agent_has_not_failed(ray_cluster: RayCluster) -> None:
    from eunomia.backends.ray.agent import LIVE, Agent
    from eunomia.backends.ray.engine import Ray

    argv = [sys.executable, "-c", CUT_OFF, ray_cluster.address, json.dumps(SLEEPS)]
    subprocess.run(argv, check=True, timeout=WITHIN_S)
    one, found = Agent("eunomia"), list[dict[str, str]]()
    until(
        lambda: found.extend(one.gangs()) or "NOT_STARTED" in [each["state"] for each in found],
        lambda: f"Ray finds that the agent has died; seen: {found}", WITHIN_S,
    )  # fmt: skip
    assert {each["name"] for each in found} == {"ab:cut:1"}
    assert {each["state"] for each in found} <= {*LIVE, "STARTING", "NOT_STARTED"}
    assert "NOT_STARTED" in Ray.node_lost
    seen = lambda: (one.gangs(), ray_cluster.free()["v100-0"])  # noqa: E731  # its group may come after its end
    until(lambda: seen() == ([], 4), lambda: f"its accelerators are free; seen: {seen()}", WITHIN_S)


def test_an_agent_that_takes_long_to_reach_the_cluster_is_waited_for_and_not_started_again(
    ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "START_S", 0.05)
    monkeypatch.setattr(client, "PATIENCE", 1_000_000)
    asked = client.AgentClient(ray_cluster.address, "eunomia", timeout_s=WITHIN_S)

    def answers() -> bool:
        with suppress(EngineAway):
            return bool(asked.ask("nodes"))
        return False

    try:
        assert not answers(), "it reached the cluster at once, so nothing is shown"
        until(answers, "the agent answers", WITHIN_S)
    finally:
        asked.close()
