"""`eunomia trace`: describes, converts and samples traces and machine lists."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eunomia.cli.errors import handle_errors
from eunomia.cli.options import JsonOption

if TYPE_CHECKING:
    from eunomia.traces import Trace
    from eunomia.traces.cluster_state import ClusterHistory
    from eunomia.traces.machine_lists import MachineList
    from eunomia.traces.statistics import Description

app = typer.Typer(
    help="Look into a trace of jobs, write it in our own format, or take a part of it. Formats: docs/traces.md.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

TraceArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A trace, or the folder that it lies in.", show_default=False)
]
FormatOption = Annotated[
    str, typer.Option("--format", metavar="NAME", help="How it is written; auto tells by the first line.")
]
ReaderOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="An option of the format, such as fraction=drop. Repeatable."),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


@app.command(epilog="Example:  eunomia trace describe jobs.csv --out trace-out")
def describe(
    file: TraceArgument,
    format: FormatOption = "auto",
    option: ReaderOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write trace.html, with charts, and trace.json into DIR."),
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Describe a trace.

    Number, sizes, durations, arrivals, tenants and outcomes of jobs; and what its reader estimated or left out. Also
    describes a list of machines, and the published state of a cluster minute by minute.
    """
    with handle_errors(as_json):
        from eunomia.traces.cluster_state import is_cluster_state, read_cluster_history
        from eunomia.traces.machine_lists import is_machine_list

        if format == "auto" and is_machine_list(file):
            _show_machines(_machines(file, format, option), as_json)
        elif format == "auto" and is_cluster_state(file):
            _show_states(read_cluster_history(file), as_json)
        else:
            _describe(_read(file, format, option), out, force, as_json)


@app.command(epilog="Example:  eunomia trace machines machines.csv --to nodes.csv")
def machines(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A list of machines, or its folder.", show_default=False)
    ],
    format: FormatOption = "auto",
    option: ReaderOption = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="OUT.csv", help="Write the list as type,count,accelerators,rack.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Look into a list of machines, or write it in our own format.

    A scenario uses such a file as its cluster: nodes_file = "machines.csv?only=v100,p100".
    """
    with handle_errors(as_json):
        from eunomia.inputs.atomic_write import check_place
        from eunomia.traces.machine_lists.layouts import write

        if to is not None:
            check_place(to, force=force, endings=(".csv",))
        found = _machines(file, format, option)
        if to is not None:
            write(found, to)
        _show_machines(found, as_json)


@app.command(epilog="Example:  eunomia trace convert cluster_job_log.json --format philly --to jobs.csv")
def convert(
    file: TraceArgument,
    to: Annotated[
        Path, typer.Option("--to", metavar="OUT", help="The new file: .csv, .csv.gz or .parquet.", show_default=False)
    ],
    format: FormatOption = "auto",
    option: ReaderOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a trace in our own format.

    Every column that the format has is kept exactly; what it lacks is listed.
    """
    with handle_errors(as_json):
        from eunomia.inputs.atomic_write import check_place
        from eunomia.traces.writing import ENDINGS

        check_place(to, force=force, endings=ENDINGS)
        _write(_read(file, format, option), to, as_json)


@app.command(epilog="Example:  eunomia trace sample jobs.csv --max-jobs 500 --out some.csv")
def sample(
    file: TraceArgument,
    out: Annotated[
        Path, typer.Option("--out", metavar="OUT", help="The new file: .csv, .csv.gz or .parquet.", show_default=False)
    ],
    format: FormatOption = "auto",
    option: ReaderOption = None,
    start: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Leave earlier jobs out; time is counted from there.")
    ] = None,
    end: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Leave out jobs submitted then or later.")
    ] = None,
    tenant: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Keep the jobs of this tenant (VC, user). Repeatable.")
    ] = None,
    rate: Annotated[
        float,
        typer.Option(metavar="X", help="Jobs kept or copied per job, at random: days and weeks keep their shape."),
    ] = 1.0,
    load: Annotated[
        float, typer.Option(metavar="X", help="Divide submission times by this: the gaps keep their shape.")
    ] = 1.0,
    max_jobs: Annotated[int | None, typer.Option(metavar="N", help="Keep the first N of what is left.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the draws of --rate.")] = 0,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take a part of a trace, or more of it.

    Some tenants, a stretch of time, a tenth of the jobs, twice the load. The same seed draws the same jobs.
    """
    with handle_errors(as_json):
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
        _write(part, out, as_json)


def _read(file: Path, format: str, option: list[str] | None) -> Trace:
    from eunomia.scenario.reader_options import parse_options
    from eunomia.traces import read

    return read(file, format, **dict(parse_options(option or [], "--option")))


def _machines(file: Path, format: str, option: list[str] | None) -> MachineList:
    from eunomia.scenario.reader_options import parse_options
    from eunomia.traces.machine_lists import read_nodes

    options: dict[str, Any] = dict(parse_options(option or [], "--option"))
    return read_nodes(file, format, **options)


def _describe(trace: Trace, out: Path | None, force: bool, as_json: bool) -> None:
    """Print a description of the trace; with `out` write trace.html and trace.json."""
    from eunomia.report.trace_tables import facts, trace_tables
    from eunomia.traces.statistics import describe as description

    found = description(trace)
    if out is not None:
        _write_page(trace, found, out, force)
    if as_json:
        print(json.dumps(found.as_dict(), allow_nan=False))
        return
    rows = facts(found)
    width = max(len(name) for name, _ in rows)
    print(f"{found.source}\n")
    print("\n".join(f"{name:<{width}}  {value}" for name, value in rows))
    for table in trace_tables(found):
        print("\n".join(["", *table.lines()]))
    _print_notes("note", found.notes)
    if out is not None:
        print(f"page: {out / 'trace.html'}")


def _write_page(trace: Trace, found: Description, out: Path, force: bool) -> None:
    from eunomia.report.trace_charts import trace_charts
    from eunomia.report.trace_page import trace_page
    from eunomia.runs.results_dir import whole_folder

    page = trace_page(Path(found.source).name, found, trace_charts(trace, found))
    with whole_folder(out, force=force) as folder:
        (folder / "trace.html").write_text(page, encoding="utf-8")
        (folder / "trace.json").write_text(json.dumps(found.as_dict(), indent=1, allow_nan=False) + "\n")


def _show_states(found: ClusterHistory, as_json: bool) -> None:
    from eunomia.report.trace_tables import state_lines

    if as_json:
        print(json.dumps(found.as_dict(), allow_nan=False))
        return
    print("\n".join(state_lines(found)))
    _print_notes("note", found.notes)


def _show_machines(found: MachineList, as_json: bool) -> None:
    from eunomia.report.trace_tables import machine_lines

    if as_json:
        print(json.dumps(found.as_dict()))
        return
    print("\n".join(machine_lines(found)))
    _print_notes("note", found.notes)


def _print_notes(what: str, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        print(f"{what}: {sentence}", file=sys.stderr)


def _write(trace: Trace, path: Path, as_json: bool) -> None:
    """Write the trace, then print what was written and what was not."""
    from eunomia.traces import write_native
    from eunomia.traces.writing import list_losses

    write_native(trace, path)
    if as_json:
        print(
            json.dumps(
                {"file": str(path), "jobs": len(trace), "notes": trace.notes, "lost": list_losses(trace, path.suffix)}
            )
        )
        return
    print(f"{len(trace):,} jobs: {path}")
    _print_notes("note", trace.notes)
    _print_notes("not written", list_losses(trace, path.suffix))
