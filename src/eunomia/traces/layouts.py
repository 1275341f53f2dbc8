"""Published tables whose columns are fields of a trace: one reader, and a layout for each format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.inputs.bounds import MOST_S
from eunomia.inputs.field_rules import (
    ACCELERATORS,
    DEADLINE,
    DEMAND,
    DURATION,
    FLAG,
    SCALE_FACTOR,
    SPAN,
    SUBMITTED,
    Rule,
)
from eunomia.inputs.open_table import read_table
from eunomia.inputs.options import chosen, flag, one_of
from eunomia.inputs.timestamps import since_first
from eunomia.model.arrays import Floats
from eunomia.traces.notes import MODELS, clamped_note, count_notes, drop_cpu_jobs, replace_zero_durations
from eunomia.traces.table import Trace, build_trace, trace_of

MILLISECONDS = 1000.0  # of a second
SYNTHETIC = "deadlines and models are synthetic, added by the authors of ElasticFlow to real jobs; models are {models}"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which columns of a table, a line per job, are which fields. A column named "" is not in the file."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    job_id: str
    submitted: str
    width: str  # accelerators
    duration: str
    submitted_rule: Rule = SUBMITTED
    duration_rule: Rule = DURATION  # SPAN: 0 s are read as 1 s
    unit: float = 1.0  # of times: so many are a second
    is_dated: bool = False  # submissions are local dates, and jobs without accelerators are left out
    logged: str = ""  # duration in the log; the jobs that have another one here are counted
    clamped: str = ""  # 1 for a duration that the published extract cuts off
    tenant: str = ""
    tenants: tuple[str, ...] = ()  # columns of which the option `tenant` names one; the first without it
    cluster: bool = False  # the option `cluster` keeps the jobs of one tenant
    models: str = ""  # the option `models` makes this column the job type
    app: str = ""
    deadline: str = ""
    cpus: str = ""
    status: str = ""
    words: Mapping[str, str] = field(default_factory=dict)  # of the status → ours; without a column that of all, by ""
    merged: tuple[str, ...] = ()  # words of which a trace says only that these failed
    notes: tuple[str, ...] = ()  # {models}: whether models are kept

    @property
    def options(self) -> dict[str, Any]:
        """The options of the reader with their defaults."""
        named = {"tenant": self.tenants[:1], "cluster": ("",) * self.cluster, "models": (False,) * bool(self.models)}
        return {name: values[0] for name, values in named.items() if values}

    def read(self, path: Path, **given: Any) -> Trace:
        """Return the trace, by submission. Raises InvalidInput with everything that is wrong with the file."""
        options = self.options | given
        models = options.get("models", False)
        flag(str(path), "models", models)
        if self.tenants:
            one_of(str(path), "tenant", options["tenant"], self.tenants)
        sheet = read_table(path)
        sheet.expect(self.required, self.optional)
        began = None
        clamped = sheet.number(self.clamped, FLAG) if self.clamped else None
        ran_s: Floats = sheet.number(self.duration, self.duration_rule) / self.unit
        logged_s = sheet.number(self.logged, self.duration_rule) if self.logged else ran_s
        duration_s, zeros = replace_zero_durations(ran_s) if self.duration_rule is SPAN else (ran_s, ())
        job_id = sheet.unique(self.job_id)
        if self.is_dated:
            submitted_s, began = since_first(sheet.moment(self.submitted))
        else:
            submitted_s = sheet.number(self.submitted, self.submitted_rule) / self.unit
        width = sheet.whole(self.width, ACCELERATORS if self.is_dated else SCALE_FACTOR)
        known: dict[str, Any] = {"duration_s": duration_s, "began": began}
        for name, column in (("tenant", options.get("tenant", self.tenant)), ("app", self.app)):
            if column:
                known[name] = sheet.filled(column)
        if models:
            known["job_type"] = sheet.filled(self.models)
        if self.deadline:
            known["deadline_s"] = sheet.deadline(self.deadline, DEADLINE, submitted_s)
        if self.words:
            known["status"] = sheet.renamed(self.status, self.words) if self.status else (self.words[""],) * len(sheet)
        if self.cpus:
            known["cpus"] = sheet.number(self.cpus, DEMAND)
        hints = MODELS if self.models else {name: f"tenant={name}" for name in self.tenants}
        known["unread"] = sheet.unread(*filter(None, (self.clamped, self.logged)), instead=hints)
        if self.is_dated:
            trace = trace_of(sheet.file, job_id, submitted_s, width, row=sheet.line, **known)
            sheet.raise_if_any()
            merged = [word for word in self.merged if word in sheet.text(self.status)]
            trace = replace(trace, partly=(f"of state {' and '.join(merged)}: they become failed",) * bool(merged))
            return drop_cpu_jobs(trace, ran_s, self.width)
        notes = [note.format(models="kept as job types" if models else "left out") for note in self.notes]
        cut = () if clamped is None else clamped_note(ran_s, clamped)
        scaled = count_notes(
            {"jobs last longer or shorter here than they did in the log": np.abs(ran_s - logged_s) > 0}
        )
        trace = build_trace(sheet, job_id, submitted_s, width, notes=(*notes, *zeros, *cut, *scaled), **known)
        if not self.cluster:
            return trace
        return trace.take(np.flatnonzero(chosen(sheet.file, "cluster", options["cluster"], trace.tenant)))


HELIOS = Layout(  # jobs of a Helios cluster as SenseTime published them, 2020 (Q. Hu et al., SC 2021): cluster_log.csv
    required=("job_id", "user", "vc", "gpu_num", "state", "submit_time", "duration"),
    optional=("cpu_num", "node_num", "start_time", "end_time", "queue"),
    job_id="job_id", submitted="submit_time", width="gpu_num", duration="duration", duration_rule=SPAN, is_dated=True,
    tenants=("vc", "user"), cpus="cpu_num", status="state",
    words={
        "COMPLETED": "finished", "CANCELLED": "cancelled", "FAILED": "failed", "TIMEOUT": "failed",
        "NODE_FAIL": "failed",
    },
    merged=("TIMEOUT", "NODE_FAIL"),
)  # fmt: skip
OUTCOMES = Layout(  # jobs with users and outcomes, as extracted from the logs of Philly and of Venus
    required=("row", "submit_time", "user", "gpus", "nodes", "run_time_s", "status"),
    optional=("submit_s", "cpus", "job_id", "job_index"),
    job_id="row", submitted="submit_time", width="gpus", duration="run_time_s", duration_rule=SPAN, is_dated=True,
    tenant="user", cpus="cpus", status="status",
    words={"Pass": "finished", "Killed": "cancelled", "Failed": "failed"},
)  # fmt: skip
ITP = Layout(  # jobs of Microsoft's ITP clusters, 2021, published with ElasticFlow (D. Gu et al., ASPLOS 2023)
    # Submissions, sizes and durations are real. The clusters are independent of each other: together each is a tenant.
    required=("cluster", "job_id", "submission_time", "duration", "num_gpu"),
    optional=("model_name", "batch_size", "num_iteration", "deadline"),
    job_id="job_id", submitted="submission_time", width="num_gpu", duration="duration", tenant="cluster", cluster=True,
    models="model_name", deadline="deadline",
    notes=(SYNTHETIC,),
)  # fmt: skip
PHILLY_DEADLINES = Layout(  # jobs of one virtual cluster of Philly with deadlines, published with ElasticFlow
    # `duration` and `iteration` are as the authors ran them, `real_duration` and `real_iteration` as logged.
    required=("job_id", "submit_time", "ddl", "num_gpu", "duration", "real_duration"),
    optional=("model_name", "batch_size", "real_iteration", "iteration"),
    job_id="job_id", submitted="submit_time", width="num_gpu", duration="duration", logged="real_duration",
    models="model_name", deadline="ddl", notes=(SYNTHETIC,),
)  # fmt: skip
LINGJUN = Layout(  # jobs of Alibaba's Lingjun cluster, 2023 (J. Cao et al., SIGCOMM 2024); durations are whole minutes
    required=("job_index", "submit_s", "gpus", "service_s"),
    job_id="job_index", submitted="submit_s", width="gpus", duration="service_s", duration_rule=SPAN,
    notes=("submission times are the starts of the jobs: their waits in the queue are not recorded",),
)  # fmt: skip
PAI = Layout(  # tasks of Alibaba's PAI cluster, 2020 (Q. Weng et al., NSDI 2022); tasks of one job share an app
    required=("task_row", "job_name", "start_s", "gpus", "service_s", "clamped"),
    optional=("task_name",),
    job_id="task_row", submitted="start_s", width="gpus", duration="service_s", clamped="clamped", app="job_name",
    words={"": "finished"},
    notes=(
        "submission times are the starts of the tasks: their waits in the queue are not recorded",
        "sizes are the number of instances with each part of an accelerator rounded up to one, so demand is inflated",
        "the table is a sample of tasks that ended well; scale the cluster down to match",
    ),
)  # fmt: skip
MURI = Layout(  # traces of Muri (Y. Zhao et al., SIGCOMM 2022): one virtual cluster of Philly a file, times in ms
    required=("job_id", "num_gpu", "submit_time", "duration", "resource_time_0", "resource_time_1", "resource_time_2"),
    optional=("iterations", "model_name", "batch_size", "interval", "iteration_time", "priority"),
    job_id="job_id", submitted="submit_time", width="num_gpu", duration="duration", unit=MILLISECONDS,
    submitted_rule=Rule(
        what="a finite number of milliseconds, at least 0", least=0.0,
        fix="write the submission time as milliseconds since the trace began",
    ),
    duration_rule=Rule(
        what="a number of milliseconds above 0, at most 1e15", above=0.0, most=MILLISECONDS * MOST_S,
        fix="write how long the job runs, or leave the job out",
    ),
    models="model_name",
    notes=(
        "submissions and durations are milliseconds in the file, read as seconds",
        "models and priorities were drawn at random by the authors; models are {models}, priorities left out",
        "jobs that passed, failed or were killed are here alike, and the file does not say which",
    ),
)  # fmt: skip
RFOLD = Layout(  # traces as converted for RFold's workload generator, among them Philly's and Lingjun's
    # A time is a start where the original has no submission, a duration the span from first start to last end.
    required=("#job id", "arrival time (sec)", "size", "duration (sec)"),
    optional=("topology", "shape"),
    job_id="#job id", submitted="arrival time (sec)", width="size", duration="duration (sec)", duration_rule=SPAN,
    notes=("the file says neither how jobs ended nor whether its times are submissions or starts",),
)  # fmt: skip
