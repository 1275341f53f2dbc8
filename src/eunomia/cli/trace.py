"""`eunomia trace`: describes, converts and samples traces and machine lists."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from eunomia.cli.command import Output, command
from eunomia.cli.options import argument, flag, group, option

if TYPE_CHECKING:
    from eunomia.traces import Trace
    from eunomia.traces.machine_lists import MachineList
    from eunomia.traces.statistics import Description

app = group("Look into a trace of jobs, write it in our own format, or take a part of it. Formats: docs/traces.md.")

TraceArgument = Annotated[Path, argument("FILE", "A trace, or the folder that it lies in.")]
FormatOption = Annotated[str, option("NAME", "How it is written; auto tells by the first line.", "--format")]
ReaderOption = Annotated[
    list[str] | None, option("KEY=VALUE", "An option of the format, such as fraction=drop. Repeatable.", "--option")
]
ForceOption = Annotated[bool, flag("Replace what is there.", "--force")]


@app.command(epilog="Example:  eunomia trace describe jobs.csv --out trace-out")
@command
def describe(
    output: Output,
    file: TraceArgument,
    format: FormatOption = "auto",
    option: ReaderOption = None,
    out: Annotated[Path | None, option("DIR", "Write trace.html, with charts, and trace.json into DIR.")] = None,
    force: ForceOption = False,
) -> None:
    """Describe a trace.

    Number, sizes, durations, arrivals, tenants and outcomes of jobs; and what its reader estimated or left out. Also
    describes a list of machines, and the published state of a cluster minute by minute.
    """
    from eunomia.report.trace_tables import state_lines
    from eunomia.traces.cluster_state import is_cluster_state, read_cluster_history
    from eunomia.traces.machine_lists import is_machine_list

    if format == "auto" and is_machine_list(file):
        _show_machines(_machines(file, format, option), output)
    elif format == "auto" and is_cluster_state(file):
        states = read_cluster_history(file)
        output.show(states.as_dict, *state_lines(states), lambda: _print_notes("note", states.notes))
    else:
        _describe(_read(file, format, option), out, force, output)


@app.command(epilog="Example:  eunomia trace machines machines.csv --to nodes.csv")
@command
def machines(
    output: Output,
    file: Annotated[Path, argument("FILE", "A list of machines, or its folder.")],
    format: FormatOption = "auto",
    option: ReaderOption = None,
    to: Annotated[Path | None, option("OUT.csv", "Write the list as type,count,accelerators,rack.")] = None,
    force: ForceOption = False,
) -> None:
    """Look into a list of machines, or write it in our own format.

    A scenario uses such a file as its cluster: nodes_file = "machines.csv?only=v100,p100".
    """
    from eunomia.inputs.atomic_write import check_place
    from eunomia.traces.machine_lists.layouts import write

    if to is not None:
        check_place(to, force=force, endings=(".csv",))
    found = _machines(file, format, option)
    if to is not None:
        write(found, to)
    _show_machines(found, output)


@app.command(epilog="Example:  eunomia trace convert cluster_job_log.json --format philly --to jobs.csv")
@command
def convert(
    output: Output,
    file: TraceArgument,
    to: Annotated[Path, option("OUT", "The new file: .csv, .csv.gz or .parquet.")],
    format: FormatOption = "auto",
    option: ReaderOption = None,
    force: ForceOption = False,
) -> None:
    """Write a trace in our own format.

    Every column that the format has is kept exactly; what it lacks is listed.
    """
    from eunomia.inputs.atomic_write import check_place
    from eunomia.traces.writing import ENDINGS

    check_place(to, force=force, endings=ENDINGS)
    _write(_read(file, format, option), to, output)


@app.command(epilog="Example:  eunomia trace sample jobs.csv --max-jobs 500 --out some.csv")
@command
def sample(
    output: Output,
    file: TraceArgument,
    out: Annotated[Path, option("OUT", "The new file: .csv, .csv.gz or .parquet.")],
    format: FormatOption = "auto",
    option: ReaderOption = None,
    start: Annotated[float | None, option("SECONDS", "Leave earlier jobs out; time is counted from there.")] = None,
    end: Annotated[float | None, option("SECONDS", "Leave out jobs submitted then or later.")] = None,
    tenant: Annotated[list[str] | None, option("NAME", "Keep the jobs of this tenant (VC, user). Repeatable.")] = None,
    rate: Annotated[
        float, option("X", "Jobs kept or copied per job, at random: days and weeks keep their shape.")
    ] = 1.0,
    load: Annotated[float, option("X", "Divide submission times by this: the gaps keep their shape.")] = 1.0,
    max_jobs: Annotated[int | None, option("N", "Keep the first N of what is left.")] = None,
    seed: Annotated[int, option("N", "Of the draws of --rate.")] = 0,
    force: ForceOption = False,
) -> None:
    """Take a part of a trace, or more of it.

    Some tenants, a stretch of time, a tenth of the jobs, twice the load. The same seed draws the same jobs.
    """
    from eunomia.inputs.atomic_write import check_place
    from eunomia.traces.sampling import sample as taken
    from eunomia.traces.writing import ENDINGS

    check_place(out, force=force, endings=ENDINGS)
    part = taken(
        _read(file, format, option),
        tenants=tenant or (),
        start_s=start,
        end_s=end,
        rate=rate,
        load=load,
        max_jobs=max_jobs,
        seed=seed,
    )
    _write(part, out, output)


def _read(file: Path, format: str, option: list[str] | None) -> Trace:
    from eunomia.scenario.policy_spec import parse_options
    from eunomia.traces import read

    return read(file, format, **dict(parse_options(option or [], "--option")))


def _machines(file: Path, format: str, option: list[str] | None) -> MachineList:
    from eunomia.scenario.policy_spec import parse_options
    from eunomia.traces.machine_lists import read_nodes

    options: dict[str, Any] = dict(parse_options(option or [], "--option"))
    return read_nodes(file, format, **options)


def _describe(trace: Trace, out: Path | None, force: bool, output: Output) -> None:
    """Print a description of the trace; with `out` write trace.html and trace.json."""
    from eunomia.report.trace_tables import facts, trace_tables
    from eunomia.traces.statistics import describe as description

    found = description(trace)
    if out is not None:
        _write_page(trace, found, out, force)
    rows = facts(found)
    width = max(len(name) for name, _ in rows)
    lines = [found.source, "", *(f"{name:<{width}}  {value}" for name, value in rows)]
    for table in trace_tables(found):
        lines += ["", *table.lines()]
    page = [] if out is None else [f"page: {out / 'trace.html'}"]
    output.show(found.as_dict, *lines, lambda: _print_notes("note", found.notes), *page)


def _write_page(trace: Trace, found: Description, out: Path, force: bool) -> None:
    from eunomia.report.trace_charts import trace_charts, trace_page
    from eunomia.runs.results_dir import whole_folder

    page = trace_page(Path(found.source).name, found, trace_charts(trace, found))
    with whole_folder(out, force=force) as folder:
        (folder / "trace.html").write_text(page, encoding="utf-8")
        (folder / "trace.json").write_text(json.dumps(found.as_dict(), indent=1, allow_nan=False) + "\n")


def _show_machines(found: MachineList, output: Output) -> None:
    from eunomia.report.trace_tables import machine_lines

    output.show(found.as_dict, *machine_lines(found), lambda: _print_notes("note", found.notes))


def _print_notes(what: str, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        print(f"{what}: {sentence}", file=sys.stderr)


def _write(trace: Trace, path: Path, output: Output) -> None:
    """Write the trace, then print what was written and what was not."""
    from eunomia.traces import write_native
    from eunomia.traces.writing import list_losses

    write_native(trace, path)
    lost = list_losses(trace, path.suffix)

    def show_notes() -> None:
        _print_notes("note", trace.notes)
        _print_notes("not written", lost)

    about = {"file": str(path), "jobs": len(trace), "notes": trace.notes, "lost": lost}
    output.show(about, f"{len(trace):,} jobs: {path}", show_notes)
