"""`eunomia tune`: searches parameters of a scenario on half of its weeks, and judges them on the other half.

`eunomia tune job`, in `cli.tune_job`, is a command of the same group.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from eunomia.cli.command import Output, command
from eunomia.cli.errors import resumable
from eunomia.cli.options import JobsOption, ScenarioArgument, cores, option

if TYPE_CHECKING:
    from eunomia.history.tuning import TuningRequest, TuningResult

BEST = "best.toml"


class ScenarioFirst(TyperGroup):
    """A group whose first word may be a scenario or one of its options: then the command `scenario` is meant."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `scenario` before words that begin with no command of the group."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["scenario", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=ScenarioFirst,
    help="Search parameters of a policy on a history (eunomia tune SCENARIO.toml), or the resources of one job.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("scenario", epilog="Example:  eunomia tune scenario scenario.toml --space space.toml --out tune-out")
@command
def tune(
    output: Output,
    scenario: ScenarioArgument,
    space: Annotated[Path, option("SPACE.toml", "Parameters and their values: see docs/tune.md.")],
    out: Annotated[Path, option("DIR", "Folder for the results; resumes a search in it.")],
    method: Annotated[str, option("NAME", "gp-ei, gp-lcb, rf-ei, rf-lcb, random or grid.")] = "gp-ei",
    budget: Annotated[int, option("N", "Combinations that are measured at most.", min=1)] = 15,
    weeks: Annotated[int, option("N", "Weeks of the history: half to search on, half to judge.", min=2)] = 8,
    epsilon: Annotated[
        float, option("X", "End when less than this share of improvement is expected.", min=0.0, max=1.0)
    ] = 0.01,
    seed: Annotated[int, option("S", "Draws the first combinations.", min=0)] = 0,
    jobs: JobsOption = None,
) -> None:
    """Search parameters of a policy on half of a history's weeks.

    The best combination is judged on the other, later weeks beside the scenario's own values, with an interval. Writes
    tune.csv, tune.json, best-found.svg and .png, and best.toml, the scenario with the best values, into DIR.

    After an interruption, type the same command again: what was measured is not repeated.
    """
    from eunomia.history.tuning import TuningRequest
    from eunomia.history.tuning_space import read_space
    from eunomia.inputs.options import one_of
    from eunomia.scenario import load_scenario
    from eunomia.solvers.bayesian import METHODS

    one_of("command line", "--method", method, METHODS)
    today = load_scenario(scenario)
    request = TuningRequest(
        scenario=today,
        space=read_space(space, today),
        method=method,
        budget=budget,
        seed=seed,
        weeks=weeks,
        epsilon=epsilon,
    )
    found = _search(request, out, jobs or cores())
    _write(found, request, out)
    output.show(found.as_dict, lambda: _show(found, out))


def _search(request: TuningRequest, out: Path, workers: int) -> TuningResult:
    """Return the result; an interruption or a failed run ends the command, what was measured stays."""
    from eunomia.history.paired_runs import opened
    from eunomia.history.tuning import settings_text, tune

    def report(found: TuningResult) -> None:
        last = found.measurements[-1]
        _write(found, request, out)
        line = f"{last.number} of {request.budget}: {settings_text(last.settings)}: {last.ratio:.4f}"
        typer.echo(f"{line}, best {last.best:.4f}", err=True)

    with resumable(f"what is measured is in {out}"), opened(out, workers) as runs:
        return tune(request, out / "weeks", runs, report)


def _write(found: TuningResult, request: TuningRequest, out: Path) -> None:
    """Write the measurements so far, and the scenario with the best values."""
    from eunomia.history.turning_point import with_costs
    from eunomia.inputs.atomic_write import write_whole
    from eunomia.report.measured_pages import write_measurements
    from eunomia.runs.result_files import write_json
    from eunomia.scenario.writing import as_toml, with_absolute_paths

    data = found.as_dict()
    if data["measurements"]:
        write_measurements(data["measurements"], f"{found.method}, seed {found.seed}", out)
    write_json(out / "tune.json", data)
    best = request.space.apply(with_costs(request.scenario).scenario, found.winner)
    write_whole(out / BEST, as_toml(with_absolute_paths(best)).encode())


def _show(found: TuningResult, out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from eunomia.cli.output import print_plain

    console = Console(highlight=False)
    table = Table(box=None, header_style="bold", pad_edge=False)
    rows = [
        (str(m.number), *map(str, m.settings.values()), f"{m.ratio:.4f}", f"{m.best:.4f}") for m in found.measurements
    ]
    for name in ("", *(found.measurements[0].settings if found.measurements else ()), "ratio", "best"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    if found.refused:
        console.print(f"note: {found.refused:,} combinations are not accepted and were passed over")
    if found.unfinished:
        rule = "combinations leave more jobs unfinished than the scenario's own values and were passed over"
        console.print(f"note: {found.unfinished:,} {rule}")
    assumed = (f"assumed: {sentence}" for sentence in found.assumed)
    print_plain(console, *assumed, found.sentence(), f"scenario: {out / BEST}")
