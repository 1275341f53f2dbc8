"""The report on a sweep: averages with intervals, paired differences, and which of them are noise."""

from __future__ import annotations

from eunomia.report.sweep.files import write_averages
from eunomia.report.sweep.page import write_sweep_report

__all__ = ["write_averages", "write_sweep_report"]
