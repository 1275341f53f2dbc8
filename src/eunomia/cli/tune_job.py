"""`eunomia tune job`: searches the workers, servers and accelerator type of one job by measuring its steps."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import typer

from eunomia.cli.command import Output, command
from eunomia.cli.errors import FAILED, resumable
from eunomia.cli.service_session import service_errors, show_table
from eunomia.cli.tune import app
from eunomia.cli.tune_job_plan import JobTuningOptions, JobTuningPlan, plan_job_tuning

if TYPE_CHECKING:
    from eunomia.job_tuning.measurements import MeasuredShape
    from eunomia.job_tuning.search import JobTuning

__all__ = ["app", "tune_job"]  # the group with this command in it


@app.command(
    "job", epilog="Example:  eunomia tune job --workers 1-8 --out tuned -- python train.py --workers {workers}"
)
@command
def tune_job(output: Output, given: JobTuningOptions) -> None:
    """Search how many workers and parameter servers, and which accelerator type, suit one job.

    Each measurement runs your command in one shape until it has reported some steps (progress or save of
    eunomia.lease), then stops it. The next shape is the one that a model of the measurements expects most of. A shape
    in which the job fails is noted and not tried again. Writes measurements.csv and tune-job.json into DIR; after an
    interruption, type the same command again. Exit code 1 when the job ran in no shape.
    """
    with service_errors(output.as_json):
        plan = plan_job_tuning(given)
        if given.dry_run:
            _show_plan(plan, given, output)
            return
        found = _search(plan)
        output.show(found.as_dict, lambda: _show(found, plan))
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
    with resumable(f"what is measured is in {plan.folder.path if plan.folder else 'the table'}"):
        found = search(plan.request, plan.measure, plan.known, report)
    if plan.folder is not None:
        plan.folder.keep(found, plan.left_out)
    return found


def _show_plan(plan: JobTuningPlan, given: JobTuningOptions, output: Output) -> None:
    """Print what would be measured."""
    from eunomia.job_tuning.search import first_shapes

    request = plan.request
    shapes = first_shapes(request, plan.known)
    rows = [
        {"workers": s.workers, "servers": s.servers, "type": s.type, "command": list(s.fill(plan.command))}
        for s in shapes
    ]
    lines = [f"{request.shapes:,} shapes, of which at most {request.budget} are measured for {request.objective.name}"]
    if plan.known:
        lines.append(f"measured already, in {given.out}: {len(plan.known)}")
    for shape in shapes:
        lines.append(f"  {shape}{f':  {shlex.join(shape.fill(plan.command))}' if plan.command else ''}")
    if given.method not in ("random", "grid"):
        least = f"until less than {100 * given.epsilon:g} % more is expected"
        lines.append(f"then the shape that promises most by {given.method}, {least}")
    if plan.command:
        steps = f"{given.steps:g} steps after the first {given.warm_up:g}"
        lines.append(f"each until {steps} are reported, {given.limit:g} s at most")
    output.show({"shapes": request.shapes, "known": len(plan.known), "first": rows}, *lines, "nothing was started")


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
