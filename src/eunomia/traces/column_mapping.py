"""Which columns of a table of past jobs hold which fields: named by the caller, or found by their usual names.

A width may be the product of columns (accelerators of a worker × workers), or one entry of a list such as
`1=40,1001=2`. A column whose name fits and whose values do not is left out, and said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eunomia.inputs.columns import NUMBER, numbers, spelled
from eunomia.inputs.problems import Problems
from eunomia.inputs.table import InputTable, squeezed, usual_name
from eunomia.model.spelling_suggestions import nearest
from eunomia.traces.sacct_clock import CLOCK_S

TIMES = ("submitted_s", "started_s", "ended_s")
LENGTHS = ("duration_s", "wait_s")
WORDS = ("job_id", "tenant", "status", "ran_on")
KNOWN = (*TIMES, *LENGTHS, "scale_factor", *WORDS)
WAITS = (
    "wait", "wait_time", "waiting_time", "queue_time", "queued_time", "queuing_time", "queueing_time", "pending_time",
    "queue_s", "wait_seconds", "queue_wait",
)  # fmt: skip
QUEUES = ("queue", "partition")  # tenants only where no column names users, accounts or the like
PER_UNIT = {  # accelerators of one unit → columns that count its units
    **dict.fromkeys(
        ("gpus_per_node", "gpu_per_node", "num_gpus_per_node", "gpus_per_machine", "accelerators_per_node",
         "ngpus_per_node"),
        ("nodes", "num_nodes", "n_nodes", "nnodes", "node_num", "node_count", "num_node", "machines", "nodes_alloc"),
    ),
    **dict.fromkeys(
        ("gpu_request", "gpus_per_worker", "gpu_per_worker", "num_gpus_per_worker", "gpus_per_task", "gpu_per_task",
         "gpus_per_replica", "gpus_per_instance", "gpus_per_pod", "gpu_per_instance", "accelerators_per_worker"),
        ("worker_num", "num_workers", "workers", "n_workers", "worker_count", "num_worker", "inst_num", "instances",
         "num_instances", "replicas", "num_replicas", "tasks", "num_tasks", "ntasks", "num_pods", "pods"),
    ),
}  # fmt: skip
UNITS = tuple(dict.fromkeys(name for names in PER_UNIT.values() for name in names))
LISTED = re.compile(r"[\w/:.]+=\d+(,[\w/:.]+=\d+)*")  # 1=40,1001=2
FIRST_DEVICE = 1001  # Slurm's database numbers other resources than CPUs, memory and the like from here
MOSTLY = 0.9  # of the rows


@dataclass(frozen=True, kw_only=True)
class Width:
    """Where the accelerators of a job are: one column, a product of columns, or one entry of the lists of a column."""

    columns: tuple[str, ...]
    entry: str = ""

    def __str__(self) -> str:
        return " × ".join(self.columns) + f" ({self.entry}=…)" * bool(self.entry)


@dataclass(frozen=True, kw_only=True)
class ColumnMapping:
    """The columns of fields, and what is doubtful about them."""

    column_by_field: Mapping[str, str]  # but for the width
    width: Width | None
    doubts: tuple[str, ...]  # in sentences
    unread: tuple[str, ...]  # the other columns

    def described(self) -> dict[str, str]:
        """Return the column of each field, in the order of `KNOWN`."""
        found = {**self.column_by_field, **({} if self.width is None else {"scale_factor": str(self.width)})}
        return {name: found[name] for name in KNOWN if name in found}


def map_columns(sheet: InputTable, given: Mapping[str, str]) -> ColumnMapping:
    """Return where the fields are; `given` names columns by field. Raises InvalidInput for unknown ones."""
    found, width, doubts = _read_given(sheet, given)
    taken = {*found.values(), *(() if width is None else width.columns)}
    free = [name for name in sheet.columns if name not in taken]
    for exact in (True, False):
        for name in free:
            ours = name if exact else _usual(name)
            if ours in KNOWN and ours not in ("scale_factor", "tenant") and ours not in found:
                found[ours] = name
    if width is None:
        width = _find_width(sheet, free, doubts)
    if "started_s" in found:
        found.pop("wait_s", None)
    waits = "" if "tenant" in found else _find_tenant(sheet, free, found, doubts)
    read = {*found.values(), *(() if width is None else width.columns)}
    unread = (f"{name} (seconds waited, not a tenant)" if name == waits else name for name in sheet.columns)
    return ColumnMapping(
        column_by_field=found,
        width=width,
        doubts=tuple(doubts),
        unread=tuple(shown for name, shown in zip(sheet.columns, unread, strict=True) if name not in read),
    )


def _usual(name: str) -> str:
    return "wait_s" if squeezed(name) in _WAITS else usual_name(name)


_WAITS = {squeezed(name) for name in WAITS}
_UNITS = {squeezed(name) for name in UNITS}
_PER_UNIT = {squeezed(name): tuple(map(squeezed, units)) for name, units in PER_UNIT.items()}


def _read_given(sheet: InputTable, given: Mapping[str, str]) -> tuple[dict[str, str], Width | None, list[str]]:
    """Return the columns that the caller names, the width apart, and doubts about them."""
    problems = Problems("command line")
    found: dict[str, str] = {}
    width, doubts = None, list[str]()
    for ours, name in given.items():
        if ours not in KNOWN:
            problems.add("there is no such field", nearest(ours, KNOWN), column="--column", value=ours)
        elif ours == "scale_factor":
            width = _given_width(sheet, name, problems, doubts)
        elif name not in sheet.columns:
            fix = nearest(name, tuple(sheet.columns))
            problems.add(f"{sheet.file} has no such column", fix, column="--column", value=name)
        else:
            found[ours] = name
    problems.raise_if_any()
    return found, width, doubts


def _given_width(sheet: InputTable, text: str, problems: Problems, doubts: list[str]) -> Width | None:
    """Return the width that the caller names: a column, a product `a*b`, or an entry `tres_alloc:1001`."""
    if text in sheet.columns:
        units = _units_of(text, list(sheet.columns))
        if units and _counts_units(sheet, units):
            doubts.append(
                f"{text} counts for each of {units}, so the two are multiplied; --column scale_factor={text}*1 reads "
                f"{text} alone"
            )
            return Width(columns=(text, units))
        return Width(columns=(text,))
    column, _, entry = text.rpartition(":")
    if column in sheet.columns:
        return Width(columns=(column,), entry=entry)
    names = [part.strip() for part in re.split(r"[*×]", text)]
    factors = [name for name in names if name != "1"]
    for name in factors:
        if name not in sheet.columns:
            fix = f"{nearest(name, tuple(sheet.columns))}; a product is written a*b"
            problems.add(f"{sheet.file} has no such column", fix, column="--column", value=name)
    return Width(columns=tuple(factors))


def _find_width(sheet: InputTable, free: list[str], doubts: list[str]) -> Width | None:
    """Return the width by usual names: a total, a product of a number per unit and the units, or a number per unit."""
    total = next((name for name in free if name == "scale_factor"), "")
    total = total or next((name for name in free if usual_name(name) == "scale_factor"), "")
    if total:
        beside = [name for name in free if squeezed(name) in _UNITS and "worker" in name.lower()]
        if beside and _counts_units(sheet, beside[0]):
            doubts.append(
                f"scale_factor is {total} alone, beside {beside[0]}; if {total} counts for each of them, give --column "
                f"scale_factor={total}*{beside[0]}"
            )
        return Width(columns=(total,))
    for name in free:
        units = _units_of(name, free)
        if units:
            return Width(columns=(name, units))
    alone = next((name for name in free if squeezed(name) in _PER_UNIT), "")
    if alone:
        doubts.append(f"scale_factor is {alone}, and no column counts what it is for each of")
        return Width(columns=(alone,))
    return None


def _units_of(name: str, free: list[str]) -> str:
    """Return the column that counts the units for each of which a column counts accelerators; "" for none."""
    wanted = _PER_UNIT.get(squeezed(name), ())
    return next((other for other in free if squeezed(other) in wanted), "")


def _counts_units(sheet: InputTable, name: str) -> bool:
    """Say whether a column holds numbers, and not only ones."""
    values = numbers(sheet.columns[name])
    return bool((values > 1).any())


def _find_tenant(sheet: InputTable, free: list[str], found: dict[str, str], doubts: list[str]) -> str:
    """Add the column of tenants by usual names: one of users or accounts, else one of queues.

    Returns the name of a column of queues that holds waits, and so is no column of tenants; "" for none.
    """
    fitting = [name for name in free if name not in found.values() and usual_name(name) == "tenant"]
    owners = [name for name in fitting if squeezed(name) not in QUEUES]
    waits = next((name for name in fitting if squeezed(name) in QUEUES and _is_wait(sheet, name, found)), "")
    for name in sorted(owners, key=lambda name: name != "tenant") or [name for name in fitting if name != waits]:
        found["tenant"] = name
        if _holds_numbers(sheet, name):
            doubts.append(f"tenants are the numbers of the column {name}; --column tenant=NAME names another one")
        break
    return waits


def _is_wait(sheet: InputTable, name: str, found: Mapping[str, str]) -> bool:
    """Say whether a column holds start − submission, or where these are not known numbers that rarely repeat."""
    from eunomia.traces.run_times import read_times

    if not _holds_numbers(sheet, name):
        return False
    values = numbers(sheet.columns[name])
    if "started_s" in found and "submitted_s" in found:
        waited = read_times(sheet, found["started_s"]) - read_times(sheet, found["submitted_s"])
        known = ~np.isnan(waited) & ~np.isnan(values)
        return bool(known.any() and (np.abs(waited - values)[known] <= CLOCK_S).mean() >= MOSTLY)
    return len(set(values.tolist())) > max(10, len(values) // 2)


def _holds_numbers(sheet: InputTable, name: str) -> bool:
    """Say whether all cells with anything in them are numbers, and some are."""
    filled = [cell for cell in spelled(sheet.columns[name]) if cell]
    return bool(filled) and all(NUMBER.fullmatch(cell) for cell in filled)


def hint_at_width(sheet: InputTable) -> str:
    """Return how to name the width, with the columns of the table."""
    for name, cells in sheet.columns.items():
        lists = [cell for cell in spelled(cells) if LISTED.fullmatch(cell)]
        keys = sorted({part.partition("=")[0] for cell in lists for part in cell.split(",")})
        devices = [key for key in keys if "gpu" in key or (key.isdigit() and int(key) >= FIRST_DEVICE)]
        if devices:
            return f"{name} counts {', '.join(devices)}: one of them may be --column scale_factor={name}:{devices[0]}"
    return (
        f"say which column it is: --column scale_factor=NAME, or a product, scale_factor=A*B, of "
        f"{', '.join(sheet.columns)}"
    )
