"""Jobs, placement groups, tasks and actors of Ray as far as accounting goes: what they reserve, and when."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from eunomia.traces.engine_objects import Json, at, listed, mapping, moment, texts

STATUS_BY_WORD = {"SUCCEEDED": "finished", "FAILED": "failed", "STOPPED": "cancelled"}
ENDED = (*STATUS_BY_WORD, "FINISHED", "REMOVED", "DEAD")
TYPE_RESOURCE = "accelerator_type:"


def job_name(item: Json) -> str:
    """Return the id of a job: the one under which it was submitted, else Ray's own."""
    return texts(item, "submission_id") or texts(item, "job_id")


def job_times(item: Json) -> tuple[float, float]:
    """Return when a job started and ended, in seconds since 1970; nan = not yet, or not known."""
    return moment(item.get("start_time")), moment(item.get("end_time"))


def status_of(item: Json) -> str:
    """Return how a job ended; "" while it runs."""
    return STATUS_BY_WORD.get(texts(item, "status"), "")


def held_by_entry_point(item: Json) -> float:
    """Return the accelerators that a job reserves for its entry point."""
    said = item.get("entrypoint_num_gpus")
    return _number(at(item, "metadata", "entrypoint_num_gpus") if said is None else said)


def needs_of_actor(item: Json) -> float:
    """Return the accelerators that an actor holds outside of placement groups."""
    return 0.0 if texts(item, "placement_group_id") else _number(at(item, "required_resources", "GPU"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementGroup:
    """What counts of a placement group. Times are seconds since 1970, nan = not known."""

    name: str
    owner: str  # id of the job that created it
    width: float
    type: str
    nodes: tuple[str, ...]
    asked: float
    created: float
    is_pending: bool


def read_group(item: Json) -> PlacementGroup:
    """Return what counts of a placement group."""
    width, kinds, nodes = 0.0, list[str](), list[str]()
    for bundle in listed(item, "bundles"):
        resources = mapping(bundle, "unit_resources")
        held = _number(resources.get("GPU"))
        width += held
        kinds += _types(resources)
        if held and texts(bundle, "node_id"):
            nodes.append(texts(bundle, "node_id"))
    asked = _number(at(item, "stats", "creation_request_received_ns")) / 1e9
    latency_s = _number(at(item, "stats", "end_to_end_creation_latency_us")) / 1e6
    return PlacementGroup(
        name=texts(item, "placement_group_id"),
        owner=texts(item, "creator_job_id"),
        width=width,
        type=kinds[0] if kinds else "",
        nodes=tuple(dict.fromkeys(nodes)),
        asked=asked or nan,
        created=asked + latency_s if asked else nan,
        is_pending=texts(item, "state") == "PENDING",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RayTask:
    """What counts of a task. Times are seconds since 1970, nan = not known."""

    owner: str  # id of its job
    actor: str
    creates_actor: bool
    width: float  # accelerators that it holds outside of placement groups
    type: str
    node: str
    created: float
    started: float
    ended: float  # nan for one that creates an actor, too: the actor stays


def read_task(item: Json) -> RayTask:
    """Return what counts of a task: one that calls a method of an actor holds nothing itself."""
    kind = texts(item, "type")
    inside = bool(texts(item, "placement_group_id")) or kind in ("ACTOR_TASK", "DRIVER_TASK")
    resources = mapping(item, "required_resources")
    kinds = _types(resources)
    return RayTask(
        owner=texts(item, "job_id"),
        actor=texts(item, "actor_id"),
        creates_actor=kind == "ACTOR_CREATION_TASK",
        width=0.0 if inside else _number(resources.get("GPU")),
        type=kinds[0] if kinds else "",
        node=texts(item, "node_id"),
        created=moment(at(item, "creation_time_ms")),
        started=moment(at(item, "start_time_ms")),
        ended=nan if kind == "ACTOR_CREATION_TASK" else moment(at(item, "end_time_ms")),
    )


def _types(resources: Json) -> list[str]:
    return [str(name).removeprefix(TYPE_RESOURCE) for name in resources if str(name).startswith(TYPE_RESOURCE)]


def _number(value: object) -> float:
    """Return a number, which may be spelled as text; 0 for anything else."""
    if value is None:
        return 0.0
    try:
        number = float(str(value))
    except ValueError:
        return 0.0
    return number if 0 < number < 1e30 else 0.0
