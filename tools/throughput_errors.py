"""Print how far the analytic model of throughputs is from measured tables, or what fitting it finds.

python tools/throughput_errors.py --reference ../shared/data [--fit]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean

from throughput_model.calibrate import fit_memory, fit_steps
from throughput_model.compare import compare

from eunomia.throughputs.analytic import INTERVAL_FACTOR


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", type=Path, required=True, help="folder with gavel/ and throughputs/")
    parser.add_argument("--fit", action="store_true", help="print fitted facts instead")
    options = parser.parse_args()
    for line in fits(options.reference) if options.fit else errors(options.reference):
        print(line)


def errors(reference: Path) -> list[str]:
    """Return one line a table: rows, and the ratio between model and measurement."""
    lines = [
        "| table | what | fitted on it | rows | only one says it runs | median | p90 | worst |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    found = compare(reference)
    for each in found:
        fitted = "yes" if each.fitted else "no"
        figures = f"{each.median:.2f} | {each.p90:.2f} | {each.worst:.1f}"
        lines.append(f"| {each.table} | {each.what} | {fitted} | {each.rows} | {each.mismatched} | {figures} |")
    inside = mean(each.within for each in found if not each.fitted and "two jobs" not in each.what)
    return [*lines, "", f"A factor of {INTERVAL_FACTOR} holds {inside:.0%} of the rows of tables it was not fitted on."]


def fits(reference: Path) -> list[str]:
    """Return the fitted facts of each family."""
    memory, predicted = fit_memory(reference)
    lines = []
    for fit in fit_steps(reference):
        facts = ", ".join(f"{name} = {value:.3g}" for name, value in fit.facts.items())
        fixed, growing = memory[fit.family]
        lines.append(f"{fit.family}: {facts} (median ratio {fit.median_ratio:.2f}); {fixed:.2f} + {growing:.3g} b GB")
    return [*lines, f"memory predicts {predicted:.1%} of the pairs"]


if __name__ == "__main__":
    main()
