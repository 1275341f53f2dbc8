"""Kubernetes as an engine: our Jobs' pods wait for our binding, which comes when every pod of a gang has its room.

The command runs once, on the first node; pods on further nodes hold their accelerators. A gang is called back through
its lease file, which its supervisor reads: Kubernetes signals a pod only to delete it. A pod that is gone although its
accelerators were given is lost; the pod that its Job makes in its place is never bound.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
from lightkube import Client
from lightkube.core.exceptions import ApiError
from lightkube.operators import not_equal, not_in
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Node, Pod
from lightkube.types import CascadeType, PatchType

from eunomia.backends.engines.engine import (
    OVER,
    QUEUED,
    RUNS,
    EngineAway,
    EngineEnd,
    EngineGang,
    EngineNode,
    EngineRefused,
    GangRequest,
    HeldSubmission,
)
from eunomia.backends.kubernetes.answers import answers
from eunomia.backends.kubernetes.events import JobEvents
from eunomia.backends.kubernetes.leadership import Leadership
from eunomia.backends.kubernetes.objects import (
    CLUSTER,
    NODE,
    OVER_PHASES,
    POD,
    REASON,
    GangObjects,
    PodSettings,
    bound_to,
    counted,
    gang_name,
    holds,
    jobs_of,
    mark_of,
    node_of,
    place_of,
)

PHASES = {"waiting": QUEUED, "bound": QUEUED, "running": RUNS}
MISSING, EXISTS = 404, 409
ON_NODES = {"spec.nodeName": not_equal(""), "status.phase": not_in(sorted(OVER_PHASES))}
_log = logging.getLogger(__name__)


class Kubernetes:
    """The namespace of a cluster that a client speaks to."""

    name = "Kubernetes"
    node_lost = frozenset({"LOST"})
    cluster = ""
    adopts = False

    def __init__(self, client: Client, settings: PodSettings) -> None:
        self._client, self._settings = client, settings
        self._leadership, self._events = Leadership(client), JobEvents(client)

    # ---- gangs ---------------------------------------------------------------------------------------------------

    def submit(self, request: GangRequest) -> str:
        """Create the Jobs of a gang; those that exist with its mark are left as they are."""
        name = gang_name(request.mark)
        with answers():
            self._leadership.keep(self.cluster)
            for document in jobs_of(request, self._settings):
                try:
                    self._client.create(Job.from_dict(document))
                except ApiError as error:
                    if error.status.reason != "AlreadyExists":  # a quota that changed meanwhile is a conflict too
                        raise
                    there = self._client.get(Job, document["metadata"]["name"])
                    if mark_of(there) != request.mark:
                        raise EngineRefused(f"another Job has the name {there.metadata.name}") from error
        return name

    def gangs(self) -> list[EngineGang]:
        """Bind the pods of gangs that have room, give back what ended gangs held, and return all gangs of ours."""
        with answers():
            self._leadership.keep(self.cluster)
            found = self._listed()
            self._bind(found)
            for name, gang in found.items():
                if PHASES.get(gang.state, OVER) == OVER:
                    self._remove(name, [part for part in gang.jobs if part])
                    self._events.forget(gang.uid)
            return [
                EngineGang(name, gang.mark, PHASES.get(gang.state, OVER), gang.state.upper())
                for name, gang in found.items()
            ]

    def _listed(self) -> dict[str, GangObjects]:
        """Return our gangs by name; of several pods of a Job the one that is bound."""
        found: dict[str, GangObjects] = {}
        for job in self._client.list(Job, labels={CLUSTER: None}):
            if (place := place_of(job)) is not None:
                mark, name, part = place
                found.setdefault(name, GangObjects(mark)).jobs[part] = job
        for pod in self._client.list(Pod, labels={CLUSTER: None}):
            if (place := place_of(pod)) is None:
                continue
            mark, name, part = place
            gang = found.setdefault(name, GangObjects(mark))
            job = gang.jobs.get(part)
            if part not in gang.pods or (job is not None and bound_to(job) == pod.metadata.uid):
                gang.pods[part] = pod
        return found

    def _bind(self, found: dict[str, GangObjects]) -> None:
        """Bind the pods of each gang that is complete and has room on all of its nodes, in order of creation."""
        waiting = [gang for gang in found.values() if gang.jobs and gang.state == "waiting" and _is_complete(gang)]
        if not waiting:
            return
        room = self._room()
        waiting.sort(key=lambda gang: (str(gang.jobs[0].metadata.creationTimestamp), str(gang.mark)))
        for gang in waiting:
            asked: Counter[str] = Counter()
            for part, pod in gang.pods.items():
                if not pod.spec.nodeName:
                    asked[gang.jobs[part].metadata.annotations[NODE]] += holds(pod, self._settings.resource)
            is_begun = any(pod.spec.nodeName for pod in gang.pods.values())  # by a service that was killed meanwhile
            if (lacking := room.lacking(asked)) and not is_begun:
                self._events.say(gang.jobs[0], "Waiting", lacking)
                continue
            room.used += asked
            for part in sorted(gang.pods, reverse=True):  # the first, whose command runs, when the others hold
                self._bind_pod(gang.jobs[part], gang.pods[part])

    def _room(self) -> Room:
        used = Counter(counted(self._on_nodes(), self._settings.resource))
        nodes = {node.metadata.name: node_of(node, 0, self._settings) for node in self._client.list(Node)}
        return Room(nodes, used)

    def _on_nodes(self) -> list[Any]:
        """Return the pods of all namespaces that hold something of a node; thousands may have ended."""
        return list(self._client.list(Pod, namespace="*", fields=ON_NODES))

    def _bind_pod(self, job: Any, pod: Any) -> None:
        """Note on the Job which pod it is, and bind that."""
        notes = {"metadata": {"annotations": {POD: pod.metadata.uid}}}
        self._client.patch(Job, job.metadata.name, notes, patch_type=PatchType.MERGE)
        self._bind_to(pod, job.metadata.annotations[NODE])

    def _bind_to(self, pod: Any, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"metadata": {"name": pod.metadata.name}, "target": target}
        try:
            with suppress(msgspec.ValidationError):  # the server answers with a Status, the client expects the binding
                self._client.create(Pod.Binding.from_dict(body), pod.metadata.name)
        except ApiError as error:
            if error.status.code not in (EXISTS, MISSING):  # it is bound, or gone: the next list says which
                raise

    def submissions(self, cluster: str, new_key: Callable[[], str]) -> list[HeldSubmission]:
        """Return no jobs of users: they are left to Kubernetes' own scheduler."""
        return []

    def call_back(self, request: GangRequest, number: str) -> None:
        """Do nothing: the lease file of the gang says it, and a pod cannot be signalled without being deleted."""

    def cancel(self, request: GangRequest, number: str, *, only_waiting: bool = False) -> None:
        """Delete the Jobs of a gang, and its pods with them; not one that runs if `only_waiting`."""
        with answers():
            gang = self._listed().get(number)
            if gang is None or (only_waiting and gang.state in ("bound", "running")):
                return
            self._remove(number, list(gang.jobs))

    def _remove(self, name: str, parts: Sequence[int]) -> None:
        for part in parts:
            try:
                self._client.delete(Job, f"{name}-{part}", cascade=CascadeType.BACKGROUND)
            except ApiError as error:
                if error.status.code != MISSING:
                    raise

    def ended(self, request: GangRequest, number: str) -> EngineEnd | None:
        """Return how a gang ended; one that the server knows no more was deleted."""
        with answers():
            gang = self._listed().get(gang_name(request.mark))
        if gang is None:
            return EngineEnd("DELETED") if number else None
        return EngineEnd(gang.state.upper()) if PHASES.get(gang.state, OVER) == OVER else None

    # ---- nodes ---------------------------------------------------------------------------------------------------

    def nodes(self) -> list[EngineNode]:
        """Return the nodes with accelerators, by name."""
        with answers():
            used = counted(self._on_nodes(), self._settings.resource)
            found = [node_of(node, used.get(node.metadata.name, 0), self._settings) for node in self._client.list(Node)]
        return sorted((node for node in found if node.accelerators), key=lambda node: node.name)

    def set_node(self, name: str, reason: str) -> None:
        """Cordon a node, with the reason as an annotation, or make it schedulable again."""
        change = {
            "metadata": {"annotations": {REASON: reason or None}},
            "spec": {"unschedulable": bool(reason) or None},
        }
        with answers():
            self._client.patch(Node, name, change, patch_type=PatchType.MERGE)

    def explain(self, number: str, why: str) -> None:
        """Do nothing: a job that waits has no object here."""

    def close(self) -> None:
        """Let another service act, and close the connections."""
        self.release()
        self._client.close()

    def release(self) -> None:
        """Let another service act at once; without an answer it waits until the Lease has ended."""
        try:
            with answers():
                self._leadership.release()
        except (EngineAway, EngineRefused) as error:
            _log.warning("the Lease was not given back: %s", error)


@dataclass(slots=True)
class Room:
    """What the nodes have free."""

    nodes: dict[str, EngineNode]
    used: Counter[str]  # accelerators, by node

    def lacking(self, asked: Mapping[str, int]) -> str:
        """Return why these accelerators cannot be had now, by node; "" if they can."""
        found = []
        for name, count in asked.items():
            node = self.nodes.get(name)
            if node is None or node.away:
                found.append(f"node {name} is {node.away if node else 'not there'}")
            elif (free := sum(node.accelerators.values()) - self.used[name]) < count:
                found.append(f"node {name} has {max(free, 0)} of {count} accelerators free")
        return "; ".join(found)

    def take(self, name: str, count: int) -> bool:
        """Take accelerators of a node, if it has them."""
        if self.lacking({name: count}):
            return False
        self.used[name] += count
        return True


def _is_complete(gang: GangObjects) -> bool:
    """Whether each Job of a gang has its pod."""
    return gang.jobs.keys() == gang.pods.keys() and all(
        bound_to(job) in ("", gang.pods[part].metadata.uid) for part, job in gang.jobs.items()
    )
