"""Which node of an engine stands for which node of the cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from eunomia.backends.engines.engine import EngineNode
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.lease import write_whole
from eunomia.model.topology import Topology

FILE = "nodes.json"


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
    signature = [[_type(topology, n), int(topology.size[n])] for n in range(topology.nodes)]
    write_whole(workdir / FILE, json.dumps({"nodes": signature, "names": [names[n] for n in range(topology.nodes)]}))
    return dict(sorted(names.items()))


def _kept(topology: Topology, workdir: Path) -> dict[int, str]:
    """Return the names of an earlier process, of nodes that are still declared so."""
    try:
        found = json.loads((workdir / FILE).read_bytes())
    except FileNotFoundError:
        return {}
    pairs = zip(found["nodes"], found["names"], strict=True)
    return {
        n: name
        for n, (declared, name) in enumerate(pairs)
        if n < topology.nodes and declared == [_type(topology, n), int(topology.size[n])]
    }


def _type(topology: Topology, node: int) -> str:
    return topology.types[int(topology.node_type[node])]


def _shown(node: EngineNode) -> str:
    return ", ".join(f"{count} {name}" for name, count in node.accelerators.items()) or "no accelerators"
