"""Whether a job can be accepted on this cluster, and how long it is believed to be."""

from __future__ import annotations

import math
import re
from typing import Any, TypeAlias

import numpy as np

from eunomia.backends.processes.machine_limits import machine_room
from eunomia.inputs.problems import InvalidInput
from eunomia.model.arrays import Floats
from eunomia.model.job_kind import JobKind
from eunomia.model.tenant_names import EMPTY_PART, WHOLE_PATH, is_path
from eunomia.model.tolerance import RELATIVE
from eunomia.service.controller import Controller
from eunomia.service.dependencies import PATTERN, SINGLETON, Dependency, dependencies_of
from eunomia.service.job_document import FieldProblem, JobDocument
from eunomia.service.job_row import ended_as
from eunomia.service.messages import Principal
from eunomia.service.run_time_estimate import estimate_run_time

Room: TypeAlias = tuple[list[int], Floats]  # sizes of a gang that fit, steps/s on each type


def check_job(
    controller: Controller, job: JobDocument, tenant: str, who: Principal, rooms: dict[tuple[Any, ...], Room]
) -> tuple[list[FieldProblem], float, bool, tuple[int, ...]]:
    """Return what is wrong with a job on this cluster, its steps, whether they are estimated, its other sizes.

    `rooms` has what was found for earlier jobs of the same submission, which are often alike.
    """
    found: list[FieldProblem] = []
    setup = controller.site.setup
    if tenant != who.tenant and not who.is_operator:
        found.append(FieldProblem("tenant", tenant, "is not yours", f"leave it out for {who.tenant!r}"))
    elif not is_path(tenant):
        found.append(FieldProblem("tenant", tenant, EMPTY_PART, WHOLE_PATH))
    if job.debug and not controller.site.service.debug_lane:
        rule = "this site has no debug lane"
        found.append(FieldProblem("debug", "true", rule, "leave it out, or set debug_lane in [service]"))
    for word in job.notify:
        if (wrong := controller.site.notify.wrong_word(word, who.user)) is not None:
            found.append(FieldProblem("notify", word, *wrong))
    found += beyond_limits(controller, job, who.user, tenant)
    found += _beyond_any_node(controller, job)
    for name in job.types:
        if name not in setup.topology.types:
            known = ", ".join(setup.topology.types)
            found.append(FieldProblem("types", name, "no such type in this cluster", f"it has {known}"))
    found += _wrong_dependencies(controller, job, who)
    if found:
        return found, 1.0, False, ()
    wanted = (job.job_type, job.types, job.accelerator_memory_gib, job.accelerators, *job.other_sizes())
    try:
        if wanted not in rooms:
            rooms[wanted] = _room(controller, job)
        sizes, speed = rooms[wanted]
    except (InvalidInput, LookupError) as error:
        text = str(error).splitlines()[0][:200]
        found.append(FieldProblem("job_type", job.job_type, f"its throughput is not known ({text})", "leave it out"))
        return found, 1.0, False, ()
    if job.accelerators not in sizes:
        capacity = controller.capacity()
        most = int(max((capacity[j] for j in np.flatnonzero(speed > 0)), default=0))
        rule = f"no type that it can run on has so many accelerators (at most {most})"
        found.append(FieldProblem("accelerators", str(job.accelerators), rule, "ask for fewer, or for other types"))
        return found, 1.0, False, ()
    total, estimated = believed_steps(controller, job, tenant, speed)
    return found, total, estimated, tuple(size for size in sizes if size != job.accelerators)


def beyond_limits(controller: Controller, job: JobDocument, user: str, tenant: str) -> list[FieldProblem]:
    """Return what a job asks for above the limits of its user, of which no wait would help."""
    limits, found = controller.limits.of_user(user), list[FieldProblem]()
    size, most = max((job.accelerators, *job.other_sizes())), limits.accelerators_per_job
    if most is not None and size > most:
        rule = f"a job of user {user} has at most {most:,} accelerators here"
        found.append(FieldProblem("accelerators", str(size), rule, "ask for fewer, or ask the operator"))
    if limits.longest_s is not None and (job.max_run_s or 0.0) > limits.longest_s:
        rule = f"a job of user {user} runs for at most {limits.longest_s:g} s here"
        found.append(FieldProblem("max_run_s", f"{job.max_run_s:g}", rule, "give less, or leave it out"))
    for name, one in (("user", limits), ("tenant", controller.limits.section.of_tenant(tenant))):
        if one.accelerators is not None and job.accelerators > one.accelerators:
            rule = f"its {name} has at most {one.accelerators:,} accelerators at once, so it would never start"
            found.append(FieldProblem("accelerators", str(job.accelerators), rule, "ask for fewer"))
    return found


def _wrong_dependencies(controller: Controller, job: JobDocument, who: Principal) -> list[FieldProblem]:
    """Return the jobs it is to follow that are not there, or that have already ended otherwise."""
    found = list[FieldProblem]()
    for word, (kind, job_id) in zip(job.after, map(_dependency, job.after), strict=True):
        if kind == SINGLETON:
            continue
        other = controller.row(job_id) if re.fullmatch(PATTERN, word) else None
        if other is None or not who.may_see(other.tenant):
            rule, fix = "no such job", "name a job that was submitted before, as ID, afterany:ID or afternotok:ID"
            found.append(FieldProblem("after", word, rule, fix))
        elif Dependency(kind, job_id).is_met(other.state) is False:
            found.append(FieldProblem("after", word, f"it {ended_as(other.state)}", "leave it out"))
    return found


def _dependency(word: str) -> Dependency:
    """Return what a word of `after` says."""
    return Dependency(SINGLETON, "") if word == SINGLETON else dependencies_of((word,))[0]


def _beyond_any_node(controller: Controller, job: JobDocument) -> list[FieldProblem]:
    """Return what a gang asks of CPUs and memory that as many nodes as it has accelerators do not have together."""
    setup, found = controller.site.setup, list[FieldProblem]()
    topology, is_here = setup.topology, setup.scenario.world.backend == "local"
    mine = np.array([not job.types or name in job.types for name in topology.types])[topology.node_type]
    for column, key, asked, unit in ((0, "cpus", job.cpus, "CPUs"), (1, "memory_gib", job.memory_gib, "GiB")):
        if not asked or topology.cpus_and_memory is None:
            continue
        rooms = topology.cpus_and_memory[mine, column]
        if (rooms == 0).any():  # not declared
            rooms = np.array([machine_room()[column]] if is_here else [math.inf])
        count = min(max(job.accelerators, *job.other_sizes()) if job.other_sizes() else job.accelerators, len(rooms))
        most = float(np.sort(rooms)[-count:].sum()) if count else math.inf
        if asked > most * (1 + RELATIVE):
            where = "no node has" if count == 1 else f"{count} nodes together do not have"
            rule = f"{where} so much: at most {most:.4g} {unit}"
            found.append(FieldProblem(key, f"{asked:g}", rule, "ask for less; it counts for the whole gang"))
    return found


def _room(controller: Controller, job: JobDocument) -> Room:
    memory = controller.believed_memory(job.job_type, job.accelerator_memory_gib)
    kind = str(JobKind(job.job_type, tuple(job.types), memory))
    capacity, rates = controller.capacity(), controller.believed_throughput
    sizes = [
        size for size in (job.accelerators, *job.other_sizes()) if ((rates(kind, size) > 0) & (capacity >= size)).any()
    ]
    return sizes, rates(kind, job.accelerators)


def believed_steps(controller: Controller, job: JobDocument, tenant: str, speed: Any) -> tuple[float, bool]:
    """Return the steps of a job, declared or from run times of like jobs, and whether they are estimated."""
    if job.total_steps is not None:
        return job.total_steps, False
    types = controller.site.setup.topology.types
    wanted = controller.site.setup.scenario.throughputs.reference_type
    rate = float(speed[types.index(wanted)]) if wanted in types else 0.0
    rate = rate if rate > 0 else float(speed.max())
    if job.duration_s is not None:
        return job.duration_s * rate, False
    return max(estimate_run_time(controller.like_run_times(tenant, job.job_type))[0] * rate, 1e-6), True
