"""`eunomia sweep`: runs the combinations of a sweep file on all cores; resumable."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eunomia.cli.command import Output, command
from eunomia.cli.errors import FAILED, resumable
from eunomia.cli.options import JobsOption, PictureOptions, Pictures, argument, cores, flag, option, results_folder

if TYPE_CHECKING:
    from eunomia.sweeps import PlannedRun, SweepFile
    from eunomia.sweeps.runner import SweepProgress, SweepResult
    from eunomia.verdict.sweep_content import SweepContent

SHOWN_RUNS = 20  # of a plan


@command
def sweep(
    output: Output,
    file: Annotated[Path, argument("FILE.toml", "What to run: see docs/sweep.md.")],
    out: Annotated[
        Path | None, option("DIR", "Folder for the results; resumes a sweep in it. Without: out/NAME.")
    ] = None,
    jobs: JobsOption = None,
    on: Annotated[
        str, option("WHERE", "local, or the address of a Ray cluster; auto: the one that runs here.")
    ] = "local",
    dry_run: Annotated[
        bool, flag("Check everything, list the runs, estimate the time; run nothing.", "--dry-run")
    ] = False,
    drawing: PictureOptions = PictureOptions(),
    force: Annotated[bool, flag("Start anew: remove the runs of a sweep in DIR.", "--force")] = False,
) -> None:
    """Run every combination of policies, loads, seeds and more.

    FILE.toml names a scenario and axes, such as policy = ["fifo", "las"], load = [1.0, 1.3], seed = [0, 1, 2]; every
    combination is a run. All are checked before the first begins. Writes sweep.parquet (one row a run), report.html
    (averages with intervals, differences paired by seed, and which of them are noise), the same numbers in averages.csv
    and, for a paper, averages.tex, the tenants over the seeds in tenants.csv, and a folder for each run.

    After an interruption, type the same command again: finished runs are not repeated. A failed run does not stop the
    others; the exit code is then 1, and the same command retries it. The exit code is also 1 when a run left jobs
    unfinished, which is not retried.
    """
    from eunomia.sweeps import plan, read
    from eunomia.sweeps.analysis import content_of
    from eunomia.sweeps.axes import frame_of
    from eunomia.sweeps.store import check_place

    place = results_folder(out, file)
    check_place(place)
    pictures = drawing.parsed()
    sweep_file = read(file)
    rows = plan(sweep_file)
    frame = frame_of(sweep_file, rows)
    workers = jobs or cores()
    if dry_run:
        _show_plan(sweep_file, rows, place, workers, output)
        return
    outcome = _carry_out(sweep_file, rows, place, workers if on == "local" else jobs or 0, on, anew=force)
    _report(content_of(sweep_file, frame, outcome).renamed(pictures.names), outcome, place, pictures, output)
    if outcome.failures or outcome.unfinished:
        raise typer.Exit(FAILED)


def _carry_out(
    sweep_file: SweepFile, rows: Sequence[PlannedRun], out: Path, workers: int, on: str, *, anew: bool
) -> SweepResult:
    from eunomia.sweeps.runner import carry_out

    same = f"the same command{' without --force' * anew}"
    with resumable(f"what is finished is in {out}", same), _progress(len(rows)) as report:
        return carry_out(sweep_file, rows, out, workers, report, on=on, anew=anew)


@contextmanager
def _progress(runs: int) -> Iterator[Callable[[SweepProgress], None]]:
    """Yield a function that shows progress: a bar on a terminal, else a line every few seconds."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("runs{task.fields[failed]}, {task.fields[left]}"),
        bars.TextColumn("{task.description}"),
    )
    with bars.Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task("", total=runs, failed="", left="…")

        def report(now: SweepProgress) -> None:
            failed = f", {now.failed} failed" if now.failed else ""
            done = now.done + now.failed
            shown.update(task, completed=done, failed=failed, left=_left(now.remaining_s), description=now.last)

        yield report


def _lines() -> Callable[[SweepProgress], None]:
    """Return what prints progress on stderr, at most every few seconds, and when the sweep ends."""
    from eunomia.cli.output import SpacedLines

    lines = SpacedLines()

    def report(now: SweepProgress) -> None:
        ended = now.done + now.failed
        failed = f", {now.failed} failed" if now.failed else ""
        line = f"{ended:,} of {now.runs:,} runs{failed}, {_left(now.remaining_s)}"
        lines.say(line, last=ended == now.runs)

    return report


def _left(seconds: float | None) -> str:
    from eunomia.cli.output import span

    return "time left not known yet" if seconds is None else f"about {span(seconds)} left"


def _show_plan(sweep_file: SweepFile, rows: Sequence[PlannedRun], out: Path, workers: int, output: Output) -> None:
    """Print the runs, which of them are done, and the estimated time of the others."""
    from eunomia.cli.output import span
    from eunomia.sweeps.estimate import PILOT_JOBS, RunTimeEstimates
    from eunomia.sweeps.store import Store

    store = Store(out)
    waiting = [row for row in rows if not store.finished(row.scenario_hash, jobs=sweep_file.keep_jobs)]
    not_done = {row.scenario_hash for row in waiting}
    costs = RunTimeEstimates(rows, store)
    basis = "runs that were made before"
    if not costs.known and waiting:
        tried = costs.pilot(waiting)
        basis = f"a pilot of {PILOT_JOBS} jobs under {', '.join(tried)}" if tried else "nothing: every pilot failed"
    estimate = costs.wall(waiting, workers)
    lines = []
    for row in rows[:SHOWN_RUNS]:
        done = "done" if row.scenario_hash not in not_done else f"about {span(costs.of(row))}"
        lines.append(f"  {row.name}: {row.jobs:,} jobs, {done}")
    if len(rows) > SHOWN_RUNS:
        lines.append(f"  … and {len(rows) - SHOWN_RUNS:,} runs more; --json lists them all")
    lines.append(f"{len(rows):,} runs, {len(waiting):,} to run: about {span(estimate)} with {workers} processes")
    lines.append(f"judged by {basis}, as if time grew with the number of jobs")
    listed = [
        {
            **_labels(row),
            "scenario_hash": row.scenario_hash,
            "jobs": row.jobs,
            "done": row.scenario_hash not in not_done,
            "estimate_s": costs.of(row),
        }
        for row in rows
    ]
    summary = {"runs": listed, "waiting": len(waiting), "workers": workers, "estimate_s": estimate, "basis": basis}
    output.show(summary, *lines)


def _report(content: SweepContent, outcome: SweepResult, out: Path, pictures: Pictures, output: Output) -> None:
    """Write the report and pictures of its charts, and print the results as text or JSON."""
    from eunomia.report.sweep import write_averages, write_sweep_report
    from eunomia.sweeps.runner import TABLE
    from eunomia.verdict.number_format import plural
    from eunomia.verdict.sweep_findings import details, findings

    write_sweep_report(content, out / "report.html")
    write_averages(content, out)
    if pictures.formats:
        from eunomia.report.image_export import export_drawn
        from eunomia.report.sweep.charts import charts

        export_drawn(charts(content), out / "charts", pictures.formats, pictures.style)
    found = findings(content)
    sentences = (*found.sentences, *details(content))
    if not output.as_json:
        for failure in outcome.failures:
            typer.echo(f"failed: {failure.row.name}: {failure.error}", err=True)
        for run in outcome.unfinished:
            typer.echo(f"unfinished: {run.row.name}: {'; '.join(run.why)}", err=True)
    done = f"{plural(len(outcome.rows), 'run')} done ({outcome.found_done:,} were before)"
    output.show(
        lambda: _as_json(outcome, out / TABLE, out / "report.html", sentences),
        f"{done}, {len(outcome.failures):,} failed",
        "\n".join(found.sentences),
        *(f"- {sentence}" for sentence in details(content)),
        f"table: {out / TABLE}\nreport: {out / 'report.html'}",
    )


def _labels(row: PlannedRun) -> dict[str, Any]:
    """Return the labels of a run for JSON, numbers that are not finite as text."""
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.labels.items()
    }


def _as_json(outcome: SweepResult, table: Path, report: Path, sentences: Sequence[str]) -> dict[str, Any]:
    runs = [
        {**_labels(row), **summary, "scenario_hash": row.scenario_hash}
        for row, summary in zip(outcome.rows, outcome.summaries, strict=True)
    ]
    return {
        "runs": runs,
        "done_before": outcome.found_done,
        "failed": [failure.as_dict() for failure in outcome.failures],
        "unfinished": [run.as_dict() for run in outcome.unfinished],
        "verdict": list(sentences),
        "table": str(table),
        "report": str(report),
    }
