"""Slurm's accounting, as `sacct --parsable2` writes it: a header and a line per job, run of a job, and step.

Fields may be in any order, and any further ones may be there. A job that was requeued has a line for each run
(`--duplicates`): its submission is that of the first, since Slurm resets the time at each requeue. Elapsed excludes the
time for which a job was suspended. Reference: SchedMD, sacct(1), "Job Accounting Fields" and "Job State Codes".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eunomia.inputs.options import one_of
from eunomia.inputs.problems import refused
from eunomia.inputs.timestamps import since_first
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.traces.import_findings import History, ImportFindings
from eunomia.traces.notes import SHORTEST_S
from eunomia.traces.sacct_lines import SacctLines, is_header, read_lines
from eunomia.traces.slurm_fields import (
    Resources,
    expand_hosts,
    parse_gres,
    parse_tres,
    read_moments,
    read_numbers,
    read_spans,
)
from eunomia.traces.table import Trace, in_order, trace_of

STATUS_BY_STATE = {
    "COMPLETED": "finished",
    "FAILED": "failed",
    "OUT_OF_MEMORY": "failed",
    "NODE_FAIL": "failed",
    "BOOT_FAIL": "failed",
    "LAUNCH_FAILED": "failed",
    "TIMEOUT": "failed",
    "DEADLINE": "failed",
    "CANCELLED": "cancelled",
    "PREEMPTED": "cancelled",
    "REVOKED": "cancelled",
    "REQUEUED": "",
    "RESIZING": "",
    "PENDING": "",
    "RUNNING": "",
    "SUSPENDED": "",
    "COMPLETING": "",
    "CONFIGURING": "",
    "STOPPED": "",
    "STAGE_OUT": "",
    "SIGNALING": "",
    "REQUEUE_HOLD": "",
    "SPECIAL_EXIT": "failed",
}
RUNNING = ("RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "STAGE_OUT", "SIGNALING")
CONTINUED = ("REQUEUED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "RESIZING", "REQUEUE_HOLD")  # a further run may follow
SAME_JOB_S = 86_400.0  # between the end of a run and the next submission; an id is given again only years later
TENANTS = ("account", "user", "partition", "qos")
REQUEUES = ("sum", "last")
CLOCK_S = 2.0  # by which two roundings to seconds may differ
LOGGED = ("Start", "End", "Elapsed", "ElapsedRaw", "Suspended", "NodeList", "Eligible", "Restarts")  # read, in part


_BY_RUN = (
    "row", "key", "submitted_s", "started_s", "ended_s", "elapsed_s", "resource", "asked_for", "node_count"
)  # fmt: skip


def detects(line: Sequence[str]) -> bool:
    """Say whether the comma-separated cells of a first line are a header of sacct."""
    return is_header(",".join(line))


def read(path: Path, *, tenant: str = "account", requeues: str = "sum", gres: str = "gpu") -> Trace:
    """Return the jobs that ran on accelerators, by submission.

    `tenant` names the field that becomes the tenant, `gres` the generic resource that is an accelerator; the duration
    of a requeued job is the sum of its runs, or that of its last one. Raises InvalidInput for a file that is not of
    sacct, or without such jobs.
    """
    return read_history([path], tenant=tenant, requeues=requeues, gres=gres).trace


def read_history(
    paths: Sequence[Path], *, tenant: str = "account", requeues: str = "sum", gres: str = "gpu"
) -> History:
    """Return the jobs of one or several files with the schedule as it was; arguments and errors are those of `read`."""
    name = str(paths[0])
    one_of(name, "tenant", tenant, TENANTS)
    one_of(name, "requeues", requeues, REQUEUES)
    lines = read_lines(paths)
    findings = ImportFindings(source=lines, kept=list(lines.findings))
    runs = _read_runs(lines, findings, tenant, gres)
    return _build(lines, _group(runs, findings), findings, requeues)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Runs:
    """The lines of jobs as columns, (run,) each; all have a submission. Times are seconds since 1970."""

    row: Ints  # of the lines
    key: Ints  # of the job id
    job_id: pa.Array
    submitted_s: Floats
    started_s: Floats
    ended_s: Floats
    elapsed_s: Floats
    state: pa.DictionaryArray
    tenant: pa.Array
    nodes: pa.DictionaryArray  # texts of lists
    resources: tuple[Resources, ...]  # of each distinct text
    resource: Ints
    asked: tuple[Resources, ...]
    asked_for: Ints
    node_count: Floats

    def __len__(self) -> int:
        return len(self.row)

    def take(self, keep: Ints) -> _Runs:
        """Return the runs at these positions, in that order."""
        by_run = {name: getattr(self, name)[keep] for name in _BY_RUN}
        taken = {name: getattr(self, name).take(pa.array(keep)) for name in ("job_id", "state", "tenant", "nodes")}
        return replace(self, **by_run, **taken)

    def of_resources(self, get: Callable[[Resources], Any], *, asked: bool = False) -> np.ndarray:
        """Return (run,) what `get` says of the resources allocated, or with `asked` requested."""
        values = np.array([get(each) for each in (self.asked if asked else self.resources)])
        return values[self.asked_for if asked else self.resource]

    def is_in(self, states: Sequence[str]) -> Bools:
        """Return (run,): True in one of the states."""
        return _words_in(self.state, states)


def _read_runs(lines: SacctLines, findings: ImportFindings, tenant: str, gres: str) -> _Runs:
    """Return the lines of jobs that name a submission, in the order of the files."""
    job_id = lines.first_of("JobID", "JobIDRaw")
    times = {}
    for name in ("Submit", "Start", "End"):
        times[name], wrong = read_moments(lines.text(name))
        findings.add("missing", f"times {name} cannot be read; they count as unknown", wrong)
    elapsed_s = _read_elapsed(lines, times, findings)
    state = _states(lines.text("State"))
    unknown = ~_words_in(state, tuple(STATUS_BY_STATE)) & ~np.isnan(times["Submit"])
    findings.add("assumed", "jobs have a state that is not known here; how they ended counts as not said", unknown)
    nodes = pc.dictionary_encode(lines.text("NodeList"))
    node_count = np.nan_to_num(read_numbers(lines.first_of("NNodes", "AllocNodes")), nan=1.0)
    resources, resource = _read_resources(lines, "AllocTRES", "AllocGRES", node_count, gres)
    asked, asked_for = _read_resources(lines, "ReqTRES", "ReqGRES", node_count, gres)
    cluster = lines.text("Cluster")
    many = len(pc.unique(cluster)) > 1
    name = pc.binary_join_element_wise(cluster, job_id, ":") if many else job_id
    runs = _Runs(
        row=np.arange(len(lines)),
        key=_codes(name),
        job_id=name,
        submitted_s=times["Submit"],
        started_s=times["Start"],
        ended_s=times["End"],
        elapsed_s=elapsed_s,
        state=state,
        tenant=lines.text({"account": "Account", "user": "User", "partition": "Partition", "qos": "QOS"}[tenant]),
        nodes=nodes,
        resources=resources,
        resource=resource,
        asked=asked,
        asked_for=asked_for,
        node_count=node_count,
    )
    absent = np.isnan(runs.submitted_s)
    findings.add("left out", "lines of jobs have no submission time", absent)
    if absent.all():
        fix = "ask sacct for Submit in its standard format: unset SLURM_TIME_FORMAT, or set it to %s"
        raise refused(lines.name, "Submit", None, "no line has a submission time that can be read", fix)
    return runs.take(np.flatnonzero(~absent))


def _read_elapsed(lines: SacctLines, times: dict[str, Floats], findings: ImportFindings) -> Floats:
    """Return (line,) the seconds that a run held its accelerators; nan where no field says so."""
    elapsed_s = read_numbers(lines.text("ElapsedRaw"))
    spelled, wrong = read_spans(lines.text("Elapsed"))
    findings.add("missing", "values of Elapsed cannot be read", wrong & np.isnan(elapsed_s))
    elapsed_s = np.where(np.isnan(elapsed_s), spelled, elapsed_s)
    suspended_s = np.nan_to_num(read_spans(lines.text("Suspended"))[0])
    findings.add(
        "assumed", "runs were suspended for a while; they are read as if they had run without a break", suspended_s > 0
    )
    between_s = times["End"] - times["Start"] - suspended_s
    off = np.abs(between_s - elapsed_s) > CLOCK_S  # of nan: False
    findings.add(
        "assumed", "runs have another time between Start and End than Elapsed says, as when clocks are changed or "
        "sacct --truncate was used; Elapsed counts", off,
    )  # fmt: skip
    backward = np.isnan(elapsed_s) & (between_s < 0)
    findings.add("repaired", "runs end before they start, as when clocks are changed; they count 0 s", backward)
    return np.where(np.isnan(elapsed_s), np.maximum(between_s, 0.0), elapsed_s)


def _read_resources(
    lines: SacctLines, tres: str, per_node: str, node_count: Floats, gres: str
) -> tuple[tuple[Resources, ...], Ints]:
    """Return the distinct resources and, (line,), which of them: of `tres`, else of the field of old versions."""
    if lines.has(tres):
        return _distinct(lines.text(tres), lambda text: parse_tres(text, gres))
    resources, resource = _distinct(lines.text(per_node), lambda text: parse_gres(text, gres))
    if not lines.has(per_node):
        return resources, resource
    texts = {(m, int(n)): None for m, n in zip(resource.tolist(), node_count.tolist(), strict=True)}
    place = {key: k for k, key in enumerate(texts)}
    whole = tuple(
        replace(resources[m], accelerators=resources[m].accelerators * max(n, 1), shares=resources[m].shares * n)
        for m, n in texts
    )
    return whole, np.array([place[m, int(n)] for m, n in zip(resource.tolist(), node_count.tolist(), strict=True)])


def _distinct(cells: pa.Array, parse: Callable[[str], Resources]) -> tuple[tuple[Resources, ...], Ints]:
    """Return what `parse` makes of each distinct text, and (line,) which text."""
    encoded = pc.dictionary_encode(cells)
    found = tuple(parse(text or "") for text in encoded.dictionary.to_pylist())
    return found, np.asarray(encoded.indices, dtype=np.int64)


def _states(cells: pa.Array) -> pa.DictionaryArray:
    """Return the first word of each state: CANCELLED of "CANCELLED by 1001"; a "+" marks a shortened one."""
    return pc.dictionary_encode(pc.replace_substring_regex(cells, r"^\s*([A-Z_]*).*$", r"\1"))


def _words_in(words: pa.DictionaryArray, wanted: Sequence[str]) -> Bools:
    """Return (line,): True where the word is one of those wanted."""
    chosen = np.array([word in wanted for word in words.dictionary.to_pylist()], dtype=np.bool_)
    indices = np.asarray(words.indices, dtype=np.int64)
    return chosen[indices] if len(chosen) else np.zeros(len(indices), dtype=np.bool_)


def _codes(cells: pa.Array) -> Ints:
    """Return a number for each text, equal for equal ones."""
    return np.asarray(pc.dictionary_encode(cells).indices, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Jobs:
    """The runs in order of (job id, submission, start), and the first run of each job."""

    runs: _Runs
    first: Ints  # (job,) position of its first run
    size: Ints  # (job,) number of runs
    again: Ints  # (job,) how many earlier jobs had the same id

    @property
    def last(self) -> Ints:
        """Position of the last run of each job."""
        return self.first + self.size - 1


def _group(runs: _Runs, findings: ImportFindings) -> _Jobs:
    """Return the runs by job: those of one id, unless so far apart that the id was given again."""
    late = np.nan_to_num(runs.started_s, nan=np.inf)
    order = np.lexsort((runs.row, late, runs.submitted_s, runs.key))
    runs = runs.take(order)
    same = runs.key[1:] == runs.key[:-1]
    # Overlapping files: the later line of one run counts, as it says how the run ended.
    start = np.nan_to_num(runs.started_s, nan=-1.0)
    twice = same & (runs.submitted_s[1:] == runs.submitted_s[:-1]) & (
        (start[1:] == start[:-1]) | (start[:-1] < 0) | (start[1:] < 0)
    )  # fmt: skip
    repeated = np.flatnonzero(twice)
    findings.add("repaired", "lines repeat a run that another line has too; the later line counts", runs.row[repeated])
    keep = np.ones(len(runs), dtype=np.bool_)
    keep[repeated] = False
    runs = runs.take(np.flatnonzero(keep))
    same = runs.key[1:] == runs.key[:-1]
    ended_s = np.where(np.isnan(runs.ended_s), runs.started_s + runs.elapsed_s, runs.ended_s)
    near = np.nan_to_num(runs.submitted_s[1:] - ended_s[:-1], nan=np.inf) <= SAME_JOB_S
    follows = np.zeros(len(runs), dtype=np.bool_)
    follows[1:] = same & (near | runs.is_in(CONTINUED)[:-1])
    first = np.flatnonzero(~follows)
    size = np.diff(np.append(first, len(runs)))
    key = runs.key[first]
    again = np.zeros(len(first), dtype=np.int64)
    for m in np.flatnonzero(key[1:] == key[:-1]).tolist():  # rare: ids that were given again
        again[m + 1] = again[m] + 1
    findings.add("repaired", "jobs have the id of an earlier job; #2, #3 … is added to it", runs.row[first[again > 0]])
    findings.add("assumed", "jobs were requeued: one job each, submitted with its first run", runs.row[first[size > 1]])
    return _Jobs(runs=runs, first=first, size=size, again=again)


def _build(lines: SacctLines, jobs: _Jobs, findings: ImportFindings, requeues: str) -> History:
    """Return the history of the jobs that ran on accelerators."""
    runs, first, last = jobs.runs, jobs.first, jobs.last
    held_s = np.nan_to_num(runs.elapsed_s)
    ran_s = np.add.reduceat(held_s, first) if requeues == "sum" else held_s[last]
    width = _widths(runs, held_s, findings)
    scale_factor = np.maximum.reduceat(np.where(held_s > 0, width, 0), first)
    asked = np.maximum.reduceat(np.maximum(width, runs.of_resources(lambda each: each.accelerators, asked=True)), first)
    never = np.add.reduceat(held_s, first) == 0
    started = np.fmin.reduceat(runs.started_s, first)
    instant = never & (asked > 0) & runs.is_in(("COMPLETED", "FAILED", "TIMEOUT"))[last] & ~np.isnan(started)
    scale_factor = np.where(instant, asked, scale_factor)
    keep = (scale_factor > 0) & (~never | instant)
    row = runs.row[last]
    findings.add("left out", "jobs asked for no accelerator", row[(asked == 0) & ~keep])
    findings.add("left out", "jobs with accelerators never ran", row[(asked > 0) & never & ~instant])
    findings.add("left out", "jobs ran without the accelerators that they asked for", row[~keep & (asked > 0) & ~never])
    if not keep.any():
        rule = f"no job of {len(first):,} ran on an accelerator{_other_gres(lines)}"
        fix = "ask sacct for AllocTRES and ReqTRES; the GRES has another name with --option gres=NAME"
        raise refused(lines.name, "AllocTRES", None, rule, fix)
    cut = keep & runs.is_in(RUNNING)[last]
    findings.add("assumed", "jobs still ran when sacct was asked; their duration is cut off there", row[cut])
    findings.add(
        "assumed", "jobs reached their time limit (TIMEOUT, DEADLINE); what they needed beyond it is unknown",
        row[keep & runs.is_in(("TIMEOUT", "DEADLINE"))[last]],
    )  # fmt: skip
    findings.add("repaired", f"jobs ran for 0 s, read as {SHORTEST_S:g} s", row[keep & (ran_s == 0)])
    return _history(lines, jobs, findings, np.flatnonzero(keep), ran_s, scale_factor)


def _other_gres(lines: SacctLines) -> str:
    """Return a phrase with the generic resource that the lines name most often, for a message; "" for none."""
    texts = pc.extract_regex(lines.first_of("AllocTRES", "ReqTRES"), pattern=r"gres/(?P<name>\w+)")
    counts = pc.value_counts(pc.drop_null(pc.struct_field(texts, "name"))).to_pylist()
    most = max(counts, key=lambda each: int(each["counts"]), default=None)
    return "" if most is None else f"; the lines name gres/{most['values']}"


def _widths(runs: _Runs, held_s: Floats, findings: ImportFindings) -> Ints:
    """Return (run,) the accelerators of each run: those allocated, else those requested."""
    allocated = runs.of_resources(lambda each: each.accelerators)
    requested = runs.of_resources(lambda each: each.accelerators, asked=True)
    shares = runs.of_resources(lambda each: each.shares) + runs.of_resources(lambda each: each.shares, asked=True)
    only_asked = (allocated == 0) & (requested > 0) & (held_s > 0)
    findings.add("assumed", "runs have no accelerators in AllocTRES; what they asked for counts", runs.row[only_asked])
    parts = (allocated == 0) & (requested == 0) & (shares > 0)
    findings.add(
        "assumed", "runs share an accelerator (gres/shard, gres/mps); they are read as if they had a whole one",
        runs.row[parts],
    )  # fmt: skip
    mixed = runs.of_resources(lambda each: each.is_mixed)
    findings.add(
        "assumed", "runs hold accelerators of several types; all count as the most numerous one", runs.row[mixed]
    )
    return np.asarray(np.where(allocated > 0, allocated, np.where(parts, 1, requested)), dtype=np.int64)


def _history(
    lines: SacctLines, jobs: _Jobs, findings: ImportFindings, keep: Ints, ran_s: Floats, scale_factor: Ints
) -> History:
    """Return the history of the jobs at `keep`."""
    runs, first, last = jobs.runs, jobs.first[keep], jobs.last[keep]
    head, tail = runs.take(first), runs.take(last)
    again = jobs.again[keep]
    names = head.job_id.to_pylist()
    for m in np.flatnonzero(again).tolist():
        names[m] += f"#{again[m] + 1}"
    retries = np.maximum(jobs.size[keep] - 1, np.nan_to_num(lines.numbers("Restarts"))[tail.row].astype(np.int64))
    submitted_s, began = since_first(head.submitted_s)
    origin = float(np.nanmin(head.submitted_s))
    tenants = tuple(tail.tenant.to_pylist())
    findings.add(
        "missing", "jobs name no tenant", tail.row[np.array([not tenant for tenant in tenants], dtype=np.bool_)]
    )
    states = [word or "" for word in runs.state.dictionary.to_pylist()]
    status = [STATUS_BY_STATE.get(word, "") for word in states]
    ran_on = tuple(tail.of_resources(lambda each: each.type).tolist())
    asked_for = tuple(tail.of_resources(lambda each: each.type, asked=True).tolist())
    unnamed = np.array([not kind for kind in ran_on], dtype=np.bool_)
    findings.add("missing", "jobs name no accelerator type in AllocTRES", tail.row[unnamed])
    trace = trace_of(
        lines.name,
        names,
        submitted_s,
        scale_factor[keep],
        duration_s=np.maximum(ran_s[keep], SHORTEST_S),
        tenant=tenants,
        cpus=tail.of_resources(lambda each: each.cpus).astype(np.float64),
        memory_gib=tail.of_resources(lambda each: each.memory_gib).astype(np.float64),
        status=tuple(status[k] for k in np.asarray(tail.state.indices).tolist()),
        retries=retries,
        row=lines.line[tail.row],
        began=began,
        unread=lines.unread,
        partly=(f"of {', '.join(name for name in LOGGED if lines.has(name))} more than durations and retries",),
        notes=findings.notes(),
    )
    started = np.fmin.reduceat(runs.started_s, jobs.first)[keep] - origin
    hosts = _hosts(tail.nodes)
    order = np.argsort(trace.submitted_s, kind="stable")
    history = History(
        trace=trace,
        started_s=started,
        ended_s=np.where(np.isnan(tail.ended_s), np.nan, tail.ended_s - origin),
        ran_on=ran_on,
        asked_for=asked_for,
        machines=hosts,
        findings=tuple(findings.kept),
    )
    return history if bool((np.diff(order) > 0).all()) else replace(history.take(order), trace=in_order(trace))


def _hosts(nodes: pa.DictionaryArray) -> tuple[tuple[str, ...], ...]:
    """Return the machines of each run."""
    lists = [expand_hosts(text or "") for text in nodes.dictionary.to_pylist()]
    return tuple(lists[k] for k in np.asarray(nodes.indices).tolist())
