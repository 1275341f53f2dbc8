"""The machines of a scenario that names a file of them, written out as if they stood in the scenario.

`nodes_file` is a path, and options of the reader may follow: `machines.csv?only=p100,v100`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario.reader_options import parse_file
from eunomia.scenario.source_locations import SourceLocations, shown

if TYPE_CHECKING:
    from eunomia.traces.machine_lists import MachineList

KEY = ("cluster", "nodes_file")
UNREAD = [{"type": "v100", "accelerators": 1}]  # stands for machines that could not be read, to check all else


def write_out_nodes(data: dict[str, Any], places: SourceLocations, base: Path) -> list[Problem]:
    """Put the machines of `cluster.nodes_file` beside it as `nodes`; return everything that is wrong with them."""
    cluster = data.get("cluster")
    spelling = cluster.get("nodes_file") if isinstance(cluster, dict) else None
    if not isinstance(cluster, dict) or not isinstance(spelling, str):
        return []
    found = [_said_twice(places, other) for other in ("nodes", "accelerators") if other in cluster]
    groups: list[dict[str, Any]] = UNREAD
    try:
        groups = [
            {"type": node.type, "count": count, "accelerators": node.accelerators, "rack": node.rack}
            for node, count in listed(spelling, base).groups()
        ]
    except InvalidInput as refusal:
        found += refusal.problems
    kept = {key: value for key, value in cluster.items() if key not in ("nodes", "accelerators")}
    if groups is UNREAD:
        kept.pop("prices", None)  # whose types nobody knows
    data["cluster"] = {**kept, "nodes": groups}
    return found


def listed(spelling: str, base: Path) -> MachineList:
    """Return the machines in a file, spelled as in a scenario. Raises InvalidInput."""
    name, options = parse_file(spelling, "cluster.nodes_file")
    path = base / Path(name).expanduser()
    try:
        stamp = path.stat().st_mtime_ns
    except OSError:
        stamp = 0  # reading it says what is wrong
    return _read(path, tuple(options.items()), stamp)


@lru_cache(maxsize=8)
def _read(path: Path, options: tuple[tuple[str, Any], ...], stamp: int) -> MachineList:
    """Return the machines; a sweep asks for the same list again and again, and `stamp` tells when it changed."""
    from eunomia.traces.machine_lists import read_nodes  # brings arrays, which most scenarios do without

    return read_nodes(path, **dict(options))


def _said_twice(places: SourceLocations, other: str) -> Problem:
    file, row = places.where(("cluster", other))
    rule, fix = f"a cluster has nodes_file or {other}, never both", f"leave out nodes_file or {other}"
    return Problem(file=file, row=row, column=f"cluster.{other}", value=shown(other), rule=rule, fix=fix)
