"""Speaks to a Ray cluster, in a process of its own: Ray ends a process that loses its cluster, and calls may hang.

python -m eunomia.backends.ray.agent ADDRESS NAMESPACE

Questions are JSON objects (see `child_process`), `{"id": 1, "do": "gangs", ...}`. Each has an answer,
`{"id": 1, "value": ...}`, or `"refused"` or `"away"` with the reason; the first one, `{"id": 0, ...}`, says that the
cluster was reached. Actors are defined here, in the main module, so that Ray sends their code to the nodes.
Tables of actors and free resources come from `ray._private.state`: the public ones need Ray's dashboard.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Set
from typing import Any

import ray
from ray import PlacementGroupID
from ray._private import state
from ray.experimental import internal_kv
from ray.util.placement_group import PlacementGroup, placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from eunomia.child_process import connect

LIVE = ("DEPENDENCIES_UNREADY", "PENDING_CREATION", "ALIVE", "RESTARTING")  # in the order in which actors are in them
NODE_ID = "ray.io/node-id"  # label that Ray gives each node
HELD = re.compile("bundle_group_([0-9a-f]{36})")  # resource of a node that a placement group has reserved something of
SEARCH_S = 30.0  # between two searches among dead actors, a table that grows with every start
RELEASE_TRIES = 60
CALL_S = 5.0  # for an actor to take a signal


class RayGang:
    """The actor of a gang: runs its supervisor, and gives the accelerators back when that has ended."""

    def __init__(self, argv: list[str], stdin: str, log: str, variables: dict[str, str]) -> None:
        self._group = ray.util.get_current_placement_group()
        self._child: subprocess.Popen[bytes] | None = None
        self._signals: list[int] = []
        self._command = argv, stdin, log, variables
        threading.Thread(target=self._run).start()

    def _run(self) -> None:
        argv, stdin, log, variables = self._command
        environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}  # 1, by Ray
        try:
            with open(stdin, "rb") as orders, open(log, "ab") as out:
                self._child = subprocess.Popen(
                    [*argv, "--die-with-parent", str(os.getpid())], stdin=orders, stdout=subprocess.DEVNULL, stderr=out,
                    cwd="/", env={**environment, **variables},
                )  # fmt: skip
            for number in self._signals:
                self._child.send_signal(number)
            self._child.wait()
        finally:
            self._release()

    def _release(self) -> None:
        """Remove the placement group, which ends this actor too; without an answer of Ray's store only this actor."""
        for _ in range(RELEASE_TRIES):
            try:
                remove_placement_group(self._group)
            except (ray.exceptions.RayError, RuntimeError):
                time.sleep(1.0)
            else:
                return
        os._exit(0)

    def signal(self, number: int) -> None:
        """Signal the supervisor."""
        if self._child is None:
            self._signals.append(number)
        else:
            self._child.send_signal(number)


class Agent:
    """Answers questions about one cluster."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._ids: dict[str, str] = {}  # of the actors in the last list, or started since, by name
        self._names: dict[str, str] = {}  # of placement groups that hold something, by id
        self._search_at = 0.0  # when dead actors are searched again

    def submit(self, name: str, parts: list[list[Any]], command: dict[str, Any]) -> None:
        """Start a gang when its accelerators are free. A second call with its name changes nothing.

        parts: node, resources of its bundle; the gang's command runs in the first.
        """
        alive = {node: (node_id, record["Resources"]) for node, node_id, record in _alive_nodes()}
        for node, resources in parts:
            if node not in alive:
                raise ConnectionError(f"{node} is not alive")
            for kind, asked in resources.items():
                if asked > (there := alive[node][1].get(kind, 0.0)):
                    raise ValueError(f"{node} has {there:g} {kind} in all, and {asked:g} are asked for")
        group = self._group(name)
        if group is None:
            group = placement_group(
                [resources for _, resources in parts], name=name, lifetime="detached",
                bundle_label_selector=[{NODE_ID: alive[node][0]} for node, _ in parts],
            )  # fmt: skip
        variables = {
            "RAY_ADDRESS": ray.get_runtime_context().gcs_address,
            "EUNOMIA_RAY_NAMESPACE": self._namespace,
            "EUNOMIA_RAY_PLACEMENT_GROUP": name,
        }
        gang = ray.remote(RayGang).options(
            name=name, namespace=self._namespace, lifetime="detached", get_if_exists=True, num_cpus=0,
            num_gpus=parts[0][1]["GPU"], max_restarts=0, max_concurrency=4,
            scheduling_strategy=PlacementGroupSchedulingStrategy(group, 0),
        )  # fmt: skip
        try:
            actor = gang.remote(variables=variables, **command)
        except ValueError:
            remove_placement_group(group)
            raise
        self._ids[name] = actor._actor_id.hex()  # it may be dead before the next list

    def gangs(self) -> list[dict[str, str]]:
        """Return name and state of each gang; those that ended since the last list give their accelerators back."""
        live = [one for each in LIVE for one in _actors(actor_state_name=each)]
        states = {one["Name"]: self._state(one) for one in live}
        gone = {name: state.actors(actor_id=id) for name, id in self._ids.items() if name not in states}
        gone |= self._dead_holders(states.keys() | gone.keys())
        for name, actor in gone.items():
            if actor["State"] != "DEAD":  # it went from one of the states to another while these were asked for
                live.append(actor)
                states[name] = self._state(actor)
                continue
            states[name] = _cause(actor["DeathCause"])
            if (group := self._group(name)) is not None:
                remove_placement_group(group)
        self._ids = {one["Name"]: one["ActorID"] for one in live}
        return [{"name": name, "state": found} for name, found in states.items()]

    def _dead_holders(self, known: Set[str]) -> dict[str, dict[str, Any]]:
        """Return by name the dead actors whose placement groups hold something still, but for those that are known.

        They ended while no agent ran, or their group was created after their end. What nodes hold says which groups
        to look at: the table of all groups grows with every start.
        """
        rooms = state.available_resources_per_node().values()
        held = {found[1] for room in rooms for key in room if (found := HELD.fullmatch(key))}
        self._names = {id: self._names.get(id) or _name_of(id) for id in held}
        unknown = {name for name in self._names.values() if name} - known
        if not unknown or time.monotonic() < self._search_at:
            return {}
        self._search_at = time.monotonic() + SEARCH_S
        return {one["Name"]: one for one in _actors(actor_state_name="DEAD") if one["Name"] in unknown}

    def _state(self, actor: dict[str, Any]) -> str:
        """Return the state of an actor; STARTING for one that has its accelerators and no process yet."""
        found = str(actor["State"])
        if found in LIVE[:2] and (group := self._group(actor["Name"])) is not None:
            return "STARTING" if placement_group_table(group)["state"] == "CREATED" else found
        return found

    def ended(self, name: str) -> str:
        """Return how a gang ended; "" if Ray does not know."""
        dead = [one for one in _actors(actor_state_name="DEAD") if one["Name"] == name]
        return _cause(dead[-1]["DeathCause"]) if dead else ""

    def signal(self, name: str, number: int) -> None:
        """Signal the supervisor of a gang, if it is there."""
        try:
            actor = ray.get_actor(name, namespace=self._namespace)
            ray.get(actor.signal.remote(number), timeout=CALL_S)
        except (ValueError, ray.exceptions.RayActorError):  # there is none, or it ends
            pass

    def cancel(self, name: str, only_waiting: bool) -> None:
        """End a gang; one that runs is killed, unless only one that waits is meant."""
        alive = {one["Name"] for one in _actors(actor_state_name="ALIVE")}
        group = self._group(name)
        if group is not None and not (only_waiting and name in alive):
            remove_placement_group(group)

    def nodes(self) -> list[dict[str, Any]]:
        """Return all nodes that are alive, and the dead ones whose names none of these has."""
        free = state.available_resources_per_node()
        found: dict[str, dict[str, Any]] = {}
        for name, node_id, node in sorted(_alive_nodes(), key=lambda each: each[0]):
            total, (key, space) = node["Resources"], self._drained(name)
            found[name] = {
                "name": name,
                "labels": node["Labels"],
                "resources": total,
                "used": total.get("GPU", 0.0) - free.get(node_id, total).get("GPU", 0.0),
                "away": (internal_kv._internal_kv_get(key, namespace=space) or b"").decode(),
            }
        for node in ray.nodes():
            if not node["Alive"] and node["NodeName"] not in found:
                name, labels = node["NodeName"], node["Labels"]
                away = f"Ray lost it: {node.get('DeathReasonMessage') or 'it is not alive'}"
                found[name] = {"name": name, "labels": labels, "resources": {}, "used": 0.0, "away": away}
        return list(found.values())

    def set_node(self, name: str, reason: str) -> None:
        """Write down that a node is out of service, or no more: Ray itself takes no node back that it drained."""
        key, space = self._drained(name)
        if reason:
            internal_kv._internal_kv_put(key, reason.encode(), namespace=space)
        else:
            internal_kv._internal_kv_del(key, namespace=space)

    def _drained(self, name: str) -> tuple[bytes, bytes]:
        return f"drained:{name}".encode(), f"eunomia:{self._namespace}".encode()

    def _group(self, name: str) -> PlacementGroup | None:
        try:
            return ray.util.get_placement_group(name)
        except ValueError:  # there is none
            return None


def _name_of(group: str) -> str:
    """Return the name of a placement group; "" if it has none or is gone."""
    return str(placement_group_table(PlacementGroup(PlacementGroupID(bytes.fromhex(group)))).get("name", ""))


def _actors(**which: str) -> list[dict[str, Any]]:
    """Return the actors of gangs: other users' may have any name."""
    return [one for one in state.actors(**which).values() if one["ActorClassName"] == RayGang.__name__]


def _alive_nodes() -> list[tuple[str, str, dict[str, Any]]]:
    """Return name, id and facts of each node; of several with one name all but the first have their id in the name."""
    found: dict[str, tuple[str, str, dict[str, Any]]] = {}
    for node in sorted((each for each in ray.nodes() if each["Alive"]), key=lambda each: each["NodeID"]):
        name = node["NodeName"]
        if name in found:
            name = f"{name}-{node['NodeID'][:8]}"
        found[name] = name, node["NodeID"], node
    return list(found.values())


def _cause(cause: Any) -> str:
    """Return a word for why an actor died: DEAD if it ended by itself or was removed.

    A detached actor needs the process that made it only until Ray has all that it starts it with: where that process
    died before, it never ran.
    """
    if cause.HasField("actor_unschedulable_context"):
        return "UNSCHEDULABLE"
    if cause.HasField("actor_died_error_context"):
        context = cause.actor_died_error_context
        return {"NODE_DIED": "NODE_DIED", "OWNER_DIED": "NOT_STARTED"}.get(context.Reason.Name(context.reason), "DEAD")
    return "DEAD"


def answer(agent: Agent, question: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to one question."""
    asked: dict[str, Callable[..., Any]] = {
        "submit": agent.submit, "gangs": agent.gangs, "ended": agent.ended, "signal": agent.signal,
        "cancel": agent.cancel, "nodes": agent.nodes, "set_node": agent.set_node,
    }  # fmt: skip
    do = asked[question.pop("do")]
    number = question.pop("id")
    try:
        return {"id": number, "value": do(**question)}
    except ValueError as error:
        return {"id": number, "refused": str(error)}
    except (ray.exceptions.RayError, ConnectionError, TimeoutError, RuntimeError) as error:
        return {"id": number, "away": str(error) or type(error).__name__}


def main() -> None:
    """Answer until the process that started this one ends."""
    address, namespace = sys.argv[1:]
    questions, send = connect()  # what Ray prints is no answer
    try:
        ray.init(address=address, namespace=namespace, log_to_driver=False, configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        send(json.dumps({"id": 0, "away": str(error)}).encode())
        return
    send(json.dumps({"id": 0, "value": None}).encode())
    agent = Agent(namespace)
    for question in questions:
        send(json.dumps(answer(agent, json.loads(question))).encode())


if __name__ == "__main__":
    main()
