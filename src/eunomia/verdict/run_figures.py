"""The input of a report: the figures of one or several runs, and how the jobs of a real one ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.inputs.problems import Problems
from eunomia.model.arrays import Array, Floats, Ints

MOST = 500  # rows; jobs.csv has the others
URGENT = ("failed", "unfinished", "rejected", "cancelled", "finished")  # statuses, most urgent first
JOB_COLUMNS = ("jct_s", "queueing_s", "slowdown", "rho_themis", "scale_factor")
BIN_COLUMNS = ("utilization_at_s", "running_jobs", "waiting_jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """How a job of a real run ended. All text is for display only."""

    job_id: str
    status: str  # as in jobs.csv
    reason: str = ""  # of its last failure, or of its refusal
    starts: int = 0
    jct_s: float = math.nan
    log: str = ""  # path
    last_lines: tuple[str, ...] = ()  # of the log, of a job that did not end well

    @property
    def done(self) -> bool:
        """Whether the job ended as its user wanted: finished, or cancelled."""
        return self.status in ("finished", "cancelled")


def by_urgency(outcomes: Sequence[JobOutcome]) -> list[JobOutcome]:
    """Return the jobs, most urgent status first."""
    return sorted(outcomes, key=lambda outcome: URGENT.index(outcome.status))


@dataclass(frozen=True, kw_only=True, eq=False)
class TenantFigures:
    """The tenants of one run, (tenant,) each; accelerator-seconds unless the comment says otherwise."""

    names: tuple[str, ...]
    quota: Floats  # accelerators
    jobs: Array
    total_wait_s: Floats  # waited in all, mean over its jobs that were not refused; nan = no such job
    deserved: Floats  # the part of its demand within its quota
    received: Floats
    lent: Floats  # (lender, borrower) what the lender did not ask for
    paid: Floats  # (payer, gainer) what the payer asked for and the gainer had
    at_s: Floats  # (point,)
    ltgf: Floats  # (tenant, point) received ÷ deserved in the day before
    refused: Array | None = None  # jobs that the policy refused, and so never ran; None = unknown

    def refusals(self) -> Ints:
        """Return how many jobs of each tenant were refused, (tenant,); 0 where it is unknown."""
        return np.zeros(len(self.names), dtype=np.int64) if self.refused is None else np.asarray(self.refused)


@dataclass(frozen=True, kw_only=True, eq=False)
class RunFigures:
    """The figures of one run. Job columns have one row per finished job, in order of submission; nan = unknown.

    Bin columns have one row per bin of time. Raises InvalidInput when the shapes of columns disagree.
    """

    label: str  # the policy as the user wrote it: "fifo?backfill=skip"
    policy: str
    load: float  # submission times were divided by it
    seed: int
    summary: Mapping[str, float | int | None]  # the fields of summary.json, `utilization_<type>` included
    jct_s: Floats  # (job,)
    queueing_s: Floats  # (job,) eligible, in most runs submitted, to first start
    slowdown: Floats  # (job,) JCT / time alone
    rho_themis: Floats  # (job,) Themis' finish-time fairness; at most 1 is fair
    scale_factor: Array  # (job,) accelerators
    tenant: tuple[str, ...]  # (job,)
    types: tuple[str, ...]  # accelerator types
    utilization_at_s: Floats  # (bin,) start of each bin
    utilization: Floats  # (type, bin) busy / available; nan = none available
    running_jobs: Floats  # (bin,) average over the bin
    waiting_jobs: Floats  # (bin,)
    tenants: TenantFigures | None = None
    submitted_s: Floats | None = None  # (job,); None = unknown, then no weeks can be resampled
    offered_load: float | None = None  # demand of the jobs ÷ capacity while they arrive; None = unknown
    own_measure: str = ""  # number of `summary` that the policy is meant to keep small; "" = none
    knows_durations: bool = False  # the policy uses durations of jobs that a real cluster does not know
    is_history: bool = False  # the schedule as it was, which no policy decided
    folder: str = ""  # of the run's files, beside the report; "" = none

    def __post_init__(self) -> None:
        problems = Problems(f"run {self.label!r}")
        if not (math.isfinite(self.load) and self.load > 0):
            problems.add("is a finite number above 0", "give the load of the run", column="load", value=self.load)
        jobs, bins = np.size(self.jct_s), np.size(self.utilization_at_s)
        shape_by_column: dict[str, tuple[int, ...]] = {"tenant": (jobs,), "utilization": (len(self.types), bins)}
        shape_by_column.update(dict.fromkeys(JOB_COLUMNS, (jobs,)))
        shape_by_column.update(dict.fromkeys(BIN_COLUMNS, (bins,)))
        if self.submitted_s is not None:
            shape_by_column["submitted_s"] = (jobs,)
        for column, shape in shape_by_column.items():
            actual = np.shape(getattr(self, column))
            if actual != shape:
                problems.add(f"has shape {shape}", "give one row per job or bin", column=column, value=actual)
        if np.ndim(self.utilization_at_s) == 1 and not (np.diff(self.utilization_at_s) > 0).all():
            problems.add("grows from bin to bin", "sort the bins by their start", column="utilization_at_s")
        problems.raise_if_any()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryNotes:
    """What is said beside the verdict where the jobs are a history."""

    wait: str = ""  # its own, beside that of the scenario's policy
    preemption: str = ""  # what one costs, and at which cost the verdict turns


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportContent:
    """A report to write. All text is escaped."""

    title: str
    subtitle: str
    scenario_toml: str  # shown verbatim, so that the runs can be repeated
    notes: tuple[str, ...]  # caveats about the numbers
    runs: tuple[RunFigures, ...]
    outcomes: tuple[JobOutcome, ...] = ()  # of the jobs of a real run
    history: HistoryNotes = HistoryNotes()

    def __post_init__(self) -> None:
        if not self.runs:
            problems = Problems("report")
            problems.add("has at least one run", "simulate something first", column="runs", value=())
            problems.raise_if_any()
