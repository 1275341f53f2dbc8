"""`eunomia import`: accounting of a cluster manager → a scenario, with a report on the quality of the history."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from eunomia.cli.command import Output, command
from eunomia.cli.options import argument, flag, group, numbers_by_type, option

if TYPE_CHECKING:
    from eunomia.traces.import_findings import History
    from eunomia.traces.machine_lists.named_nodes import NamedNode

app = group("Turn a cluster's own accounting into a scenario: see docs/history.md.")

NodesOption = Annotated[
    Path | None, option("FILE", "The machines; without it they are guessed from the jobs.", "--nodes")
]
KeepOption = Annotated[bool, flag("A job that asked for an accelerator type runs on no other.", "--keep-types")]
AcceleratorsOption = Annotated[
    list[str] | None, option("TYPE=N", "The cluster; without it what jobs held at most.", "--accelerators")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What is said of every import, and how it is made."""

    out: Annotated[Path, option("DIR", "Folder for the scenario; whole or not at all.")]
    type_: Annotated[
        str, option("NAME", "Accelerator type where the history names none, such as a100-80gb.", "--type")
    ] = ""
    mix: Annotated[str, option("NAME", "Jobs of the catalogue whose median speed a type has.")] = "mix:default"
    speed: Annotated[list[str] | None, option("TYPE=X", "Speed of a type, relative to a v100. May be repeated.")] = None
    force: Annotated[bool, flag("Replace an earlier import.", "--force")] = False

    def make(
        self,
        output: Output,
        engine: str,
        files: Sequence[Path],
        read: Callable[[], History],
        nodes: Sequence[NamedNode],
        *,
        keep_types: bool = False,
    ) -> None:
        """Read, write the folder, and print the quality report."""
        from eunomia.cli.import_report import show_report
        from eunomia.cli.live import printable
        from eunomia.history.imported_files import QUALITY, SCENARIO, why_no_past
        from eunomia.history.importing import build_import
        from eunomia.runs.results_dir import check_free, whole_folder
        from eunomia.scenario import load_scenario

        out, speeds = self.out, numbers_by_type("--speed", self.speed, most=1e6, example="h100=3")
        check_free(out, force=self.force)
        imported = build_import(
            engine,
            tuple(map(str, files)),
            read(),
            nodes=nodes,
            speeds=speeds,
            unnamed=self.type_,
            keep_types=keep_types,
            mix=self.mix,
        )
        with whole_folder(out, force=self.force) as folder:
            imported.write(folder)
            load_scenario(folder / SCENARIO)  # what was written is a scenario, whatever the names in it
        lines = [f"quality report: {out / QUALITY}", f"scenario: {out / SCENARIO}"]
        reason = why_no_past(imported)
        if reason:
            lines.append(printable(f"the schedule as it was (as_it_was) is not known: {reason}"))
        names = (*([] if reason else ["as_it_was"]), "fifo", "tiresias", "max_min_fairness")
        policies = (word for name in names for word in ("--policy", name))
        lines.append(f"next: {shlex.join(['eunomia', 'compare', str(out / SCENARIO), *policies])}")
        about = {**imported.quality(), "scenario": str(out / SCENARIO)}
        output.show(about, lambda: show_report(imported), *lines)


@app.command(epilog="Example:  eunomia import slurm sacct.txt --out ours")
@command
def slurm(
    output: Output,
    files: Annotated[list[Path], argument("FILE…", "Output of sacct --parsable2, or of sacct --json.")],
    nodes: NodesOption = None,
    tenant: Annotated[str, option("FIELD", "What is a tenant: account, user, partition or qos.")] = "account",
    requeues: Annotated[str, option("HOW", "Duration of a requeued job: sum of its runs, or the last.")] = "sum",
    gres: Annotated[str, option("NAME", "The generic resource that is an accelerator.")] = "gpu",
    timezone: Annotated[
        str, option("NAME", "Time zone of the times, such as Europe/Berlin: for nights of clock changes.")
    ] = "",
    exclusive: Annotated[
        list[str] | None,
        option("PARTITION", "Its jobs hold all of their machines, listed in --nodes. May be repeated."),
    ] = None,
    keep_types: KeepOption = False,
    *,
    wanted: Import,
) -> None:
    """Read Slurm's accounting.

    FILE is the output of sacct --allusers --allocations --duplicates --parsable2, or with --json; --nodes that of
    scontrol show nodes --oneliner, or of sinfo. Several files, as of several months, are read as one.
    """
    from eunomia.traces.machine_lists.slurm_nodes import read_named
    from eunomia.traces.sacct_demands import WholeMachines
    from eunomia.traces.slurm import read_history

    machines = () if nodes is None else read_named(nodes, gres=gres)
    wanted.make(
        output,
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
        keep_types=keep_types,
    )


@app.command(epilog="Example:  eunomia import kubernetes kubernetes.json --out ours")
@command
def kubernetes(
    output: Output,
    files: Annotated[list[Path], argument("FILE…", "Output of kubectl get jobs,pods,nodes -o json.")],
    nodes: NodesOption = None,
    tenant: Annotated[str, option("NAME", "What is a tenant: namespace, or queue.")] = "namespace",
    resource: Annotated[
        list[str] | None, option("NAME", "A further resource of accelerators, such as google.com/tpu. Repeatable.")
    ] = None,
    keep_types: KeepOption = False,
    *,
    wanted: Import,
) -> None:
    """Read Jobs and Pods of Kubernetes.

    FILE is the output of kubectl get jobs,pods,nodes --all-namespaces -o json; nodes may be in it, or in --nodes.
    Kubernetes deletes its objects after a while: list often enough that pods are still there, and name all the files.
    """
    from eunomia.traces.engine_objects import load_objects
    from eunomia.traces.kubernetes import COMMAND, history_of
    from eunomia.traces.machine_lists.kubernetes_nodes import nodes_of, read_named
    from eunomia.traces.pod_resources import split_names

    resources, source = split_names(resource or ()), load_objects(files, COMMAND)
    wanted.make(
        output,
        "kubernetes",
        files,
        lambda: history_of(source, tenant=tenant, resources=resources),
        nodes_of(source, resources=resources) if nodes is None else read_named([nodes], resources=resources),
        keep_types=keep_types,
    )


@app.command(epilog="Example:  eunomia import ray jobs.json groups.json --out ours")
@command
def ray(
    output: Output,
    files: Annotated[list[Path], argument("FILE…", "Lists of jobs and of placement groups, JSON.")],
    nodes: NodesOption = None,
    tenant: Annotated[str, option("KEY", "Key of a job's metadata that names its tenant.")] = "user",
    keep_types: KeepOption = False,
    *,
    wanted: Import,
) -> None:
    """Read jobs and placement groups of Ray.

    FILE is the output of ray list jobs --detail --format json, and of ray list placement-groups likewise: name both.
    The output of ray list nodes may be a further one, or --nodes.
    """
    from eunomia.traces.engine_objects import load_objects
    from eunomia.traces.machine_lists.kubernetes_nodes import nodes_of, read_named
    from eunomia.traces.ray import COMMAND, history_of

    source = load_objects(files, COMMAND)
    wanted.make(
        output,
        "ray",
        files,
        lambda: history_of(source, tenant=tenant),
        nodes_of(source) if nodes is None else read_named([nodes]),
        keep_types=keep_types,
    )


@app.command("csv", epilog="Example:  eunomia import csv jobs.csv --accelerators a100=64 --out ours")
@command
def import_csv(
    output: Output,
    file: Annotated[Path, argument("FILE", "A table of past jobs, .csv or .parquet, one job a row.")],
    column: Annotated[list[str] | None, option("FIELD=NAME", "The column that holds a field. May be repeated.")] = None,
    accelerators: AcceleratorsOption = None,
    timezone: Annotated[str, option("NAME", "Zone of dates without one, such as Europe/Berlin; else UTC.")] = "",
    *,
    wanted: Import,
) -> None:
    """Read any table of past jobs.

    A row has the submission, start, end (or duration) and accelerators of a job, and if known its type, tenant and
    status; without starts it is a trace for simulation. Columns are found by their usual names, such as submit_time or
    num_gpus; --column submitted_s=NAME names another, and --column scale_factor=A*B a product.
    """
    from eunomia.history.importing import whole_machines
    from eunomia.scenario.policy_spec import parse_options
    from eunomia.traces.accounting_csv import read_history

    example = "a100=64"
    sizes = numbers_by_type("--accelerators", accelerators, most=1e6, example=example)
    columns = {name: str(value) for name, value in parse_options(column or [], "--column").items()}
    wanted.make(output, "csv", [file], lambda: read_history(file, columns, timezone=timezone), whole_machines(sizes))


@app.command("swf", epilog="Example:  eunomia import swf log.swf --type v100 --out ours")
@command
def import_swf(
    output: Output,
    file: Annotated[Path, argument("FILE", "A log in the Standard Workload Format.")],
    accelerators: AcceleratorsOption = None,
    tenant: Annotated[
        str, option("FIELD", "What is a tenant: user, group, executable, queue, partition or none.")
    ] = "user",
    types: Annotated[str, option("FIELD", "What tells accelerator types apart: partition or queue.")] = "",
    *,
    wanted: Import,
) -> None:
    """Read a log in the Standard Workload Format.

    Its processors are read as accelerators. The cluster is what --accelerators says, else the header's MaxProcs in
    MaxNodes machines, else what jobs held at most.
    """
    from eunomia.history.importing import whole_machines
    from eunomia.inputs.options import one_of
    from eunomia.traces.swf import BY_FIELD, read_history, read_machines

    one_of("command line", "--types", types, ("", *BY_FIELD))
    kind = types or wanted.type_
    sizes = numbers_by_type("--accelerators", accelerators, most=1e6, example="a100=64")
    wanted.make(
        output,
        "swf",
        [file],
        lambda: read_history(file, tenant=tenant, type=kind),
        whole_machines(sizes) or (() if types else read_machines(file, wanted.type_)),
    )
