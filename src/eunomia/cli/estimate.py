"""`eunomia estimate`: judges an estimator of throughputs on a measured table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Annotated, Any

from eunomia.cli.command import Output, command
from eunomia.cli.options import flag, option
from eunomia.inputs.problems import refused


@command
def estimate(
    output: Output,
    table: Annotated[Path, option("TABLE", "Measured throughputs with pairs: Gavel's JSON or a long CSV.")],
    out: Annotated[Path | None, option("DIR", "Folder for summary.json, cells.csv and truth.svg.")] = None,
    method: Annotated[str, option("NAME", "best (ours), match (Gavel's matrix completion), or column_mean.")] = "best",
    references: Annotated[int, option("R", "Reference jobs, drawn by the seed.")] = 16,
    profiled: Annotated[
        str,
        option(
            "Q[,Q]", "Share of a new job's pairs with references that is measured; errors.svg in DIR has further ones."
        ),
    ] = "0.2",
    choose: Annotated[
        str, option("NAME", "Which pairs are measured: random, or telling (those that teach most).")
    ] = "random",
    solver: Annotated[str, option("NAME", "Of match: als, soft_impute or svt.")] = "als",
    noise: Annotated[float, option("SIGMA", "Standard deviation of measured pair rates.", min=0.0)] = 0.0,
    legacy_indexing: Annotated[
        bool, flag("Of match: read fingerprints as the public code of Gavel does.", "--legacy-indexing")
    ] = False,
    seed: Annotated[int, option("S", "Draws references and profiled pairs.", min=0)] = 0,
    force: Annotated[bool, flag("Replace an existing DIR.", "--force")] = False,
) -> None:
    """Judge how well pair throughputs are estimated from few measurements.

    Some job types of the table are references, whose pairs are all known; of the others a few pairs are measured, and
    the rest is compared with the truth.

    Example: eunomia estimate --table simulation_throughputs.json.gz --profiled 0.2 --out estimate-out
    """
    from eunomia.throughputs import read_table
    from eunomia.throughputs.estimators.completion import SOLVERS
    from eunomia.throughputs.estimators.judging import CHOICES, METHODS, JudgeSettings, judge
    from eunomia.throughputs.estimators.pair_table import PairTable

    _check_name("--method", method, METHODS)
    _check_name("--choose", choose, CHOICES)
    _check_name("--solver", solver, tuple(SOLVERS))
    shares = _shares(profiled, out)
    settings = JudgeSettings(
        references=references,
        profiled=shares[0],
        method=method,
        solver=solver,
        legacy_indexing=legacy_indexing,
        noise=noise,
        seed=seed,
        choose=choose,
    )
    measured = PairTable.of(read_table(str(table)))
    begun = process_time()
    found = judge(measured, settings)
    summary: dict[str, Any] = {
        "table": str(table),
        "method": method,
        "references": references,
        "profiled": shares[0],
        "seed": seed,
        **found.summary(),
    }
    summary["seconds"] = round(process_time() - begun, 3)
    if out is not None:
        from eunomia.report.measured_pages import write_errors, write_judgement
        from eunomia.runs.results_dir import whole_folder

        with whole_folder(out, force=force) as folder:
            write_judgement(found, summary, folder)
            if len(shares) > 1:
                judged = [judge(measured, replace(settings, profiled=share)).summary() for share in sorted(shares)]
                points = [(float(each["measurements"] or 0), float(each["mae_hidden"] or 0)) for each in judged]
                write_errors(points, f"pairs measured, {method}, {choose}, seed {seed}", "errors", folder)
    output.show(summary, lambda: _show(summary, out))


def _shares(text: str, out: Path | None) -> list[float]:
    """Return the shares of --profiled. Raises InvalidInput for one that is none, and for several without a folder."""
    try:
        shares = [float(word) for word in text.split(",")]
    except ValueError:
        shares = []
    if not shares or not all(0 <= share <= 1 for share in shares):
        rule, fix = "a share is between 0 and 1", "write it as 0.2, or several as 0.2,0.05,0.4"
        raise refused("command line", "--profiled", text, rule, fix)
    if len(shares) > 1 and out is None:
        raise refused("command line", "--profiled", text, "errors are drawn into a folder", "give --out DIR")
    return shares


def _check_name(option: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise refused("command line", option, name, "there is none of this name", f"choose one of {', '.join(known)}")


def _show(summary: dict[str, Any], out: Path | None) -> None:
    print(
        f"{summary['method']}: {summary['references']} reference jobs, {summary['measurements']} pairs measured, "
        f"{summary['hidden']} hidden pairs judged"
    )
    for key, text in (
        ("mae_hidden", "mean absolute error of the normalised rate"),
        ("median_relative_hidden", "median relative error"),
        ("coverage80_hidden", "share inside the 80 % interval"),
        ("rmse", "root mean square error over all ordered pairs"),
        ("matched_family_rate", "new jobs matched with their own model, where a reference has it"),
    ):
        if summary[key] is not None:
            print(f"  {summary[key]:8.4f}  {text}")
    if out is not None:
        print(f"written: {out}")
