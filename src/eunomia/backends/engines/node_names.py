"""Which node of an engine stands for which node of the cluster."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import TypeAlias

from eunomia.backends.engines.engine import EngineNode
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.lease import write_whole
from eunomia.model.topology import Topology

FILE = "nodes.json"
MOST_COMPARED = 1_000_000  # pairs of nodes of which the longest common sequence is looked for
Declared: TypeAlias = tuple[str, int]  # type and accelerators of a node


def same_nodes(before: Sequence[Declared], after: Sequence[Declared]) -> dict[int, int]:
    """Return which node of a changed cluster an earlier one is, by number; those that are gone are left out.

    Nodes keep their order as far as it goes. Of equal ones next to each other, the last are gone, or new.
    """
    most = min(len(before), len(after))
    head = next((n for n in range(most) if before[n] != after[n]), most)
    tail = next((n for n in range(most - head) if before[-1 - n] != after[-1 - n]), most - head)
    found = {n: n for n in range(head)} | {len(before) - 1 - n: len(after) - 1 - n for n in range(tail)}
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(old) * len(new) <= MOST_COMPARED:
        for at, to, length in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
            found |= {head + at + n: head + to + n for n in range(length)}
    free = defaultdict[Declared, list[int]](list)
    for number in sorted(set(range(len(after))) - set(found.values()), reverse=True):
        free[after[number]].append(number)
    for number in sorted(set(range(len(before))) - set(found)):
        if free[before[number]]:
            found[number] = free[before[number]].pop()
    return found


def declared_nodes(topology: Topology) -> list[Declared]:
    """Return type and accelerators of each node."""
    return [(_type(topology, n), int(topology.size[n])) for n in range(topology.nodes)]


def assign(topology: Topology, nodes: Sequence[EngineNode], workdir: Path, engine: str) -> dict[int, str]:
    """Return the engine's name of each node, by number: nodes of a type are taken in the engine's order.

    The names are kept in `workdir`, so that a node keeps its name when the engine's nodes change. Raises InvalidInput
    if the engine has too few nodes of a type.
    """
    kept = _kept(topology, workdir)
    free = [(node.name, type_name) for node in nodes for type_name in node.accelerators]
    names: dict[int, str] = {}
    for n in range(topology.nodes):
        pair = (kept.get(n, ""), _type(topology, n))
        if pair in free:
            free.remove(pair)
            names[n] = pair[0]
    for n in range(topology.nodes):
        found = next((pair for pair in free if pair[1] == _type(topology, n)), None)
        if n not in names and found is not None:
            free.remove(found)
            names[n] = found[0]
    missing = [n for n in range(topology.nodes) if n not in names]
    if missing:
        types = ", ".join(sorted({_type(topology, n) for n in missing}))
        there = ", ".join(f"{node.name} ({_shown(node)})" for node in nodes) or "none"
        rule = f"{engine} has no node for {len(missing)} of the declared ones, of type {types}; its nodes: {there}"
        raise InvalidInput([Problem(file=engine, column="cluster", rule=rule, fix="declare the nodes that it has")])
    write_whole(
        workdir / FILE,
        json.dumps({"nodes": declared_nodes(topology), "names": [names[n] for n in range(topology.nodes)]}),
    )
    return dict(sorted(names.items()))


def _kept(topology: Topology, workdir: Path) -> dict[int, str]:
    """Return the names of an earlier process, of nodes that are still declared so."""
    try:
        found = json.loads((workdir / FILE).read_bytes())
    except FileNotFoundError:
        return {}
    moved = same_nodes([(kind, size) for kind, size in found["nodes"]], declared_nodes(topology))
    return {moved[n]: name for n, name in enumerate(found["names"]) if n in moved}


def _type(topology: Topology, node: int) -> str:
    return topology.types[int(topology.node_type[node])]


def _shown(node: EngineNode) -> str:
    return ", ".join(f"{count} {name}" for name, count in node.accelerators.items()) or "no accelerators"
