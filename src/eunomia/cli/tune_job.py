"""`eunomia tune job`: searches the workers, servers and accelerator type of one job by measuring its steps."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eunomia.cli.errors import FAILED, INTERRUPTED
from eunomia.cli.options import JsonOption
from eunomia.cli.service_session import TokenFileOption, UrlOption, service_errors, show_table
from eunomia.cli.tune import app
from eunomia.cli.tune_job_plan import JobTuningOptions, JobTuningPlan, plan_job_tuning

if TYPE_CHECKING:
    from eunomia.job_tuning.measurements import MeasuredShape
    from eunomia.job_tuning.search import JobTuning

__all__ = ["app", "tune_job"]  # the group with this command in it

CommandArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="-- COMMAND…",
        help="Program and arguments, after two dashes; {workers}, {servers} and {type} in it are filled in.",
    ),
]
CountsOption = Annotated[
    str | None,
    typer.Option("--workers", metavar="1-8", help="Numbers of workers: 1-8, or 1,2,4,8. A worker has an accelerator."),
]
ServersOption = Annotated[
    str | None, typer.Option("--servers", metavar="0-2", help="Numbers of parameter servers. Without: 0.")
]
TypeOption = Annotated[
    str | None,
    typer.Option("--type", metavar="A,B", help="Accelerator types. Without: cpu, seats that need no device."),
]
StepsOption = Annotated[float, typer.Option("--steps", metavar="N", min=1, help="Steps that a measurement counts.")]
WarmUpOption = Annotated[
    float, typer.Option("--warm-up", metavar="N", min=0, help="Steps before them that do not count.")
]
LimitOption = Annotated[
    float, typer.Option("--limit", metavar="S", min=1, help="Longest time of a measurement on its accelerators.")
]
ObjectiveOption = Annotated[
    str, typer.Option("--objective", metavar="NAME", help="What is maximised: speed (steps/s) or price (steps/US$).")
]
PriceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="TYPE=X",
        help="US$ an hour of a type, or of a server as server=X; without, the catalogue's. May be repeated.",
    ),
]
TableOption = Annotated[
    Path | None,
    typer.Option(
        "--table", metavar="FILE", help="Take measurements from a CSV (workers, servers, type, steps_per_s), run none."
    ),
]
ServiceOption = Annotated[
    bool, typer.Option("--service", help="Measure by short jobs of a running service, not on this machine.")
]
FolderOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Folder of the measurements; resumes a search in it.")
]
MethodOption = Annotated[str, typer.Option(metavar="NAME", help="gp-ei, gp-lcb, rf-ei, rf-lcb, random or grid.")]
BudgetOption = Annotated[int, typer.Option(metavar="N", min=1, help="Shapes that are measured at most.")]
EpsilonOption = Annotated[
    float, typer.Option(metavar="X", min=0.0, max=1.0, help="End when less than this share of improvement is expected.")
]
SeedOption = Annotated[int, typer.Option(metavar="S", min=0, help="Draws the first shapes.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="List what would be measured; start nothing.")]


@app.command(
    "job", epilog="Example:  eunomia tune job --workers 1-8 --out tuned -- python train.py --workers {workers}"
)
def tune_job(
    command: CommandArgument = None,
    workers: CountsOption = None,
    servers: ServersOption = None,
    type_: TypeOption = None,
    steps: StepsOption = 20.0,
    warm_up: WarmUpOption = 5.0,
    limit: LimitOption = 600.0,
    objective: ObjectiveOption = "speed",
    price: PriceOption = None,
    table: TableOption = None,
    service: ServiceOption = False,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    out: FolderOption = None,
    method: MethodOption = "gp-ei",
    budget: BudgetOption = 15,
    epsilon: EpsilonOption = 0.01,
    seed: SeedOption = 0,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Search how many workers and parameter servers, and which accelerator type, suit one job.

    Each measurement runs your command in one shape until it has reported some steps (progress or save of
    eunomia.lease), then stops it. The next shape is the one that a model of the measurements expects most of. A shape
    in which the job fails is noted and not tried again. Writes measurements.csv and tune-job.json into DIR; after an
    interruption, type the same command again. Exit code 1 when the job ran in no shape.
    """
    with service_errors(as_json):
        given = JobTuningOptions(
            command=command, workers=workers, servers=servers, types=type_, steps=steps, warm_up=warm_up, limit=limit,
            objective=objective, price=price, table=table, service=service, url=url, token_file=token_file, out=out,
            method=method, budget=budget, epsilon=epsilon, seed=seed,
        )  # fmt: skip
        plan = plan_job_tuning(given)
        if dry_run:
            _show_plan(plan, given, as_json)
            return
        found = _search(plan)
        if as_json:
            print(json.dumps(found.as_dict(), allow_nan=False))
        else:
            _show(found, plan)
        if found.best is None:
            raise typer.Exit(FAILED)


def _search(plan: JobTuningPlan) -> JobTuning:
    """Return the result; an interruption ends the command, what was measured stays."""
    from eunomia.job_tuning.search import tune_job as search

    last: list[JobTuning] = []

    def report(found: JobTuning) -> None:
        last[:] = [found]
        if plan.folder is not None:
            plan.folder.keep(found, plan.left_out)
        if plan.command:
            one = found.measured[-1]
            said = one.reason if one.rate is None else f"{found.gain(one):.4g} {found.objective.unit}"
            typer.echo(f"{len(found.measured)} of {plan.request.budget}: {one.shape}: {said}", err=True)

    if plan.folder is not None:
        plan.folder.begin()
    try:
        found = search(plan.request, plan.measure, plan.known, report)
    except KeyboardInterrupt:
        typer.echo(
            f"interrupted; what is measured is in {plan.folder.path if plan.folder else 'the table'}, and the same "
            "command continues from there",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    if plan.folder is not None:
        plan.folder.keep(found, plan.left_out)
    return found


def _show_plan(plan: JobTuningPlan, given: JobTuningOptions, as_json: bool) -> None:
    """Print what would be measured."""
    from eunomia.job_tuning.search import first_shapes

    request = plan.request
    shapes = first_shapes(request, plan.known)
    if as_json:
        rows = [
            {"workers": s.workers, "servers": s.servers, "type": s.type, "command": list(s.fill(plan.command))}
            for s in shapes
        ]
        print(json.dumps({"shapes": request.shapes, "known": len(plan.known), "first": rows}))
        return
    print(f"{request.shapes:,} shapes, of which at most {request.budget} are measured for {request.objective.name}")
    if plan.known:
        print(f"measured already, in {given.out}: {len(plan.known)}")
    for shape in shapes:
        print(f"  {shape}{f':  {shlex.join(shape.fill(plan.command))}' if plan.command else ''}")
    if given.method not in ("random", "grid"):
        print(
            f"then the shape that promises most by {given.method}, until less than {100 * given.epsilon:g} % more is "
            "expected"
        )
    if plan.command:
        print(
            f"each until {given.steps:g} steps after the first {given.warm_up:g} are reported, {given.limit:g} s at "
            "most"
        )
    print("nothing was started")


def _show(found: JobTuning, plan: JobTuningPlan) -> None:
    """Print the measurements and the best shape."""
    objective, best = found.objective, found.best
    by_price = [objective.unit] if objective.name == "price" else []
    rows = []
    for number, one in enumerate(found.measured, 1):
        shape, rate = one.shape, one.rate
        rows.append(
            (
                str(number),
                str(shape.workers),
                str(shape.servers),
                shape.type,
                "–" if rate is None else _number(rate.steps_per_s),
                *([_number(found.gain(one))] if by_price else []),
                _ends(found, one),
                "best" if one is best else one.reason,
            )
        )
    show_table(("", "workers", "servers", "type", "steps/s", *by_price, "95 %", ""), rows, "nothing was measured")
    if best is None:
        print(f"error: the job ran in none of {len(rows)} shapes, and {found.ended}", file=sys.stderr)
        return
    ends = _ends(found, best)
    interval = f" (95 % interval {ends})" if ends else ""
    print(f"best: {best.shape}: {_number(found.gain(best))} {objective.unit}{interval}")
    if found.as_good:
        print(f"not distinguished from it: {'; '.join(map(str, found.as_good))}")
    print(f"the search ended: {found.ended}")
    if plan.folder is not None:
        print(f"measurements: {plan.folder.table}")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10_000 else f"{value:.4g}"


def _ends(found: JobTuning, one: MeasuredShape) -> str:
    """Return the interval of what is maximised; empty without one."""
    low, high = (None, None) if one.rate is None else found.objective.interval(one.shape, one.rate)
    if low is None:
        return ""
    return f"{_number(low)} to {_number(high)}" if high is not None else f"{_number(low)} or more"
