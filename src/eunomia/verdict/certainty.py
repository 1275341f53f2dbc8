"""How certain a verdict is, in sentences."""

from __future__ import annotations

from eunomia.metrics.statistics import NEGLIGIBLE
from eunomia.verdict.completion_text import Average
from eunomia.verdict.judgement import JudgedDifference, judge, why_no_interval
from eunomia.verdict.ranking import Ranked
from eunomia.verdict.seed_groups import SeedGroup


def certainty(chosen: SeedGroup, other: SeedGroup, average: Average) -> str:
    """Return how certain the advantage of `chosen` over `other` is, which is no tie."""
    found = judge(chosen, other, average.name)
    if found is None:
        return ""
    if found.judged:
        return f"Certain at 95 %, over {found.basis}: the difference to {other.label} is {_interval(found)}."
    jobs = int(chosen.mean("jobs_submitted") or 0)
    seeds = len(chosen.runs)
    one = f"the {seeds} seeds draw nothing and count as one" if seeds > 1 else "there is one seed"
    why = why_no_interval(chosen, other, average.name)
    these = f"these {jobs:,} jobs" if jobs != 1 else "this job"
    return f"This holds for {these}. How far other jobs would change it is not known: {one}, and {why}."


def certainty_of_tie(ranked: Ranked, average: Average) -> str:
    """Return how certain it is that all of `ranked` tie."""
    found = judge(ranked[0][1], ranked[-1][1], average.name)
    if found is None or not found.judged:
        return "Differences below 1 % are ties."
    text = f"Lowest against highest, over {found.basis}: {signed(found.change)} ({_interval(found)} at 95 %)"
    if not found.agrees:
        return f"{text}: the averages differ in one direction, and the ratios under each seed in the other."
    if not found.includes_0:
        return f"{text}. Differences below 1 % are ties."
    low, high = found.low or 0.0, found.high or 0.0
    if max(-low, high) <= NEGLIGIBLE:
        return f"{text}, which is below 1 % at either end."
    what = found.basis.split()[-1]  # seeds, weeks or days
    more = "more seeds (--seed 0 1 2 …)" if what == "seeds" else "a longer trace"
    return f"{text}: other {what} might reverse it; {more} would tell."


def _interval(found: JudgedDifference) -> str:
    low, high = found.low or 0.0, found.high or 0.0
    if found.relative:
        return f"{signed(low)} to {signed(high)}"
    return f"{low:+.3g} to {high:+.3g}".replace("-", "−")


def less(value: float, other: float) -> str:
    """Return how far `value` is below `other`, in per cent of it."""
    part = 100 * (1 - value / other) if other > 0 else 0.0
    return f"{part:.0f} % sooner" if part >= 10 else f"{part:.1f} % sooner"


def signed(part: float) -> str:
    """Return a change in per cent with its sign, never 0 for one that is not; from ten times on as a multiple."""
    percent = 100 * part
    if percent > 1000:
        return f"{part + 1:,.0f} times"
    size = abs(percent)
    text = f"{percent:+.0f}" if size >= 10 else f"{percent:+.1f}" if size >= 0.05 or size < 1e-9 else f"{percent:+.1g}"
    return f"{text} %".replace("-", "−")
