"""Builds the content of report.html from the results of one or several runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.metrics.job_summary import eligible_s
from eunomia.runs.as_it_was import AS_IT_WAS
from eunomia.runs.simulation import Result
from eunomia.scenario.writing import as_toml
from eunomia.verdict.run_figures import ReportContent, RunFigures, TenantFigures


def run_figures(result: Result, label: str, folder: str = "") -> RunFigures:
    """Return the figures of one run: finished jobs, and time bins."""
    figures, jobs = result.figures, result.jobs
    done = np.flatnonzero(jobs["status"] == "finished")
    return RunFigures(
        label=label,
        policy=result.scenario.policy.name,
        load=result.scenario.workload.load,
        seed=result.scenario.seed,
        summary=figures.summary,
        jct_s=jobs["jct_s"][done],
        queueing_s=(jobs["first_started_s"] - eligible_s(jobs))[done],
        slowdown=(jobs["finished_s"] - eligible_s(jobs))[done] / figures.alone_s[done],
        rho_themis=jobs["rho_themis"][done],
        scale_factor=jobs["scale_factor"][done],
        tenant=tuple(jobs["tenant"][done].tolist()),
        types=figures.types,
        utilization_at_s=figures.bin_start_s,
        utilization=figures.utilization,
        running_jobs=figures.running_jobs,
        waiting_jobs=figures.waiting_jobs,
        tenants=_tenants(result),
        submitted_s=jobs["submitted_s"][done],
        offered_load=result.offered_load,
        own_measure=result.own_measure,
        knows_durations=result.knows_durations,
        is_history=result.scenario.policy.name == AS_IT_WAS,
        folder=folder,
    )


def _tenants(result: Result) -> TenantFigures:
    """Return the figures of the tenants of a run."""
    table, sharing = result.figures.tenants, result.figures.sharing
    return TenantFigures(
        names=sharing.names,
        quota=table["quota"],
        jobs=table["jobs"],
        total_wait_s=table["total_wait_mean_s"],
        deserved=sharing.deserved,
        received=sharing.received,
        lent=sharing.lent,
        paid=sharing.paid,
        at_s=sharing.at_s,
        ltgf=sharing.ltgf,
        refused=sharing.refused,
    )


def content_of(results: Sequence[tuple[str, Result]], title: str, folders: Sequence[str] = ()) -> ReportContent:
    """Return the content of the report."""
    scenario = results[0][1].scenario
    nodes = ", ".join(
        f"{g.count} node{'s' * (g.count != 1)} of {g.accelerators} {g.type}" for g in scenario.cluster.nodes
    )
    jobs = results[0][1].summary["jobs_submitted"]
    notes = dict.fromkeys(note for _, result in results for note in result.notes)
    if all(result.summary["cost_usd"] is None for _, result in results):
        types = ", ".join(dict.fromkeys(group.type for group in scenario.cluster.nodes))
        notes["No cost: the price of an accelerator-hour is not known for every type "
              f"({types}); give [cluster] prices."] = None  # fmt: skip
    reasons = dict.fromkeys(f"{label}: {line}" for label, result in results for line in result.endings[1:])
    return ReportContent(
        title=title,
        subtitle=f"{jobs:,} job{'s' * (jobs != 1)} on {nodes}",
        scenario_toml=as_toml(scenario),
        notes=(*notes, *reasons),
        runs=tuple(
            run_figures(result, label, folder)
            for (label, result), folder in zip(results, folders or ("",) * len(results), strict=True)
        ),
        outcomes=tuple(outcome for _, result in results for outcome in result.outcomes),
    )
