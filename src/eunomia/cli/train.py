"""`eunomia train`: trains a scheduler's model and writes it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eunomia.cli.command import Output, command
from eunomia.cli.errors import INTERRUPTED
from eunomia.cli.options import ScenarioArgument, argument, flag, option

if TYPE_CHECKING:
    from eunomia.learning.training import TrainingRun


@command
def train(
    output: Output,
    name: Annotated[str, argument("NAME", "What to train: see docs/learning.md.")],
    scenario: ScenarioArgument,
    out: Annotated[Path, option("MODEL", "The model, a new file *.safetensors.")],
    steps: Annotated[int | None, option("N", "Training steps. Without: those documented for NAME.", min=1)] = None,
    seed: Annotated[int | None, option("S", "Without: that of the scenario.", min=0)] = None,
    resume: Annotated[bool, flag("Go on from MODEL.checkpoint.", "--resume")] = False,
    force: Annotated[bool, flag("Replace an existing MODEL.", "--force")] = False,
) -> None:
    """Train a model of a scheduler that learns.

    Writes MODEL, MODEL.json with its header and curve, and MODEL.svg with the picture of the curve. Ctrl-C keeps the
    best so far; --resume goes on from the checkpoint beside it. Needs the extra `learning`.
    """
    from eunomia.inputs.atomic_write import check_place, write_output
    from eunomia.learning.training import ENDING, train, trainable_class
    from eunomia.report.measured_pages import curve_picture
    from eunomia.scenario import load_scenario

    trainable_class(name)
    check_place(out, force=force or resume, endings=(ENDING,), column="--out")
    run = train(name, load_scenario(scenario), out, steps=steps, seed=seed, resume=resume, report=_show_point)
    picture = curve_picture(run.name, run.curve, run.metric, run.best_step)
    write_output(out.with_name(f"{out.name}.svg"), picture, column="--out")
    about = {"name": name, "model": str(out), "steps": run.done, "best_step": run.best_step, **run.best_point}
    about.pop("step")
    best = f"{out}: the best after {run.best_step:,} of {run.done:,} steps; {_numbers(run.best_point)}"
    output.show(about, best, f"written: {out}, {out.name}.json, {out.name}.svg")
    if run.interrupted:
        print(f"interrupted after {run.done:,} of {run.steps:,} steps; go on with --resume", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)


def _show_point(run: TrainingRun) -> None:
    print(f"step {run.done:,} of {run.steps:,}: {_numbers(run.curve[-1])}", file=sys.stderr, flush=True)


def _numbers(point: dict[str, float]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in point.items() if name != "step")
