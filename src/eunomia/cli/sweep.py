"""`eunomia sweep`: many runs from one file, on all cores, resumable."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eunomia.cli.errors import FAILED, INTERRUPTED, answering_errors

if TYPE_CHECKING:
    from eunomia.sweeps import PlannedRun, SweepFile
    from eunomia.sweeps.axes import AxisRoles
    from eunomia.sweeps.runner import SweepProgress, SweepResult

LISTED = 20  # runs of a plan
EVERY_S = 5.0  # between two lines of progress where there is no terminal


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="What to run: see docs/sweep.md.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the results; a sweep in it goes on.")],
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, help="Processes at a time; without it, one a core.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, list the runs, estimate the time; run nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout, errors included.")] = False,
) -> None:
    """Run every combination of policies, loads, seeds and more.

    FILE.toml names a scenario and axes, such as policy = ["fifo", "las"], load = [1.0, 1.3], seed = [0, 1, 2]; every
    combination is a run. All are checked before the first begins. Writes sweep.parquet (one row a run), report.html
    (averages with intervals, differences paired by seed, and which of them are noise) and a folder for each run.

    Stopped half-way, by Ctrl-C or however, type the same command again: what is finished is not run again. A run that
    fails does not stop the others; the exit code is 1 then, and the same command tries it again. It is 1 too when a run
    left jobs unfinished, which is not tried again.
    """
    with answering_errors(as_json):
        from eunomia.sweeps import plan, read
        from eunomia.sweeps.axes import frame_of
        from eunomia.sweeps.store import check_place

        check_place(out)
        asked = read(file)
        rows = plan(asked)
        frame = frame_of(asked, rows)
        workers = jobs or _cores()
        if dry_run:
            _show_plan(asked, rows, out, workers, as_json)
            return
        outcome = _carried_out(asked, rows, out, workers)
        _report(asked, frame, outcome, out, as_json)
        if outcome.failures or outcome.unfinished:
            raise typer.Exit(FAILED)


def _cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _carried_out(asked: SweepFile, rows: Sequence[PlannedRun], out: Path, workers: int) -> SweepResult:
    from eunomia.sweeps.runner import carry_out

    try:
        with _progress(len(rows)) as tell:
            return carry_out(asked, rows, out, workers, tell)
    except KeyboardInterrupt:
        typer.echo(f"interrupted; what is finished is in {out}, and the same command goes on from there", err=True)
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _progress(runs: int) -> Iterator[Callable[[SweepProgress], None]]:
    """Give what tells how far the sweep is: a bar on a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.BarColumn(), bars.MofNCompleteColumn(), bars.TextColumn("runs{task.fields[failed]}, {task.fields[left]}"),
        bars.TextColumn("{task.description}"),
    )  # fmt: skip
    with bars.Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task("", total=runs, failed="", left="…")

        def tell(now: SweepProgress) -> None:
            failed = f", {now.failed} failed" if now.failed else ""
            done = now.done + now.failed
            shown.update(task, completed=done, failed=failed, left=_left(now.remaining_s), description=now.last)

        yield tell


class _Lines:
    """A line of progress on stderr, at most every few seconds, and the last one surely."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def __call__(self, now: SweepProgress) -> None:
        ended = now.done + now.failed
        if ended < now.runs and time.monotonic() - self._told < EVERY_S:
            return
        self._told = time.monotonic()
        failed = f", {now.failed} failed" if now.failed else ""
        typer.echo(f"{ended:,} of {now.runs:,} runs{failed}, {_left(now.remaining_s)}", err=True)


def _left(seconds: float | None) -> str:
    from eunomia.cli.output import span

    return "time left not known yet" if seconds is None else f"about {span(seconds)} left"


def _show_plan(asked: SweepFile, rows: Sequence[PlannedRun], out: Path, workers: int, as_json: bool) -> None:
    """Print the runs, which of them are done, and how long the others will take."""
    from eunomia.cli.output import span
    from eunomia.sweeps.estimate import PILOT_JOBS, RunTimeEstimates
    from eunomia.sweeps.store import Store

    store = Store(out)
    waiting = [row for row in rows if not store.finished(row.scenario_hash, jobs=asked.keep_jobs)]
    undone = {row.scenario_hash for row in waiting}
    costs = RunTimeEstimates(rows, store)
    basis = "runs that were made before"
    if not costs.known and waiting:
        tried = costs.pilot(waiting)
        basis = f"a pilot of {PILOT_JOBS} jobs under {', '.join(tried)}" if tried else "nothing: every pilot failed"
    estimate = costs.wall(waiting, workers)
    if as_json:
        listed = [
            {**_told(row), "scenario_hash": row.scenario_hash, "jobs": row.jobs,
             "done": row.scenario_hash not in undone, "estimate_s": costs.of(row)} for row in rows
        ]  # fmt: skip
        found = {"runs": listed, "waiting": len(waiting), "workers": workers, "estimate_s": estimate, "basis": basis}
        typer.echo(json.dumps(found, allow_nan=False))
        return
    for row in rows[:LISTED]:
        done = "done" if row.scenario_hash not in undone else f"about {span(costs.of(row))}"
        typer.echo(f"  {row.name}: {row.jobs:,} jobs, {done}")
    if len(rows) > LISTED:
        typer.echo(f"  … and {len(rows) - LISTED:,} runs more; --json lists them all")
    typer.echo(f"{len(rows):,} runs, {len(waiting):,} to run: about {span(estimate)} with {workers} processes")
    typer.echo(f"judged by {basis}, as if time grew with the number of jobs")


def _report(asked: SweepFile, frame: AxisRoles, outcome: SweepResult, out: Path, as_json: bool) -> None:
    """Write the report, and print what a person, or a program, wants to know."""
    from eunomia.report.number_format import plural
    from eunomia.report.sweep import write_sweep_report
    from eunomia.report.sweep.findings import findings
    from eunomia.sweeps.analysis import content_of
    from eunomia.sweeps.runner import TABLE

    content = content_of(asked, frame, outcome)
    write_sweep_report(content, out / "report.html")
    if as_json:
        typer.echo(json.dumps(_as_json(outcome, out / TABLE, out / "report.html", findings(content)), allow_nan=False))
        return
    for failure in outcome.failures:
        typer.echo(f"failed: {failure.row.name}: {failure.error}", err=True)
    for left in outcome.unfinished:
        typer.echo(f"unfinished: {left.row.name}: {'; '.join(left.why)}", err=True)
    done = f"{plural(len(outcome.rows), 'run')} done ({outcome.found_done:,} were before)"
    typer.echo(f"{done}, {len(outcome.failures):,} failed")
    for sentence in findings(content):
        typer.echo(f"- {sentence}")
    typer.echo(f"table: {out / TABLE}\nreport: {out / 'report.html'}")


def _told(row: PlannedRun) -> dict[str, Any]:
    """Return the labels of a run as JSON can say them."""
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.labels.items()
    }


def _as_json(outcome: SweepResult, table: Path, report: Path, words: Sequence[str]) -> dict[str, Any]:
    runs = [
        {**_told(row), **summary, "scenario_hash": row.scenario_hash}
        for row, summary in zip(outcome.rows, outcome.summaries, strict=True)
    ]
    return {
        "runs": runs,
        "done_before": outcome.found_done,
        "failed": [failure.as_dict() for failure in outcome.failures],
        "unfinished": [left.as_dict() for left in outcome.unfinished],
        "verdict": list(words),
        "table": str(table),
        "report": str(report),
    }
