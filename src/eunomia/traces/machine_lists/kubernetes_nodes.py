"""Machines of Kubernetes (`kubectl get nodes -o json`), and of Ray (`ray list nodes --detail --format json`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eunomia.inputs.problems import refused
from eunomia.traces.engine_objects import Json, Objects, at, listed, load_objects, mapping, texts
from eunomia.traces.machine_lists.machines import MachineList
from eunomia.traces.machine_lists.named_nodes import NamedNode, distinct, machine_list
from eunomia.traces.pod_resources import accelerators, count, device_type, split_names
from eunomia.traces.ray_objects import TYPE_RESOURCE

COMMAND = "kubectl get nodes -o json"


def detects(line: Sequence[str]) -> bool:
    """Return False: the first line of kubectl's JSON does not say what it lists."""
    return False


def read(path: Path, *, resource: str = "") -> MachineList:
    """Return the machines with accelerators. Raises InvalidInput for a file that lists no machines.

    `resource` names further resources that are accelerators, such as google.com/tpu, separated by commas.
    """
    return machine_list(path, read_named([path], resources=split_names(str(resource))))


def read_named(paths: Sequence[Path], *, resources: Sequence[str] = ()) -> tuple[NamedNode, ...]:
    """Return all machines in these files, with their names. Raises InvalidInput as `read` does."""
    found = nodes_of(load_objects(paths, COMMAND), resources=resources)
    if not found:
        raise refused(str(paths[0]), "kind", None, "there is no Node here", f"write the file with: {COMMAND}")
    return found


def nodes_of(source: Objects, *, resources: Sequence[str] = ()) -> tuple[NamedNode, ...]:
    """Return the machines among objects that are loaded; none if there is none."""
    items = source.items
    nodes = [node for item in items if texts(item, "kind") == "Node" for node in _of_kubernetes(item, resources)]
    nodes += [_of_ray(item) for item in items if isinstance(item.get("resources_total"), dict)]
    return distinct(nodes)


def _of_kubernetes(item: Json, resources: Sequence[str]) -> list[NamedNode]:
    """Return a node as one machine, or as one for each type of its devices, slices apart from whole ones."""
    name, labels = texts(item, "metadata", "name"), mapping(item, "metadata", "labels")
    held = {**mapping(item, "status", "allocatable"), **mapping(item, "status", "capacity")}
    conditions = listed(item, "status", "conditions")
    ready = all(texts(one, "status") == "True" for one in conditions if texts(one, "type") == "Ready")
    cordoned = bool(at(item, "spec", "unschedulable", default=False))
    note = "" if ready and not cordoned else "not ready or cordoned"
    devices = accelerators({name: size for name, value in held.items() if (size := count(value))}, resources)
    by_type: dict[str, int] = {}
    for resource, size in sorted(devices.items(), key=lambda device: -device[1]):
        kind = device_type(labels, resource)
        by_type[kind] = by_type.get(kind, 0) + size
    return [
        NamedNode(name=f"{name}/{kind}" if k else name, type=kind, accelerators=size, note=note)
        for k, (kind, size) in enumerate(by_type.items() or {device_type(labels, ""): 0}.items())
    ]


def _of_ray(item: Json) -> NamedNode:
    held = item["resources_total"]
    kinds = [name.removeprefix(TYPE_RESOURCE) for name in held if name.startswith(TYPE_RESOURCE)]
    return NamedNode(
        name=texts(item, "node_id"),
        type=kinds[0] if kinds else "",
        accelerators=int(held.get("GPU", 0)) if isinstance(held.get("GPU", 0), int | float) else 0,
        note="" if texts(item, "state") in ("ALIVE", "") else texts(item, "state"),
    )
