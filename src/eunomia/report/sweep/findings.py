"""What a sweep says, in words: who is better than the baseline where, and which differences are noise."""

from __future__ import annotations

from collections.abc import Sequence

from eunomia.report.number_format import plural
from eunomia.report.sweep.content import BaselineDifference, Group, SweepContent, SweepSetting, Verdict

TOLD = (
    ("jct_mean_s", "average completion time"),
    ("jct_p99_s", "99th percentile of completion time"),
    ("makespan_s", "makespan"),
    ("rho_themis_max", "worst finish-time fairness ρ"),
    ("cost_usd", "cost"),
)
MOST_TOLD = 4  # places with their intervals in one sentence
FIRST = 2  # of these are told in full; of the others only what is no noise
SAID: dict[Verdict, str] = {
    "better": "better",
    "worse": "worse",
    "noise": "a difference that is noise",
    "alike": "alike, surely within 1 %,",
    "unknown": "a difference of one run, which may be noise",
    "unfit": "not comparable, for one left behind jobs that the other finished",
}


OTHER_JOBS = (
    "to learn how much other jobs would move these numbers, let them be drawn (workload.generator) or take other parts "
    "of the trace (workload.start_s, workload.end_s)"
)


def findings(content: SweepContent) -> tuple[str, ...]:
    """Return the sentences, and last how far to trust them."""
    sentences = [sentence for group in content.groups for sentence in _group(content, group)]
    if len(content.compared) < 2:
        sentences.append(f"Only {content.baseline} ran: there is nothing to compare it with.")
    return (*_failed(content), *sentences, *certainty(content))


def _failed(content: SweepContent) -> list[str]:
    if not content.failures:
        return []
    verb = "is" if len(content.failures) == 1 else "are"
    return [f"{plural(len(content.failures), 'run')} failed and {verb} in no figure; see below what went wrong."]


def _group(content: SweepContent, group: Group) -> list[str]:
    sentences = []
    for name in content.compared:
        own = [setting for setting in group.settings if setting.name == name and setting.versus]
        for number, (quantity, what) in enumerate(TOLD):
            known = [(setting, setting.versus[quantity]) for setting in own if quantity in setting.versus]
            if number >= FIRST:
                known = [(setting, versus) for setting, versus in known if versus.verdict in ("better", "worse")]
            if known:
                where = f"With {group.name}: " if group.name else ""
                sentences.append(f"{where}{name} against {content.baseline}, {what}: {_places(content, known)}.")
    return sentences


def _places(content: SweepContent, known: Sequence[tuple[SweepSetting, BaselineDifference]]) -> str:
    """Return what is true where: `better at load 1 (−24 %, −31 % to −17 %); a difference that is noise at load 1.2`."""
    parts = []
    for kind, said in SAID.items():
        here = [pair for pair in known if pair[1].verdict == kind]
        if here:
            place = f" at {content.along} " if len(content.places) > 1 else " "
            numbers = _many(here) if len(here) > MOST_TOLD else ", ".join(_at(content, *pair) for pair in here)
            parts.append(f"{said}{place}{numbers}")
    return "; ".join(parts)


def _many(here: Sequence[tuple[SweepSetting, BaselineDifference]]) -> str:
    """Return where, and the span of the changes; each by itself is in the table."""
    where = ", ".join(f"{setting.place:g}" for setting, _ in here)
    changes = [versus.relative.mean for _, versus in here if versus.relative is not None]
    return f"{where} ({_signed(min(changes))} to {_signed(max(changes))})" if changes else where


def _at(content: SweepContent, setting: SweepSetting, versus: BaselineDifference) -> str:
    """Return where, and by how much of the baseline."""
    where = f"{setting.place:g} " if len(content.places) > 1 else ""
    return f"{where}({percent(versus) or 'the baseline is 0'})"


def percent(versus: BaselineDifference) -> str:
    """Return the change in per cent of the baseline, with its interval; nothing where there is no ratio."""
    found = versus.relative
    if versus.change.mean == 0 and (versus.change.low or 0.0) == 0:
        return "the same"
    if found is None:
        return ""
    if found.low is None or found.high is None:
        return _signed(found.mean)
    return f"{_signed(found.mean)}, {_signed(found.low)} to {_signed(found.high)}"


def _signed(part: float) -> str:
    percent = 100 * part
    if percent > 1000:
        return f"{part + 1:,.0f} times"
    digits = 0 if abs(percent) >= 10 else 1
    return f"{percent:+.{digits}f} %".replace("-", "−")


def certainty(content: SweepContent) -> list[str]:
    """Return how far the differences can be trusted."""
    counts = sorted({average.seeds for group in content.groups for setting in group.settings
                     for average in setting.averages.values()})  # fmt: skip
    if not counts:
        return ["No run is done."]
    undrawn = _undrawn(content)
    if counts[-1] == 1 and undrawn:
        return [*undrawn, f"There are no intervals; {OTHER_JOBS}."]
    if counts[-1] == 1:
        return ["One seed: there are no intervals, and how much another seed would move these numbers is not known."]
    sure = 100 * content.confidence
    seeds = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    told = [
        f"Averages over {seeds} seeds, differences paired by seed; intervals hold {sure:g} % of the time "
        "(Student's t, of ratios on a log scale). A difference whose interval includes 0 is called noise."
    ]
    told += undrawn
    tried = sum(name in setting.versus for group in content.groups for setting in group.settings for name, _ in TOLD)
    if tried > 1:
        chance = tried * (1 - content.confidence)
        told.append(
            f"{tried} differences were looked at: about {chance:.2g} of them would pass for real by chance alone if "
            "none were."
        )
    return told


def _undrawn(content: SweepContent) -> list[str]:
    """Return where several seeds are one run, so that nobody takes them for evidence."""
    all_ = [setting for group in content.groups for setting in group.settings]
    same = [setting for setting in all_ if setting.alike > 1]
    if not same:
        return []
    where = "" if len(same) == len(all_) else f" under {', '.join(dict.fromkeys(setting.name for setting in same))}"
    seeds = " or ".join(str(alike) for alike in sorted({setting.alike for setting in same}))
    return [f"Nothing is drawn{where}: the {seeds} seeds gave the very same run, and count as one."]
