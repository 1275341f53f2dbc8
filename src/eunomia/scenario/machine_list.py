"""Replaces `cluster.nodes_file` by the machines of that file.

`nodes_file` is a path with options of the reader, as in `machines.csv?only=p100,v100`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario.policy_spec import parse_file
from eunomia.scenario.source_locations import SourceLocations, shown

if TYPE_CHECKING:
    from eunomia.traces.machine_lists import MachineList

KEY = ("cluster", "nodes_file")
PLACEHOLDER = [{"type": "v100", "accelerators": 1}]  # for a file that cannot be read, so that all else is checked


def expand_nodes_file(data: dict[str, Any], places: SourceLocations, base: Path) -> list[Problem]:
    """Set `nodes` to the machines of `cluster.nodes_file`, if any; return the problems of both."""
    cluster = data.get("cluster")
    spelling = cluster.get("nodes_file") if isinstance(cluster, dict) else None
    if not isinstance(cluster, dict) or not isinstance(spelling, str):
        return []
    problems = [_conflict(places, other) for other in ("nodes", "accelerators") if other in cluster]
    groups: list[dict[str, Any]] = PLACEHOLDER
    try:
        groups = [
            {"type": node.type, "count": count, "accelerators": node.accelerators, "rack": node.rack}
            for node, count in read_machine_list(spelling, base).groups()
        ]
    except InvalidInput as refusal:
        problems += refusal.problems
    section = {key: value for key, value in cluster.items() if key not in ("nodes", "accelerators")}
    if groups is PLACEHOLDER:
        section.pop("prices", None)  # the types are unknown
    data["cluster"] = {**section, "nodes": groups}
    return problems


def read_machine_list(spelling: str, base: Path) -> MachineList:
    """Return the machines of a `nodes_file` spelling. Raises InvalidInput."""
    name, options = parse_file(spelling, "cluster.nodes_file")
    path = base / Path(name).expanduser()
    try:
        modified_ns = path.stat().st_mtime_ns
    except OSError:
        modified_ns = 0  # reading reports the error
    return _read_cached(path, tuple(options.items()), modified_ns)


@lru_cache(maxsize=8)
def _read_cached(path: Path, options: tuple[tuple[str, Any], ...], modified_ns: int) -> MachineList:
    """Return the machines, cached for sweeps; `modified_ns` is in the key so that changes are seen."""
    from eunomia.traces.machine_lists import read_nodes  # imports arrays, which most scenarios do not need

    return read_nodes(path, **dict(options))


def _conflict(places: SourceLocations, other: str) -> Problem:
    file, row = places.where(("cluster", other))
    rule, fix = f"a cluster has nodes_file or {other}, never both", f"leave out nodes_file or {other}"
    return Problem(file=file, row=row, column=f"cluster.{other}", value=shown(other), rule=rule, fix=fix)
