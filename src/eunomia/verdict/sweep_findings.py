"""The verdict of a sweep: what to do and at what price, and where runs are better or worse than the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from eunomia.verdict.findings import Findings
from eunomia.verdict.further_notes import on_estimates, sentences_on_history
from eunomia.verdict.number_format import plural
from eunomia.verdict.ranking import signed
from eunomia.verdict.seed_groups import sentence_on_alike_seeds
from eunomia.verdict.sweep_answer import MOST_PLACES, QUANTITIES, SHOWN, answer_of, place_and_change
from eunomia.verdict.sweep_content import BaselineDifference, Group, SweepContent, SweepSetting, Verdict

IN_FULL = 2  # of QUANTITIES; the others are mentioned only where a difference is no noise
TEXT_BY_VERDICT: dict[Verdict, str] = {
    "better": "better",
    "worse": "worse",
    "noise": "a difference that is noise",
    "alike": "alike within 1 %",
    "unknown": "on these jobs",
    "unfit": "not comparable, as one did not finish jobs that the other finished",
}
OTHER_JOBS = (
    "to learn how much other jobs would change these numbers, generate jobs (workload.generator) or take other parts "
    "of the trace (workload.start_s, workload.end_s)"
)


def findings(content: SweepContent) -> Findings:
    """Return the verdict: `details` are not in it."""
    certain, *more = certainty(content)
    means = ({name: each.mean for name, each in setting.averages.items()} for group in content.groups
             for setting in group.settings)  # fmt: skip
    warnings = (*_failed(content), *waits_of_history(content), *on_estimates(means))
    if len(content.compared) < 2:
        answer = f"Only {content.baseline} ran: there is nothing to compare it with."
        return Findings(warnings=warnings, answer=answer, certainty=certain, more=tuple(more))
    answers = [answer_of(content, group) for group in content.groups]
    chosen = {name for name, _ in answers}
    return Findings(
        warnings=warnings,
        answer=" ".join(text for _, text in answers),
        certainty=certain,
        chosen=chosen.pop() if len(chosen) == 1 else "",
        more=tuple(more),
    )


def waits_of_history(content: SweepContent) -> list[str]:
    """Return how much of the wait as it was the simulation explains, at each place with the schedule as it was."""
    found = []
    for setting in (s for group in content.groups for s in group.settings if s.is_history):
        group = next(each for each in content.groups if setting in each.settings)
        waits = [
            (other.averages["queueing_mean_s"].mean, other.name) for other in group.settings
            if not other.is_history and other.place == setting.place and "queueing_mean_s" in other.averages
        ]  # fmt: skip
        wait, took = (setting.averages.get(name) for name in ("queueing_mean_s", "jct_mean_s"))
        if waits and wait is not None:
            where = f"With {group.name}: " if group.name else ""
            sentence = sentences_on_history(None if took is None else took.mean, wait.mean, *max(waits))
            found.append(f"{where}{sentence}")
    return found


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
            few = ", ".join(place_and_change(content, *pair) for pair in pairs[:MOST_PLACES])
            parts.append(f"{text}{place}{few if len(pairs) <= MOST_PLACES else _many(pairs)}")
    return "; ".join(parts)


def _many(pairs: Sequence[tuple[SweepSetting, BaselineDifference]]) -> str:
    """Return the places, and the range of their changes."""
    where = ", ".join(f"{setting.place:g}" for setting, _ in pairs)
    changes = [versus.relative.mean for _, versus in pairs if versus.relative is not None]
    return f"{where} ({signed(min(changes))} to {signed(max(changes))})" if changes else where


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
    every = len(same) == len(settings)
    return [sentence_on_alike_seeds([(setting.name, setting.alike) for setting in same], everywhere=every)]
