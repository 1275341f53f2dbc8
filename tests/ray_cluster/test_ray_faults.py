"""What a gang leaves when Ray kills its actor, and what is left to other users of the cluster."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.ray_cluster.loopback import RayCluster
from tests.ray_cluster.test_ray_contract import RayDriver

from eunomia.testing import Work
from eunomia.testing.world_contract import OVER, all_of, seats_on

WITHIN_S = 40.0


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
    assert ray.get(actor.here.remote(), timeout=20)
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
    pytest.importorskip("ray", reason='needs the extra: pip install "eunomia[ray]"')
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
    monkeypatch.setattr(agent, "placement_group_table", lambda *of: {"state": "PENDING"} if of else {})
    assert [each["name"] for each in one.gangs()] == ["ab:a:1"]
    is_missed = True
    for actor["State"] in ("ALIVE", "PENDING_CREATION", "ALIVE"):
        assert [each["name"] for each in one.gangs()] == ["ab:a:1"]
    assert not removed
