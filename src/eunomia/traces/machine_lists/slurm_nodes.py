"""Slurm's machines: `scontrol show nodes --oneliner`, or `sinfo --Node --format "%N %G %c %m %t"`.

Of scontrol NodeName, Gres, CPUTot, RealMemory (MiB) and State count; of sinfo the columns NODELIST, GRES, and if there
CPUS, MEMORY (MB) and STATE. Reference: SchedMD, scontrol(1), sinfo(1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from eunomia.inputs.file_contents import contents, decoded
from eunomia.inputs.options import one_of
from eunomia.inputs.problems import Problems, refused
from eunomia.inputs.slurm_values import Resources, expand_hosts, parse_gres
from eunomia.traces.machine_lists.machines import MachineList
from eunomia.traces.machine_lists.named_nodes import NamedNode, distinct, machine_list

MIB = 1024.0  # of a GiB
COMMAND = "scontrol show nodes --oneliner"
OUT_OF_USE = ("down", "drain", "fail", "maint", "not_responding", "power", "unknown", "inval")


def detects(line: Sequence[str]) -> bool:
    """Say whether the comma-separated cells of a first line are of scontrol or sinfo."""
    text = ",".join(line)
    return text.startswith("NodeName=") or _sinfo_columns(text) is not None


def read(path: Path, *, gres: str = "gpu") -> MachineList:
    """Return the machines with accelerators, which the generic resource `gres` counts.

    Raises InvalidInput with everything that is wrong with the file.
    """
    return machine_list(path, read_named(path, gres=gres))


def read_named(path: Path, *, gres: str = "gpu") -> tuple[NamedNode, ...]:
    """Return all machines, with their names. Raises InvalidInput as `read` does."""
    one_of(str(path), "gres", gres, [gres] if re.fullmatch(r"\w+", gres) else ["gpu"])
    lines = decoded(str(path), contents(path)).splitlines()
    first = next((line for line in lines if line.strip()), "")
    columns = _sinfo_columns(first)
    if first.startswith("NodeName="):
        found = tuple(_of_scontrol(str(path), lines, gres))
    elif columns is not None:
        found = tuple(_of_sinfo(str(path), lines, columns, gres))
    else:
        rule = "this is no list of Slurm's machines"
        fix = f'write it with {COMMAND}, or sinfo --Node --format "%N %G %c %m %t"'
        raise refused(str(path), None, first[:80] or None, rule, fix, row=1)
    return distinct(found)


def _of_scontrol(name: str, lines: Sequence[str], gres: str) -> Iterator[NamedNode]:
    """Yield a machine for each NodeName; its fields may be on one line or on the lines that follow."""
    text = "\n".join(lines)
    for block in re.split(r"(?m)^(?=NodeName=)", text):
        fields = dict(re.findall(r"(?:^|\s)([A-Za-z]+)=(\S*)", block))
        if not fields.get("NodeName"):
            continue
        state = fields.get("State", "")
        yield from _by_type(
            fields["NodeName"],
            parse_gres(fields.get("Gres", ""), gres),
            _number(fields.get("CPUTot", "")),
            _number(fields.get("RealMemory", "")) / MIB,
            state if _is_out_of_use(state) else "",
        )


def _by_type(name: str, here: Resources, cpus: float, memory_gib: float, note: str) -> Iterator[NamedNode]:
    """Yield a machine; one that holds several accelerator types is one for each, NAME:TYPE after the first."""
    for k, (kind, accelerators) in enumerate(here.by_type or (("", 0),)):
        yield NamedNode(
            name=f"{name}:{kind}" if k else name,
            type=kind,
            accelerators=accelerators,
            cpus=0.0 if k else cpus,
            memory_gib=0.0 if k else memory_gib,
            note=note,
        )


def _sinfo_columns(header: str) -> list[str] | None:
    """Return the columns of sinfo's header; None if it is none, or lacks GRES or the machines."""
    columns = [word.casefold() for word in re.split(r"[\s|]+", header.strip())]
    named = {"gres"} <= set(columns) and bool({"nodelist", "nodes", "hostnames"} & set(columns))
    return columns if named else None


def _of_sinfo(name: str, lines: Sequence[str], columns: list[str], gres: str) -> Iterator[NamedNode]:
    """Yield the machines of each line. Raises InvalidInput for lines that do not have the columns."""
    problems = Problems(name)
    head = next(m for m, line in enumerate(lines) if line.strip())
    for row, line in enumerate(lines[head + 1 :], start=head + 2):
        words = re.split(r"\s*\|\s*|\s+", line.strip())
        if not line.strip() or [word.casefold() for word in words] == columns:
            continue
        if len(words) != len(columns):
            rule = f"has {len(words)} values for the {len(columns)} columns of the header"
            problems.add(rule, f"write the list again, with {COMMAND}", row=row, value=line[:80])
            continue
        cells = dict(zip(columns, words, strict=True))
        here = parse_gres(cells["gres"], gres)
        for host in _hosts(cells, row):
            yield from _by_type(
                host,
                here,
                _number(cells.get("cpus", "")),
                _number(cells.get("memory", "")) / MIB,
                cells.get("state", "") if _is_out_of_use(cells.get("state", "")) else "",
            )
    problems.raise_if_any()


def _hosts(cells: dict[str, str], row: int) -> tuple[str, ...]:
    """Return the names of the machines of a line; made up where the line only counts them."""
    names = expand_hosts(cells.get("nodelist", cells.get("hostnames", "")))
    if names:
        return names
    count = cells.get("nodes", "")
    return tuple(f"line-{row}-{k}" for k in range(int(count))) if count.isdigit() else expand_hosts(count)


def _number(text: str) -> float:
    found = re.match(r"\d+(?:\.\d+)?", text)
    return float(found[0]) if found else 0.0


def _is_out_of_use(state: str) -> bool:
    return any(word in state.casefold() for word in OUT_OF_USE)
