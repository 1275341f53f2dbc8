"""A self-contained HTML report and picture files of its charts, from the figures of runs. See `docs/report.md`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from eunomia.report.figure_style import FigureStyle
from eunomia.report.page import write_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eunomia.verdict.run_figures import ReportContent

__all__ = ["export_charts", "write_report"]


def export_charts(
    content: ReportContent, folder: Path, formats: Sequence[str] = ("png", "svg"), style: FigureStyle | None = None
) -> list[Path]:
    """Write every chart of the report as picture files and return their paths; imports matplotlib on the first call."""
    from eunomia.report.image_export import export_charts as export

    return export(content, folder, formats, style)
