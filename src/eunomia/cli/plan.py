"""`eunomia plan`: which accelerators to buy for a budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eunomia.cli.command import Output, command
from eunomia.cli.errors import resumable
from eunomia.cli.options import JobsOption, ScenarioArgument, cores, numbers_by_type, option
from eunomia.cli.whatif import run_lines

if TYPE_CHECKING:
    from eunomia.history.purchase import Purchase


@command
def plan(
    output: Output,
    scenario: ScenarioArgument,
    budget_usd: Annotated[float, option("N", "What the accelerators may cost.")],
    out: Annotated[Path, option("DIR", "Folder for the report; resumes a plan in it.")],
    months: Annotated[float, option("N", "Months for which prices of an hour are paid.", min=0.1, max=1200)] = 36.0,
    price: Annotated[
        list[str] | None, option("TYPE=USD", "Price of one accelerator, bought, such as h100=32000. May be repeated.")
    ] = None,
    only: Annotated[list[str] | None, option("TYPE", "Consider this type and no other. May be repeated.")] = None,
    weeks: Annotated[int, option("N", "Weeks of the history on which to judge.", min=1)] = 4,
    jobs: JobsOption = None,
) -> None:
    """Say which accelerators to buy for a budget.

    Judges purchases by playing weeks of the scenario's history: all of them on the busiest week, the better half on
    two, and so on. Writes report.html, plan.svg, plan.csv and plan.json into DIR. After an interruption, type the same
    command again: finished runs are not repeated.
    """
    from eunomia.history.paired_runs import opened
    from eunomia.history.plan_page import PAGE, write_plan
    from eunomia.history.purchase import plan_purchase
    from eunomia.inputs.problems import refused
    from eunomia.scenario import load_scenario

    if not 0 < budget_usd < 1e12:
        raise refused("command line", "--budget-usd", budget_usd, "must be above 0", "give US$, such as 500000")
    today, prices = load_scenario(scenario), numbers_by_type("--price", price, most=1e12, example="h100=32000")
    with resumable(f"finished runs are in {out}"), opened(out, jobs or cores(), run_lines()) as runs:
        found = plan_purchase(
            today,
            budget_usd,
            months=months,
            prices=prices,
            only=only or (),
            weeks=weeks,
            folder=out / "weeks",
            runs=runs,
            tell=lambda text: typer.echo(text, err=True),
        )
        write_plan(found, out)
    output.show(found.as_dict, lambda: _show(found), f"report: {out / PAGE}")


def _show(found: Purchase) -> None:
    """Print the candidates and the recommendation."""
    from rich.console import Console
    from rich.table import Table

    from eunomia.cli.output import print_plain
    from eunomia.history.plan_page import HEADINGS, row_of
    from eunomia.history.purchase import recommend

    console = Console(highlight=False)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == HEADINGS[0] else "right", no_wrap=True)
    for one in found.ranked:
        table.add_row(*row_of(one))
    console.print(table)
    assumed = (f"assumed: {sentence}" for sentence in found.assumed)
    print_plain(console, *assumed, found.log_sentence, recommend(found))
