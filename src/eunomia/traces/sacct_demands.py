"""What the lines of sacct name of accelerators: allocated, requested, and what counts as held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eunomia.inputs.options import one_of
from eunomia.inputs.problems import refused
from eunomia.inputs.slurm_values import Resources, expand_hosts, parse_gres, parse_tres
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.throughputs.catalogue import slice_of
from eunomia.traces.accelerator_hours import HOUR_S, RowHours
from eunomia.traces.import_findings import ImportFindings
from eunomia.traces.machine_lists.named_nodes import NamedNode
from eunomia.traces.sacct_lines import SacctLines
from eunomia.traces.slurm_fields import read_numbers

ONE_FOR_PARTS = Resources(by_type=(("", 1),))


@dataclass(frozen=True, kw_only=True, eq=False)
class Demands:
    """The distinct resources of all lines and, (line,) each, which of them a line names."""

    resources: tuple[Resources, ...]
    allocated: Ints
    requested: Ints
    held: Ints  # allocated accelerators, else those requested, one for a part of one, or those of whole machines
    part: int  # the place in `resources` of one accelerator for a part of one; those of whole machines follow


@dataclass(frozen=True, kw_only=True)
class WholeMachines:
    """Partitions whose jobs hold all accelerators of their machines, for sites that do not account accelerators."""

    partitions: tuple[str, ...]
    by_machine: Mapping[str, Sequence[tuple[str, int]]]  # type and number of the accelerators of each machine

    @classmethod
    def of(cls, partitions: Sequence[str], nodes: Sequence[NamedNode]) -> WholeMachines:
        """Return these partitions, with the machines of a list. Raises InvalidInput for partitions without a list."""
        if partitions and not any(node.accelerators for node in nodes):
            rule, fix = "needs the accelerators of the machines", "name their list with --nodes"
            raise refused("command line", "--exclusive", ", ".join(partitions), rule, fix)
        by_machine: dict[str, list[tuple[str, int]]] = {}
        for node in nodes:
            if node.accelerators:  # NAME:TYPE is a further type of a machine
                by_machine.setdefault(node.name.partition(":")[0], []).append((node.type, node.accelerators))
        return cls(partitions=tuple(partitions), by_machine=by_machine)

    def resources(self, nodes: str) -> Resources:
        """Return the accelerators of the machines in a list of hosts."""
        count_by_type: Counter[str] = Counter()
        for host in expand_hosts(nodes):
            count_by_type.update(dict(self.by_machine.get(host, ())))
        return Resources(by_type=tuple(count_by_type.most_common()))


NO_WHOLE_MACHINES = WholeMachines(partitions=(), by_machine={})


def read_demands(lines: SacctLines, gres: str, whole_machines: WholeMachines) -> Demands:
    """Return what each line names. Raises InvalidInput for a partition that no line has."""
    node_count = np.nan_to_num(read_numbers(lines.first_of("NNodes", "AllocNodes")), nan=1.0).astype(np.int64)
    given, allocated = _distinct(lines, "AllocTRES", "AllocGRES", node_count, gres)
    asked, requested = _distinct(lines, "ReqTRES", "ReqGRES", node_count, gres)
    by_nodes, of_nodes = _of_machines(lines, whole_machines)
    resources = (*given, *asked, ONE_FOR_PARTS, *by_nodes)
    requested = requested + len(given)
    part = len(given) + len(asked)
    whole = np.array([each.accelerators > 0 for each in resources], dtype=np.bool_)
    parts = np.array([each.shares > 0 for each in resources], dtype=np.bool_)
    shared = parts[allocated] | parts[requested]
    held = np.where(of_nodes >= 0, of_nodes + part + 1, allocated)
    held = np.where(whole[requested], requested, np.where(shared, part, held))
    held = np.where(whole[allocated], allocated, held)
    return Demands(resources=resources, allocated=allocated, requested=requested, held=held, part=part)


def _of_machines(lines: SacctLines, whole_machines: WholeMachines) -> tuple[tuple[Resources, ...], Ints]:
    """Return the accelerators of lists of machines, and which of them a line has, (line,); -1 for none."""
    place = np.full(len(lines), -1, dtype=np.int64)
    if not whole_machines.partitions:
        return (), place
    partition = lines.text("Partition")
    known = [name for name in pc.unique(partition).to_pylist() if name]
    for name in whole_machines.partitions:
        one_of("command line", "--exclusive", name, tuple(known))
    rows = np.flatnonzero(pc.is_in(partition, pa.array(whole_machines.partitions)).to_numpy(zero_copy_only=False))
    encoded = pc.dictionary_encode(lines.text("NodeList").take(pa.array(rows)))
    place[rows] = np.asarray(encoded.indices, dtype=np.int64)
    return tuple(whole_machines.resources(text or "") for text in encoded.dictionary.to_pylist()), place


def _distinct(
    lines: SacctLines, tres: str, per_node: str, node_count: Ints, gres: str
) -> tuple[tuple[Resources, ...], Ints]:
    """Return the distinct resources and, (line,), which of them: of `tres`, else of the field of old versions."""
    encoded = pc.dictionary_encode(lines.text(tres))
    found = tuple(parse_tres(text or "", gres) for text in encoded.dictionary.to_pylist())
    place = np.asarray(encoded.indices, dtype=np.int64)
    if not lines.has(per_node):
        return found, place
    old = pc.dictionary_encode(lines.text(per_node))
    parsed = [parse_gres(text or "", gres) for text in old.dictionary.to_pylist()]
    most = int(node_count.max(initial=0)) + 1
    pairs, pair = np.unique(np.asarray(old.indices, dtype=np.int64) * most + node_count, return_inverse=True)
    on_nodes = tuple(parsed[each // most].on_nodes(each % most) for each in pairs.tolist())
    empty = pc.equal(lines.text(tres), "").to_numpy(zero_copy_only=False)
    return (*found, *on_nodes), np.where(empty, pair.reshape(-1) + len(found), place)


def row_hours(demands: Demands, elapsed_s: Floats, tenants: pa.DictionaryArray) -> RowHours:
    """Return the accelerator-hours of each line."""
    row, types, type_code, width = by_type(demands.resources, demands.held)
    return RowHours(
        row=row,
        type=types,
        type_code=type_code,
        tenant=tuple(name or "" for name in tenants.dictionary.to_pylist()),
        tenant_code=np.asarray(tenants.indices, dtype=np.int64)[row],
        hours=width * np.nan_to_num(elapsed_s)[row] / HOUR_S,
    )


def by_type(resources: Sequence[Resources], chosen: Ints) -> tuple[Ints, tuple[str, ...], Ints, Ints]:
    """Return an entry for each row and type that its resources have: row, the distinct types, its place there, width.

    `chosen` (row,) says which of the resources a row has. Entries are in the order of the rows.
    """
    count = np.array([len(each.by_type) for each in resources], dtype=np.int64)
    flat = [pair for each in resources for pair in each.by_type]
    types = {kind: k for k, kind in enumerate(dict.fromkeys(kind for kind, _ in flat))}
    code = np.array([types[kind] for kind, _ in flat], dtype=np.int64)
    width = np.array([number for _, number in flat], dtype=np.int64)
    begin = np.cumsum(count) - count
    of_row = count[chosen]
    row = np.repeat(np.arange(len(chosen)), of_row)
    within = np.arange(len(row)) - np.repeat(np.cumsum(of_row) - of_row, of_row)
    entry = begin[chosen[row]] + within
    return row, tuple(types), code[entry], width[entry]


def note_demands(demands: Demands, elapsed_s: Floats, findings: ImportFindings) -> None:
    """Add what was assumed of the accelerators of all lines; `elapsed_s` (line,) is nan where it is not known."""
    resources, held_s = demands.resources, np.nan_to_num(elapsed_s)
    only_asked = (demands.held != demands.allocated) & (demands.held == demands.requested) & (held_s > 0)
    parts, machines = demands.held == demands.part, demands.held > demands.part
    sliced = [any(slice_of(kind) is not None for kind, _ in each.by_type) for each in resources]
    slices = np.array(sliced, dtype=np.bool_)[demands.held] & (held_s > 0)
    mixed = np.array([len(each.by_type) > 1 for each in resources])[demands.held] & (held_s > 0)
    for what, rows in (
        ("runs have no accelerators in AllocTRES; what they asked for counts", only_asked),
        ("runs of partitions of whole machines (--exclusive) hold all accelerators of their machines", machines),
        ("runs share an accelerator (gres/shard, gres/mps); they are read as if they had a whole one", parts),
        (
            f"runs hold slices of accelerators (MIG); each slice is read as a whole one{_as_whole(findings, slices)}",
            slices,
        ),
        ("runs hold accelerators of several types at once; their job is read as one job for each type", mixed),
    ):
        findings.add("assumed", what, rows)


def _as_whole(findings: ImportFindings, rows: Bools) -> str:
    """Return a phrase with the hours that slices are of whole accelerators, by their parts of the compute."""
    if findings.hours is None or not rows.any():
        return ""
    whole = 0.0
    for kind, hours in findings.hours.of(rows).by_type().items():
        part = slice_of(kind)
        whole += hours if part is None else hours * part.compute
    return f" (by their parts of the compute they are {whole:,.2f} accelerator-hours of whole ones)"
