"""`eunomia import`: accounting of a cluster manager → a scenario, with a report on the quality of the history."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eunomia.cli.errors import handle_errors
from eunomia.cli.options import JsonOption, numbers_by_type

if TYPE_CHECKING:
    from eunomia.traces.import_findings import History
    from eunomia.traces.machine_lists.named_nodes import NamedNode

app = typer.Typer(
    help="Turn a cluster's own accounting into a scenario: see docs/history.md.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the scenario; whole or not at all.")]
NodesOption = Annotated[
    Path | None,
    typer.Option("--nodes", metavar="FILE", help="The machines; without it they are guessed from the jobs."),
]
TypeOption = Annotated[
    str,
    typer.Option("--type", metavar="NAME", help="Accelerator type where the history names none, such as a100-80gb."),
]
KeepOption = Annotated[
    bool, typer.Option("--keep-types", help="A job that asked for an accelerator type runs on no other.")
]
MixOption = Annotated[
    str, typer.Option("--mix", metavar="NAME", help="Jobs of the catalogue whose median speed a type has.")
]
SpeedOption = Annotated[
    list[str] | None,
    typer.Option("--speed", metavar="TYPE=X", help="Speed of a type, relative to a v100. May be repeated."),
]
AcceleratorsOption = Annotated[
    list[str] | None,
    typer.Option("--accelerators", metavar="TYPE=N", help="The cluster; without it what jobs held at most."),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an earlier import.")]


@app.command(epilog="Example:  eunomia import slurm sacct.txt --out ours")
def slurm(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Output of sacct --parsable2, or of sacct --json.")
    ],
    out: OutOption,
    nodes: NodesOption = None,
    type_: TypeOption = "",
    tenant: Annotated[
        str, typer.Option(metavar="FIELD", help="What is a tenant: account, user, partition or qos.")
    ] = "account",
    requeues: Annotated[
        str, typer.Option(metavar="HOW", help="Duration of a requeued job: sum of its runs, or the last.")
    ] = "sum",
    gres: Annotated[str, typer.Option(metavar="NAME", help="The generic resource that is an accelerator.")] = "gpu",
    timezone: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Time zone of the times, such as Europe/Berlin: for nights of clock changes."
        ),
    ] = "",
    exclusive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PARTITION", help="Its jobs hold all of their machines, listed in --nodes. May be repeated."
        ),
    ] = None,
    keep_types: KeepOption = False,
    mix: MixOption = "mix:default",
    speed: SpeedOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read Slurm's accounting.

    FILE is the output of sacct --allusers --allocations --duplicates --parsable2, or with --json; --nodes that of
    scontrol show nodes --oneliner, or of sinfo. Several files, as of several months, are read as one.
    """
    with handle_errors(as_json):
        from eunomia.traces.machine_lists.slurm_nodes import read_named
        from eunomia.traces.sacct_demands import WholeMachines
        from eunomia.traces.slurm import read_history

        machines = () if nodes is None else read_named(nodes, gres=gres)
        _import(
            "slurm",
            files,
            lambda: read_history(
                files,
                tenant=tenant,
                requeues=requeues,
                gres=gres,
                timezone=timezone,
                whole_machines=WholeMachines.of(exclusive or (), machines),
                gres_option="--gres NAME",
            ),
            machines,
            out,
            speed,
            force=force,
            as_json=as_json,
            unnamed=type_,
            keep_types=keep_types,
            mix=mix,
        )


@app.command(epilog="Example:  eunomia import kubernetes kubernetes.json --out ours")
def kubernetes(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Output of kubectl get jobs,pods,nodes -o json.")
    ],
    out: OutOption,
    nodes: NodesOption = None,
    type_: TypeOption = "",
    tenant: Annotated[str, typer.Option(metavar="NAME", help="What is a tenant: namespace, or queue.")] = "namespace",
    resource: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A further resource of accelerators, such as google.com/tpu. Repeatable."),
    ] = None,
    keep_types: KeepOption = False,
    mix: MixOption = "mix:default",
    speed: SpeedOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read Jobs and Pods of Kubernetes.

    FILE is the output of kubectl get jobs,pods,nodes --all-namespaces -o json; nodes may be in it, or in --nodes.
    Kubernetes deletes its objects after a while: list often enough that pods are still there, and name all the files.
    """
    with handle_errors(as_json):
        from eunomia.traces.engine_objects import load_objects
        from eunomia.traces.kubernetes import COMMAND, history_of
        from eunomia.traces.machine_lists.kubernetes_nodes import nodes_of, read_named
        from eunomia.traces.pod_resources import split_names

        resources, source = split_names(resource or ()), load_objects(files, COMMAND)
        _import(
            "kubernetes",
            files,
            lambda: history_of(source, tenant=tenant, resources=resources),
            nodes_of(source, resources=resources) if nodes is None else read_named([nodes], resources=resources),
            out,
            speed,
            force=force,
            as_json=as_json,
            unnamed=type_,
            keep_types=keep_types,
            mix=mix,
        )


@app.command(epilog="Example:  eunomia import ray jobs.json groups.json --out ours")
def ray(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Lists of jobs and of placement groups, JSON.")],
    out: OutOption,
    nodes: NodesOption = None,
    type_: TypeOption = "",
    tenant: Annotated[str, typer.Option(metavar="KEY", help="Key of a job's metadata that names its tenant.")] = "user",
    keep_types: KeepOption = False,
    mix: MixOption = "mix:default",
    speed: SpeedOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read jobs and placement groups of Ray.

    FILE is the output of ray list jobs --detail --format json, and of ray list placement-groups likewise: name both.
    The output of ray list nodes may be a further one, or --nodes.
    """
    with handle_errors(as_json):
        from eunomia.traces.engine_objects import load_objects
        from eunomia.traces.machine_lists.kubernetes_nodes import nodes_of, read_named
        from eunomia.traces.ray import COMMAND, history_of

        source = load_objects(files, COMMAND)
        _import(
            "ray",
            files,
            lambda: history_of(source, tenant=tenant),
            nodes_of(source) if nodes is None else read_named([nodes]),
            out,
            speed,
            force=force,
            as_json=as_json,
            unnamed=type_,
            keep_types=keep_types,
            mix=mix,
        )


@app.command("csv", epilog="Example:  eunomia import csv jobs.csv --accelerators a100=64 --out ours")
def import_csv(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A table of past jobs, .csv or .parquet, one job a row.")
    ],
    out: OutOption,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="FIELD=NAME", help="The column that holds a field. May be repeated."),
    ] = None,
    accelerators: AcceleratorsOption = None,
    timezone: Annotated[
        str, typer.Option(metavar="NAME", help="Zone of dates without one, such as Europe/Berlin; else UTC.")
    ] = "",
    type_: TypeOption = "",
    mix: MixOption = "mix:default",
    speed: SpeedOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read any table of past jobs.

    A row has the submission, start, end (or duration) and accelerators of a job, and if known its type, tenant and
    status; without starts it is a trace for simulation. Columns are found by their usual names, such as submit_time or
    num_gpus; --column submitted_s=NAME names another, and --column scale_factor=A*B a product.
    """
    with handle_errors(as_json):
        from eunomia.history.importing import whole_machines
        from eunomia.scenario.reader_options import parse_options
        from eunomia.traces.accounting_csv import read_history

        example = "a100=64"
        sizes = numbers_by_type("--accelerators", accelerators, most=1e6, example=example)
        columns = {name: str(value) for name, value in parse_options(column or [], "--column").items()}
        _import(
            "csv",
            [file],
            lambda: read_history(file, columns, timezone=timezone),
            whole_machines(sizes),
            out,
            speed,
            force=force,
            as_json=as_json,
            unnamed=type_,
            mix=mix,
        )


@app.command("swf", epilog="Example:  eunomia import swf log.swf --type v100 --out ours")
def import_swf(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A log in the Standard Workload Format.")],
    out: OutOption,
    accelerators: AcceleratorsOption = None,
    type_: TypeOption = "",
    tenant: Annotated[
        str, typer.Option(metavar="FIELD", help="What is a tenant: user, group, executable, queue, partition or none.")
    ] = "user",
    types: Annotated[
        str, typer.Option(metavar="FIELD", help="What tells accelerator types apart: partition or queue.")
    ] = "",
    mix: MixOption = "mix:default",
    speed: SpeedOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read a log in the Standard Workload Format.

    Its processors are read as accelerators. The cluster is what --accelerators says, else the header's MaxProcs in
    MaxNodes machines, else what jobs held at most.
    """
    with handle_errors(as_json):
        from eunomia.history.importing import whole_machines
        from eunomia.inputs.options import one_of
        from eunomia.traces.swf import BY_FIELD, read_history, read_machines

        one_of("command line", "--types", types, ("", *BY_FIELD))
        kind = types or type_
        sizes = numbers_by_type("--accelerators", accelerators, most=1e6, example="a100=64")
        _import(
            "swf",
            [file],
            lambda: read_history(file, tenant=tenant, type=kind),
            whole_machines(sizes) or (() if types else read_machines(file, type_)),
            out,
            speed,
            force=force,
            as_json=as_json,
            unnamed=type_,
            mix=mix,
        )


def _import(
    engine: str,
    files: Sequence[Path],
    read: Callable[[], History],
    nodes: Sequence[NamedNode],
    out: Path,
    speed: list[str] | None,
    *,
    force: bool,
    as_json: bool,
    **assumed: Any,
) -> None:
    """Read, write the folder, and print the quality report."""
    from eunomia.cli.import_report import show_report
    from eunomia.cli.live import printable
    from eunomia.history.imported_files import QUALITY, SCENARIO
    from eunomia.history.importing import build_import
    from eunomia.history.past_schedule import why_no_past
    from eunomia.runs.results_dir import check_free, whole_folder
    from eunomia.scenario import load_scenario

    speeds = numbers_by_type("--speed", speed, most=1e6, example="h100=3")
    check_free(out, force=force)
    imported = build_import(engine, tuple(map(str, files)), read(), nodes=nodes, speeds=speeds, **assumed)
    with whole_folder(out, force=force) as folder:
        imported.write(folder)
        load_scenario(folder / SCENARIO)  # what was written is a scenario, whatever the names in it
    if as_json:
        print(json.dumps({**imported.quality(), "scenario": str(out / SCENARIO)}, allow_nan=False))
        return
    show_report(imported)
    print(f"quality report: {out / QUALITY}")
    print(f"scenario: {out / SCENARIO}")
    reason = why_no_past(imported)
    if reason:
        print(printable(f"the schedule as it was (as_it_was) is not known: {reason}"))
    names = (*([] if reason else ["as_it_was"]), "fifo", "tiresias", "max_min_fairness")
    policies = (word for name in names for word in ("--policy", name))
    print(f"next: {shlex.join(['eunomia', 'compare', str(out / SCENARIO), *policies])}")
