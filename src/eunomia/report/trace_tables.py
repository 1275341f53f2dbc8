"""Tables for people: statistics of a trace, of a list of machines, and of the states of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from eunomia.report.table import TextTable
from eunomia.traces.cluster_state import ClusterHistory, ClusterSnapshot
from eunomia.traces.machine_lists import MachineList
from eunomia.traces.statistics import NOT_SAID, ClassStatistics, Description, Quantiles
from eunomia.verdict.number_format import ABSENT, Unit, common_scale, shown, three_digits

SIZES_SHOWN, TENANTS_SHOWN = 8, 5
SPREAD = ("mean", "p50", "p90", "p99", "least", "most")


def facts(description: Description) -> list[tuple[str, str]]:
    """Return (quantity, value), most important first; unknown quantities are left out."""
    rows = [
        ("jobs", f"{description.jobs:,}"),
        ("submitted", _submissions(description)),
        ("accelerator-hours", "" if description.accelerator_hours is None else f"{description.accelerator_hours:,.0f}"),
        ("mean demand", "" if description.mean_demand is None else f"{description.mean_demand:,.1f} accelerators"),
        ("variation of gaps", _gaps(description)),
        ("outcomes", "unknown" if _has_no_outcomes(description.statuses) else ""),
        ("tenants", f"{description.tenants:,}" if description.tenants else "none named"),
        ("job types", "none named" if description.job_types is None else f"{description.job_types:,}"),
        ("with a deadline", f"{description.with_deadline:,}" if description.with_deadline else ""),
        ("busiest hour", _busiest(description)),
    ]
    return [(name, value) for name, value in rows if value]


def trace_tables(description: Description) -> list[TextTable]:
    """Return the tables of a trace: distributions, durations, sizes, outcomes and tenants, as far as they are known."""
    plain: list[tuple[str, Quantiles | None, Unit]] = [
        ("accelerators per job", description.size, "count"),
        ("steps", description.total_steps, "count"),
        ("between submissions", description.gap_s, "s"),
    ]
    rows = [(name, *(shown(x, unit) for x in _numbers(found))) for name, found, unit in plain if found is not None]
    tables = [TextTable(("", *SPREAD), tuple(rows)), *_durations(description)]
    parts: list[tuple[str, Sequence[ClassStatistics]]] = [("accelerators", _with_others(description.sizes))]
    if not _has_no_outcomes(description.statuses):
        parts.append(("outcome", description.statuses))
    if description.tenants:
        parts.append(("tenant", description.busiest_tenants[:TENANTS_SHOWN]))
    return tables + [_classes(head, classes) for head, classes in parts]


def _numbers(quantiles: Quantiles) -> tuple[float, ...]:
    """Return the numbers that `SPREAD` names."""
    middle = (quantiles.quantile[name] for name in SPREAD[1:4])
    return (quantiles.mean, *middle, quantiles.least, quantiles.most)


def _durations(description: Description) -> list[TextTable]:
    """Return the durations of all jobs and by size, each column in one unit; nothing where none is known."""
    if description.duration_s is None:
        return []
    rows = {"all": description.duration_s, **{f"{n} wide": q for n, q in description.duration_s_by_class.items()}}
    columns = list(zip(*map(_numbers, rows.values()), strict=True))
    scales = [common_scale(column) for column in columns]
    heads = [f"{name}, {unit}" for name, (_, unit) in zip(SPREAD, scales, strict=True)]
    cells = [[three_digits(x / size) for x in column] for column, (size, _) in zip(columns, scales, strict=True)]
    by_row = zip(rows, *cells, strict=True)
    return [TextTable(("duration of jobs", *heads), tuple(by_row))]


def largest(sizes: Sequence[ClassStatistics]) -> list[ClassStatistics]:
    """Return the sizes with most jobs or time, ascending."""
    first = sorted(sizes, key=lambda part: -(part.job_share + (part.time_share or 0.0)))[:SIZES_SHOWN]
    return sorted(first, key=lambda part: int(part.name))


def _with_others(sizes: Sequence[ClassStatistics]) -> list[ClassStatistics]:
    """Return the largest sizes, and the others as one."""
    first = largest(sizes)
    rest = [part for part in sizes if part not in first]
    if not rest:
        return first
    times = [part.time_share for part in rest if part.time_share is not None]
    others = ClassStatistics(
        name=f"{len(rest)} others",
        jobs=sum(part.jobs for part in rest),
        job_share=sum(part.job_share for part in rest),
        time_share=sum(times) if len(times) == len(rest) else None,
    )
    return [*first, others]


def _classes(head: str, parts: Sequence[ClassStatistics]) -> TextTable:
    """Return the number of jobs of each class, its share of jobs and of accelerator-time."""
    known = all(part.time_share is not None for part in parts)
    heads = (head, "jobs", "of jobs", *["of accelerator-time"] * known)
    return TextTable(
        heads,
        tuple(
            (part.name, f"{part.jobs:,}", shown(part.job_share, "share"), *[shown(part.time_share, "share")] * known)
            for part in parts
        ),
    )


def _submissions(description: Description) -> str:
    first, last = description.first_s, description.last_s
    text = f"over {shown(last - first, 's')}, {first:,.0f} s to {last:,.0f} s"
    return text if description.began is None else f"{text}; 0 s is {description.began}"


def _gaps(description: Description) -> str:
    if description.gap_s is None or description.gap_variation is None:
        return ""
    return f"{description.gap_variation:.2f} between submissions (1 = Poisson)"


def _has_no_outcomes(statuses: tuple[ClassStatistics, ...]) -> bool:
    return [part.name for part in statuses] == [NOT_SAID]


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
