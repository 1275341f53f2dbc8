"""The tables of a sweep, as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from eunomia.report.escape import escaped
from eunomia.report.number_format import ABSENT, Unit, shown
from eunomia.report.sweep.content import Group, Interval, SweepContent, SweepSetting
from eunomia.report.sweep.findings import percent
from eunomia.report.table import COLUMNS, Column

LABELS = {"unknown": "one run", "unfit": "not comparable"}  # of verdicts that are not their own label


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


def _table(
    content: SweepContent,
    settings: Sequence[SweepSetting],
    columns: Sequence[Column],
    cell: Callable[[SweepSetting, Column], str],
) -> str:
    several = len(content.places) > 1
    heads = ["Run", *([content.along] if several else []), *(column.heading for column in columns)]
    head = "".join(f'<th scope="col">{escaped(text)}</th>' for text in heads)
    rows = []
    for row, setting in enumerate(settings):
        begins = ' class="next"' if row and several and setting.place != settings[row - 1].place else ""
        where = f"<td>{setting.place:g}</td>" if several else ""
        cells = "".join(f"<td>{cell(setting, column)}</td>" for column in columns)
        rows.append(f'<tr{begins}><th scope="row">{escaped(setting.name)}</th>{where}{cells}</tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _average(setting: SweepSetting, column: Column) -> str:
    average = setting.averages.get(column.name)
    if average is None:
        return ABSENT
    return f"{escaped(shown(average.mean, column.unit))} <small>{_unbroken(_half(average, column.unit))}</small>"


def _unbroken(text: str) -> str:
    """Return the text with no line break beside a sign or before a unit, escaped."""
    return escaped(text.replace("± ", "±\u00a0").replace(" %", "\u00a0%"))


def _half(average: Interval, unit: Unit) -> str:
    if average.high is None or average.high == average.mean:
        return ""
    return f"± {shown(average.high - average.mean, unit)}"


def _difference(setting: SweepSetting, column: Column) -> str:
    """Return the difference in its unit, in per cent of the baseline, and its verdict."""
    found = setting.versus.get(column.name)
    if found is None:
        return ABSENT
    sign = "−" if found.change.mean < 0 else "+"
    size = escaped(f"{sign}{shown(abs(found.change.mean), column.unit)}")
    part = percent(found) or _half(found.change, column.unit)
    label = LABELS.get(found.verdict, found.verdict)
    return f'{size} <small>{_unbroken(part)}</small><small class="{found.verdict}">{label}</small>'
