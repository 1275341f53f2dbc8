"""Ray as an engine: a gang is a placement group pinned to its nodes, and a detached actor; both bear its mark as name.

The command runs once, on the first node, with the accelerators that Ray gives it in CUDA_VISIBLE_DEVICES. A gang over
several nodes starts its other processes through Ray, in the placement group EUNOMIA_RAY_PLACEMENT_GROUP.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Mapping
from typing import Any

from eunomia.backends.engines.engine import (
    OVER,
    QUEUED,
    RUNS,
    EngineEnd,
    EngineGang,
    EngineNode,
    GangRequest,
    HeldSubmission,
    Mark,
)
from eunomia.backends.ray.client import Ask

PHASES = {
    "ALIVE": RUNS,
    "STARTING": RUNS,
    "RESTARTING": QUEUED,
    "PENDING_CREATION": QUEUED,
    "DEPENDENCIES_UNREADY": QUEUED,
}
TYPE_LABELS = ("ray.io/accelerator-type", "gpu-type")
TYPE_RESOURCE = "accelerator_type:"  # resource that Ray gives nodes with accelerators that it knows
GIB = 2.0**30


class Ray:
    """The Ray cluster that an agent speaks to."""

    name = "Ray"
    node_lost = frozenset({"NODE_DIED", "UNSCHEDULABLE", "NOT_STARTED"})
    cluster = ""
    adopts = False

    def __init__(self, ask: Ask, *, type_label: str = "", close: Callable[[], None] = lambda: None) -> None:
        self._ask, self._close = ask, close
        self._labels = (type_label,) if type_label else TYPE_LABELS

    def submit(self, request: GangRequest) -> str:
        """Create the placement group and the actor; the actor starts when the nodes have the accelerators free."""
        total = sum(count for _, _, count in request.parts)
        parts = []
        for node, _, count in request.parts:
            share = count / total
            resources: dict[str, float] = {"GPU": count}
            if request.cpus > 0:
                resources["CPU"] = max(math.ceil(request.cpus * share), 1)
            if request.memory_gib > 0:
                resources["memory"] = math.ceil(request.memory_gib * share * GIB)
            parts.append((node, resources))
        command = {"argv": request.argv, "stdin": str(request.stdin), "log": str(request.log)}
        self._ask("submit", name=str(request.mark), parts=parts, command=command)
        return str(request.mark)

    def gangs(self) -> list[EngineGang]:
        """Return all named actors that are alive or wait, and those that ended since the last list."""
        found = self._ask("gangs")
        return [
            EngineGang(one["name"], Mark.parse(one["name"]), PHASES.get(one["state"], OVER), one["state"])
            for one in found
        ]

    def submissions(self, cluster: str, new_key: Callable[[], str]) -> list[HeldSubmission]:
        """Return no jobs of users: Ray has no queue of them."""
        return []

    def call_back(self, request: GangRequest, number: str) -> None:
        """Let the actor send SIGTERM to the supervisor."""
        self._ask("signal", name=number, number=int(signal.SIGTERM))

    def cancel(self, request: GangRequest, number: str, *, only_waiting: bool = False) -> None:
        """Remove the placement group, which kills the actor."""
        self._ask("cancel", name=number, only_waiting=only_waiting)

    def ended(self, request: GangRequest, number: str) -> EngineEnd | None:
        """Return how the actor died, as long as Ray remembers it."""
        state = self._ask("ended", name=str(request.mark))
        return EngineEnd(state) if state else None

    def nodes(self) -> list[EngineNode]:
        """Return Ray's nodes with accelerators, by name, and those that it lost."""
        nodes = [self._node_of(record) for record in self._ask("nodes")]
        return [node for node in nodes if node.accelerators or node.away]

    def set_node(self, name: str, reason: str) -> None:
        """Note in Ray's store that a node is out of service, or back."""
        self._ask("set_node", name=name, reason=f"drained, {reason}" if reason else "")

    def explain(self, number: str, why: str) -> None:
        """Do nothing: Ray has no queue of users' jobs."""

    def close(self) -> None:
        """End the agent."""
        self._close()

    def _node_of(self, record: Mapping[str, Any]) -> EngineNode:
        resources, kind = record["resources"], self._type_of(record)
        return EngineNode(
            name=record["name"],
            accelerators={kind: int(resources["GPU"])} if resources.get("GPU") else {},
            used={kind: math.ceil(record["used"])} if record["used"] else {},
            away=record["away"],
            cpus=float(resources.get("CPU", 0.0)),
            memory_gib=float(resources.get("memory", 0.0)) / GIB,
        )

    def _type_of(self, record: Mapping[str, Any]) -> str:
        """Return the accelerator type of a node in lower case: by its label, by what Ray detected, else `gpu`."""
        labels = record["labels"] or {}
        named = [labels[label] for label in self._labels if labels.get(label)]
        named += [name[len(TYPE_RESOURCE) :] for name in record["resources"] if name.startswith(TYPE_RESOURCE)]
        return str(named[0]).lower() if named else "gpu"
