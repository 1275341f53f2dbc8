"""What a trace, a list of machines or the state of a cluster is like, as rows of words and numbers for people."""

from __future__ import annotations

from eunomia.report.number_format import ABSENT, Unit, shown
from eunomia.traces.cluster_state import ClusterHistory, ClusterSnapshot
from eunomia.traces.machine_lists import MachineList
from eunomia.traces.statistics import NOT_SAID, ClassStatistics, Description, Quantiles

SIZES_SHOWN = 8


def trace_rows(found: Description) -> list[tuple[str, str]]:
    """Return (what, how much), the most important first; what the trace does not know is left out."""
    rows = [
        ("jobs", f"{found.jobs:,}"),
        ("submitted", _stretch(found)),
        ("accelerator-hours", "" if found.accelerator_hours is None else f"{found.accelerator_hours:,.0f}"),
        ("mean demand", "" if found.mean_demand is None else f"{found.mean_demand:,.1f} accelerators"),
        ("accelerators per job", _spread(found.size, "count")),
        ("duration", _spread(found.duration_s, "s")),
        *((f"… of jobs {name} wide", _spread(each, "s")) for name, each in found.duration_s_by_class.items()),
        ("steps", _spread(found.total_steps, "count")),
        ("between submissions", _gaps(found)),
        ("sizes", _parts(found.sizes)),
        ("outcomes", "not said" if _silent(found.statuses) else _parts(found.statuses)),
        ("tenants", _tenants(found)),
        ("job types", "none named" if found.job_types is None else f"{found.job_types:,}"),
        ("with a deadline", f"{found.with_deadline:,}" if found.with_deadline else ""),
        ("busiest hour", _busiest(found)),
    ]
    return [(name, value) for name, value in rows if value]


def _stretch(found: Description) -> str:
    said = f"over {shown(found.last_s - found.first_s, 's')}, {found.first_s:,.0f} s to {found.last_s:,.0f} s"
    return said if found.began is None else f"{said}; 0 s is {found.began}"


def _spread(found: Quantiles | None, unit: Unit) -> str:
    if found is None:
        return ""
    middle = " · ".join(f"{name} {shown(found.quantile[name], unit)}" for name in ("p50", "p90", "p99"))
    ends = f"{shown(found.least, unit)} to {shown(found.most, unit)}"
    return f"mean {shown(found.mean, unit)} · {middle} · {ends}"


def _gaps(found: Description) -> str:
    if found.gap_s is None:
        return ""
    variation = "" if found.gap_variation is None else f" · variation {found.gap_variation:.2f} (1 = Poisson)"
    return _spread(found.gap_s, "s") + variation


def _parts(parts: tuple[ClassStatistics, ...]) -> str:
    """Return the largest parts with their shares of jobs and of accelerator-time."""
    first = sorted(parts, key=lambda part: -part.jobs)[:SIZES_SHOWN]
    more = f" · {len(parts) - len(first)} more" if len(parts) > len(first) else ""
    return " · ".join(f"{part.name}: {_share(part)}" for part in first) + more


def _silent(statuses: tuple[ClassStatistics, ...]) -> bool:
    return [part.name for part in statuses] == [NOT_SAID]


def _share(part: ClassStatistics) -> str:
    time = "" if part.time_share is None else f", {100 * part.time_share:.1f} % of the time"
    return f"{part.jobs:,} ({100 * part.job_share:.1f} %{time})"


def _tenants(found: Description) -> str:
    if not found.tenants:
        return "none named"
    names = ", ".join(f"{part.name} {100 * part.job_share:.1f} %" for part in found.busiest_tenants[:5])
    return f"{found.tenants:,}; most jobs: {names}"


def _busiest(found: Description) -> str:
    hour = max(range(24), key=lambda h: found.by_hour[h])
    share = 100 * found.by_hour[hour] / found.jobs
    return f"{hour:02}:00, {share:.1f} % of jobs" + ("" if found.began else " (hours counted from 0 s)")


def state_lines(found: ClusterHistory) -> list[str]:
    """Return a table of the states, a line each, after their source."""
    head = f"{'name':<12}{'minutes':>9}{'capacity':>10}{'busy':>9}{'waiting':>9}{'in use':>8}  somebody waits"
    return [f"{found.source}: {found.unit}, minute by minute", "", head, *map(_state, found.states)]


def _state(one: ClusterSnapshot) -> str:
    waiting = ABSENT if one.waiting is None else f"{one.waiting:.2f}"
    waits = ABSENT if one.share_waiting is None else f"{100 * one.share_waiting:.1f} % of minutes"
    if one.share_waiting_beside_idle is not None:
        waits += f", of which {100 * one.share_waiting_beside_idle:.0f} % beside something idle"
    use = f"{100 * one.utilization:>6.1f} %"
    return f"{one.name:<12}{one.minutes:>9,}{one.capacity:>10.1f}{one.busy:>9.1f}{waiting:>9}{use}  {waits}"


def machine_lines(found: MachineList) -> list[str]:
    """Return a table of the machines, a line for each type, after their source."""
    lines = [found.source, "", f"{'type':<14}{'machines':>9}{'accelerators':>14}{'each':>14}"]
    lines += [f"{one.type:<14}{one.machines:>9,}{one.accelerators:>14,}{one.each:>14}" for one in found.by_type()]
    lines.append(f"{'total':<14}{len(found.nodes):>9,}{sum(node.accelerators for node in found.nodes):>14,}")
    racks = len({node.rack for node in found.nodes if node.rack})
    return [*lines, *[f"racks: {racks:,}"] * bool(racks)]
