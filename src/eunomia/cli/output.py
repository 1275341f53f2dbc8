"""Output of commands for people: tables on stdout, progress on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from eunomia.allocation import Solution
    from eunomia.allocation.auctions.auction_result import AuctionResult
    from eunomia.model.arrays import Array
    from eunomia.records.explain import Explanation
    from eunomia.records.preemptions import Preemption
    from eunomia.runs.simulation import Progress, Result
    from eunomia.verdict.run_figures import ReportContent

ROWS_SHOWN = 20  # of a solution
LINE_EVERY_S = 5.0  # lines of progress without a terminal
SMALL = 1e-9  # a share below it is a rounding error
KNOWS_MARK = "†"  # behind the name of a policy that knows durations
LEFT_OUT_FIRST = (
    "offered",
    "stops",
    "cost",
    "total wait",
    "p99 JCT",
    "queueing",
)  # columns, where a terminal is narrow


def span(seconds: float | int | None) -> str:
    """Return a duration for display, in the units of the report: 42.0 s, 3.50 min, 7.25 h, 12.0 d; – for None."""
    from eunomia.verdict.number_format import shown

    return shown(seconds, "s")


def clock(at: float, began: str | None = None) -> str:
    """Return a time of the run for display; `began` is the date at 0 s."""
    if began is not None:
        return (datetime.fromisoformat(began) + timedelta(seconds=round(at))).strftime("%a %Y-%m-%d %H:%M")
    return f"{at:,.0f} s" if at >= 1000 or at == round(at) else f"{at:.4g} s"


def print_plain(console: Console, *lines: str) -> None:
    """Print lines as they are: nothing in them is markup or highlighted, and none is broken."""
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def progress_bar(quiet: bool, runs: int = 1) -> Iterator[Callable[[str], Progress | None]]:
    """Yield a function that starts a progress bar; without a terminal lines, the first after a few seconds."""
    if quiet:
        yield lambda label: None
        return
    if not sys.stderr.isatty():
        yield lambda label: _lines_of(label, announce=runs > 1)
        return
    from rich import progress as bars

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("jobs, day {task.fields[day]}"),
        bars.TimeElapsedColumn(),
        bars.TextColumn("{task.fields[left]}"),
    )
    with bars.Progress(*columns, console=Console(stderr=True)) as shown:

        def open_line(label: str) -> Progress | None:
            task, began_s = shown.add_task(escape(label), total=None, day="0", left=""), time.monotonic()

            def update(ended: int, jobs: int, at: float) -> None:
                left = _time_left(began_s, ended, jobs)
                shown.update(task, completed=ended, total=jobs, day=f"{at / 86400:.1f}", left=left)

            return update

        yield open_line


def _lines_of(label: str, *, announce: bool) -> Progress:
    """Return what prints the progress of a run on stderr, every few seconds; with `announce` first that it begins."""
    if announce:
        print(f"running {label}", file=sys.stderr, flush=True)
    began_s = time.monotonic()
    lines = SpacedLines()

    def report(ended: int, jobs: int, at: float) -> None:
        left = _time_left(began_s, ended, jobs)
        lines.say(f"{label}: {ended:,} of {jobs:,} jobs, day {at / 86400:.1f}{', ' * bool(left)}{left}")

    return report


def _time_left(began_s: float, ended: int, jobs: int) -> str:
    """Return about how long a run takes yet, as if every job took as long; "" before the first and after the last."""
    if not 0 < ended < jobs:
        return ""
    return f"about {span((time.monotonic() - began_s) * (jobs - ended) / ended)} left"


class SpacedLines:
    """Prints lines of progress on stderr, at most one every few seconds."""

    def __init__(self) -> None:
        self._printed_s = time.monotonic()

    def say(self, line: str, *, last: bool = False) -> None:
        """Print a line if the previous one is a few seconds old, and the last one in any case."""
        if last or time.monotonic() - self._printed_s >= LINE_EVERY_S:
            self._printed_s = time.monotonic()
            print(line, file=sys.stderr, flush=True)


def show_summary(
    results: Sequence[tuple[str, Result]], notes: Sequence[str], columns: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Print the main numbers, one row a run; `columns` has texts by heading that stand after the name of the run."""
    from eunomia.verdict.completion_text import without_model

    console, columns = Console(), columns or {}
    summaries = [result.summary for _, result in results]
    all_done = all(s["jobs_finished"] == s["jobs_submitted"] for s in summaries)
    searches = any(s["apps_submitted"] for s in summaries)
    cells = [_cells(result, searches=searches, done=not all_done) for _, result in results]
    if all_done:
        console.print(f"all {summaries[0]['jobs_submitted']:,} jobs finished", highlight=False)
    for label, result in results:
        print_plain(console, *(f"  {line}" if k else f"{label}: {line}" for k, line in enumerate(result.endings)))
        if lost := result.summary["apps_without_model"]:
            print_plain(console, f"{label}: {without_model(lost)}, as none of their trials came to its end")
    rows = [
        {
            "run": f"{label} {KNOWS_MARK}" if result.knows_durations else label,
            **{name: texts[k] for name, texts in columns.items()},
            **row,
        }
        for k, ((label, result), row) in enumerate(zip(results, cells, strict=True))
    ]
    table, left_out = _fitting(rows, console.width)
    console.print(table)
    if left_out:
        console.print(f"not shown for want of width: {', '.join(left_out)}", markup=False, highlight=False)
    knowing = [label for label, result in results if result.knows_durations]
    if knowing:
        print_plain(console, f"{KNOWS_MARK} knows durations, which a real cluster does not")
    print_plain(console, *(f"note: {note}" for note in notes))


def _fitting(rows: Sequence[Mapping[str, str]], width: int) -> tuple[Table, list[str]]:
    """Return a table without broken cells, and the columns that were left out for it; names break last."""
    gap = 1 if width < 100 else 2
    names = list(dict.fromkeys(name for row in rows for name in row))
    widest = {name: max(len(name), *(len(row.get(name, "")) for row in rows)) for name in names}
    left_out: list[str] = []
    for name in LEFT_OUT_FIRST:
        if sum(widest.values()) + gap * (len(widest) - 1) > width and name in widest:
            del widest[name]
            left_out.append(name)
    table = Table(box=None, header_style="bold", pad_edge=False, collapse_padding=gap == 1)
    for name in widest:
        first = name == "run"
        table.add_column(name, justify="left" if first else "right", no_wrap=not first, overflow="fold")
    for row in rows:
        table.add_row(*(escape(row.get(name, "–")) for name in widest))
    return table, left_out


def show_comparison(results: Sequence[tuple[str, Result]], content: ReportContent) -> None:
    """Print the main numbers of labelled results, runs that are one run once, their notes, and the verdict."""
    from eunomia.model.speeds import ESTIMATED
    from eunomia.verdict.seed_groups import alike_seeds, seed_groups

    settings = seed_groups(content)
    setting_of = {id(run): setting for setting in settings for run in setting.replications}
    kept = [pair for pair, run in zip(results, content.runs, strict=True) if id(run) in setting_of]
    shown_once = [(run, setting_of[id(run)]) for run in content.runs if id(run) in setting_of]
    loads = [f"{run.load:g}" for run, _ in shown_once]
    seeds = [
        ", ".join(str(one.seed) for one in (setting.runs if setting.is_one_run else (run,)))
        for run, setting in shown_once
    ]
    several = {name: texts for name, texts in (("load", loads), ("seed", seeds)) if len(set(texts)) > 1}
    first = [result for (_, result), run in zip(results, content.runs, strict=True) if run.seed == content.runs[0].seed]
    # Notes of other seeds say the same; the number of estimated throughputs is in the verdict.
    said = {note for result in first if result.summary.get(ESTIMATED) for note in result.estimates[:1]}
    notes = dict.fromkeys(note for result in first for note in result.notes if note not in said)
    show_summary(kept, [*notes, *filter(None, [alike_seeds(settings)])], several)
    show_verdict(content)


def show_verdict(content: ReportContent) -> None:
    """Print the warnings of the verdict, the answer and its certainty."""
    from eunomia.verdict.findings import findings

    found = findings(content)
    for line in filter(None, ("", *found.warnings, found.answer, found.certainty)):
        Console().print(line, markup=False, highlight=False)


def _cells(result: Result, *, searches: bool, done: bool) -> dict[str, str]:
    """Return the cells of a run by heading; with `searches` those of apps first."""
    s = result.summary
    apps = {"apps": f"{s['apps_finished'] or 0:,}/{s['apps_submitted'] or 0:,}", "mean app": span(s["app_jct_mean_s"])}
    jobs = {"done": f"{s['jobs_finished']:,}/{s['jobs_submitted']:,}"}
    return {
        **(apps if searches else {}),
        **(jobs if done else {}),
        "mean JCT": span(s["jct_mean_s"]),
        **({} if searches else {"p99 JCT": span(s["jct_p99_s"])}),
        "queueing": span(s["queueing_mean_s"]),
        "total wait": span(s["total_wait_mean_s"]),
        "busy": "–" if s["utilization"] is None else f"{s['utilization']:.0%}",
        **({} if result.offered_load is None else {"offered": f"{result.offered_load:.0%}"}),
        **({} if s["cost_usd"] is None else {"cost": f"${s['cost_usd']:,.0f}"}),
        "stops": f"{s['preemptions']:,}",
        "worst ρ": "–" if s["rho_themis_max"] is None else f"{s['rho_themis_max']:.2f}",
    }


def show_explanation(found: Explanation, at: float | None, *, details: bool = False) -> None:
    """Print why a job waited: a summary and the decisive waits, with `details` or a time every wait."""
    console = Console(highlight=False, soft_wrap=True)
    gang = f"{found.scale_factor} accelerator{'s' if found.scale_factor > 1 else ''}"
    head = f"job {found.job_id}: {gang}, submitted at {clock(found.submitted_s, found.began)}, {_fate(found)}"
    console.print(head, markup=False)
    if found.estimate:
        console.print(found.estimate, markup=False)
    if found.refused:
        console.print(f"it was refused: {found.refused}", markup=False)
    elif not found.waits:
        console.print("it never waited" if at is None else f"it did not wait at {at:g} s")
    elif at is None:
        console.print(_waited(found), markup=False)
    every = details or at is not None
    if found.preemptions:
        for line in _preemptions(found, every):
            console.print(line, markup=False)
    shown = list(found.waits) if every else found.decisive()
    if len(shown) < len(found.waits):
        console.print(f"the {len(shown)} longest of {len(found.waits):,} intervals (--details shows all):")
    for wait in shown:
        end = "the end of the record" if wait.to_s is None else clock(wait.to_s, found.began)
        lasted = f" ({span(found.lasted_s(wait))})"
        text = f"  {clock(wait.from_s, found.began)} to {end}{lasted}: {wait.text} [{wait.reason}]"
        console.print(text, markup=False)


def _preemptions(found: Explanation, every: bool) -> Iterator[str]:
    """Yield `it was preempted at 20 s by b, which srtf ranks before it`; of several the first times, or every one."""
    from eunomia.records.queue_position import SHOWN

    count, first = len(found.preemptions), found.preemptions[:SHOWN]
    if count == 1:
        yield f"it was preempted {_preemption(found, first[0])}"
    elif every:
        yield f"it was preempted {count:,} times:"
        yield from (f"  {_preemption(found, one)}" for one in found.preemptions)
    else:
        more = f"; {count - len(first):,} more (--details shows all)" if count > len(first) else ""
        yield f"it was preempted {count:,} times: {'; '.join(_preemption(found, one) for one in first)}{more}"


def _preemption(found: Explanation, one: Preemption) -> str:
    """Return `at 20 s by b, which srtf ranks before it`."""
    from eunomia.model.wait_reason import describe_takers
    from eunomia.records.queue_position import SHOWN

    at = f"at {clock(one.at, found.began)}"
    if one.moved:
        return f"{at}, and moved to other accelerators"
    takers = describe_takers(one.by[:SHOWN], len(one.by), found.policy if one.ranked else "")
    return f"{at}{takers}"


def _waited(found: Explanation) -> str:
    """Return `it waited 59.5 h: 71 % behind earlier jobs, 29 % nothing large enough was free`."""
    from eunomia.model.wait_reason import KINDS

    parts = found.parts()
    total = sum(seconds for _, seconds in parts)
    if total <= 0:
        return "it waited for no time"
    named = (f"{100 * seconds / total:.0f} % {KINDS[kind]}" for kind, seconds in parts)
    again = f" in all, {span((found.first_started_s or 0.0) - found.submitted_s)} of it before its first start"
    several = found.first_started_s is not None and total > found.first_started_s - found.submitted_s + 1
    return f"it waited {span(total)}{again if several else ''}: {', '.join(named)}"


def _fate(found: Explanation) -> str:
    """Return when the job started and how it ended: `started …, finished … (1.95 h after its submission)`."""
    if found.first_started_s is None:
        started = "never started"
    else:
        started = f"first started at {clock(found.first_started_s, found.began)}"
    if found.starts > 1:
        started += f" ({found.starts:,} starts)"
    failed = f", {found.failures:,} attempt{'s' * (found.failures > 1)} failed" if found.failures else ""
    if found.last_failure:
        failed += f" (the last: {found.last_failure})"
    if found.ended_s is None:
        return f"{started}{failed}, {found.status} when the record ends"
    after = span(found.ended_s - found.submitted_s)
    return f"{started}{failed}, {found.status} at {clock(found.ended_s, found.began)} ({after} after its submission)"


def show_solution(found: Solution) -> None:
    """Print the quality of a decision, then the first jobs, one row each."""
    from eunomia.verdict.further_notes import on_estimates

    console = Console(highlight=False)
    problem, proof = found.problem, found.certificate
    head = f"{found.policy}: {found.status} in {found.seconds:.3g} s, {problem.jobs:,} job{'s' * (problem.jobs != 1)}"
    print_plain(console, head)
    if proof is not None:
        quality = f"objective {proof.objective:.10g}, bound {proof.bound:.10g}, relative gap {proof.gap:.2g}"
        print_plain(console, quality)
        if proof.price is not None:
            print_plain(console, f"prices: {proof.exchange_rates(problem.types)}")
    if found.answer.late:
        late = ", ".join(str(problem.name(m)) for m in found.answer.late[:ROWS_SHOWN])
        more = f" and {len(found.answer.late) - ROWS_SHOWN:,} more" * (len(found.answer.late) > ROWS_SHOWN)
        print_plain(console, f"late: {late}{more}")
    console.print(_shares_table(found))
    print_plain(console, *on_estimates([found.origins]))
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
    quality = f"objective {found.partial.objective:.10g} (sum of logarithms), relative gap {found.gap:.2g}"
    print_plain(console, head, quality)
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
    print_plain(console, f"left over: {_amounts(found.leftover, names)}")


def _amounts(by_class: Array, names: Sequence[str]) -> str:
    """Return amounts for display: the number if there is one class, else each amount above 0 with its class."""
    if len(by_class) == 1:
        return f"{by_class[0]:.4g}"
    some = [f"{amount:.4g} {name}" for name, amount in zip(names, by_class.tolist(), strict=True) if amount > 0]
    return ", ".join(some) or "0"
