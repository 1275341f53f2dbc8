"""The tables of a sweep, as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from eunomia.report.escape import escaped
from eunomia.report.number_format import Unit, shown
from eunomia.report.sweep.content import BaselineDifference, Group, Interval, SweepContent, SweepSetting
from eunomia.report.sweep.findings import percent
from eunomia.report.table import COLUMNS, Column

WORDS = {"better": "better", "worse": "worse", "noise": "noise", "alike": "alike", "unknown": "one run",
         "unfit": "not comparable"}  # fmt: skip


def averages(content: SweepContent, group: Group) -> str:
    """Return a row for each setting: averages, and the half width of their intervals."""
    known = _columns(group, lambda setting: setting.averages)
    return _table(content, group.settings, known, _average)


def differences(content: SweepContent, group: Group) -> str:
    """Return a row for each setting but the baseline; nothing when there is only the baseline."""
    others = [setting for setting in group.settings if setting.versus]
    known = [column for column in _columns(group, lambda setting: setting.versus) if column.better]
    return _table(content, others, known, _difference) if others else ""


def _columns(group: Group, names: Callable[[SweepSetting], Iterable[str]]) -> list[Column]:
    found = {name for setting in group.settings for name in names(setting)}
    return [column for column in COLUMNS if column.name in found]


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
    for place, setting in enumerate(settings):
        begins = ' class="next"' if place and several and setting.place != settings[place - 1].place else ""
        where = f"<td>{setting.place:g}</td>" if several else ""
        cells = "".join(f"<td>{cell(setting, column)}</td>" for column in columns)
        rows.append(f'<tr{begins}><th scope="row">{escaped(setting.name)}</th>{where}{cells}</tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _average(setting: SweepSetting, column: Column) -> str:
    found = setting.averages.get(column.name)
    if found is None:
        return "–"
    return f"{escaped(shown(found.mean, column.unit))} <small>{_held(_half(found, column.unit))}</small>"


def _held(text: str) -> str:
    """Return the words with no line break beside a sign or before a unit."""
    return escaped(text.replace("± ", "±\u00a0").replace(" %", "\u00a0%"))


def _half(found: Interval, unit: Unit) -> str:
    if found.high is None or found.high == found.mean:
        return ""
    return f"± {shown(found.high - found.mean, unit)}"


def _difference(setting: SweepSetting, column: Column) -> str:
    found = setting.versus.get(column.name)
    return "–" if found is None else _told(found, column.unit)


def _told(found: BaselineDifference, unit: Unit) -> str:
    """Return the difference in its unit, in per cent of the baseline, and what it is worth."""
    sign = "−" if found.change.mean < 0 else "+"
    size = escaped(f"{sign}{shown(abs(found.change.mean), unit)}")
    part = percent(found) or _half(found.change, unit)
    return f'{size} <small>{_held(part)}</small><small class="{found.verdict}">{WORDS[found.verdict]}</small>'
