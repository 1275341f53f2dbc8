"""The files of an import: jobs, speeds and a scenario in the formats of scenarios, and the quality report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from eunomia.history.preemption_costs import ASSUMED
from eunomia.history.speeds_table import speeds_csv
from eunomia.inputs.timestamps import is_date
from eunomia.model.topology import Node
from eunomia.traces.accelerator_hours import AcceleratorHours, HoursBalance
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
