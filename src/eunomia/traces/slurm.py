"""Slurm's accounting, as `sacct --parsable2` writes it, a line per job, run of a job, and step, or as `sacct --json`.

Fields may be in any order, and any further ones may be there. A job that was requeued has a line for each run
(`--duplicates`): its submission is that of the first, since Slurm resets the time at each requeue. Elapsed excludes the
time for which a job was suspended. Reference: SchedMD, sacct(1), "Job Accounting Fields" and "Job State Codes".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eunomia.inputs.options import one_of
from eunomia.inputs.problems import InvalidInput, refused
from eunomia.inputs.slurm_values import JOB_STATES, expand_hosts
from eunomia.inputs.time_zone import read_zone
from eunomia.inputs.timestamps import date_at
from eunomia.model.arrays import Bools, Ints
from eunomia.traces.accelerator_hours import HOUR_S, AcceleratorHours
from eunomia.traces.import_findings import History, ImportFindings
from eunomia.traces.machine_lists.named_nodes import UNNAMED
from eunomia.traces.notes import SHORTEST_S
from eunomia.traces.run_times import offset_s
from eunomia.traces.sacct_demands import NO_WHOLE_MACHINES, WholeMachines
from eunomia.traces.sacct_file import is_header
from eunomia.traces.sacct_jobs import JobParts, SacctJobs, group_runs, parts_of
from eunomia.traces.sacct_json import begins_sacct
from eunomia.traces.sacct_lines import SacctLines, read_lines
from eunomia.traces.sacct_runs import RUNNING, TENANT_FIELDS, Runs, read_runs
from eunomia.traces.table import Trace, trace_of

REQUEUES = ("sum", "last")
INSTANT = (
    "COMPLETED",
    "FAILED",
    "TIMEOUT",
    *RUNNING,
)  # states in which a job that held nothing for a second had started
LOGGED = ("Start", "End", "Elapsed", "ElapsedRaw", "Suspended", "NodeList", "Restarts")  # read, in part
NO_GRES = ("cpu", "mem", "node", "billing", "energy", "fs", "vmem", "pages", "bb", "ic", "license")
GRES_NAMES = (  # of the generic resource of a text, in the order in which they are tried
    r"gres/(?P<name>[A-Za-z_]\w*)",
    r"(?:^|,)(?P<name>1\d{3})=",  # by its number
    r"(?:^|,)(?P<name>[a-z_]+)[:=]",  # of AllocGRES
)
GRES_OPTION = "--option gres=NAME"  # as it is typed where a trace is read


def detects(line: Sequence[str]) -> bool:
    """Say whether the comma-separated cells of a first line are a header of sacct, or begin its JSON."""
    text = ",".join(line)
    return is_header(text) or begins_sacct(text)


def read(path: Path, *, tenant: str = "account", requeues: str = "sum", gres: str = "gpu", timezone: str = "") -> Trace:
    """Return the jobs that ran on accelerators, by submission.

    `tenant` names the field that becomes the tenant, `gres` the generic resource that is an accelerator; the duration
    of a requeued job is the sum of its runs, or that of its last one. `timezone` is that of the times, such as
    Europe/Berlin: needed only where clocks were changed. Raises InvalidInput for a file that is not of sacct, or
    without such jobs.
    """
    return read_history([path], tenant=tenant, requeues=requeues, gres=gres, timezone=timezone).trace


def read_history(
    paths: Sequence[Path],
    *,
    tenant: str = "account",
    requeues: str = "sum",
    gres: str = "gpu",
    timezone: str = "",
    whole_machines: WholeMachines = NO_WHOLE_MACHINES,
    gres_option: str = GRES_OPTION,
) -> History:
    """Return the jobs of one or several files with the schedule as it was; arguments and errors are those of `read`.

    `whole_machines` says which jobs held all accelerators of their machines, `gres_option` how `gres` is typed by the
    caller's user, for messages.
    """
    name = str(paths[0])
    one_of(name, "tenant", tenant, tuple(TENANT_FIELDS))
    one_of(name, "requeues", requeues, REQUEUES)
    zone = read_zone(timezone, "timezone", name) if timezone else None
    lines = read_lines(paths)
    findings = ImportFindings(source=lines, kept=list(lines.findings))
    runs = read_runs(lines, findings, tenant=tenant, gres=gres, zone=zone, whole_machines=whole_machines)
    jobs = group_runs(runs, findings)
    parts = parts_of(jobs, requeues, findings)
    instant = _sort_out(lines, jobs, parts, findings, gres_option)
    return _history(lines, jobs, _with_instants(jobs, parts, instant), findings)


def _sort_out(lines: SacctLines, jobs: SacctJobs, parts: JobParts, findings: ImportFindings, gres_option: str) -> Ints:
    """Return the jobs that started and ended within a second; findings get the jobs that are left out.

    Raises InvalidInput where no job held an accelerator.
    """
    runs, first, last = jobs.runs, jobs.first, jobs.last
    held = np.zeros(len(first), dtype=np.bool_)
    held[parts.job] = True
    width = runs.of_resources(runs.held, lambda each: each.accelerators)
    asked = np.maximum.reduceat(
        np.maximum(width, runs.of_resources(runs.requested, lambda each: each.accelerators)), first
    )
    never = np.add.reduceat(np.nan_to_num(runs.elapsed_s), first) == 0
    started = ~np.isnan(np.fmin.reduceat(runs.started_s, first)) & np.isfinite(np.fmax.reduceat(runs.elapsed_s, first))
    instant = never & (asked > 0) & runs.is_in(INSTANT)[last] & started
    row = runs.row[last]
    for what, left_out in (
        ("jobs asked for no accelerator", (asked == 0) & ~held),
        ("jobs with accelerators never ran", (asked > 0) & never & ~instant),
        ("jobs ran without the accelerators that they asked for", (asked > 0) & ~never & ~held),
    ):
        findings.add("left out", what, row[left_out], held_by=runs.row[np.repeat(left_out, jobs.size)])
    if not (held | instant).any():
        raise _no_accelerators(lines, len(first), gres_option)
    kept = held | instant
    findings.add(
        "assumed", "jobs still ran when sacct was asked; their duration is cut off there",
        row[kept & runs.is_in(RUNNING)[last]],
    )  # fmt: skip
    findings.add(
        "assumed", "jobs reached their time limit (TIMEOUT, DEADLINE); what they needed beyond it is unknown",
        row[kept & runs.is_in(("TIMEOUT", "DEADLINE"))[last]],
    )  # fmt: skip
    return np.flatnonzero(instant)


def _no_accelerators(lines: SacctLines, jobs: int, gres_option: str) -> InvalidInput:
    """Return the error for a history in which no job held an accelerator, with the likely cause."""
    texts = lines.first_of("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES")
    found = [pc.struct_field(pc.extract_regex(texts, pattern=pattern), "name") for pattern in GRES_NAMES]
    counts = {
        each["values"]: int(each["counts"])
        for each in pc.value_counts(pc.drop_null(pc.coalesce(*found))).to_pylist()
        if each["values"] not in NO_GRES
    }
    rule = f"no job of {jobs:,} ran on an accelerator"
    if counts:
        most = max(counts, key=lambda name: counts[name])
        name = f"resource number {most}" if most.isdigit() else f"gres/{most}"
        rule += f"; {counts[most]:,} lines name {name}"
        fix = f"if that is the accelerator, add {gres_option.replace('NAME', most)}"
        fix += " (sacctmgr show tres lists the numbers)" if most.isdigit() else ""
    elif lines.has("AllocTRES") and lines.has("ReqTRES"):
        rule += ", and no line names a generic resource"
        fix = (
            "most likely the site does not account its accelerators: AccountingStorageTRES in slurm.conf lacks "
            "gres/gpu (see scontrol show config); with it, jobs are accounted from then on. Of earlier "
            "jobs only the machines are known: where a partition gives whole machines, name it with "
            "--exclusive PARTITION, and the machines with --nodes. Of jobs that run now, GresUsed of "
            "scontrol show nodes --details has the accelerators. If the resource has another name: " + gres_option
        )
    else:
        fix = f"ask sacct for AllocTRES and ReqTRES; if the resource has another name, add {gres_option}"
    return refused(lines.name, "AllocTRES", None, rule, fix)


def _with_instants(jobs: SacctJobs, parts: JobParts, instant: Ints) -> JobParts:
    """Return the parts and one for each of the `instant` jobs, with what it held or asked for in its last run."""
    if not len(instant):
        return parts
    runs, last = jobs.runs, jobs.last[instant]
    which = np.where(
        runs.of_resources(runs.held, lambda each: each.accelerators)[last] > 0, runs.held[last], runs.requested[last]
    )
    return parts.joined(
        JobParts(
            job=instant,
            type=tuple(runs.resources[k].type for k in which.tolist()),
            width=np.array([max(runs.resources[k].accelerators, 1) for k in which.tolist()], dtype=np.int64),
            lasted_s=np.zeros(len(instant)),
            first=last,
            last=last,
            size=jobs.size[instant],
            is_broken=np.zeros(len(instant), dtype=np.bool_),
            gaps={},
            is_first=np.ones(len(instant), dtype=np.bool_),
            is_main=np.ones(len(instant), dtype=np.bool_),
        )
    )


def _history(lines: SacctLines, jobs: SacctJobs, parts: JobParts, findings: ImportFindings) -> History:
    """Return the history of the parts of jobs, each a job of its own."""
    runs = jobs.runs
    tail = runs.take(parts.last)
    tenants = tuple(name or "" for name in tail.tenant.to_pylist())
    _note_parts(parts, tail, tenants, findings)
    whole_first = jobs.first[parts.job]
    submitted = np.where(parts.is_first, runs.submitted_s[whole_first], runs.submitted_s[parts.first])
    eligible = np.where(parts.is_first, runs.eligible_s[whole_first], runs.eligible_s[parts.first])
    first_start = np.fmin.reduceat(runs.started_s, jobs.first)[parts.job]
    started = np.where(parts.is_first, first_start, runs.started_s[parts.first])
    origin = float(submitted.min())
    eligible = np.where((eligible > submitted) & ~(eligible > started), eligible, np.nan)
    findings.add(
        "assumed", "jobs became eligible to start after their submission (begin time, dependency, hold, array limit); "
        "they wait from then on", tail.row[~np.isnan(eligible)],
    )  # fmt: skip
    ended = np.where(parts.is_broken, tail.over_s, np.nan)
    ended = np.where(ended > started, ended, np.nan)
    pauses = parts.pauses(started, ended)
    states = [JOB_STATES.get(word or "", ("", ""))[1] for word in runs.state.dictionary.to_pylist()]
    restarts = np.nan_to_num(lines.numbers("Restarts"))[tail.row].astype(np.int64)
    trace = trace_of(
        lines.name,
        _names(jobs, parts),
        submitted - origin,
        parts.width,
        duration_s=np.maximum(parts.lasted_s, SHORTEST_S),
        tenant=tenants,
        cpus=tail.of_resources(tail.allocated, lambda each: each.cpus).astype(np.float64),
        memory_gib=tail.of_resources(tail.allocated, lambda each: each.memory_gib).astype(np.float64),
        status=tuple(states[k] for k in np.asarray(tail.state.indices).tolist()),
        retries=np.maximum(parts.size - 1, np.where(parts.is_main, restarts, 0)),
        ended_s=ended - origin,
        pauses=pauses,
        eligible_s=eligible - origin,
        row=lines.line[tail.row],
        began=date_at(origin + (0.0 if runs.zone is None else offset_s(submitted, runs.zone))),
        unread=lines.unread,
        partly=(f"of {', '.join(name for name in LOGGED if lines.has(name))} more than durations and retries",),
        notes=findings.notes(),
    )
    history = History(
        trace=trace,
        started_s=started - origin,
        ended_s=tail.ended_s - origin,
        ran_on=parts.type,
        asked_for=tuple(tail.of_resources(tail.requested, lambda each: each.type).tolist()),
        machines=_hosts(tail.nodes, parts.of_several_types),
        findings=tuple(findings.kept),
        hours=None if findings.hours is None else findings.hours.total(),
    )
    order = np.argsort(trace.submitted_s, kind="stable")
    return history if bool((np.diff(order) > 0).all()) else history.take(order)


def _note_parts(parts: JobParts, tail: Runs, tenants: tuple[str, ...], findings: ImportFindings) -> None:
    """Add what is missing of the parts, and the hours that they have beyond those of their lines."""
    zero = parts.lasted_s == 0
    added = (parts.width * SHORTEST_S / HOUR_S)[zero].tolist()
    places = np.flatnonzero(zero).tolist()
    findings.add(
        "repaired", f"jobs ran for 0 s, read as {SHORTEST_S:g} s", tail.row[zero],
        change=AcceleratorHours.summed((parts.type[m] for m in places), (tenants[m] for m in places), added),
    )  # fmt: skip
    findings.add("missing", "jobs name no tenant", tail.row[np.array([not name for name in tenants], dtype=np.bool_)])
    unnamed = np.array([not kind for kind in parts.type], dtype=np.bool_)
    findings.add("missing", "jobs name no accelerator type in AllocTRES", tail.row[unnamed])


def _names(jobs: SacctJobs, parts: JobParts) -> list[str]:
    """Return the id of each part: the job's, with #2 where an id was given again and @TYPE where it is not the main."""
    names: list[str] = jobs.runs.job_id.take(pa.array(jobs.first[parts.job])).to_pylist()
    again = jobs.again[parts.job]
    for m in np.flatnonzero((again > 0) | ~parts.is_main).tolist():
        names[m] += f"#{again[m] + 1}" * bool(again[m]) + f"@{parts.type[m] or UNNAMED}" * (not parts.is_main[m])
    return names


def _hosts(nodes: pa.DictionaryArray, unknown: Bools) -> tuple[tuple[str, ...], ...]:
    """Return the machines of each run; none where it is not known which of them held a type."""
    lists = [expand_hosts(text or "") for text in nodes.dictionary.to_pylist()]
    return tuple(
        () if out else lists[k] for k, out in zip(np.asarray(nodes.indices).tolist(), unknown.tolist(), strict=True)
    )
