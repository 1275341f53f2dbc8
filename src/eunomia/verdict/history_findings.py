"""Adds to the verdict what is known of the history that was judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING

from eunomia.verdict.run_figures import ReportContent

if TYPE_CHECKING:
    from eunomia.verdict.findings import Findings


def beside_history(findings: Callable[[ReportContent], Findings]) -> Callable[[ReportContent], Findings]:
    """Return a function whose verdict also has the wait of the history first, and the cost of preemption last."""

    @wraps(findings)
    def with_history(content: ReportContent) -> Findings:
        found, history = findings(content), content.history
        warnings = (*found.warnings, *filter(None, [history.wait]))
        certainty = " ".join(filter(None, (found.certainty, history.preemption)))
        return replace(found, warnings=warnings, certainty=certainty)

    return with_history
