"""Tables for people: statistics of a trace, of a list of machines, and of the states of a cluster."""

from __future__ import annotations

from eunomia.report.number_format import ABSENT, Unit, shown
from eunomia.traces.cluster_state import ClusterHistory, ClusterSnapshot
from eunomia.traces.machine_lists import MachineList
from eunomia.traces.statistics import NOT_SAID, ClassStatistics, Description, Quantiles

SIZES_SHOWN = 8


def trace_rows(description: Description) -> list[tuple[str, str]]:
    """Return (quantity, value), most important first; unknown quantities are left out."""
    rows = [
        ("jobs", f"{description.jobs:,}"),
        ("submitted", _submissions(description)),
        ("accelerator-hours", "" if description.accelerator_hours is None else f"{description.accelerator_hours:,.0f}"),
        ("mean demand", "" if description.mean_demand is None else f"{description.mean_demand:,.1f} accelerators"),
        ("accelerators per job", _spread(description.size, "count")),
        ("duration", _spread(description.duration_s, "s")),
        *((f"… of jobs {name} wide", _spread(each, "s")) for name, each in description.duration_s_by_class.items()),
        ("steps", _spread(description.total_steps, "count")),
        ("between submissions", _gaps(description)),
        ("sizes", _parts(description.sizes)),
        ("outcomes", "unknown" if _has_no_outcomes(description.statuses) else _parts(description.statuses)),
        ("tenants", _tenants(description)),
        ("job types", "none named" if description.job_types is None else f"{description.job_types:,}"),
        ("with a deadline", f"{description.with_deadline:,}" if description.with_deadline else ""),
        ("busiest hour", _busiest(description)),
    ]
    return [(name, value) for name, value in rows if value]


def _submissions(description: Description) -> str:
    first, last = description.first_s, description.last_s
    text = f"over {shown(last - first, 's')}, {first:,.0f} s to {last:,.0f} s"
    return text if description.began is None else f"{text}; 0 s is {description.began}"


def _spread(quantiles: Quantiles | None, unit: Unit) -> str:
    if quantiles is None:
        return ""
    middle = " · ".join(f"{name} {shown(quantiles.quantile[name], unit)}" for name in ("p50", "p90", "p99"))
    ends = f"{shown(quantiles.least, unit)} to {shown(quantiles.most, unit)}"
    return f"mean {shown(quantiles.mean, unit)} · {middle} · {ends}"


def _gaps(description: Description) -> str:
    if description.gap_s is None:
        return ""
    variation = (
        "" if description.gap_variation is None else f" · variation {description.gap_variation:.2f} (1 = Poisson)"
    )
    return _spread(description.gap_s, "s") + variation


def _parts(parts: tuple[ClassStatistics, ...]) -> str:
    """Return the largest parts with their shares of jobs and of accelerator-time."""
    first = sorted(parts, key=lambda part: -part.jobs)[:SIZES_SHOWN]
    more = f" · {len(parts) - len(first)} more" if len(parts) > len(first) else ""
    return " · ".join(f"{part.name}: {_share(part)}" for part in first) + more


def _has_no_outcomes(statuses: tuple[ClassStatistics, ...]) -> bool:
    return [part.name for part in statuses] == [NOT_SAID]


def _share(part: ClassStatistics) -> str:
    time = "" if part.time_share is None else f", {100 * part.time_share:.1f} % of the time"
    return f"{part.jobs:,} ({100 * part.job_share:.1f} %{time})"


def _tenants(description: Description) -> str:
    if not description.tenants:
        return "none named"
    names = ", ".join(f"{part.name} {100 * part.job_share:.1f} %" for part in description.busiest_tenants[:5])
    return f"{description.tenants:,}; most jobs: {names}"


def _busiest(description: Description) -> str:
    hour = max(range(24), key=lambda h: description.by_hour[h])
    share = 100 * description.by_hour[hour] / description.jobs
    return f"{hour:02}:00, {share:.1f} % of jobs" + ("" if description.began else " (hours counted from 0 s)")


def state_lines(history: ClusterHistory) -> list[str]:
    """Return the source, and a table with a line for each state."""
    head = f"{'name':<12}{'minutes':>9}{'capacity':>10}{'busy':>9}{'waiting':>9}{'in use':>8}  with a queue"
    return [f"{history.source}: {history.unit}, minute by minute", "", head, *map(_state, history.states)]


def _state(state: ClusterSnapshot) -> str:
    waiting = ABSENT if state.waiting is None else f"{state.waiting:.2f}"
    queue = ABSENT if state.share_waiting is None else f"{100 * state.share_waiting:.1f} % of minutes"
    if state.share_waiting_beside_idle is not None:
        queue += f", of which {100 * state.share_waiting_beside_idle:.0f} % with idle capacity"
    use = f"{100 * state.utilization:>6.1f} %"
    return f"{state.name:<12}{state.minutes:>9,}{state.capacity:>10.1f}{state.busy:>9.1f}{waiting:>9}{use}  {queue}"


def machine_lines(machines: MachineList) -> list[str]:
    """Return the source, and a table with a line for each accelerator type."""
    lines = [machines.source, "", f"{'type':<14}{'machines':>9}{'accelerators':>14}{'each':>14}"]
    lines += [f"{row.type:<14}{row.machines:>9,}{row.accelerators:>14,}{row.each:>14}" for row in machines.by_type()]
    lines.append(f"{'total':<14}{len(machines.nodes):>9,}{sum(node.accelerators for node in machines.nodes):>14,}")
    racks = len({node.rack for node in machines.nodes if node.rack})
    return [*lines, *[f"racks: {racks:,}"] * bool(racks)]
