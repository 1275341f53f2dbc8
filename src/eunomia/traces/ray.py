"""Jobs, placement groups and tasks of Ray, as its state API and its job API list them in JSON.

A placement group is a gang: it reserves its accelerators from its creation until it is removed, which Ray does not log;
the end of the job that created it counts. A job that reserves accelerators for its entry point, in its metadata or in a
field of its own, is a job too, and so are the tasks and actors of a job outside of placement groups, together.
Reference: Ray, ray.util.state PlacementGroupState and TaskState, ray.job_submission JobDetails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil, isnan, nan
from pathlib import Path

import numpy as np

from eunomia.inputs.problems import refused
from eunomia.traces.accelerator_hours import HOUR_S, AcceleratorHours
from eunomia.traces.engine_objects import (
    EngineJob,
    HeldRow,
    Json,
    Objects,
    ObjectsReader,
    build_history,
    load_objects,
    row_hours,
    texts,
)
from eunomia.traces.gang_runs import one_run
from eunomia.traces.import_findings import History, ImportFindings, Kind
from eunomia.traces.ray_objects import (
    ENDED,
    PlacementGroup,
    RayTask,
    held_by_entry_point,
    job_name,
    job_times,
    needs_of_actor,
    read_group,
    read_task,
    status_of,
)
from eunomia.traces.table import Trace

COMMAND = (
    "ray list jobs --detail --format json --limit 10000; ray list placement-groups --detail --format json --limit 10000"
)
LIMITS = (100, 10_000)  # of a list: the usual one, and the most that Ray allows
UNREAD = ("entry points", "runtime environments", "metadata but for the tenant")
PARTLY = "of the times and resources more than submission, duration and accelerators"
FINDINGS: dict[str, tuple[Kind, str]] = {  # in the order in which they are reported
    "plain": ("left out", "jobs and placement groups reserve no accelerator"),
    "lost": ("left out", "placement groups, tasks or actors belong to a job that is not listed, or has no times"),
    "never": ("left out", "jobs and placement groups never started"),
    "undated": ("left out", "jobs with accelerators ended, and nothing says when; what they held is not known"),
    "actors": (
        "left out", "actors with accelerators have no task that created them in the list, so when they held them is "
        "not known (ray list tasks --detail --format json lists these tasks)",
    ),
    "late": ("assumed", "placement groups are taken to last until their job ended, as Ray does not log when they end"),
    "living": ("assumed", "actors are taken to hold their accelerators until their job ended"),
    "uneven": (
        "assumed", "jobs had tasks that did not start and end together; they are read as one run of the largest width "
        "with the same accelerator-time",
    ),
    "parts": ("assumed", "jobs ask for parts of accelerators; each part is read as a whole one"),
}  # fmt: skip


def detects(line: Sequence[str]) -> bool:
    """Return False: a list of JSON may be anything."""
    return False


def read(path: Path, *, tenant: str = "user") -> Trace:
    """Return the placement groups and jobs with accelerators; `tenant` is a key of the metadata of jobs.

    Raises InvalidInput for a file that is not of Ray, or without such jobs.
    """
    return read_history([path], tenant=tenant).trace


def read_history(paths: Sequence[Path], *, tenant: str = "user") -> History:
    """Return the jobs of lists of jobs, placement groups and tasks; arguments and errors are those of `read`."""
    return history_of(load_objects(paths, COMMAND), tenant=tenant)


def history_of(source: Objects, *, tenant: str = "user") -> History:
    """Return the jobs of objects that are loaded; arguments and errors are those of `read`."""
    found = [_identify(item) for item in source.items]
    source.names, kinds = [name for _, name in found], [kind for kind, _ in found]
    if not {"group", "job"} & set(kinds):
        rule = "there is no job and no placement group of Ray here"
        raise refused(source.name, None, None, rule, f"write the files with: {COMMAND}")
    return _Reader(source=source, kinds=kinds, tenant=tenant).history()


def _identify(item: Json) -> tuple[str, str]:
    """Return what an object is ("" for none of Ray's) and its name."""
    for key, kind in (("task_id", "task"), ("actor_id", "actor"), ("placement_group_id", "group")):
        name = texts(item, key) if key in item else ""
        if name:
            return kind, name
    name = job_name(item)
    return "job" if name and "placement_group_id" not in item else "", name


@dataclass(kw_only=True)
class _Reader(ObjectsReader):
    """The reader of Ray; `tenant` is a key of the metadata of jobs."""

    times: list[tuple[float, float]] = field(default_factory=list)  # start and end of each object
    rounded: list[HeldRow] = field(default_factory=list)  # what whole accelerators add to parts
    by_id: dict[str, int] = field(default_factory=dict)  # jobs

    def history(self) -> History:
        """Return the history of placement groups, tasks and jobs."""
        findings = ImportFindings(source=self.source)
        items = self.source.items
        self.times = [job_times(item) for item in items]
        self.leave_out_repeated(map(self._version, range(len(items))), findings)
        jobs = self.of_kind("job")
        self.by_id = {name: m for m in jobs if (name := texts(items[m], "job_id"))}
        owners: set[int] = set()
        found = self._of_groups(owners) + self._of_tasks(owners)
        found += self._of_entry_points(jobs, owners)
        findings.hours = row_hours(self.held)
        more = AcceleratorHours.summed(
            [row.type for row in self.rounded],
            [row.tenant for row in self.rounded],
            [row.hours for row in self.rounded],
        )
        self.add_findings(findings, FINDINGS, parts=more)
        if not found:
            rule = "no job here reserved accelerators in a placement group or for its entry point"
            fix = f"list jobs and placement groups of one cluster, and name both files: {COMMAND}"
            raise refused(self.source.name, None, None, rule, fix)
        history = build_history(self.source.name, found, findings, unread=UNREAD, partly=PARTLY)
        return replace(history, assumed=self._doubts())

    def _doubts(self) -> tuple[str, ...]:
        """Return a sentence on each file that holds as many objects as a list has at most."""
        size = Counter(self.source.file)
        return tuple(
            f"{name} holds {size[k]:,} entries, as many as a list of Ray has at most: there may be more (--limit)"
            for k, name in enumerate(self.source.files)
            if size[k] in LIMITS
        )

    def _version(self, m: int) -> tuple[str, bool, float]:
        """Return identity, whether it has ended, and latest time of an object."""
        item, kind = self.source.items[m], self.kinds[m]
        attempt = texts(item, "attempt_number") if kind == "task" else ""
        latest = max((value for value in self.times[m] if not isnan(value)), default=-np.inf)
        identity = f"{kind} {self.source.names[m]} {attempt}" if kind else ""
        return identity, item.get("status") in ENDED or item.get("state") in ENDED, latest

    def _end(self, job: int) -> float:
        """Return when a job ended, or was listed while it ran."""
        start, end = self.times[job]
        return max(self.listed_at[self.source.file[job]], start) if isnan(end) else end

    def _is_undated(self, job: int) -> bool:
        item = self.source.items[job]
        return item.get("status") in ENDED and isnan(self.times[job][1])

    def _of_groups(self, owners: set[int]) -> list[EngineJob]:
        """Return the jobs of placement groups; adds to the jobs that own one."""
        found = []
        for m in self.of_kind("group"):
            group = read_group(self.source.items[m])
            owner = self.by_id.get(group.owner)
            if group.width == 0:
                self.rows["plain"].append(m)
                continue
            if owner is not None:
                owners.add(owner)
            start = nan if owner is None else _or(group.created, self.times[owner][0])
            if owner is None or isnan(start):
                self.rows["lost"].append(m)
            elif group.is_pending:
                self.rows["never"].append(m)
            elif self._is_undated(owner):
                self.rows["undated"].append(m)
            else:
                self.rows["late"].append(m)
                found.append(self._of_group(m, group, owner, start))
        return found

    def _of_group(self, row: int, group: PlacementGroup, owner: int, start: float) -> EngineJob:
        end = max(start, self._end(owner))
        return self._job(
            row, group.name, owner, [(start, end, group.width)], submitted=_or(group.asked, start), kind=group.type,
            machines=group.nodes,
        )  # fmt: skip

    def _of_tasks(self, owners: set[int]) -> list[EngineJob]:
        """Return jobs for tasks and actors with accelerators outside of placement groups, one for a job and type."""
        tasks = [(m, read_task(self.source.items[m])) for m in self.of_kind("task")]
        created = {task.actor for _, task in tasks if task.creates_actor}
        self.rows["actors"] = [
            m
            for m in self.of_kind("actor")
            if needs_of_actor(self.source.items[m]) and texts(self.source.items[m], "actor_id") not in created
        ]
        by_owner: dict[tuple[int, str], list[tuple[int, RayTask]]] = {}
        for m, task in tasks:
            owner = self.by_id.get(task.owner)
            if not task.width or isnan(task.started):
                continue
            if owner is None or isnan(self.times[owner][0]):
                self.rows["lost"].append(m)
            elif self._is_undated(owner) and isnan(task.ended):
                self.rows["undated"].append(m)
            else:
                by_owner.setdefault((owner, task.type), []).append((m, task))
                owners.add(owner)
        return [self._together(owner, kind, members) for (owner, kind), members in by_owner.items()]

    def _together(self, owner: int, kind: str, members: Sequence[tuple[int, RayTask]]) -> EngineJob:
        spans = []
        for m, task in members:
            if task.creates_actor:
                self.rows["living"].append(m)
            end = self._end(owner) if isnan(task.ended) else task.ended
            spans.append((task.started, max(end, task.started), task.width))
        return self._job(
            members[0][0], f"{job_name(self.source.items[owner])}/tasks", owner, spans,
            submitted=min(_or(task.created, task.started) for _, task in members), kind=kind,
            machines=tuple(dict.fromkeys(task.node for _, task in members if task.node)),
            rows=[m for m, _ in members], is_over=not any(isnan(task.ended) for _, task in members),
        )  # fmt: skip

    def _of_entry_points(self, jobs: Sequence[int], owners: set[int]) -> list[EngineJob]:
        """Return the jobs that reserve accelerators for their entry points."""
        found = []
        for m in jobs:
            item = self.source.items[m]
            width, start = held_by_entry_point(item), self.times[m][0]
            if not width:
                self.rows["plain"] += [] if m in owners else [m]
            elif isnan(start) or item.get("status") == "PENDING":
                self.rows["never"].append(m)
            elif self._is_undated(m):
                self.rows["undated"].append(m)
            else:
                found.append(
                    self._job(m, job_name(item), m, [(start, max(start, self._end(m)), width)], submitted=start)
                )
        return found

    def _job(
        self,
        row: int,
        name: str,
        owner: int,
        spans: Sequence[tuple[float, float, float]],
        *,
        submitted: float,
        kind: str = "",
        machines: tuple[str, ...] = (),
        rows: Sequence[int] = (),
        is_over: bool = False,
    ) -> EngineJob:
        """Return one job for what was held from when to when, with whole accelerators for parts of one."""
        item = self.source.items[owner]
        run, tenant = one_run(spans), texts(item, "metadata", self.tenant)
        width = ceil(run.width)
        for m, (start, end, each) in zip(rows or [row], spans, strict=True):
            self.held.append(HeldRow(row=m, type=kind, tenant=tenant, hours=(end - start) * each / HOUR_S))
        if width != run.width:
            self.rows["parts"].append(row)
            more = (width - run.width) * run.ran_s / HOUR_S
            self.rounded.append(HeldRow(row=row, type=kind, tenant=tenant, hours=more))
        if run.is_uneven:
            self.rows["uneven"].append(row)
        still = not is_over and isnan(self.times[owner][1])
        return EngineJob(
            row=row,
            job_id=name,
            submitted=min(submitted, run.started),
            started=run.started,
            ended=nan if still else run.ended,
            ran_s=run.ran_s,
            width=width,
            tenant=tenant,
            status=status_of(item),
            ran_on=kind,
            asked_for=kind,
            machines=machines,
            pauses=run.pauses,
        )


def _or(value: float, other: float) -> float:
    return other if isnan(value) else value
