"""The verdict of a sweep: sentences that say what is better than the baseline, where, and what is noise."""

from __future__ import annotations

from collections.abc import Sequence

from eunomia.report.number_format import plural
from eunomia.report.sweep.content import BaselineDifference, Group, SweepContent, SweepSetting, Verdict

QUANTITIES = (
    ("jct_mean_s", "average completion time"),
    ("jct_p99_s", "99th percentile of completion time"),
    ("makespan_s", "makespan"),
    ("rho_themis_max", "worst finish-time fairness ρ"),
    ("cost_usd", "cost"),
)
MOST_PLACES = 4  # with their intervals in one sentence
IN_FULL = 2  # of QUANTITIES; the others are mentioned only where a difference is no noise
TEXT_BY_VERDICT: dict[Verdict, str] = {
    "better": "better",
    "worse": "worse",
    "noise": "a difference that is noise",
    "alike": "alike within 1 %",
    "unknown": "a difference of one run, which may be noise",
    "unfit": "not comparable, as one did not finish jobs that the other finished",
}
OTHER_JOBS = (
    "to learn how much other jobs would change these numbers, generate jobs (workload.generator) or take other parts "
    "of the trace (workload.start_s, workload.end_s)"
)


def findings(content: SweepContent) -> tuple[str, ...]:
    """Return the sentences; the last say how far to trust them."""
    sentences = [sentence for group in content.groups for sentence in _group(content, group)]
    if len(content.compared) < 2:
        sentences.append(f"Only {content.baseline} ran: there is nothing to compare it with.")
    return (*_failed(content), *sentences, *certainty(content))


def _failed(content: SweepContent) -> list[str]:
    if not content.failures:
        return []
    verb = "is" if len(content.failures) == 1 else "are"
    return [f"{plural(len(content.failures), 'run')} failed and {verb} in no figure; the errors are below."]


def _group(content: SweepContent, group: Group) -> list[str]:
    sentences = []
    for name in content.compared:
        own = [setting for setting in group.settings if setting.name == name and setting.versus]
        for number, (quantity, what) in enumerate(QUANTITIES):
            known = [(setting, setting.versus[quantity]) for setting in own if quantity in setting.versus]
            if number >= IN_FULL:
                known = [(setting, versus) for setting, versus in known if versus.verdict in ("better", "worse")]
            if known:
                where = f"With {group.name}: " if group.name else ""
                sentences.append(f"{where}{name} against {content.baseline}, {what}: {_places(content, known)}.")
    return sentences


def _places(content: SweepContent, known: Sequence[tuple[SweepSetting, BaselineDifference]]) -> str:
    """Return the places by verdict: `better at load 1 (−24 %, −31 % to −17 %); worse at load 2 (…)`."""
    parts = []
    for verdict, text in TEXT_BY_VERDICT.items():
        pairs = [pair for pair in known if pair[1].verdict == verdict]
        if pairs:
            place = f" at {content.along} " if len(content.places) > 1 else " "
            short = len(pairs) <= MOST_PLACES
            parts.append(f"{text}{place}{', '.join(_at(content, *pair) for pair in pairs) if short else _many(pairs)}")
    return "; ".join(parts)


def _many(pairs: Sequence[tuple[SweepSetting, BaselineDifference]]) -> str:
    """Return the places, and the range of their changes."""
    where = ", ".join(f"{setting.place:g}" for setting, _ in pairs)
    changes = [versus.relative.mean for _, versus in pairs if versus.relative is not None]
    return f"{where} ({_signed(min(changes))} to {_signed(max(changes))})" if changes else where


def _at(content: SweepContent, setting: SweepSetting, versus: BaselineDifference) -> str:
    """Return the place, and the change in per cent of the baseline."""
    where = f"{setting.place:g} " if len(content.places) > 1 else ""
    return f"{where}({percent(versus) or 'the baseline is 0'})"


def percent(versus: BaselineDifference) -> str:
    """Return the change in per cent of the baseline, with its interval; "" where there is no ratio."""
    change = versus.relative
    if versus.change.mean == 0 and (versus.change.low or 0.0) == 0:
        return "the same"
    if change is None:
        return ""
    if change.low is None or change.high is None:
        return _signed(change.mean)
    return f"{_signed(change.mean)}, {_signed(change.low)} to {_signed(change.high)}"


def _signed(part: float) -> str:
    percent = 100 * part
    if percent > 1000:
        return f"{part + 1:,.0f} times"
    digits = 0 if abs(percent) >= 10 else 1
    return f"{percent:+.{digits}f} %".replace("-", "−")


def certainty(content: SweepContent) -> list[str]:
    """Return how far the differences can be trusted."""
    settings = [setting for group in content.groups for setting in group.settings]
    counts = sorted({average.seeds for setting in settings for average in setting.averages.values()})
    if not counts:
        return ["No run is done."]
    identical = _identical_seeds(settings)
    if counts[-1] == 1 and identical:
        return [*identical, f"There are no intervals; {OTHER_JOBS}."]
    if counts[-1] == 1:
        return ["One seed: there are no intervals, and how much another seed would change these numbers is not known."]
    seeds = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    percent = f"{100 * content.confidence:g} %"
    sentences = [
        f"Averages over {seeds} seeds, differences paired by seed; intervals hold {percent} of the time "
        "(Student's t, of ratios on a log scale). A difference whose interval includes 0 is called noise.",
        *identical,
    ]
    tested = sum(name in setting.versus for setting in settings for name, _ in QUANTITIES)
    if tested > 1:
        chance = tested * (1 - content.confidence)
        sentences.append(
            f"{tested} differences were tested: if there were none, about {chance:.2g} would still look significant."
        )
    return sentences


def _identical_seeds(settings: Sequence[SweepSetting]) -> list[str]:
    """Return a sentence about settings whose seeds all gave identical runs, which is no evidence."""
    same = [setting for setting in settings if setting.alike > 1]
    if not same:
        return []
    where = "" if len(same) == len(settings) else f" under {', '.join(dict.fromkeys(setting.name for setting in same))}"
    seeds = " or ".join(str(alike) for alike in sorted({setting.alike for setting in same}))
    return [f"Nothing is random{where}: the {seeds} seeds gave identical runs, and count as one."]
