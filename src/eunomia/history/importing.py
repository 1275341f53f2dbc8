"""Turns the history of a cluster manager into a scenario: jobs, machines and speeds in the formats of scenarios."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.history.cluster_guess import PER_NODE, guess_nodes
from eunomia.history.speeds_table import ANY, only, speeds_csv
from eunomia.inputs.problems import refused
from eunomia.inputs.timestamps import EPOCH
from eunomia.model.arrays import Bools, Floats
from eunomia.model.topology import Node
from eunomia.scenario.schema_models import whole_nodes
from eunomia.throughputs.catalogue import accelerators as catalogue_types
from eunomia.throughputs.relative_speeds import REFERENCE, relative_speeds
from eunomia.traces.import_findings import History, ImportFinding
from eunomia.traces.machine_lists.named_nodes import UNNAMED, NamedNode, as_nodes, type_name
from eunomia.traces.table import Trace
from eunomia.traces.writing import write_native

TRACE, SPEEDS, SCENARIO, QUALITY = "jobs.parquet", "throughputs.csv", "scenario.toml", "quality.json"
CLOCK_S = 2.0  # by which two roundings to seconds may differ
POLICY_BY_ENGINE = {
    "slurm": "order of submission with EASY backfilling; Slurm's priorities and limits are not in the history",
    "kubernetes": "order of submission; a gang that does not fit is passed over, as by a scheduler of single pods",
    "ray": "order of submission; a gang that does not fit is passed over",
    "csv": "order of submission; a gang that does not fit is passed over",
}
BACKFILL_BY_ENGINE = {"slurm": "easy", "kubernetes": "skip", "ray": "skip", "csv": "skip"}


@dataclass(frozen=True, kw_only=True)
class Imported:
    """The files of an import, in memory."""

    engine: str
    files: tuple[str, ...]
    trace: Trace
    nodes: tuple[Node, ...]
    speeds: Mapping[str, float]
    reference_type: str
    stated: tuple[str, ...]  # types whose speed the user gave
    pinned: tuple[str, ...]  # types that some jobs must have
    findings: tuple[ImportFinding, ...]
    assumed: tuple[str, ...]  # about the whole history, in sentences
    unread: tuple[str, ...]

    def quality(self) -> dict[str, Any]:
        """Return the quality report as JSON."""
        held_s = float((self.trace.duration_s * self.trace.scale_factor).sum())
        return {
            "engine": self.engine,
            "files": list(self.files),
            "jobs": len(self.trace),
            "tenants": len(set(self.trace.tenant)),
            "first_submission": None if self.trace.began is None else self.trace.began.isoformat(),
            "days": float(self.trace.submitted_s[-1]) / 86_400.0,
            "accelerator_hours": held_s / 3600.0,
            "accelerators": {kind: sum(node.accelerators for node in group) for kind, group in self.by_type()},
            "machines": len(self.nodes),
            "findings": [finding.as_dict() for finding in self.findings],
            "assumed": list(self.assumed),
            "fields_not_read": list(self.unread),
        }

    def by_type(self) -> list[tuple[str, list[Node]]]:
        """Return the machines of each accelerator type."""
        return [(kind, list(group)) for kind, group in groupby(self.nodes, key=lambda node: node.type)]

    def write(self, folder: Path) -> None:
        """Write the trace, the speeds, the scenario and the quality report."""
        write_native(self.trace, folder / TRACE)
        table = speeds_csv(self.speeds, self.pinned, self.reference_type, self.stated)
        (folder / SPEEDS).write_text(table, encoding="utf-8")
        (folder / SCENARIO).write_text(_scenario_toml(self), encoding="utf-8")
        text = json.dumps(self.quality(), indent=2, allow_nan=False, ensure_ascii=False)
        (folder / QUALITY).write_text(text + "\n", encoding="utf-8")


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
    types, unsaid, assumed = _types_of_jobs(history, nodes, unnamed)
    cluster, notes = _cluster(history, nodes, types, unsaid)
    assumed += notes
    speed, speed_notes = _speeds({node.type for node in cluster} | set(types), mix, speeds or {})
    assumed += speed_notes
    pinned = [type_name(kind) if kind and keep_types else "" for kind in history.asked_for]
    findings = list(history.findings)
    fits = _fitting(history, cluster, pinned, findings)
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
    duration_s = np.maximum(np.round(trace.duration_s * factor, 3), 0.001)
    if (factor != 1).any():
        other = ", ".join(sorted(set(types) - {reference}))
        assumed.append(f"durations on {other} are converted to {reference} by the relative speeds in {SPEEDS}")
    job_type = tuple(only(kind) if kind else ANY for kind in pinned)
    submitted_s = trace.submitted_s - trace.submitted_s[0]
    return Imported(
        engine=engine,
        files=tuple(files),
        trace=replace(
            trace,
            job_type=job_type,
            duration_s=duration_s,
            submitted_s=submitted_s,
            ran_on=types,
            started_s=_starts(history) - trace.submitted_s[0],
        ),
        nodes=cluster,
        speeds=speed,
        reference_type=reference,
        stated=tuple(map(type_name, speeds or {})),
        pinned=tuple(sorted({kind for kind in pinned if kind})),
        findings=tuple(findings),
        assumed=tuple(assumed),
        unread=trace.unread,
    )


def whole_machines(accelerators: Mapping[str, float]) -> tuple[NamedNode, ...]:
    """Return machines of `PER_NODE` accelerators with these numbers of each type; the last one may be smaller."""
    return tuple(
        NamedNode(name=f"{kind}-{size}-{k}", type=kind, accelerators=size)
        for kind, total in accelerators.items()
        for count, size in whole_nodes(int(total), PER_NODE)
        for k in range(count)
    )


def _starts(history: History) -> Floats:
    """Return (job,) the start of one uninterrupted run that ends when the job ended; nan = not known.

    For most jobs it is the logged start; what was suspended or run several times starts later.
    """
    submitted_s, lasted_s = history.trace.submitted_s, history.trace.duration_s
    by_end = history.ended_s - lasted_s
    broken = history.ended_s - history.started_s > lasted_s + CLOCK_S
    start_s = np.where(broken | np.isnan(history.started_s), by_end, history.started_s)
    return np.maximum(start_s, submitted_s)


def _types_of_jobs(
    history: History, nodes: Sequence[NamedNode], unnamed: str
) -> tuple[tuple[str, ...], str, list[str]]:
    """Return (job,) the type that each job ran on, the type of accelerators without one, and notes.

    The type is that of the allocation, else of the job's machine in the list, else the request's.
    """
    type_by_machine = {node.name: type_name(node.type) for node in nodes if node.type and node.accelerators}
    known = {type_name(kind) for kind in history.ran_on if kind} | set(type_by_machine.values())
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
    unknown = sorted(types - speeds.keys() - given.keys())
    speeds |= dict.fromkeys(sorted(types - speeds.keys()), 1.0) | {type_name(name): x for name, x in given.items()}
    here = ", ".join(f"{name} {speeds[name]:g}" for name in sorted(types))
    notes = [
        f"every job is as fast on a type as the median job of {mix} in the catalogue, relative to a {REFERENCE}: {here}"
    ]
    if unknown:
        notes.append(f"nothing is known of the speed of {', '.join(unknown)}: taken as that of a {REFERENCE} (--speed)")
    return speeds, notes


def _fitting(history: History, cluster: Sequence[Node], pinned: Sequence[str], findings: list[ImportFinding]) -> Bools:
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
            findings.append(
                ImportFinding(kind="left out", count=int(rows.sum()), what=what, file="", line=line, example=text)
            )
    return np.asarray(fits, dtype=np.bool_)


def _reference_type(history: History, types: Sequence[str]) -> str:
    """Return the type that the jobs held longest: their durations stay as they are."""
    held: Floats = history.trace.duration_s * history.trace.scale_factor
    by_type: dict[str, float] = {}
    for kind, seconds in zip(types, held.tolist(), strict=True):
        by_type[kind] = by_type.get(kind, 0.0) + seconds
    return max(by_type, key=lambda kind: by_type[kind])


def _scenario_toml(imported: Imported) -> str:
    """Return the text of the scenario file, with what was assumed as comments."""
    groups = [(node, len(list(group))) for node, group in groupby(imported.nodes)]
    nodes = ",\n".join(f"    {_node_toml(node, count)}" for node, count in groups)
    engine = imported.engine
    assumed = "\n".join(f"# - {_comment(sentence)}" for sentence in imported.assumed)
    some = any(imported.trace.tenant) and not all(imported.trace.tenant)
    date = imported.trace.began
    # Times counted from a start of their own look like seconds since 1970.
    known = date is not None and date.year > EPOCH.year
    began = f'began = "{date:%Y-%m-%d %H:%M:%S}"  # local date and time at 0 s\n' if date and known else ""
    own = 'missing_vc = "own"  # jobs that name no tenant are those of a tenant called -\n' * some
    return f"""\
# Written by `eunomia import {engine}` from {", ".join(map(_comment, imported.files))}; every line may be edited.
# Assumed, beside what {QUALITY} counts:
{assumed}

[cluster]
nodes = [
{nodes},
]

[workload]
trace = "{TRACE}"
{began}{own}
[throughputs]
source = "{SPEEDS}"
reference_type = {json.dumps(imported.reference_type)}

[policy]  # {POLICY_BY_ENGINE[engine]}
name = "fifo"
backfill = "{BACKFILL_BY_ENGINE[engine]}"
"""


def _comment(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _node_toml(node: Node, count: int) -> str:
    """Return a group of machines."""
    rest = f", cpus = {node.cpus:g}" * bool(node.cpus) + f", memory_gib = {node.memory_gib:.6g}" * bool(node.memory_gib)
    kind = json.dumps(node.type, ensure_ascii=False)
    return f"{{ type = {kind}, count = {count}, accelerators = {node.accelerators}{rest} }}"
