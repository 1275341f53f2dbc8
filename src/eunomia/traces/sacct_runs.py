"""The lines of sacct as runs of jobs: when each was submitted, started and ended, and what it held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eunomia.inputs.problems import refused
from eunomia.inputs.slurm_values import JOB_STATES, Resources, states_of
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.traces.import_findings import ImportFindings, Kind
from eunomia.traces.sacct_clock import CLOCK_S, TIMES, guess_zone, with_zone
from eunomia.traces.sacct_demands import WholeMachines, note_demands, read_demands, row_hours
from eunomia.traces.sacct_lines import SacctLines
from eunomia.traces.slurm_fields import read_moments, read_numbers, read_spans

RUNNING = states_of("starts", "runs")
WAITING = ("PENDING",)
TENANT_FIELDS = {"account": "Account", "user": "User", "partition": "Partition", "qos": "QOS"}
_BY_RUN = (
    "row", "key", "user", "submitted_s", "eligible_s", "started_s", "ended_s", "elapsed_s", "suspended_s",
    "allocated",
    "requested", "held",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Runs:
    """The lines of jobs as columns, (run,) each; all have a submission. Times are seconds since 1970."""

    row: Ints  # of the lines
    key: Ints  # of the job id
    user: Ints  # a number for each user
    job_id: pa.Array
    submitted_s: Floats
    eligible_s: Floats  # nan = not said
    started_s: Floats
    ended_s: Floats
    elapsed_s: Floats  # on its accelerators; nan = not known
    suspended_s: Floats
    state: pa.DictionaryArray
    tenant: pa.DictionaryArray
    nodes: pa.DictionaryArray  # texts of lists
    resources: tuple[Resources, ...]  # the distinct ones
    allocated: Ints  # which of them a run was given
    requested: Ints  # which of them it requested
    zone: tzinfo | None  # of the local times that the lines have
    held: Ints  # which of them count: accelerators allocated, else those requested, else one for a part of one

    def __len__(self) -> int:
        return len(self.row)

    def take(self, keep: Ints) -> Runs:
        """Return the runs at these positions, in that order."""
        by_run = {name: getattr(self, name)[keep] for name in _BY_RUN}
        taken = {name: getattr(self, name).take(pa.array(keep)) for name in ("job_id", "state", "tenant", "nodes")}
        return replace(self, **by_run, **taken)

    def of_resources(self, which: Ints, get: Callable[[Resources], Any]) -> np.ndarray:
        """Return (run,) what `get` says of `allocated`, `requested` or `held`."""
        return np.array([get(each) for each in self.resources])[which]

    @property
    def over_s(self) -> Floats:
        """The end of each run, or when it had run as long as is known, (run,)."""
        return np.where(np.isnan(self.ended_s), self.started_s + self.elapsed_s + self.suspended_s, self.ended_s)

    def is_in(self, states: Sequence[str]) -> Bools:
        """Return (run,): True in one of the states."""
        return words_in(self.state, states)


def read_runs(
    lines: SacctLines,
    findings: ImportFindings,
    *,
    tenant: str,
    gres: str,
    zone: tzinfo | None,
    whole_machines: WholeMachines,
) -> Runs:
    """Return the lines of jobs that name a submission, in the order of the files.

    The findings get the accelerator-hours of all lines. Raises InvalidInput where no line has a submission.
    """
    times, wrong = _read_times(lines)
    tenants = pc.dictionary_encode(lines.text(TENANT_FIELDS[tenant]))
    state = _states(lines.text("State"))
    elapsed = _read_elapsed(lines, times, state, zone)
    demands = read_demands(lines, gres, whole_machines)
    findings.hours = row_hours(demands, elapsed.seconds, tenants)
    for name, rows in wrong.items():
        findings.add("missing", f"times {name} cannot be read; they count as unknown", rows)
    for kind, what, rows in elapsed.found:
        findings.add(kind, what, rows)
    unknown = ~words_in(state, tuple(JOB_STATES)) & ~np.isnan(times["Submit"])
    findings.add("assumed", "jobs have a state that is not known here; how they ended counts as not said", unknown)
    job_id, cluster = lines.first_of("JobID", "JobIDRaw"), lines.text("Cluster")
    many = len(pc.unique(cluster)) > 1
    name = pc.binary_join_element_wise(cluster, job_id, ":") if many else job_id
    runs = Runs(
        row=np.arange(len(lines)),
        key=_codes(name),
        user=_codes(lines.text("User")),
        job_id=name,
        submitted_s=elapsed.times["Submit"],
        eligible_s=elapsed.times["Eligible"],
        started_s=elapsed.times["Start"],
        ended_s=elapsed.times["End"],
        elapsed_s=elapsed.seconds,
        suspended_s=elapsed.suspended_s,
        state=state,
        tenant=tenants,
        nodes=pc.dictionary_encode(lines.text("NodeList")),
        resources=demands.resources,
        allocated=demands.allocated,
        requested=demands.requested,
        held=demands.held,
        zone=elapsed.zone,
    )
    note_demands(demands, elapsed.seconds, findings)
    absent = np.isnan(runs.submitted_s)
    findings.add("left out", "lines of jobs have no submission time", absent)
    if absent.all():
        fix = "ask sacct for Submit in its standard format: unset SLURM_TIME_FORMAT, or set it to %s"
        raise refused(lines.name, "Submit", None, "no line has a submission time that can be read", fix)
    return runs.take(np.flatnonzero(~absent)) if absent.any() else runs


def _read_times(lines: SacctLines) -> tuple[dict[str, Floats], dict[str, Bools]]:
    """Return the times of each line as written, nan for none, and where a text is no time."""
    times, wrong = {}, {}
    for name in TIMES:
        times[name], wrong[name] = read_moments(lines.text(name))
    return times, wrong


@dataclass(frozen=True, kw_only=True, eq=False)
class _Elapsed:
    """How long runs held their accelerators, (line,), their times, and what was found."""

    seconds: Floats  # nan = not known
    suspended_s: Floats
    times: dict[str, Floats]
    zone: tzinfo | None
    found: list[tuple[Kind, str, Bools]]


def _read_elapsed(
    lines: SacctLines, times: dict[str, Floats], state: pa.DictionaryArray, zone: tzinfo | None
) -> _Elapsed:
    """Return Elapsed, else End less Start, of running jobs what they ran until the latest time of their file."""
    seconds = read_numbers(lines.text("ElapsedRaw"))
    spelled, wrong = read_spans(lines.text("Elapsed"))
    suspended_s = np.nan_to_num(read_spans(lines.text("Suspended"))[0])
    found: list[tuple[Kind, str, Bools]] = [
        ("missing", "values of Elapsed cannot be read", wrong & np.isnan(seconds)),
        ("assumed", "runs were suspended for a while; that time counts neither as run nor as waited", suspended_s > 0),
    ]
    seconds = np.where(np.isnan(seconds), spelled, seconds)
    waits, runs_on = words_in(state, WAITING), words_in(state, RUNNING)
    times = times | {"Start": np.where(waits, np.nan, times["Start"])}  # that of a waiting job is an estimate
    times, zone = _true_times(lines, times, seconds + suspended_s, zone, found)
    early = times["Start"] < times["Submit"] - CLOCK_S
    found.append(("assumed", "runs start before they were submitted; their wait counts as 0 s", early))
    between_s = times["End"] - times["Start"] - suspended_s
    off = np.abs(between_s - seconds) > CLOCK_S  # of nan: False
    what = "runs have another time between Start and End than Elapsed says, as when clocks are changed or "
    found.append(("assumed", f"{what}sacct --truncate was used; Elapsed counts", off))
    backward = np.isnan(seconds) & (between_s < 0)
    found.append(("repaired", "runs end before they start, as when clocks are changed; they count 0 s", backward))
    seconds = np.where(np.isnan(seconds), np.maximum(between_s, 0.0), seconds)
    cut = np.isnan(seconds) & runs_on & ~np.isnan(times["Start"])
    if cut.any():
        latest_s = _latest_of_file(lines, times, runs_on)
        seconds = np.where(cut, np.maximum(latest_s - times["Start"] - suspended_s, 0.0), seconds)
        what = "runs went on and have no Elapsed; they are cut off at the latest time of their file"
        found.append(("assumed", what, cut))
    unknown = np.isnan(seconds) & ~np.isnan(times["Start"]) & ~waits
    found.append(("missing", "runs have neither Elapsed nor End; how long they lasted is not known", unknown))
    return _Elapsed(seconds=seconds, suspended_s=suspended_s, times=times, zone=zone, found=found)


def _true_times(
    lines: SacctLines,
    times: dict[str, Floats],
    lasted_s: Floats,
    zone: tzinfo | None,
    found: list[tuple[Kind, str, Bools]],
) -> tuple[dict[str, Floats], tzinfo | None]:
    """Return the times without changes of clocks, and the zone, which is guessed where changes show; they are noted."""
    if not pc.any(pc.match_substring(lines.text("Submit"), "T")).as_py():
        return times, zone  # numbers of seconds are those of no zone
    if zone is None:
        zone, suspects = guess_zone(times, lasted_s)
        what = "runs have an hour too much or too little between their times, as where clocks are changed; times are "
        if zone is not None:
            found.append(("repaired", f"{what}read as those of {zone} (--timezone names another)", suspects))
    if zone is None:
        return times, zone
    times, undecided = with_zone(times, lasted_s, zone)
    what = "runs have a time in the hour that the clock showed twice, and nothing says which; it counts as the first"
    found.append(("assumed", what, undecided))
    return times, zone


def _latest_of_file(lines: SacctLines, times: dict[str, Floats], runs_on: Bools) -> Floats:
    """Return (line,) the latest submission, start or end in the line's file: sacct was asked then, or later."""
    ended_s = np.where(runs_on, np.nan, times["End"])
    latest = np.fmax(np.fmax(times["Submit"], times["Start"]), ended_s)
    of_file = np.full(len(lines.files), -np.inf)
    np.fmax.at(of_file, lines.file, latest)
    return np.asarray(of_file[lines.file])


def _states(cells: pa.Array) -> pa.DictionaryArray:
    """Return the first word of each state: CANCELLED of "CANCELLED by 1001"; a "+" marks a shortened one."""
    return pc.dictionary_encode(pc.replace_substring_regex(cells, r"^\s*([A-Z_]*).*$", r"\1"))


def words_in(words: pa.DictionaryArray, wanted: Sequence[str]) -> Bools:
    """Return (line,): True where the word is one of those wanted."""
    chosen = np.array([word in wanted for word in words.dictionary.to_pylist()], dtype=np.bool_)
    indices = np.asarray(words.indices, dtype=np.int64)
    return chosen[indices] if len(chosen) else np.zeros(len(indices), dtype=np.bool_)


def _codes(cells: pa.Array) -> Ints:
    """Return a number for each text, equal for equal ones."""
    return np.asarray(pc.dictionary_encode(cells).indices, dtype=np.int64)
