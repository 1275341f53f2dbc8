"""The fields of summary.json that are compared: their headings and units, and whether low or high is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eunomia.verdict.number_format import Unit
from eunomia.verdict.seed_groups import Kind


@dataclass(frozen=True)
class Column:
    """One field of summary.json: its name, its heading, and whether low or high is better."""

    name: str
    heading: str
    unit: Unit
    better: Literal["low", "high"] | None = "low"
    kind: Kind = "jobs"  # what it is an average of


COLUMNS = (
    Column("apps_finished", "Apps finished", "count", None),
    Column("app_jct_mean_s", "App time average", "s", kind="apps"),
    Column("jct_mean_s", "JCT average", "s"),
    Column("jct_p50_s", "JCT median", "s"),
    Column("jct_p95_s", "JCT 95th pct.", "s"),
    Column("jct_p99_s", "JCT 99th pct.", "s"),
    Column("queueing_mean_s", "Queueing average", "s"),
    Column("total_wait_mean_s", "Total wait average", "s"),
    Column("makespan_s", "Makespan", "s"),
    Column("utilization", "Utilisation", "share", "high"),
    Column("offered_load", "Offered load", "share", None),
    Column("rho_themis_max", "ρ worst", "ratio"),
    Column("rho_themis_mean", "ρ average", "ratio"),
    Column("preemptions", "Preemptions", "count"),
    Column("cost_usd", "Cost", "usd"),
    Column("jobs_finished", "Finished", "count", None),
    Column("jobs_submitted", "Submitted", "count", None),
)
