"""The averages and differences of a sweep as files: averages.csv with every number, averages.tex for a paper."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from eunomia.inputs.atomic_write import write_whole
from eunomia.report.table import ScaledColumn, heading, number, scale_of
from eunomia.verdict.number_format import ABSENT
from eunomia.verdict.ranking import COLUMNS, Column
from eunomia.verdict.sweep_content import Group, Interval, SweepContent

CSV, LATEX = "averages.csv", "averages.tex"
HEADER = (
    "group", "compared", "place", "field", "mean", "low", "high", "seeds", "change", "change_low", "change_high",
    "relative", "relative_low", "relative_high", "verdict",
)  # fmt: skip
_SPECIAL = re.compile(r"[\\&%$#_{}~^]")
_BY_CHARACTER = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_IN_TEXT = {"ρ": r"$\rho$", "–": "--", "±": r"$\pm$", "−": "$-$", "≥": r"$\geq$"}


def write_averages(content: SweepContent, folder: Path) -> None:
    """Write averages.csv and averages.tex into the folder of a sweep."""
    write_whole(folder / CSV, averages_csv(content).encode())
    write_whole(folder / LATEX, averages_latex(content).encode())


def averages_csv(content: SweepContent) -> str:
    """Return every average with its interval, and its difference to the baseline, one row for each field.

    `place` is on the axis of the curves; intervals hold `content.confidence` of the time; an absent number is empty.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for group in content.groups:
        for setting in group.settings:
            for name, average in setting.averages.items():
                versus = setting.versus.get(name)
                change = None if versus is None else versus.change
                relative = None if versus is None else versus.relative
                ends = [*_ends(average), average.seeds, *_ends(change), *_ends(relative)]
                verdict = "" if versus is None else versus.verdict
                writer.writerow([group.name, setting.name, f"{setting.place:g}", name, *ends, verdict])
    return text.getvalue()


def _ends(found: Interval | None) -> list[float | str]:
    """Return mean, low and high, empty where unknown."""
    if found is None:
        return ["", "", ""]
    return ["" if value is None else value for value in (found.mean, found.low, found.high)]


def averages_latex(content: SweepContent) -> str:
    """Return a `tabular` for each group, with the fields that the report shows: average ± half the interval."""
    lines = [f"% {content.title.replace(chr(10), ' ')}; intervals hold {content.confidence:.0%} of the time"]
    for group in content.groups:
        lines += _tabular(content, group)
    return "\n".join(lines) + "\n"


def _tabular(content: SweepContent, group: Group) -> Iterator[str]:
    several = len(content.places) > 1
    columns = [column for column in COLUMNS if any(column.name in setting.averages for setting in group.settings)]
    scaled: list[ScaledColumn] = [(column, _scale(column, group)) for column in columns]
    heads = ["", *([content.along] if several else []), *(heading(*each) for each in scaled)]
    if group.name:
        yield f"% {group.name}"
    yield rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}"
    yield r"\hline"
    yield " & ".join(map(latex, heads)) + r" \\"
    yield r"\hline"
    for setting in group.settings:
        cells = [_cell(setting.averages.get(column.name), (column, scale)) for column, scale in scaled]
        yield " & ".join(map(latex, [setting.name, *([f"{setting.place:g}"] if several else []), *cells])) + r" \\"
    yield r"\hline"
    yield r"\end{tabular}"


def _scale(column: Column, group: Group) -> tuple[float, str] | None:
    found = (setting.averages.get(column.name) for setting in group.settings)
    return scale_of(column, [None if average is None else average.mean for average in found])


def _cell(average: Interval | None, scaled: ScaledColumn) -> str:
    if average is None:
        return ABSENT
    known = average.high is not None and average.high > average.mean
    half = f" ± {number((average.high or 0.0) - average.mean, *scaled)}" if known else ""
    return f"{number(average.mean, *scaled)}{half}"


def latex(text: str) -> str:
    """Return a text as LaTeX prints it."""
    plain = _SPECIAL.sub(lambda found: _BY_CHARACTER.get(found[0], f"\\{found[0]}"), text)
    return "".join(_IN_TEXT.get(character, character) for character in plain)
