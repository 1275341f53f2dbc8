"""The files of an import: jobs, speeds and a scenario in the formats of scenarios, and the quality report."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.history.turning_point import ASSUMED
from eunomia.inputs.timestamps import is_date
from eunomia.model.arrays import Floats, Ints
from eunomia.model.topology import Node
from eunomia.throughputs.analytic import INTERVAL_FACTOR
from eunomia.throughputs.catalogue import find
from eunomia.throughputs.estimators.calibration import COLUMNS
from eunomia.traces.accelerator_hours import MOST_BEYOND, AcceleratorHours, HoursBalance
from eunomia.traces.import_findings import ImportFinding
from eunomia.traces.table import Trace
from eunomia.traces.writing import write_native

TRACE, SPEEDS, SCENARIO, QUALITY = "jobs.parquet", "throughputs.csv", "scenario.toml", "quality.json"
DAY_S = 86_400.0
POLICY_BY_ENGINE = {
    "slurm": "order of submission with EASY backfilling; Slurm's priorities and limits are not in the history",
    "kubernetes": "order of submission; a gang that does not fit is passed over, as by a scheduler of single pods",
    "ray": "order of submission; a gang that does not fit is passed over",
    "csv": "order of submission; a gang that does not fit is passed over",
    "swf": "order of submission with EASY backfilling; the log does not say how jobs were ordered",
}
BACKFILL_BY_ENGINE = {"slurm": "easy", "kubernetes": "skip", "ray": "skip", "csv": "skip", "swf": "easy"}
ANY = "any"  # job type of jobs that run on every type


@dataclass(frozen=True, kw_only=True)
class Imported:
    """The files of an import, in memory."""

    engine: str
    files: tuple[str, ...]
    trace: Trace
    ended_s: float  # of the last job, counted like submissions
    hours: AcceleratorHours  # of the trace
    balance: HoursBalance | None  # None: the reader adds up no hours of its own
    nodes: tuple[Node, ...]
    speeds: Mapping[str, float]
    reference_type: str
    stated: tuple[str, ...]  # types whose speed the user gave
    pinned: tuple[str, ...]  # types that some jobs must have
    findings: tuple[ImportFinding, ...]
    assumed: tuple[str, ...]  # about the whole history, in sentences
    unread: tuple[str, ...]
    columns: Mapping[str, str]  # of the file, by field; {} = the format says which

    def quality(self) -> dict[str, Any]:
        """Return the quality report as JSON."""
        return {
            "engine": self.engine,
            "files": list(self.files),
            "jobs": len(self.trace),
            "tenants": len(set(self.trace.tenant)),
            "first_submission": None if self.trace.began is None else self.trace.began.isoformat(),
            "days": self.ended_s / DAY_S,
            "accelerator_hours": self.hours.total,
            "accelerator_hours_check": None if self.balance is None else self.balance.as_dict(),
            "accelerators": {kind: sum(node.accelerators for node in group) for kind, group in self.by_type()},
            "machines": len(self.nodes),
            "findings": [finding.as_dict() for finding in self.findings],
            "assumed": list(self.assumed),
            "fields_not_read": list(self.unread),
            **({"columns": dict(self.columns)} if self.columns else {}),
        }

    def by_type(self) -> list[tuple[str, list[Node]]]:
        """Return the machines of each accelerator type."""
        return [(kind, list(group)) for kind, group in groupby(self.nodes, key=lambda node: node.type)]

    def write(self, folder: Path) -> None:
        """Write the trace, the speeds, the scenario and the quality report."""
        write_native(self.trace, folder / TRACE)
        table = speeds_csv(self.speeds, self.pinned, self.reference_type, self.stated)
        (folder / SPEEDS).write_text(table, encoding="utf-8")
        (folder / SCENARIO).write_text(_scenario_toml(self), encoding="utf-8")
        text = json.dumps(self.quality(), indent=2, allow_nan=False, ensure_ascii=False)
        (folder / QUALITY).write_text(text + "\n", encoding="utf-8")


def _scenario_toml(imported: Imported) -> str:
    """Return the text of the scenario file, with what was assumed as comments."""
    groups = [(node, len(list(group))) for node, group in groupby(imported.nodes)]
    nodes = ",\n".join(f"    {_node_toml(node, count)}" for node, count in groups)
    engine = imported.engine
    assumed = "\n".join(f"# - {_comment(sentence)}" for sentence in imported.assumed)
    some = any(imported.trace.tenant) and not all(imported.trace.tenant)
    date = imported.trace.began
    began = f'began = "{date:%Y-%m-%d %H:%M:%S}"  # local date and time at 0 s\n' if is_date(date) else ""
    own = 'missing_vc = "own"  # jobs that name no tenant are those of a tenant called -\n' * some
    return f"""\
# Written by `eunomia import {engine}` from {", ".join(map(_comment, imported.files))}; every line may be edited.
# Assumed, beside what {QUALITY} counts:
{assumed}

[cluster]
nodes = [
{nodes},
]

[workload]
trace = "{TRACE}"
interruptible = true  # assumed: a preempted job goes on from where it saved; false: no job is preempted
{began}{own}
[throughputs]
source = "{SPEEDS}"
reference_type = {json.dumps(imported.reference_type)}

[policy]  # {POLICY_BY_ENGINE[engine]}
name = "fifo"
backfill = "{BACKFILL_BY_ENGINE[engine]}"

[overheads]  # assumed: seconds that a preempted job loses
checkpoint_s = {ASSUMED.checkpoint_s:g}  # to save before it stops
restore_s = {ASSUMED.restore_s:g}  # to start again and restore; a first start is in the logged run time
"""


def _comment(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _node_toml(node: Node, count: int) -> str:
    """Return a group of machines."""
    rest = f", cpus = {node.cpus:g}" * bool(node.cpus) + f", memory_gib = {node.memory_gib:.6g}" * bool(node.memory_gib)
    kind = json.dumps(node.type, ensure_ascii=False)
    return f"{{ type = {kind}, count = {count}, accelerators = {node.accelerators}{rest} }}"


def only(kind: str) -> str:
    """Return the job type of jobs that run on no other accelerator type."""
    return f"only {kind}"


def speeds_csv(speeds: Mapping[str, float], pinned: Sequence[str], reference: str, stated: Collection[str]) -> str:
    """Return the long table: one job type for jobs that run anywhere, one for each type in `pinned`.

    Durations are counted on `reference`, so its speed is exact, as are those that the user has `stated`. Others are
    estimates: of a type in the catalogue within a factor, of any other type as slow or fast as the catalogue goes.
    """
    least, most = min(1.0, *speeds.values()), max(1.0, *speeds.values())
    exact = {reference, *stated}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for kind, speed in speeds.items():
        known = all(find(name) is not None or name in stated for name in (kind, reference))
        low, high = (1 / INTERVAL_FACTOR, INTERVAL_FACTOR) if known else (least, most)
        low, high, origin = (1.0, 1.0, "measured") if kind in exact else (low, high, "estimated")
        row = [*(f"{speed * factor:g}" for factor in (1.0, low, high)), origin]
        writer.writerow([kind, ANY, 1, *row])
        for name in pinned:
            writer.writerow([kind, only(name), 1, *(row if name == kind else [0, 0, 0, "measured"])])
    return text.getvalue()


def why_no_past(imported: Imported) -> str:
    """Return why the schedule as it was cannot stand beside policies here, in a sentence; "" if it can."""
    trace = imported.trace
    if np.isnan(trace.started_s).any():
        missing = int(np.isnan(trace.started_s).sum())
        return f"{missing:,} of {len(trace):,} jobs have no start"
    capacity: Counter[str] = Counter()
    for node in imported.nodes:
        capacity[node.type] += node.accelerators
    strange = sorted(set(trace.ran_on) - capacity.keys())
    if strange:
        return (
            f"jobs ran on {', '.join(strange)}, and the cluster has {', '.join(capacity)} (--type names another type)"
        )
    slower = np.array([imported.speeds[imported.reference_type] / imported.speeds[kind] for kind in trace.ran_on])
    end_s = np.where(np.isnan(trace.ended_s), trace.started_s + trace.duration_s * slower, trace.ended_s)
    for kind, most in capacity.items():
        own = np.flatnonzero([name == kind for name in trace.ran_on])
        part = _beyond(*_changes(trace, end_s, own), most)
        if part > MOST_BEYOND:
            return f"{100 * part:.0f} % of the time that jobs held {kind} is beyond the {most:,} of the cluster"
    return ""


def _changes(trace: Trace, end_s: Floats, rows: Ints) -> tuple[Floats, Ints]:
    """Return when these jobs take and give back accelerators, (change,), and how many; `end_s` is (job,)."""
    start_s, width = trace.started_s[rows], trace.scale_factor[rows]
    pauses = [
        (start + begin, start + end, size)
        for m, start, size in zip(rows.tolist(), start_s.tolist(), width.tolist(), strict=True)
        for begin, end in trace.pauses[m]
    ]
    begins, ends, sizes = (np.array([pause[k] for pause in pauses]) for k in range(3))
    return np.concatenate([start_s, end_s[rows], begins, ends]), np.concatenate([width, -width, -sizes, sizes])


def _beyond(at: Floats, change: Ints, capacity: int) -> float:
    """Return the fraction of accelerator-time that is beyond a capacity."""
    order = np.argsort(at, kind="stable")
    level = np.cumsum(change[order])
    length = np.diff(at[order], append=at.max(initial=0.0))
    held = float((level * length).sum())
    return float((np.maximum(level - capacity, 0) * length).sum()) / held if held > 0 else 0.0
