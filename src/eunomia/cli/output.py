"""Output of commands for people: tables on stdout, progress on stderr."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from eunomia.allocation import Solution
    from eunomia.allocation.auctions.auction_result import AuctionResult
    from eunomia.model.arrays import Array
    from eunomia.records.explain import Explanation
    from eunomia.report import ReportContent
    from eunomia.runs.simulation import Progress, Result

ROWS_SHOWN = 20  # of a solution
SMALL = 1e-9  # a share below it is a rounding error
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))


def span(seconds: float | int | None) -> str:
    """Return a duration for display: 42 s, 3.5 min, 7.25 h, 12 d; – for None."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    for size, unit in _UNITS:
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def clock(at: float) -> str:
    """Return a time of the run for display."""
    return f"{at:,.0f} s" if at >= 1000 or at == round(at) else f"{at:.4g} s"


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[[str], Progress | None]]:
    """Yield a function that starts a progress bar; without output if `quiet` or not on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda label: None
        return
    from rich import progress as bars

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("jobs, day {task.fields[day]}"),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True)) as shown:

        def open_line(label: str) -> Progress | None:
            task = shown.add_task(label, total=None, day="0")
            return lambda ended, jobs, at: shown.update(task, completed=ended, total=jobs, day=f"{at / 86400:.1f}")

        yield open_line


def show_summary(results: Sequence[tuple[str, Result]], notes: Sequence[str]) -> None:
    """Print the main numbers, one row a run."""
    from eunomia.report.completion_text import without_model

    console = Console()
    table = Table(box=None, header_style="bold", pad_edge=False, collapse_padding=console.width < 100)
    summaries = [result.summary for _, result in results]
    all_done = all(s["jobs_finished"] == s["jobs_submitted"] for s in summaries)
    table.add_column("run", overflow="fold", min_width=16)
    searches = any(s["apps_submitted"] for s in summaries)
    cells = [_cells(summary, searches=searches, done=not all_done) for summary in summaries]
    for name in cells[0]:
        table.add_column(name, justify="right", no_wrap=True)
    for (label, _), row in zip(results, cells, strict=True):
        table.add_row(label, *row.values())
    if all_done:
        console.print(f"all {summaries[0]['jobs_submitted']:,} jobs finished", highlight=False)
    for label, result in results:
        _show_endings(label, result.endings, console)
        if lost := result.summary["apps_without_model"]:
            sentence = f"{label}: {without_model(lost)}, as none of their trials came to its end"
            console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    console.print(table)
    for note in notes:
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)


def show_verdict(content: ReportContent) -> None:
    """Print the warnings of the verdict, the answer and its certainty."""
    from eunomia.report.findings import findings

    found = findings(content)
    for line in filter(None, ("", *found.warnings, found.answer, found.certainty)):
        Console().print(line, markup=False, highlight=False)


def _show_endings(label: str, endings: Sequence[str], console: Console) -> None:
    """Print the counts of jobs that did not finish, then the reasons."""
    for number, line in enumerate(endings):
        console.print(f"  {line}" if number else f"{label}: {line}", markup=False, highlight=False, soft_wrap=True)


def _cells(s: Mapping[str, Any], *, searches: bool, done: bool) -> dict[str, str]:
    """Return the cells of a run by heading; with `searches` those of apps first."""
    apps = {"apps": f"{s['apps_finished'] or 0:,}/{s['apps_submitted'] or 0:,}", "mean app": span(s["app_jct_mean_s"])}
    jobs = {"done": f"{s['jobs_finished']:,}/{s['jobs_submitted']:,}"}
    return {
        **(apps if searches else {}),
        **(jobs if done else {}),
        "mean JCT": span(s["jct_mean_s"]),
        **({} if searches else {"p99 JCT": span(s["jct_p99_s"])}),
        "waited": span(s["queueing_mean_s"]),
        "busy": "–" if s["utilization"] is None else f"{s['utilization']:.0%}",
        "cost": "–" if s["cost_usd"] is None else f"${s['cost_usd']:,.0f}",
        "stops": f"{s['preemptions']:,}",
        "worst ρ": "–" if s["rho_themis_max"] is None else f"{s['rho_themis_max']:.2f}",
    }


def show_explanation(found: Explanation, at: float | None) -> None:
    """Print why a job waited, one line an interval."""
    console = Console(highlight=False, soft_wrap=True)
    started = "never started" if found.first_started_s is None else f"first started at {clock(found.first_started_s)}"
    gang = f"{found.scale_factor} accelerator{'s' if found.scale_factor > 1 else ''}"
    head = f"job {found.job_id}: {gang}, submitted at {clock(found.submitted_s)}, {started}, now {found.status}"
    console.print(head, markup=False)
    if found.estimate:
        console.print(found.estimate, markup=False)
    if found.refused:
        console.print(f"it was refused: {found.refused}", markup=False)
    elif not found.waits:
        console.print("it never waited" if at is None else f"it did not wait at {at:g} s")
    for wait in found.waits:
        end = "the end of the record" if wait.to_s is None else clock(wait.to_s)
        lasted = "" if wait.to_s is None else f" ({span(wait.to_s - wait.from_s)})"
        console.print(f"  {clock(wait.from_s)} to {end}{lasted}: {wait.text} [{wait.reason}]", markup=False)


def show_solution(found: Solution) -> None:
    """Print the quality of a decision, then the first jobs, one row each."""
    console = Console(highlight=False)
    problem, proof = found.problem, found.certificate
    head = f"{found.policy}: {found.status} in {found.seconds:.3g} s, {problem.jobs:,} job{'s' * (problem.jobs != 1)}"
    console.print(head, markup=False, soft_wrap=True)
    if proof is not None:
        quality = f"objective {proof.objective:.10g}, bound {proof.bound:.10g}, relative gap {proof.gap:.2g}"
        console.print(quality, markup=False, soft_wrap=True)
        if proof.price is not None:
            console.print(f"prices: {proof.exchange_rates(problem.types)}", markup=False, soft_wrap=True)
    if found.answer.late:
        late = ", ".join(str(problem.name(m)) for m in found.answer.late[:ROWS_SHOWN])
        more = f" and {len(found.answer.late) - ROWS_SHOWN:,} more" * (len(found.answer.late) > ROWS_SHOWN)
        console.print(f"late: {late}{more}", markup=False, soft_wrap=True)
    console.print(_shares_table(found))
    if problem.jobs > ROWS_SHOWN:
        console.print(f"… and {problem.jobs - ROWS_SHOWN:,} jobs more; --json or --out FILE has all")


def _shares_table(found: Solution) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("job")
    for name in (*found.problem.types, "steps/s"):
        table.add_column(escape(name), justify="right", no_wrap=True)
    partners = found.partners(ROWS_SHOWN)
    if partners is not None:
        table.add_column("beside")
    for m in range(min(found.problem.jobs, ROWS_SHOWN)):
        shares = ["–" if share < SMALL else f"{share:.3f}" for share in found.x[m].tolist()]
        beside = [] if partners is None else [escape(", ".join(map(str, partners[m])))]
        table.add_row(escape(str(found.problem.name(m))), *shares, f"{found.effective_throughput[m]:.4g}", *beside)
    return table


def show_auction(found: AuctionResult) -> None:
    """Print the quality of an auction, then the first bidders, one row each."""
    console, problem = Console(highlight=False), found.problem
    bidders, names = len(problem.bidders), problem.classes
    head = f"{found.policy}: {found.status} in {found.seconds:.3g} s, {bidders:,} bidder{'s' * (bidders != 1)}"
    console.print(head, markup=False, soft_wrap=True)
    quality = f"objective {found.partial.objective:.10g} (sum of logarithms), relative gap {found.gap:.2g}"
    console.print(quality, markup=False, soft_wrap=True)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("bidder")
    has_leases = problem.indivisible == "lease"
    for name in ("fair", "c", "granted", *["for, s"] * has_leases):
        table.add_column(name, justify="right")
    for i, name in enumerate(problem.bidders[:ROWS_SHOWN]):
        lease = [f"{found.leases_s[i]:.4g}"] * has_leases
        fair, granted = escape(_amounts(found.pf[i], names)), escape(_amounts(found.grants[i], names))
        table.add_row(escape(name), fair, f"{found.c[i]:.4f}", granted, *lease)
    console.print(table)
    if bidders > ROWS_SHOWN:
        console.print(f"… and {bidders - ROWS_SHOWN:,} bidders more; --json or --out FILE has all")
    console.print(f"left over: {_amounts(found.leftover, names)}", markup=False, soft_wrap=True)


def _amounts(by_class: Array, names: Sequence[str]) -> str:
    """Return amounts for display: the number if there is one class, else each amount above 0 with its class."""
    if len(by_class) == 1:
        return f"{by_class[0]:.4g}"
    some = [f"{amount:.4g} {name}" for name, amount in zip(names, by_class.tolist(), strict=True) if amount > 0]
    return ", ".join(some) or "0"
