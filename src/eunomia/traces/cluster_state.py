"""Published states of a cluster, minute by minute, to compare a simulation with.

Two layouts: Helios' virtual clusters (Q. Hu et al., SC 2021) and the number of Philly's machines in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.inputs.bounds import MOST
from eunomia.inputs.field_rules import Rule
from eunomia.inputs.open_table import read_table
from eunomia.inputs.table import InputTable
from eunomia.model.arrays import Floats
from eunomia.traces.format_detection import read_first_line

CLUSTERS = ("vc", "time", "running_gpu_num", "pending_gpu_num", "idle_gpu_num", "total_gpu_num", "gpu_utilization")
MACHINES = ("time", "active", "total")
FURTHER = (
    *[f"{state}_{kind}_num" for state in ("total", "running", "pending") for kind in ("job", "gpujob")],
    *[f"{state}_gpu_num_{side}_8" for state in ("running", "pending") for side in ("noless", "less")],
)
COUNT = Rule(what="a whole number, at least 0", least=0, most=MOST, whole=True, fix="write how many there were")
SHARE = Rule(what="a number from 0 to 1", least=0.0, most=1.0, fix="write running over total")
ROUNDING = 0.00051  # shares are published with three digits


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """The averages of one virtual cluster, or of one list of machines, over its minutes."""

    name: str
    minutes: int
    capacity: float  # accelerators or machines
    busy: float
    waiting: float | None  # accelerators requested by pending jobs
    utilization: float  # mean of busy over capacity
    peak: float
    share_waiting: float | None  # of minutes with pending jobs
    share_waiting_beside_idle: float | None  # of those minutes, with idle accelerators too


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHistory:
    """The states in a file, with notes on inconsistencies."""

    source: str
    unit: str
    states: tuple[ClusterSnapshot, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


def is_cluster_state(path: Path) -> bool:
    """Say whether the first line of a file is that of cluster states."""
    return not path.is_dir() and _find_layout(path) is not None


def read_cluster_history(path: Path) -> ClusterHistory:
    """Return the states in a file. Raises InvalidInput with everything that is wrong with it."""
    return _read_machines(path) if _find_layout(path) == MACHINES else _read_clusters(path)


def _find_layout(path: Path) -> tuple[str, ...] | None:
    line = read_first_line(path) or []
    return next((names for names in (CLUSTERS, MACHINES) if set(names) <= set(line) <= {*names, *FURTHER}), None)


def _read_clusters(path: Path) -> ClusterHistory:
    sheet = read_table(path)
    sheet.expect(CLUSTERS, FURTHER, "a list of states must hold at least one minute")
    names = sheet.filled("vc")
    _refuse_repeated(sheet, sheet.moment("time"), names)
    total, running = sheet.number("total_gpu_num", COUNT), sheet.number("running_gpu_num", COUNT)
    pending, idle = sheet.number("pending_gpu_num", COUNT), sheet.number("idle_gpu_num", COUNT)
    share = sheet.number("gpu_utilization", SHARE)
    sheet.refuse("total_gpu_num", total <= 0, "must be above 0", "leave out minutes in which there is no cluster")
    unequal = np.abs(running + idle - total) > 0
    sheet.refuse("idle_gpu_num", unequal, "must be total less running", "correct one of the three")
    sheet.raise_if_any()
    off = int(np.count_nonzero(np.abs(share - running / total) > ROUNDING))
    notes = [f"{off:,} minutes publish another utilisation than running over total, which is used"] * bool(off)
    unique, cluster = np.unique(np.array(names), return_inverse=True)
    columns = (total, running, pending, idle)
    states = tuple(_summarize(str(name), *(c[cluster == k] for c in columns)) for k, name in enumerate(unique.tolist()))
    return ClusterHistory(source=sheet.file, unit="accelerators", states=states, notes=tuple(notes))


def _read_machines(path: Path) -> ClusterHistory:
    sheet = read_table(path)
    sheet.expect(MACHINES, (), "a list of states must hold at least one minute")
    _refuse_repeated(sheet, sheet.moment("time"), ("",) * len(sheet))
    total, active = sheet.number("total", COUNT), sheet.number("active", COUNT)
    sheet.refuse("total", total <= 0, "must be above 0", "leave out minutes in which there is no cluster")
    sheet.refuse("active", active > total, "must be at most the total", "correct one of the two")
    sheet.raise_if_any()
    return ClusterHistory(source=sheet.file, unit="machines", states=(_summarize("all", total, active),))


def _refuse_repeated(sheet: InputTable, at: Floats, names: Sequence[str]) -> None:
    """Note each row that repeats the name and the minute of an earlier one; `at` (row,) is nan where it is invalid."""
    first: dict[tuple[str, float], int] = {}
    earlier = [first.setdefault(key, row) for row, key in enumerate(zip(names, at.tolist(), strict=True))]
    repeats = (np.array(earlier, dtype=np.int64) < np.arange(len(earlier))) & ~np.isnan(at)
    rule = "must be a minute of its own, but line {} has it too"
    sheet.refuse("time", repeats, lambda row: rule.format(sheet.line[earlier[row]]), "keep one of the two")


def _summarize(
    name: str, total: Floats, busy: Floats, pending: Floats | None = None, idle: Floats | None = None
) -> ClusterSnapshot:
    queued = None if pending is None else pending > 0
    beside = None if queued is None or idle is None or not queued.any() else float(np.mean(idle[queued] > 0))
    return ClusterSnapshot(
        name=name,
        minutes=len(total),
        capacity=float(total.mean()),
        busy=float(busy.mean()),
        waiting=None if pending is None else float(pending.mean()),
        utilization=float(np.mean(busy / total)),
        peak=float(busy.max()),
        share_waiting=None if queued is None else float(queued.mean()),
        share_waiting_beside_idle=beside,
    )
