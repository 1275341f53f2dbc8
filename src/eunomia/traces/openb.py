"""Pods of Alibaba's openb cluster, 2023 (Q. Weng et al., USENIX ATC 2023), as one table, a line per pod.

A pod is one task on one machine: there are no gangs over machines. It asks for whole accelerators, or for a part of
one: `fraction` says whether such pods are dropped or given a whole one. A pod that was never scheduled has no duration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import ACCELERATORS, DEMAND, SUBMITTED, Rule
from eunomia.inputs.open_table import read_table
from eunomia.inputs.options import one_of
from eunomia.inputs.problems import refused
from eunomia.inputs.table import InputTable
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.traces.notes import SHORTEST_S, count_notes
from eunomia.traces.table import Trace, in_order, trace_of

REQUIRED = ("name", "num_gpu", "gpu_milli", "pod_phase", "creation_time", "deletion_time", "scheduled_time")
OPTIONAL = ("cpu_milli", "memory_mib", "gpu_spec", "qos")
STATUS_BY_WORD = {"Running": "", "Pending": "", "Failed": "failed", "Succeeded": "finished"}
FRACTION = ("ceil", "drop")
WHOLE = 1000  # thousandths of an accelerator
MILLI, MIB = 1000, 1024  # thousandths of a CPU, MiB of a GiB
UNITS = "CPUs are thousandths and memory is MiB in the file, read as CPUs and GiB"
PART = Rule(
    what=f"a whole number of thousandths, 0 to {WHOLE}",
    least=0,
    most=WHOLE,
    whole=True,
    fix="write 1000 for a whole one",
)
ENDED = Rule(what="a finite number of seconds, at least 0", least=0.0, fix="write when the pod was deleted")
STARTED = Rule(
    what="a finite number of seconds, at least 0",
    least=0.0,
    empty=np.nan,
    fix="write when the pod was scheduled, or leave it empty if it never was",
)


@dataclass(frozen=True, kw_only=True)
class Pods:
    """The columns that decide how a pod is read, (row,) each."""

    gpus: Ints
    part: Ints  # thousandths of each accelerator
    submitted_s: Floats
    started_s: Floats  # nan = never
    ended_s: Floats

    @property
    def fractional(self) -> Bools:
        """Pods that ask for a part of one accelerator."""
        return np.asarray((self.gpus == 1) & (self.part < WHOLE))

    @property
    def ran(self) -> Bools:
        """Pods with accelerators that were scheduled."""
        return np.asarray((self.gpus > 0) & ~np.isnan(self.started_s))


def read(path: Path, *, fraction: str = "ceil") -> Trace:
    """Return the pods with accelerators that ran, by creation; `fraction` is `ceil` (a part is a whole) or `drop`.

    Raises InvalidInput with everything that is wrong with the file.
    """
    one_of(str(path), "fraction", fraction, FRACTION)
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    pods = _read_pods(sheet)
    trace = trace_of(
        sheet.file,
        sheet.unique("name"),
        pods.submitted_s,
        pods.gpus,
        duration_s=np.maximum(pods.ended_s - pods.started_s, SHORTEST_S),
        status=sheet.renamed("pod_phase", STATUS_BY_WORD),
        row=sheet.line,
        cpus=sheet.number("cpu_milli", DEMAND) / MILLI,
        memory_gib=sheet.number("memory_mib", DEMAND) / MIB,
        unread=sheet.unread("gpu_spec"),
    )
    sheet.raise_if_any()
    keep = pods.ran & ~(pods.fractional & (fraction == "drop"))
    notes = (*_notes(sheet, pods, keep, fraction), *[UNITS] * bool(trace.cpus.any() or trace.memory_gib.any()))
    partly = _omitted_parts(sheet, pods, keep)
    if not keep.any():
        rule = f"no pod is left ({'; '.join(notes)})"
        raise refused(str(path), "fraction", fraction, rule, 'write fraction = "ceil"')
    return in_order(replace(trace.take(np.flatnonzero(keep)), notes=notes, partly=partly))


def _read_pods(sheet: InputTable) -> Pods:
    """Return the columns; note problems between two of them."""
    pods = Pods(
        gpus=sheet.whole("num_gpu", ACCELERATORS),
        part=sheet.whole("gpu_milli", PART),
        submitted_s=sheet.number("creation_time", SUBMITTED),
        started_s=sheet.number("scheduled_time", STARTED),
        ended_s=sheet.number("deletion_time", ENDED),
    )
    split = (pods.gpus > 1) & (pods.part < WHOLE)
    rule, fix = "only a pod on one accelerator may ask for a part of it", f"write {WHOLE}, or 1 in num_gpu"
    sheet.refuse("gpu_milli", split, rule, fix)
    early = pods.ended_s < pods.started_s
    sheet.refuse("deletion_time", early, "may not be before scheduled_time", "count both from the start of the trace")
    return pods


def _omitted_parts(sheet: InputTable, pods: Pods, keep: Bools) -> tuple[str, ...]:
    """Return phrases for the parts of the columns read that a trace cannot hold."""
    phases = set(compress(sheet.text("pod_phase"), keep.tolist()))
    unknown = [word for word, ours in STATUS_BY_WORD.items() if not ours and word in phases]
    return (
        "of scheduled_time and deletion_time more than the seconds between them",
        *["of gpu_milli the parts of an accelerator: they become whole ones"] * bool((keep & pods.fractional).any()),
        *[f"of pod_phase {' and '.join(unknown)}: they become not said"] * bool(unknown),
    )


def _notes(sheet: InputTable, pods: Pods, keep: Bools, fraction: str) -> tuple[str, ...]:
    """Return notes on pods left out, rounded or cut off; a pod left out is counted once."""
    running = np.array([phase == "Running" for phase in sheet.text("pod_phase")], dtype=np.bool_)
    part = "are left out" if fraction == "drop" else "are read as asking for a whole one (fraction = ceil)"
    return count_notes(
        {
            "pods ask for no accelerator and are left out": pods.gpus == 0,
            "pods were never scheduled and are left out": (pods.gpus > 0) & ~pods.ran,
            f"pods ask for a part of one accelerator and {part}": pods.ran & pods.fractional,
            "pods may run on some accelerator types only (gpu_spec); they are read without that constraint": keep
            & ~sheet.empty("gpu_spec"),
            "pods still ran when the log ended: their duration is cut off there": keep & running,
            f"pods have a duration of 0 s, read as {SHORTEST_S:g} s": keep & (pods.ended_s == pods.started_s),
        }
    )
