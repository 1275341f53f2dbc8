"""The verdict of a sweep: what to do and at what price, and where runs are better or worse than the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from eunomia.report.certainty import signed
from eunomia.report.findings import Findings
from eunomia.report.number_format import plural
from eunomia.report.sweep.content import BaselineDifference, Group, SweepContent, SweepSetting, Verdict
from eunomia.report.table import COLUMNS

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
    "unknown": "on these jobs",
    "unfit": "not comparable, as one did not finish jobs that the other finished",
}
SHOWN = frozenset(column.name for column in COLUMNS if column.better)  # compared in the table of differences
OTHER_JOBS = (
    "to learn how much other jobs would change these numbers, generate jobs (workload.generator) or take other parts "
    "of the trace (workload.start_s, workload.end_s)"
)


def findings(content: SweepContent) -> Findings:
    """Return the verdict: `details` are not in it."""
    certain, *more = certainty(content)
    if len(content.compared) < 2:
        answer = f"Only {content.baseline} ran: there is nothing to compare it with."
        return Findings(warnings=tuple(_failed(content)), answer=answer, certainty=certain, more=tuple(more))
    answers = [_answer(content, group) for group in content.groups]
    chosen = {name for name, _ in answers}
    return Findings(
        warnings=tuple(_failed(content)),
        answer=" ".join(text for _, text in answers),
        certainty=certain,
        chosen=chosen.pop() if len(chosen) == 1 else "",
        more=tuple(more),
    )


def _answer(content: SweepContent, group: Group) -> tuple[str, str]:
    """Return the name that is best at most places, and the sentence that says so, with what it is worse in."""
    where = f"With {group.name}: " if group.name else ""
    settings: dict[str, list[SweepSetting]] = {}
    for setting in group.settings:
        if setting.versus:
            settings.setdefault(setting.name, []).append(setting)
    scores = {name: _score(own) for name, own in settings.items()}
    best = max(scores, key=lambda name: scores[name], default="")
    if not best or scores[best] <= (0, 0.0):
        unknown = [s.versus["jct_mean_s"] for own in settings.values() for s in own if "jct_mean_s" in s.versus]
        if unknown and all(versus.verdict == "unknown" for versus in unknown):
            return _answer_of_one_run(content, settings, where)
        return content.baseline, f"{where}Keep {content.baseline}: no other run completes jobs sooner for certain."
    own = [setting for setting in settings[best] if "jct_mean_s" in setting.versus]
    better = [s for s in own if s.versus["jct_mean_s"].verdict == "better"]
    text = f"{where}Use {best}: jobs complete sooner on average than under {content.baseline}"
    places = f"at {content.along} " if len(content.places) > 1 else ""
    text += f" {places}{', '.join(_at(content, s, s.versus['jct_mean_s']) for s in better[:MOST_PLACES])}."
    others = [s for s in own if s not in better]
    if others:
        text += f" Not for certain at {content.along} {', '.join(f'{s.place:g}' for s in others)}."
    return best, f"{text}{_price(content, own)}"


def _score(settings: Sequence[SweepSetting]) -> tuple[int, float]:
    """Return at how many more places a name is better than worse, and by how much its average time falls."""
    found = [setting.versus["jct_mean_s"] for setting in settings if "jct_mean_s" in setting.versus]
    sure = sum((one.verdict == "better") - (one.verdict == "worse") for one in found)
    return sure, -sum(one.relative.mean for one in found if one.relative is not None and one.verdict == "better")


def _answer_of_one_run(content: SweepContent, settings: dict[str, list[SweepSetting]], where: str) -> tuple[str, str]:
    """Return the answer where each place has one run: it holds for these jobs."""

    def change(name: str) -> float:
        found = [s.versus["jct_mean_s"].relative for s in settings[name] if "jct_mean_s" in s.versus]
        return sum(one.mean for one in found if one is not None)

    best = min(settings, key=change)
    if change(best) >= 0:
        return content.baseline, f"{where}On these jobs keep {content.baseline}: no other run completes them sooner."
    own = [s for s in settings[best] if "jct_mean_s" in s.versus]
    several = len(content.places) > 1
    changes = ", ".join(
        f"{percent(s.versus['jct_mean_s'])}{f' at {content.along} {s.place:g}' * several}" for s in own[:MOST_PLACES]
    )
    return best, f"{where}On these jobs use {best}: the average completion time changes by {changes}."


def _price(content: SweepContent, settings: Sequence[SweepSetting]) -> str:
    """Return in what the recommended name is worse for certain."""
    worse = []
    for quantity, what in QUANTITIES[1:]:
        found = [s for s in settings if quantity in s.versus and s.versus[quantity].verdict == "worse"]
        if found:
            at = f" at {content.along} " if len(content.places) > 1 else " "
            changes = ", ".join(_at(content, s, s.versus[quantity]) for s in found[:MOST_PLACES])
            worse.append(f"{what}{at}{changes}")
    return f" The price: {'; '.join(worse)}." if worse else " Nothing else here is worse for certain."


def details(content: SweepContent) -> tuple[str, ...]:
    """Return a sentence for each name and quantity: where it is better, worse, or not known to differ."""
    return tuple(sentence for group in content.groups for sentence in _group(content, group))


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
    return f"{where} ({signed(min(changes))} to {signed(max(changes))})" if changes else where


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
        return signed(change.mean)
    return f"{signed(change.mean)}, {signed(change.low)} to {signed(change.high)}"


def certainty(content: SweepContent) -> list[str]:
    """Return how far the differences can be trusted."""
    settings = [setting for group in content.groups for setting in group.settings]
    counts = sorted({average.seeds for setting in settings for average in setting.averages.values()})
    if not counts:
        return ["No run is done."]
    identical = _identical_seeds(settings)
    bases = sorted({versus.basis for setting in settings for versus in setting.versus.values() if versus.basis})
    if counts[-1] == 1 and bases:
        return [
            f"{100 * content.confidence:g} % intervals are from {' and '.join(bases)} of the trace, the same for both "
            "runs: how much other weeks would change a difference. One whose interval includes 0 is called noise.",
            *identical,
            *_chance(content, settings),
        ]
    if counts[-1] == 1 and identical:
        return [f"{identical[0]} This holds for these jobs; {OTHER_JOBS}."]
    if counts[-1] == 1:
        return ["This holds for these jobs: there is one seed, so how much other jobs would change it is not known."]
    seeds = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    percent = f"{100 * content.confidence:g} %"
    sentences = [
        f"Averages over {seeds} seeds, differences paired by seed; intervals hold {percent} of the time "
        "(Student's t, of ratios on a log scale). A difference whose interval includes 0 is called noise.",
        *identical,
    ]
    return [*sentences, *_chance(content, settings)]


def _chance(content: SweepContent, settings: Sequence[SweepSetting]) -> list[str]:
    """Return how many differences were tested, and how many of them chance alone makes significant."""
    tested = sum(
        versus.change.low is not None
        for setting in settings
        for name, versus in setting.versus.items()
        if name in SHOWN
    )
    if tested < 2:
        return []
    chance = tested * (1 - content.confidence)
    return [f"{tested} differences were tested: if there were none, about {chance:.2g} would still look significant."]


def _identical_seeds(settings: Sequence[SweepSetting]) -> list[str]:
    """Return a sentence about settings whose seeds all gave identical runs, which is no evidence."""
    same = [setting for setting in settings if setting.alike > 1]
    if not same:
        return []
    where = "" if len(same) == len(settings) else f" under {', '.join(dict.fromkeys(setting.name for setting in same))}"
    seeds = " or ".join(str(alike) for alike in sorted({setting.alike for setting in same}))
    return [f"Nothing is random{where}: the {seeds} seeds gave identical runs, and count as one."]
