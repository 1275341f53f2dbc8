"""The error for throughputs that a table does not have: neither measured, nor estimated, nor said to be 0."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.throughputs.catalogue import find

NAMED = 20  # job types that one message lists
WITHOUT_JOB_TYPES = 'write [throughputs] source = "uniform" (or "linear"): every job at one speed on all types'


class NamedTable(Protocol):
    """A table of throughputs."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> Path | None: ...


def missing_throughputs(table: NamedTable, jobs: Mapping[tuple[str, str], int], types: Sequence[str]) -> InvalidInput:
    """Return the error for pairs of job type and accelerator type that are not in the table, one problem a type.

    `jobs` counts those that need each pair; 0 = unknown. `types` are all that the cluster has.
    """
    fix = ways_out(table, types)
    problems = []
    for type_name in types:
        of = {job_type: count for (job_type, needed), count in jobs.items() if needed == type_name}
        if of:
            count = sum(of.values())
            who = f" (of {count:,} job{'s' * (count > 1)})" if count else ""
            which = f"{len(of):,} job types{who}" if len(of) > 1 else f"1 job type{who}"
            rule = f"the table has no throughput on it of {which}, and none that is 0 for cannot run: {listed(of)}"
            problems.append(Problem(file=table.name, column="type", value=type_name, rule=rule, fix=fix))
    return InvalidInput(problems)


def ways_out(table: NamedTable, types: Sequence[str]) -> str:
    """Return what to do about throughputs that are not in a table."""
    if table.path is not None and all(map(find, types)):
        command = f"eunomia calibrate {shlex.quote(str(table.path))} --types {','.join(types)} --out calibrated.csv"
        estimate = f'`{command}`, or [throughputs] missing = "estimate"'
    else:
        estimate = "`eunomia calibrate`, which needs types of the catalogue (`eunomia calibrate --help`)"
    return (
        'add rows with a throughput of 0 where they cannot run ([throughputs] missing = "cannot_run" says so of all), '
        f"or estimate them: {estimate}"
    )


def listed(names: Iterable[str]) -> str:
    """Return names for a message, the first `NAMED` of many."""
    first, *more = [list(names)[:NAMED], *list(names)[NAMED:]]
    return ", ".join(map(repr, first)) + (f" and {len(more):,} more" if more else "")
