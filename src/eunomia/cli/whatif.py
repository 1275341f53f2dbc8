"""`eunomia whatif`: today's cluster beside a changed one, on the weeks of the same history."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from eunomia.cli.command import Output, command
from eunomia.cli.options import JobsOption, TurnOption, argument, cores, option
from eunomia.cli.service_forecasts import ask_service
from eunomia.cli.service_session import CaOption, TokenFileOption, UrlOption

if TYPE_CHECKING:
    from eunomia.history.whatif import WhatIf

SHOWN_TENANTS = 10


@command
def whatif(
    output: Output,
    scenario: Annotated[
        Path | None, argument("SCENARIO.toml", "A history (docs/scenario.md); left out: the service that runs.")
    ] = None,
    add: Annotated[list[str] | None, option("TYPE=N", 'Accelerators more, such as "h100=16". May be repeated.')] = None,
    remove: Annotated[list[str] | None, option("TYPE=N", "Accelerators fewer. May be repeated.")] = None,
    policy: Annotated[str | None, option("NAME", "Another policy: NAME or 'NAME?key=value'.")] = None,
    weeks: Annotated[int, option("N", "Weeks of the history that are compared.", min=1)] = 4,
    turn: TurnOption = True,
    jobs: JobsOption = None,
    nodes: Annotated[
        list[str] | None, option("TYPE=±N", "Of the service: nodes more or fewer, as in v100=-1. May be repeated.")
    ] = None,
    job: Annotated[str | None, option("JSON", "Of the service: a further job, as in '{\"accelerators\": 4}'.")] = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Say what a change of the cluster would do.

    Plays weeks of the scenario's history on today's cluster and on the changed one, and says what changes for which
    tenants, with an interval over the weeks. Without a scenario, plays the present state of the service forward with
    and without one change (--job, --policy or --nodes), which has no effect on it. For example:
    eunomia whatif --nodes v100=-1
    """
    if scenario is None or nodes or job or url:
        asked = _service_change(scenario, policy, nodes or [], job, bool(add or remove))
        ask_service(url, token_file, ca, output, asked)
        return
    from eunomia.history.cluster_change import ClusterChange, parse_counts
    from eunomia.history.paired_runs import opened
    from eunomia.history.whatif import what_if
    from eunomia.inputs.problems import refused
    from eunomia.scenario import load_scenario

    today = load_scenario(scenario)
    change = ClusterChange(
        add=parse_counts(add or [], "--add"), remove=parse_counts(remove or [], "--remove"), policy=policy
    )
    if not change.add and not change.remove and policy is None:
        fix = 'say what, such as --add "h100=16"'
        raise refused("command line", None, None, "a change needs --add, --remove or --policy", fix)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with opened(place / "store", jobs or cores(), run_lines()) as runs:
            found = what_if(today, change, weeks=weeks, folder=place / "weeks", runs=runs, looks_for_turn=turn)
    output.show(found.as_dict, lambda: _show(found))


def _service_change(
    scenario: Path | None, policy: str | None, nodes: list[str], job: str | None, has_counts: bool
) -> dict[str, Any]:
    """Return the body of a question to the service. Raises InvalidInput unless it is one change."""
    from eunomia.inputs.json_text import NotJson, parse_json
    from eunomia.inputs.problems import refused

    given = [name for name, value in (("--job", job), ("--policy", policy), ("--nodes", nodes)) if value]
    if scenario is not None or has_counts or len(given) != 1:
        rule = "a question to the service is one of --job, --policy and --nodes, without a scenario, --add or --remove"
        raise refused("command line", None, None, rule, "type for example: eunomia whatif --nodes v100=-1")
    if policy:
        return {"policy": policy}
    if job:
        try:
            return {"job": parse_json(job)}
        except NotJson as error:
            fix = 'write for example \'{"accelerators": 4, "duration_s": 600}\''
            raise refused("command line", "--job", job, f"this is not JSON ({error})", fix) from None
    counts: dict[str, int] = {}
    for word in nodes:
        kind, _, number = word.rpartition("=")
        if not kind or not re.fullmatch(r"[+-]?[0-9]{1,6}", number) or int(number) == 0:
            raise refused("command line", "--nodes", word, "must be TYPE=±N, with N nodes", "write for example v100=-1")
        counts[kind] = counts.get(kind, 0) + int(number)
    return {"nodes": counts}


def run_lines() -> Callable[[int, int], None]:
    """Return what prints how many runs are done on stderr, every few seconds."""
    from eunomia.cli.output import SpacedLines

    lines = SpacedLines()
    return lambda done, runs: lines.say(f"{done:,} of {runs:,} runs")


def _show(found: WhatIf) -> None:
    """Print the weeks, the tenants and the sentence."""
    from rich.console import Console
    from rich.table import Table

    from eunomia.cli.output import print_plain, span
    from eunomia.history.whatif import sooner

    console = Console(highlight=False)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("from", "jobs", "mean JCT", "then", "queueing", "then", "95 % queued less than", "then"):
        table.add_column(name, justify="left" if name == "from" else "right")
    for period, one, two in zip(found.periods, found.before, found.after, strict=True):
        pairs = [(run.all.jct_mean_s, run.all.queueing_mean_s, run.all.queueing_p95_s) for run in (one, two)]
        cells = [span(value) for both in zip(*pairs, strict=True) for value in both]
        table.add_row(period.name, f"{one.all.jobs:,}", *cells)
    console.print(table)
    for tenant in found.tenants[:SHOWN_TENANTS]:
        sure = "" if tenant.jct.is_real else " (within what weeks differ by)"
        print_plain(console, f"  {tenant.tenant}: {sooner(tenant.jct.mean)}{sure}, {tenant.jobs:,} jobs")
    if len(found.tenants) > SHOWN_TENANTS:
        console.print(f"  … and {len(found.tenants) - SHOWN_TENANTS:,} tenants more; --json has all")
    print_plain(console, *(f"note: {note}" for note in found.notes), *(f"assumed: {one}" for one in found.assumed))
    print_plain(console, *filter(None, (found.beside_log(), found.turn, found.sentence())))
