"""The cluster that a history shows: the machines on which its jobs ran, and what they held at the same time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.topology import Node
from eunomia.scenario.schema_models import whole_nodes
from eunomia.throughputs.catalogue import slice_of
from eunomia.traces.import_findings import History

PER_NODE = 8  # accelerators of a machine where the history names no machines
SIZES = (1, 2, 4, 8, 10, 16)  # usual numbers of accelerators of a machine


def guess_nodes(history: History, types: Sequence[str]) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """Return machines that can hold what ran at the same time, and notes; `types` (job,) are accelerator types."""
    named = np.array([bool(hosts) for hosts in history.machines], dtype=np.bool_)
    known = ~np.isnan(history.started_s)
    rows = np.flatnonzero(known)
    nodes: list[Node] = []
    notes: list[str] = []
    seen = named & known
    if seen.any():
        nodes, notes = _of_machines(history, types, np.flatnonzero(seen))
        rows = np.flatnonzero(known & ~named)
    for kind in dict.fromkeys(types[m] for m in rows.tolist()):
        own = np.flatnonzero(known & np.array([name == kind for name in types]))
        _, peaks = _peaks(
            np.zeros(len(own), dtype=np.int64), *_intervals(history, own), history.trace.scale_factor[own]
        )
        peak = int(peaks[0])
        here = sum(node.accelerators for node in nodes if node.type == kind)
        groups = whole_nodes(peak - here, PER_NODE) if peak > here else ()
        nodes += [Node(type=kind, accelerators=size) for count, size in groups for _ in range(count)]
        if groups:
            names = "does not name all machines" if here else "names no machines"
            notes.append(
                f"the history {names} of {kind}: at most {peak:,} were in use at the same time, "
                f"{'the others' if here else ''} taken as machines of {PER_NODE}".replace("  ", " ")
            )
    if not known.any():  # no start times at all: as many as the widest job
        width = history.trace.scale_factor.tolist()
        widest = {
            kind: max(size for size, name in zip(width, types, strict=True) if name == kind) for kind in set(types)
        }
        nodes = [Node(type=kind, accelerators=size) for kind, size in widest.items()]
        said = ", ".join(f"{size:,} {kind}" for kind, size in sorted(widest.items()))
        notes.append(
            "the history has no start times: the cluster is a machine of each type as wide as the widest job on it "
            f"({said}); give its size"
        )
    return tuple(sorted(nodes, key=lambda node: (node.type, -node.accelerators))), tuple(notes)


def _of_machines(history: History, types: Sequence[str], rows: Ints) -> tuple[list[Node], list[str]]:
    """Return the machines that these jobs name, with the accelerators of each type in use at the same time there."""
    counts = np.array([len(history.machines[m]) for m in rows.tolist()])
    places = {
        name: k for k, name in enumerate(dict.fromkeys(host for m in rows.tolist() for host in history.machines[m]))
    }
    host = np.array([places[name] for m in rows.tolist() for name in history.machines[m]])
    job = np.repeat(rows, counts)
    held = np.repeat(-(-history.trace.scale_factor[rows] // counts), counts)  # an even split, rounded up
    alone = np.repeat(counts == 1, counts)  # how gangs on several machines were split is not known: not summed
    code = {name: k for k, name in enumerate(dict.fromkeys(types))}
    kind = np.repeat(np.array([code[types[m]] for m in rows.tolist()]), counts)
    names, pairs, place = list(code), *_pairs(host, kind, alone)
    peak = np.zeros(len(pairs), dtype=np.int64)
    np.maximum.at(peak, place, held)
    if alone.any():
        own, levels = _peaks(place[alone], *_intervals(history, job[alone]), held[alone])
        peak[own] = np.maximum(peak[own], levels)
    kinds = [names[k] for k in pairs[:, 1].tolist()]
    nodes = [Node(type=each, accelerators=_usual_size(int(peak[k]), each)) for k, each in enumerate(kinds)]
    note = (
        f"the cluster is the {len(places):,} machines on which jobs ran, each with the accelerators that were in use "
        "at the same time by jobs on one machine, rounded up to a usual number; machines that no job used are not in it"
    )
    return nodes, [note]


def _pairs(host: Ints, kind: Ints, alone: Bools) -> tuple[Ints, Ints]:
    """Return the machines and types, (pair, 2), and the pair of each entry, (entry,), a job on a machine.

    A machine has the types of the jobs that ran on it alone, else the one that most gangs over several machines name;
    a gang of another type is counted with the type that most jobs there name.
    """
    many = int(kind.max()) + 1
    seen, counts = np.unique(host * many + kind, return_counts=True)
    main = np.full(int(host.max()) + 1, -1)
    for certain in (np.isin(seen, host[alone] * many + kind[alone]), np.ones(len(seen), dtype=np.bool_)):
        order = np.flatnonzero(certain)[np.argsort(counts[certain], kind="stable")]  # the last one written counts
        found = np.full(len(main), -1)
        found[seen[order] // many] = seen[order]
        main = np.where(main < 0, found, main)
    kept = np.union1d(np.unique(host[alone] * many + kind[alone]), main)
    pair = host * many + kind
    pair = np.where(np.isin(pair, kept), pair, main[host])
    return np.stack([kept // many, kept % many], axis=1), np.searchsorted(kept, pair)


def _usual_size(peak: int, kind: str) -> int:
    """Return the usual number of accelerators of a machine at or above the peak; slices come in any number."""
    return peak if slice_of(kind) is not None else next((size for size in SIZES if size >= peak), peak)


def _intervals(history: History, job: Ints) -> tuple[Floats, Floats]:
    """Return start and end of the time that jobs held their accelerators."""
    start = history.started_s[job]
    logged = history.ended_s[job]
    end = np.where(np.isnan(logged), start + history.trace.duration_s[job], logged)
    return start, np.maximum(end, start)


def _peaks(place: Ints, start: Floats, end: Floats, held: Ints) -> tuple[Ints, Ints]:
    """Return the places and the most that was held there at a time; what ends at an instant is given back first."""
    at = np.concatenate([start, end])
    change = np.concatenate([held, -held])
    where = np.concatenate([place, place])
    order = np.lexsort((change, at, where))
    level = np.cumsum(change[order])  # each place ends at 0, so places do not add up
    where = where[order]
    first = np.flatnonzero(np.diff(where, prepend=-1))
    return where[first], np.maximum.reduceat(level, first)
