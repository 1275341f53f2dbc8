"""Writes the report on the results of runs, and its charts as images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from eunomia.report import export_charts, write_report
from eunomia.report.figure_style import FigureStyle
from eunomia.runs.report_input import content_of
from eunomia.runs.simulation import Result
from eunomia.verdict.run_figures import HistoryNotes, ReportContent


def write_run_report(
    results: Sequence[tuple[str, Result]],
    title: str,
    folder: Path,
    *,
    charts: Sequence[str] = (),
    style: FigureStyle | None = None,
    folders: Sequence[str] = (),
    judge: Callable[[ReportContent], HistoryNotes] | None = None,
) -> ReportContent:
    """Write report.html about labelled results, and every chart as an image in charts/; return its content.

    `charts` are the formats of the images, `style` their size; `folders` are those of the runs, relative to `folder`;
    `judge` says what is known of the history that was judged.
    """
    content = content_of(results, title, folders)
    if judge is not None:
        content = replace(content, history=judge(content))
    write_report(content, folder / "report.html")
    if charts:
        export_charts(content, folder / "charts", charts, style)
    return content
