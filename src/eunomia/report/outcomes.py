"""The table of the jobs of a real run: how each ended, why, and the last lines of its log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eunomia.report.escape import escaped
from eunomia.report.number_format import ABSENT, shown

MOST = 500  # rows; jobs.csv has the others
URGENT = ("failed", "unfinished", "rejected", "cancelled", "finished")  # statuses, most urgent first


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """How a job of a real run ended. All text is for display only."""

    job_id: str
    status: str  # as in jobs.csv
    reason: str = ""  # of its last failure, or of its refusal
    starts: int = 0
    jct_s: float = math.nan
    log: str = ""  # path
    last_lines: tuple[str, ...] = ()  # of the log, of a job that did not end well

    @property
    def done(self) -> bool:
        """Whether the job ended as its user wanted: finished, or cancelled."""
        return self.status in ("finished", "cancelled")


def by_urgency(outcomes: Sequence[JobOutcome]) -> list[JobOutcome]:
    """Return the jobs, most urgent status first."""
    return sorted(outcomes, key=lambda outcome: URGENT.index(outcome.status))


def job_table(outcomes: Sequence[JobOutcome]) -> str:
    """Return the section of the jobs as HTML; "" where there are none."""
    if not outcomes:
        return ""
    rows = "".join(_row(outcome) for outcome in by_urgency(outcomes)[:MOST])
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("Job", "Outcome", "Starts", "JCT", "Reason and log"))
    more = len(outcomes) - MOST
    hint = f'<p class="hint">{more:,} more jobs are in jobs.csv.</p>' if more > 0 else ""
    return (
        '<section id="jobs" aria-label="Jobs" class="jobs"><h2>Jobs</h2>\n'
        '<div class="wide" tabindex="0" role="region" aria-label="Table of the jobs">'
        f'<table class="sortable"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{hint}</section>'
    )


def _row(outcome: JobOutcome) -> str:
    jct = shown(outcome.jct_s, "s") if math.isfinite(outcome.jct_s) else ABSENT
    cells = f"<td>{escaped(outcome.status)}</td><td>{outcome.starts}</td><td>{escaped(jct)}</td>"
    text = "\n".join(outcome.last_lines)
    log = f"<pre>{escaped(text)}</pre>" if text else ""
    path = f"<p>{escaped(outcome.log)}</p>" if outcome.log and not outcome.done else ""
    why = f"{escaped(outcome.reason)}{path}{log}"
    state = f' class="{escaped(outcome.status)}"' if not outcome.done else ""
    return f'<tr{state}><th scope="row">{escaped(outcome.job_id)}</th>{cells}<td class="why">{why}</td></tr>'
