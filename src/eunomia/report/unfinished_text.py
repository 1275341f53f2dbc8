"""What became of the jobs that did not finish, in words: averages are of those that did."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eunomia.report.number_format import shown

OTHERWISE: Mapping[str, tuple[str, str]] = {  # name in summary.json → what is said of so many jobs, of one
    "jobs_failed": ("failed", "failed"),
    "jobs_cancelled": ("were cancelled", "was cancelled"),
    "jobs_cancelled_by_tuner": ("were ended by their searches", "was ended by its search"),
    "jobs_rejected": ("were rejected", "was rejected"),
    "jobs_unfinished": ("were left unfinished", "was left unfinished"),
}


def other_ends(number: Callable[[str], float | int | None]) -> str:
    """Return `12 failed, 8 were cancelled`, or nothing when all finished; `number` gives a number of the summary."""
    found = {name: number(name) or 0 for name in OTHERWISE}
    found["jobs_cancelled"] -= found["jobs_cancelled_by_tuner"]
    told = ((count, OTHERWISE[name]) for name, count in found.items() if count)
    return ", ".join(f"{shown(count, 'count')} {said[count == 1]}" for count, said in told)
