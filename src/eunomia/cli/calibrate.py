"""`eunomia calibrate`: a user's few measurements become a table of throughputs for all types and sizes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from eunomia.cli.command import Output, command
from eunomia.cli.options import argument, flag, option
from eunomia.inputs.problems import refused

if TYPE_CHECKING:
    from eunomia.throughputs.measured_table import Measurements


@command
def calibrate(
    output: Output,
    measured: Annotated[
        Path,
        argument(
            "MEASURED",
            "Long table (type, job_type, scale_factor, steps_per_s), or the folder or record of `eunomia run`.",
        ),
    ],
    out: Annotated[Path, option("FILE.csv", "Table to write, for [throughputs] source.")],
    types: Annotated[str, option("A,B", "Accelerator types of the catalogue to estimate for, too.")] = "",
    sizes: Annotated[str, option("1,2", "Sizes of gangs to estimate for.")] = "1,2,4,8",
    check: Annotated[
        Path | None, option("DIR", "Folder for truth.svg, each measurement by the others, and errors.svg.")
    ] = None,
    force: Annotated[bool, flag("Replace an existing FILE.csv and DIR.", "--force")] = False,
) -> None:
    """Estimate throughputs on all types and sizes from your own few measurements.

    The measurements are placed beside the catalogue's analytic model; the table has the median and both ends of the
    80 % interval, and says of each rate whether it is measured or estimated. A rate of 0 among yours says that the job
    cannot run there, and stays. Of a run, the rates are those between the steps that its jobs reported.

    Example: eunomia calibrate measured.csv --types v100,a100-80gb,h100 --out throughputs.csv
    """
    import numpy as np

    from eunomia.inputs.atomic_write import check_place, write_output
    from eunomia.records.learnt_rates import measured_rates
    from eunomia.records.record import Record
    from eunomia.throughputs import read_table
    from eunomia.throughputs.estimators.calibration import as_csv, interval_width
    from eunomia.throughputs.estimators.calibration import calibrate as estimate

    check_place(out, force=force, endings=(".csv",), column="--out")
    found = measured_rates(Record(measured)) if _is_run(measured) else read_table(str(measured))
    rows = estimate(found, [name.strip() for name in types.split(",") if name.strip()], _sizes(sizes))
    checked = None if check is None else _check(found, check, force=force)
    write_output(out, as_csv(rows).encode(), column="--out")
    widths = interval_width(rows)
    summary = {
        "measurements": len(found.alone.keys() - found.estimated),
        "rows": len(rows),
        "measured": sum(row.is_measured and row.median > 0 for row in rows),
        "estimated": sum(not row.is_measured and row.median > 0 for row in rows),
        "cannot_run": len(rows) - len(widths),
        "median_p90_over_p10": round(float(np.median(widths)), 4) if len(widths) else None,
        "out": str(out),
    } | (checked or {})
    counts = f"{summary['rows']} rows from {summary['measurements']} measurements"
    origins = f"{summary['measured']} measured, {summary['estimated']} estimated"
    lines = [
        f"{counts}: {origins}, {summary['cannot_run']} cannot run",
        f"p90 / p10 is {summary['median_p90_over_p10']} in the median",
    ]
    if checked is not None:
        error = f"mean error {checked['mean_error']:.1%}, {checked['coverage80']:.0%} inside the 80 % interval"
        lines.append(f"{checked['checked']} measurements estimated from the others: {error}: {check}")
    output.show(summary, *lines, f"written: {out}")


def _check(found: Measurements, folder: Path, *, force: bool) -> dict[str, Any]:
    """Estimate each measurement from the others, write that into a folder, and return its figures."""
    from eunomia.report.measured_pages import write_check, write_errors
    from eunomia.runs.results_dir import whole_folder
    from eunomia.throughputs.estimators.calibration import check_one_by_one, errors_by_count

    checked = check_one_by_one(found)
    if not checked:
        rule = "no job type has two measurements, so none can be estimated from another"
        raise refused(
            "command line", "--check", str(folder), rule, "measure one on a further type or size, or leave it"
        )
    summary = {
        "checked": len(checked),
        "mean_error": round(sum(each.error for each in checked) / len(checked), 4),
        "coverage80": round(sum(each.inside for each in checked) / len(checked), 4),
    }
    points = [(count, error) for count, error, _ in errors_by_count(found)]
    with whole_folder(folder, force=force) as inside:
        write_check(checked, summary, inside)
        write_errors(points, "measurements of each job type", "errors", inside)
    return summary


def _is_run(path: Path) -> bool:
    return path.is_dir() or path.name.endswith((".jsonl", ".jsonl.gz"))


def _sizes(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and 0 < int(word) < 10**6 for word in words):
        rule = "a size is a whole number of accelerators, at least 1"
        raise refused("command line", "--sizes", text, rule, "write it as 1,2,4,8")
    return [int(word) for word in words]
