"""The command `throughputs`: what a service has learnt of how fast job types run, shown or written as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from eunomia.cli.options import flag, option
from eunomia.cli.service_session import ServiceSession, client_command, show_lines, show_table

NOTHING_LEARNT = 'write kind = "measured" below [belief] of the site, and submit jobs with --job-type'


@client_command
def throughputs(
    session: ServiceSession,
    out: Annotated[Path | None, option("FILE.csv", "Write them as a table for [throughputs] source.")] = None,
    force: Annotated[bool, flag("Replace an existing file.", "--force")] = False,
) -> None:
    """Show how fast job types run, as the service has learnt from their jobs.

    A site learns with [belief] kind = "measured". For example: eunomia throughputs --out learnt.csv
    """
    from eunomia.inputs.atomic_write import check_place, write_output
    from eunomia.inputs.problems import refused
    from eunomia.throughputs.estimators.calibration import CalibratedRate, as_csv

    if out is not None:
        check_place(out, force=force, endings=(".csv",), column="--out")
    found = session.client.get("/v1/throughputs")
    rows = [
        CalibratedRate(
            one["type"],
            one["job_type"],
            one["scale_factor"],
            one["steps_per_s"],
            one["steps_per_s_p10"],
            one["steps_per_s_p90"],
            one["origin"] == "measured",
        )
        for one in found["throughputs"]
    ]
    if out is not None and not rows:
        rule = "the service has learnt no throughputs, and a table holds at least one"
        raise refused(str(out), "--out", None, rule, NOTHING_LEARNT)
    if out is not None:
        write_output(out, as_csv(rows).encode(), column="--out")
    session.show(found, lambda: _show(rows, out))


def _show(rows: list[Any], out: Path | None) -> None:
    shown = [
        (
            row.job_type,
            str(row.scale_factor),
            row.type,
            *(f"{each:.4g}" for each in (row.median, row.low, row.high)),
            "measured" if row.is_measured else "estimated",
        )
        for row in rows
    ]
    heads = ("job type", "accelerators", "on", "steps/s", "10 %", "90 %", "")
    show_table(heads, shown, f"nothing is learnt: {NOTHING_LEARNT}")
    if out is not None:
        show_lines(f"table: {out}")
