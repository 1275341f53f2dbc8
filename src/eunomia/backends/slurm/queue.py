"""Slurm's queue as it is now: what each job asks for, how long it may run, and when Slurm expects it to start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from eunomia.backends.engines.engine import QUEUED, RUNS
from eunomia.backends.slurm.states import accelerators, phase
from eunomia.inputs.slurm_values import seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """One job that waits or runs, or the waiting rest of an array."""

    number: str
    name: str
    user: str
    account: str
    partition: str
    state: str
    reason: str
    accelerators: int  # of the gang
    types: tuple[str, ...]  # any of which will do; empty = any
    per_node: int  # accelerators on each node; 0 = as it comes
    nodes: int
    tasks: int  # jobs that this stands for: more than 1 for the rest of an array
    priority: int
    limit_s: float  # inf = none
    elapsed_s: float
    submitted: float  # wall clock; nan = not known
    started: float  # when it began, or when Slurm expects that; nan = it does not say
    ended: float  # when it ended, or when its limit ends it; nan = it does not say
    node_list: str  # Slurm's, such as v100-[0-1]; "" while it waits
    mark: str  # administrator's comment
    may_requeue: bool  # Slurm may stop it and start it again: its own word (--requeue, --no-requeue), else the site's

    @property
    def is_held(self) -> bool:
        """Whether Slurm will not start it until it is released."""
        return phase(self.state) == QUEUED and self.reason in ("JobHeldUser", "JobHeldAdmin")

    @property
    def waits(self) -> bool:
        return phase(self.state) == QUEUED

    @property
    def runs(self) -> bool:
        return phase(self.state) == RUNS


def read_queue(found: Sequence[dict[str, str]], types: Sequence[str] = ()) -> list[QueuedJob]:
    """Return the jobs of `scontrol show job`; constraints are read as accelerator types where they name some."""
    return [_job(record, types) for record in found if "JobId" in record]


def _job(record: dict[str, str], types: Sequence[str]) -> QueuedJob:
    nodes = _count(record.get("NumNodes", ""))
    by_type: dict[str, int] = {}
    per_node = 0
    for key in ("TresPerNode", "TresPerJob", "TresPerTask"):
        asked = accelerators(record.get(key, ""))
        if asked and not by_type:
            times = {"TresPerNode": nodes, "TresPerJob": 1, "TresPerTask": _count(record.get("NumTasks", ""))}[key]
            per_node = sum(asked.values()) if key == "TresPerNode" else 0
            by_type = {name: count * times for name, count in asked.items()}
    wanted = tuple(name for name in by_type if name != "gpu")
    if not wanted:
        features = record.get("Features", "").replace("&", "|").replace(",", "|").split("|")
        wanted = tuple(name for name in features if name in types)
    limit = seconds(record.get("TimeLimit", ""))
    return QueuedJob(
        number=record["JobId"],
        name=record.get("JobName", ""),
        user=record.get("UserId", "").partition("(")[0],
        account=_text(record.get("Account", "")),
        partition=record.get("Partition", ""),
        state=record.get("JobState", ""),
        reason=record.get("Reason", ""),
        accelerators=sum(by_type.values()),
        types=wanted,
        per_node=per_node,
        nodes=nodes,
        tasks=_tasks(record.get("ArrayTaskId", "")),
        priority=_count(record.get("Priority", ""), 0),
        limit_s=math.inf if limit is None else limit,
        elapsed_s=seconds(record.get("RunTime", "")) or 0.0,
        submitted=_time(record.get("SubmitTime", "")),
        started=_time(record.get("StartTime", "")),
        ended=_time(record.get("EndTime", "")),
        node_list=_text(record.get("NodeList", "")),
        mark=_text(record.get("AdminComment", "")),
        may_requeue=record.get("Requeue") == "1",
    )


def _count(text: str, default: int = 1) -> int:
    """Return the number at the beginning of `4` or `4-8`; the default for N/A."""
    digits = text.partition("-")[0]
    return int(digits) if digits.isdigit() else default


def _text(value: str) -> str:
    return "" if value == "(null)" else value


def _time(text: str) -> float:
    """Return a wall-clock time; nan for Unknown and N/A."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return math.nan


def _tasks(text: str) -> int:
    """Return how many tasks of an array `0-3,7%2` stands for."""
    count = 0
    for part in text.partition("%")[0].split(","):
        first, _, last = part.partition(":")[0].partition("-")
        if first.isdigit():
            count += (int(last) if last.isdigit() else int(first)) - int(first) + 1
    return max(count, 1)
