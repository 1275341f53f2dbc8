"""What a sweep's verdict says to do, and at what price: against the baseline, from the differences in its table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eunomia.metrics.statistics import NEGLIGIBLE
from eunomia.verdict.findings import listed
from eunomia.verdict.further_notes import KNOWS
from eunomia.verdict.number_format import shown
from eunomia.verdict.ranking import COLUMNS, WORDS, signed
from eunomia.verdict.sweep_content import BaselineDifference, Group, SweepContent, SweepSetting

QUANTITIES = (
    ("jct_mean_s", "average completion time"),
    ("jct_p99_s", "99th percentile of completion time"),
    ("makespan_s", "makespan"),
    ("rho_themis_max", "worst finish-time fairness ρ"),
    ("cost_usd", "cost"),
)
MOST_PLACES = 4  # with their intervals in one sentence
SHOWN = tuple(column.name for column in COLUMNS if column.better)  # compared in the table of differences
HIGH_IS_BETTER = frozenset(column.name for column in COLUMNS if column.better == "high")


def answer_of(content: SweepContent, group: Group) -> tuple[str, str]:
    """Return the name to use in one comparison, and the sentences that say so, with what it is worse in."""
    where = f"With {group.name}: " if group.name else ""
    if any(setting.is_history and setting.name == content.baseline for setting in group.settings):
        why = "no policy is credited with a difference to it, as that has other causes too"
        return "", f"{where}{content.baseline} is the schedule as it was: {why}. Give the sweep another baseline."
    settings: dict[str, list[SweepSetting]] = {}
    for setting in group.settings:
        if QUANTITIES[0][0] in setting.versus and not setting.is_history:
            settings.setdefault(setting.name, []).append(setting)
    if not settings and any(setting.is_history for setting in group.settings):
        alone = f"{where}{content.baseline} is the only policy beside the schedule as it was"
        return "", f"{alone}: there is no other policy to compare it with."
    name, text = _best(content, settings, where)
    return name, f"{text}{_without_durations(content, group, name)}"


def _best(content: SweepContent, settings: dict[str, list[SweepSetting]], where: str) -> tuple[str, str]:
    """Return the name that is best at most places, and the sentence that says so."""
    verdicts = {setting.versus["jct_mean_s"].verdict for own in settings.values() for setting in own}
    if verdicts and verdicts <= {"unknown", "unfit"}:
        return _answer_of_one_run(content, settings, where)
    scores = {name: _score(own) for name, own in settings.items()}
    best = max(scores, key=lambda name: scores[name], default="")
    if not best or scores[best] <= (0, 0.0):
        places = " at more places than later" if "better" in verdicts else ""
        rule = f"no other run completes jobs sooner, by more than 1 %, for certain{places}"
        return content.baseline, f"{where}Keep {content.baseline}: {rule}."
    own = settings[best]
    better, worse = ([s for s in own if s.versus["jct_mean_s"].verdict == word] for word in ("better", "worse"))
    text = f"{where}Use {best}: jobs complete sooner on average than under {content.baseline}"
    places = f"at {content.along} " if len(content.places) > 1 else ""
    text += f" {places}{', '.join(place_and_change(content, s, s.versus['jct_mean_s']) for s in better[:MOST_PLACES])}"
    left = ", ".join(f"{s.place:g}" for s in better[MOST_PLACES:])
    text += f" and at {left}." if left else "."
    if worse:
        text += f" Later {places}{', '.join(place_and_change(content, s, s.versus['jct_mean_s']) for s in worse)}."
    others = [s for s in own if s not in better and s not in worse]
    if others:
        text += f" Not for certain at {content.along} {', '.join(f'{s.place:g}' for s in others)}."
    return best, f"{text}{_price(content, own)}"


def _without_durations(content: SweepContent, group: Group, name: str) -> str:
    """Return a sentence about the best that does not know durations, where `name` does; else ""."""
    if not any(setting.knows_durations for setting in group.settings if setting.name == name):
        return ""
    able = [
        setting
        for setting in group.settings
        if not (setting.knows_durations or setting.is_history) and "jct_mean_s" in setting.averages
        and not ("jct_mean_s" in setting.versus and setting.versus["jct_mean_s"].verdict == "unfit")
    ]  # fmt: skip
    text = f" {name} knows {KNOWS}"
    if not able:
        return f"{text}, and so do all runs that can be compared with it."
    parts = []
    for place in sorted({setting.place for setting in able}):
        best = min((s for s in able if s.place == place), key=lambda s: s.averages["jct_mean_s"].mean)
        at = f" at {content.along} {place:g}" if len(content.places) > 1 else ""
        parts.append(f"{best.name}{at} ({shown(best.averages['jct_mean_s'].mean, 's')})")
    return (
        f"{text}: of the runs that do not know them the lowest average completion time is that of {', '.join(parts)}."
    )


def _score(settings: Sequence[SweepSetting]) -> tuple[int, float]:
    """Return at how many more places a name is better than worse, and by how much its average time falls."""
    found = [setting.versus["jct_mean_s"] for setting in settings]
    sure = sum((one.verdict == "better") - (one.verdict == "worse") for one in found)
    return sure, -sum(one.relative.mean for one in found if one.relative is not None and one.verdict == "better")


def _answer_of_one_run(content: SweepContent, settings: dict[str, list[SweepSetting]], where: str) -> tuple[str, str]:
    """Return the answer where each place has one run: it holds for these jobs. Differences up to 1 % are ties."""
    whole = {
        name: own for name, own in settings.items() if all(s.versus["jct_mean_s"].verdict == "unknown" for s in own)
    }
    if not whole:
        why = "one of the two did not finish jobs that the other finished"
        return "", f"{where}No run can be compared with {content.baseline}: {why}."

    def change(name: str) -> float:
        found = [_change(s, "jct_mean_s") for s in whole[name]]
        return sum(each for each in found if abs(each) > NEGLIGIBLE)

    best = min(whole, key=change)
    if change(best) >= 0:
        rule = "no other run completes them sooner by more than 1 %"
        rule += ", over all places" * (len(content.places) > 1)
        return content.baseline, f"{where}On these jobs keep {content.baseline}: {rule}."
    own = whole[best]
    several = len(content.places) > 1
    changes = ", ".join(
        f"{percent(s.versus['jct_mean_s'])}{f' at {content.along} {s.place:g}' * several}" for s in own[:MOST_PLACES]
    )
    text = f"{where}On these jobs use {best}: the average completion time changes by {changes}."
    worse = [
        WORDS[name] for name in SHOWN
        if name != "jct_mean_s" and any(name in s.versus and _loss(s, name) > NEGLIGIBLE for s in own)
    ]  # fmt: skip
    return best, f"{text} Worse under it: {listed(worse)}." if worse else f"{text} Nothing else here is worse for it."


def _change(setting: SweepSetting, quantity: str) -> float:
    """Return the change relative to the baseline; where the baseline is 0 infinite, in the direction of the change."""
    versus = setting.versus[quantity]
    if versus.relative is not None:
        return versus.relative.mean
    return 0.0 if versus.change.mean == 0 else math.copysign(math.inf, versus.change.mean)


def _loss(setting: SweepSetting, quantity: str) -> float:
    """Return by how much a setting is worse than the baseline, relative to it; below 0 if it is better."""
    return _change(setting, quantity) * (-1 if quantity in HIGH_IS_BETTER else 1)


def _price(content: SweepContent, settings: Sequence[SweepSetting]) -> str:
    """Return in what the recommended name is worse for certain."""
    worse = []
    for quantity, what in QUANTITIES[1:]:
        found = _worse(settings, quantity)
        if found:
            at = f" at {content.along} " if len(content.places) > 1 else " "
            changes = ", ".join(place_and_change(content, s, s.versus[quantity]) for s in found[:MOST_PLACES])
            worse.append(f"{what}{at}{changes}")
    named = {quantity for quantity, _ in QUANTITIES}
    others = [WORDS[name] for name in SHOWN if name not in named and _worse(settings, name)]
    text = f" The price: {'; '.join(worse)}." if worse else ""
    if others:
        return f"{text}{' Also worse' if worse else ' Worse'} for certain: {listed(others)}."
    return text or " Nothing else here is worse for certain."


def _worse(settings: Sequence[SweepSetting], quantity: str) -> list[SweepSetting]:
    return [s for s in settings if quantity in s.versus and s.versus[quantity].verdict == "worse"]


def place_and_change(content: SweepContent, setting: SweepSetting, versus: BaselineDifference) -> str:
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
        return signed(change.mean)
    return f"{signed(change.mean)}, {signed(change.low)} to {signed(change.high)}"
