"""The report on a sweep as one self-contained HTML file with its tables, made like the report on a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from eunomia.inputs.atomic_write import write_whole
from eunomia.inputs.html import plain
from eunomia.report.frame import chart_numbers, framed
from eunomia.report.sweep.charts import charts
from eunomia.report.table import Cell, NumberTable, Row, ScaledColumn, heading, number, place_cells, scale_of
from eunomia.verdict.number_format import ABSENT
from eunomia.verdict.ranking import COLUMNS, Column
from eunomia.verdict.sweep_answer import percent
from eunomia.verdict.sweep_content import Group, SweepContent, SweepSetting
from eunomia.verdict.sweep_findings import findings

LABELS = {"unknown": "these jobs", "unfit": "not comparable"}  # of verdicts that are not their own label
CellOf = Callable[[SweepSetting, ScaledColumn], Cell]


def averages(content: SweepContent, group: Group) -> NumberTable:
    """Return a row for each setting: averages, and half the width of their intervals."""
    known = _columns(group, lambda setting: setting.averages)
    return _table(content, group.settings, known, _average)


def differences(content: SweepContent, group: Group) -> NumberTable:
    """Return a row for each setting but the baseline."""
    others = [setting for setting in group.settings if setting.versus]
    known = [column for column in _columns(group, lambda setting: setting.versus) if column.better]
    return _table(content, others, known, _difference)


def _columns(group: Group, names: Callable[[SweepSetting], Iterable[str]]) -> list[Column]:
    known = {name for setting in group.settings for name in names(setting)}
    return [column for column in COLUMNS if column.name in known]


def _table(
    content: SweepContent, settings: Sequence[SweepSetting], columns: Sequence[Column], of: CellOf
) -> NumberTable:
    several = len(content.places) > 1
    scaled = [(column, scale_of(column, [of(s, (column, None)).value for s in settings])) for column in columns]
    places = [None, *(setting.place for setting in settings)]  # of the row above
    rows = [
        Row(
            name=setting.name,
            cells=(*place_cells(setting.place, several), *(of(setting, column) for column in scaled)),
            knows_durations=setting.knows_durations,
            css="next" if several and above not in (None, setting.place) else "",
        )
        for above, setting in zip(places, settings, strict=False)
    ]
    heads = ("Run", *[content.along] * several, *(heading(*column) for column in scaled))
    return NumberTable(heads, tuple(rows))


def _average(setting: SweepSetting, scaled: ScaledColumn) -> Cell:
    average = setting.averages.get(scaled[0].name)
    if average is None:
        return Cell(text=ABSENT)
    half: tuple[str, ...] = ()
    if average.high not in (None, average.mean):
        half = (_unbroken(f"± {number((average.high or 0.0) - average.mean, *scaled)}"),)
    return Cell(text=number(average.mean, *scaled), value=average.mean, beside=half)


def _unbroken(text: str) -> str:
    """Return the text without line breaks."""
    return text.replace(" ", "\u00a0")


def _difference(setting: SweepSetting, scaled: ScaledColumn) -> Cell:
    """Return the difference in its unit, in per cent of the baseline, and its verdict."""
    found = setting.versus.get(scaled[0].name)
    if found is None:
        return Cell(text=ABSENT)
    sign = "−" if found.change.mean < 0 else "+"
    change, _, ends = percent(found).partition(", ")
    return Cell(
        text=f"{sign}{number(abs(found.change.mean), *scaled)}",
        value=found.change.mean,
        beside=tuple(_unbroken(text) for text in (change, ends) if text),
        verdict=(found.verdict, LABELS.get(found.verdict, found.verdict)),
    )


def write_sweep_report(content: SweepContent, path: Path) -> None:
    """Write the report to `path`, whole or not at all."""
    write_whole(path, page(content).encode())


def page(content: SweepContent) -> str:
    """Return the HTML. Without JavaScript the text and the tables are still shown."""
    drawn = charts(content)
    block = {
        "version": 1,
        "title": content.title,
        "subtitle": content.subtitle,
        "notes": list(content.notes),
        "failures": [{"run": run, "error": error} for run, error in content.failures],
        "compared": list(content.compared),
        "baseline": content.baseline,
        "along": content.along,
        "confidence": content.confidence,
        "best": [plain(name) for name in content.best_first()],
        "groups": [asdict(group) for group in content.groups],
        "charts": [chart_numbers(chart) for chart in drawn],
    }
    return framed(
        "sweep.html",
        content.title,
        content.subtitle,
        block,
        found=findings(content),
        failures=[f"{run}: {error}" for run, error in content.failures],
        charts=drawn,
        groups=[(group.name, averages(content, group), differences(content, group)) for group in content.groups],
        baseline=content.baseline,
        level=f"{100 * content.confidence:g} %",
        notes=content.notes,
        sweep_toml=content.sweep_toml,
    )
