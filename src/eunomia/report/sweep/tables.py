"""The tables of a sweep, as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from eunomia.report.escape import escaped
from eunomia.report.number_format import ABSENT
from eunomia.report.sweep.answer import percent
from eunomia.report.sweep.content import Group, SweepContent, SweepSetting
from eunomia.report.table import COLUMNS, KNOWS_DURATIONS, Column, ScaledColumn, heading, number, scale_of

LABELS = {"unknown": "these jobs", "unfit": "not comparable"}  # of verdicts that are not their own label


def averages(content: SweepContent, group: Group) -> str:
    """Return a row for each setting: averages, and half the width of their intervals."""
    known = _columns(group, lambda setting: setting.averages)
    return _table(content, group.settings, known, _average)


def differences(content: SweepContent, group: Group) -> str:
    """Return a row for each setting but the baseline; "" when there is only the baseline."""
    others = [setting for setting in group.settings if setting.versus]
    known = [column for column in _columns(group, lambda setting: setting.versus) if column.better]
    return _table(content, others, known, _difference) if others else ""


def _columns(group: Group, names: Callable[[SweepSetting], Iterable[str]]) -> list[Column]:
    known = {name for setting in group.settings for name in names(setting)}
    return [column for column in COLUMNS if column.name in known]


Cell = Callable[[SweepSetting, ScaledColumn], tuple[float | None, str]]  # the number to sort by, and HTML


def _table(content: SweepContent, settings: Sequence[SweepSetting], columns: Sequence[Column], cell: Cell) -> str:
    several = len(content.places) > 1
    scaled = [(column, scale_of(column, [cell(s, (column, None))[0] for s in settings])) for column in columns]
    heads = ["Run", *([content.along] if several else []), *(heading(*column) for column in scaled)]
    head = "".join(f'<th scope="col">{escaped(text)}</th>' for text in heads)
    rows = []
    for row, setting in enumerate(settings):
        begins = ' class="next"' if row and several and setting.place != settings[row - 1].place else ""
        where = f'<td data-v="{setting.place:g}">{setting.place:g}</td>' if several else ""
        made = [cell(setting, column) for column in scaled]
        cells = "".join(f'<td data-v="{"" if value is None else f"{value:.9g}"}">{text}</td>' for value, text in made)
        known = f" <small>{KNOWS_DURATIONS}</small>" if setting.knows_durations else ""
        rows.append(f'<tr{begins}><th scope="row">{escaped(setting.name)}{known}</th>{where}{cells}</tr>')
    return f'<table class="sortable"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _average(setting: SweepSetting, scaled: ScaledColumn) -> tuple[float | None, str]:
    average = setting.averages.get(scaled[0].name)
    if average is None:
        return None, ABSENT
    half = "" if average.high in (None, average.mean) else f"± {number((average.high or 0.0) - average.mean, *scaled)}"
    return average.mean, f"{escaped(number(average.mean, *scaled))} <small>{_unbroken(half)}</small>"


def _unbroken(text: str) -> str:
    """Return the text without line breaks, escaped."""
    return escaped(text.replace(" ", "\u00a0"))


def _difference(setting: SweepSetting, scaled: ScaledColumn) -> tuple[float | None, str]:
    """Return the difference in its unit, in per cent of the baseline, and its verdict."""
    found = setting.versus.get(scaled[0].name)
    if found is None:
        return None, ABSENT
    sign = "−" if found.change.mean < 0 else "+"
    size = escaped(f"{sign}{number(abs(found.change.mean), *scaled)}")
    change, _, ends = percent(found).partition(", ")
    parts = "<br>".join(_unbroken(text) for text in (change, ends) if text)
    label = LABELS.get(found.verdict, found.verdict)
    return found.change.mean, f'{size} <small>{parts}</small><small class="{found.verdict}">{label}</small>'
