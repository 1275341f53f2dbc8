"""Turns the history of a cluster manager into a scenario: jobs, machines and speeds in the formats of scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from eunomia.history.cluster_guess import PER_NODE, guess_nodes
from eunomia.history.imported_files import ANY, SPEEDS, Imported, only
from eunomia.history.turning_point import ASSUMED, CAN_SAVE, described_costs
from eunomia.inputs.problems import refused
from eunomia.model.arrays import Bools, Floats
from eunomia.model.topology import Node
from eunomia.scenario.schema_models import whole_nodes
from eunomia.throughputs.catalogue import accelerators as catalogue_types
from eunomia.throughputs.catalogue import slice_of
from eunomia.throughputs.job_mix import DIGITS as DIGITS_OF_SPEED
from eunomia.throughputs.job_mix import REFERENCE, relative_speeds
from eunomia.traces.accelerator_hours import HOUR_S, AcceleratorHours, HoursBalance, HoursChange
from eunomia.traces.import_findings import History, ImportFinding
from eunomia.traces.machine_lists.named_nodes import UNNAMED, NamedNode, as_nodes, type_name
from eunomia.traces.table import Trace

DIGITS = 6  # of converted durations, in s


def build_import(
    engine: str,
    files: Sequence[str],
    history: History,
    *,
    nodes: Sequence[NamedNode] = (),
    unnamed: str = "",
    keep_types: bool = False,
    mix: str = "mix:default",
    speeds: Mapping[str, float] | None = None,
) -> Imported:
    """Return what to write of a history.

    `nodes` are the machines, guessed from the jobs if empty; `unnamed` is the type of accelerators that no source
    names; with `keep_types` a job that asked for a type runs on no other. `mix` and `speeds` say how fast types are
    relative to a v100. Raises InvalidInput if no job fits the machines.
    """
    read = history
    types, unsaid, assumed = _types_of_jobs(history, nodes, unnamed)
    assumed = [*history.assumed, *assumed]
    changes = _named_changes(history, types)
    cluster, notes = _cluster(history, nodes, types, unsaid)
    assumed += notes
    speed, speed_notes = _speeds({node.type for node in cluster} | set(types), mix, speeds or {})
    assumed += speed_notes
    pinned = [type_name(kind) if kind and keep_types else "" for kind in history.asked_for]
    findings = list(history.findings)
    fits = _fitting(history, types, cluster, pinned, findings)
    changes += [
        HoursChange(what=each.what, hours=each.change) for each in findings[len(read.findings) :] if each.change
    ]
    if not fits.any():
        rule, fix = "no job fits these machines", "name the list of the machines that these jobs ran on"
        raise refused(history.trace.source, None, None, rule, fix)
    if any(history.asked_for) and not keep_types:
        count = sum(map(bool, history.asked_for))
        what = "jobs asked for one accelerator type; they may run on any here (--keep-types holds them to it)"
        findings.append(ImportFinding(kind="assumed", count=count, what=what))
    rows = np.flatnonzero(fits)
    history, types = history.take(rows), tuple(types[m] for m in rows.tolist())
    pinned = [pinned[m] for m in rows.tolist()]
    reference = _reference_type(history, types)
    trace = history.trace
    factor = np.array([speed[kind] for kind in types]) / speed[reference]
    duration_s = np.maximum(np.round(trace.duration_s * factor, DIGITS), 0.001)
    if (factor != 1).any():
        other = ", ".join(sorted(set(types) - {reference}))
        assumed.append(f"durations on {other} are converted to {reference} by the relative speeds in {SPEEDS}")
    assumed += [f"{described_costs(ASSUMED)}, which accounting does not say: change [overheads]", CAN_SAVE]
    job_type = tuple(only(kind) if kind else ANY for kind in pinned)
    written = replace(
        replace(trace, started_s=_starts(history)).submitted_at(trace.submitted_s - trace.submitted_s[0]),
        job_type=job_type,
        duration_s=duration_s,
        ran_on=types,
    )
    hours = _written_hours(written, speed, reference)
    return Imported(
        engine=engine,
        files=tuple(files),
        trace=written,
        ended_s=float(np.nanmax(np.where(np.isnan(history.ended_s), _cut_at(history), history.ended_s)))
        - trace.submitted_s[0],
        hours=hours,
        balance=None
        if read.hours is None
        else HoursBalance(source=read.hours.renamed(_type_by_name(read)), written=hours, changes=tuple(changes)),
        nodes=cluster,
        speeds=speed,
        reference_type=reference,
        stated=tuple(map(type_name, speeds or {})),
        pinned=tuple(sorted({kind for kind in pinned if kind})),
        findings=tuple(findings),
        assumed=tuple(assumed),
        unread=trace.unread,
        columns=read.columns,
    )


def _cut_at(history: History) -> Floats:
    """Return (job,) the end of a job's time on accelerators where no end is logged; counted like submissions."""
    start_s = np.where(np.isnan(history.started_s), history.trace.submitted_s, history.started_s)
    return np.asarray(start_s + history.trace.duration_s)


def _written_hours(trace: Trace, speed: Mapping[str, float], reference: str) -> AcceleratorHours:
    """Return the accelerator-hours of what is written: durations on the reference type, on the types that jobs had."""
    slower = np.array([speed[reference] / speed[kind] for kind in trace.ran_on])
    return AcceleratorHours.summed(
        trace.ran_on, trace.tenant, (trace.duration_s * slower * trace.scale_factor / HOUR_S).tolist()
    )


def _type_by_name(history: History) -> dict[str, str]:
    """Return the name of each type that the source names."""
    owners = [] if history.hours is None else history.hours.by_owner
    changed = [owner for finding in history.findings for owner in finding.change.by_owner]
    return {kind: type_name(kind) for kind in dict.fromkeys(kind for kind, _ in (*owners, *changed))}


def _named_changes(history: History, types: Sequence[str]) -> list[HoursChange]:
    """Return the changes that the reader names, and that of jobs whose type is found or assumed; `types` (job,)."""
    names = _type_by_name(history)
    changes = [
        HoursChange(what=finding.what, hours=finding.change.renamed(names))
        for finding in history.findings
        if finding.change
    ]
    trace = history.trace
    unnamed = [m for m, kind in enumerate(history.ran_on) if not kind]
    held = (trace.scale_factor * trace.duration_s / HOUR_S)[unnamed].tolist()
    tenants = [trace.tenant[m] for m in unnamed]
    moved = AcceleratorHours.summed([types[m] for m in unnamed], tenants, held) - AcceleratorHours.summed(
        [type_name("")] * len(unnamed), tenants, held
    )
    if moved:
        changes.append(HoursChange(what="jobs name no accelerator type; they count as the one assumed", hours=moved))
    return changes


def whole_machines(accelerators: Mapping[str, float]) -> tuple[NamedNode, ...]:
    """Return machines of `PER_NODE` accelerators with these numbers of each type; the last one may be smaller."""
    return tuple(
        NamedNode(name=f"{kind}-{size}-{k}", type=kind, accelerators=size)
        for kind, total in accelerators.items()
        for count, size in whole_nodes(int(total), PER_NODE)
        for k in range(count)
    )


def _starts(history: History) -> Floats:
    """Return the first start of each job, (job,), or the latest that leaves it time to run; nan = not known."""
    by_end = history.ended_s - history.trace.duration_s
    start_s = np.where(np.isnan(history.started_s), by_end, history.started_s)
    return np.maximum(start_s, history.trace.submitted_s)


def _types_of_jobs(
    history: History, nodes: Sequence[NamedNode], unnamed: str
) -> tuple[tuple[str, ...], str, list[str]]:
    """Return (job,) the type that each job ran on, the type of accelerators without one, and notes.

    The type is that of the allocation, else of the job's machine: in the list, or of other jobs there; else the
    request's.
    """
    type_by_machine = _types_seen(history) | {
        node.name: type_name(node.type) for node in nodes if node.type and node.accelerators
    }
    known = {type_name(kind) for kind in set(history.ran_on) - {""}} | set(type_by_machine.values())
    unsaid = type_name(unnamed) if unnamed else next(iter(known)) if len(known) == 1 else UNNAMED
    by_name: dict[str, str] = {"": ""}
    types, guessed = [], 0
    for ran_on, asked, hosts in zip(history.ran_on, history.asked_for, history.machines, strict=True):
        named = ran_on or (type_by_machine.get(hosts[0], "") if hosts else "") or asked
        if named not in by_name:
            by_name[named] = type_name(named)
        guessed += not named
        types.append(by_name[named] or unsaid)
    notes = []
    if guessed:
        how = "as --type says" if unnamed else "the only type seen" if len(known) == 1 else "give --type to name it"
        notes.append(f"{guessed:,} jobs name no accelerator type: it is taken as {unsaid} ({how})")
    return tuple(types), unsaid, notes


def _types_seen(history: History) -> dict[str, str]:
    """Return the type of each machine on which jobs name one type, if some jobs name none."""
    if all(history.ran_on):
        return {}
    seen: dict[str, set[str]] = {}
    for kind, hosts in zip(history.ran_on, history.machines, strict=True):
        for host in hosts if kind else ():
            seen.setdefault(host, set()).add(kind)
    return {host: next(iter(kinds)) for host, kinds in seen.items() if len(kinds) == 1}


def _cluster(
    history: History, nodes: Sequence[NamedNode], types: Sequence[str], unsaid: str
) -> tuple[tuple[Node, ...], list[str]]:
    """Return the machines, given or guessed, and notes."""
    if not nodes:
        guessed, said = guess_nodes(history, types)
        return guessed, list(said)
    cluster = as_nodes([node for node in nodes if node.accelerators], unsaid)
    out = sum(bool(node.accelerators and node.note) for node in nodes)
    used = {host for hosts in history.machines for host in hosts}
    strange = used - {node.name for node in nodes}
    notes = [f"{out:,} machines are down, drained or not ready now; they count as in use"] if out else []
    if strange:
        notes.append(
            f"{len(strange):,} machines on which jobs ran are not in the list of machines, such as {min(strange)}"
        )
    return cluster, notes


def _speeds(types: set[str], mix: str, given: Mapping[str, float]) -> tuple[dict[str, float], list[str]]:
    """Return the speed of every type of the cluster and of the catalogue relative to a v100, and notes."""
    speeds = relative_speeds(catalogue_types(), mix)
    sliced = _speeds_of_slices(types - speeds.keys() - given.keys(), speeds)
    unknown = sorted(types - speeds.keys() - given.keys() - sliced.keys())
    speeds |= sliced
    speeds |= dict.fromkeys(sorted(types - speeds.keys()), 1.0) | {type_name(name): x for name, x in given.items()}
    here = ", ".join(f"{name} {speeds[name]:g}" for name in sorted(types))
    notes = [
        f"every job is as fast on a type as the median job of {mix} in the catalogue, relative to a {REFERENCE}: {here}"
    ]
    if sliced:
        notes.append(f"a slice of an accelerator is as fast as its part of the compute says: {', '.join(sliced)}")
    if unknown:
        notes.append(f"nothing is known of the speed of {', '.join(unknown)}: taken as that of a {REFERENCE} (--speed)")
    return speeds, notes


def _speeds_of_slices(types: set[str], speeds: Mapping[str, float]) -> dict[str, float]:
    """Return the speed of each type that is a slice of a device that the catalogue has, relative to a v100."""
    found = {}
    for name in sorted(types):
        part = slice_of(name)
        if part is not None and part.device is not None:
            found[name] = float(f"{part.compute * speeds[part.device.name]:.{DIGITS_OF_SPEED}g}")
    return found


def _fitting(
    history: History,
    types: Sequence[str],
    cluster: Sequence[Node],
    pinned: Sequence[str],
    findings: list[ImportFinding],
) -> Bools:
    """Return (job,) whether a job fits a type of the cluster; the others are counted in findings."""
    capacity: dict[str, int] = {}
    for node in cluster:
        capacity[node.type] = capacity.get(node.type, 0) + node.accelerators
    widest = max(capacity.values())
    most = np.array([capacity.get(kind, 0) if kind else widest for kind in pinned])
    fits = np.asarray(history.trace.scale_factor <= most)
    absent = np.array([bool(kind) and kind not in capacity for kind in pinned], dtype=np.bool_)
    for rows, what in (
        (absent, "jobs asked for an accelerator type that the cluster does not have"),
        (~fits & ~absent, "jobs are wider than every accelerator type of the cluster"),
    ):
        if rows.any():
            m = int(np.flatnonzero(rows)[0])
            text = f"{history.trace.job_id[m]}: {history.trace.scale_factor[m]} accelerators"
            line = int(history.trace.row[m])
            held = np.where(rows, history.trace.scale_factor * history.trace.duration_s / HOUR_S, 0.0)
            hours = AcceleratorHours.summed(types, history.trace.tenant, held.tolist())
            findings.append(
                ImportFinding(
                    kind="left out",
                    count=int(rows.sum()),
                    what=what,
                    line=line,
                    example=text,
                    hours=hours,
                    change=-hours,
                )
            )
    return np.asarray(fits, dtype=np.bool_)


def _reference_type(history: History, types: Sequence[str]) -> str:
    """Return the type that the jobs held longest: their durations stay as they are."""
    held: Floats = history.trace.duration_s * history.trace.scale_factor
    by_type: dict[str, float] = {}
    for kind, seconds in zip(types, held.tolist(), strict=True):
        by_type[kind] = by_type.get(kind, 0.0) + seconds
    return max(by_type, key=lambda kind: by_type[kind])
