"""The verdict of a report: sentences that say which policy is best, at what price, and how certain that is."""

from __future__ import annotations

from collections.abc import Sequence

from eunomia.report.completion_text import APPS, Average, averages, count, how_many, joined, left_out, others
from eunomia.report.content import ReportContent
from eunomia.report.number_format import Unit, shown
from eunomia.report.seed_groups import SeedGroup, comparable, loads, seed_groups, tied

Ranked = list[tuple[float, SeedGroup]]


def findings(content: ReportContent) -> tuple[str, ...]:
    """Return the sentences; of several loads, policies are compared in full at the highest."""
    settings, every_load = seed_groups(content), loads(content)
    if len(settings) == 1:
        return (*summarise(settings[0]), "One policy at one load: there is nothing to compare it with.")
    if len({setting.label for setting in settings}) == 1:
        return growth(settings)
    group = tuple(setting for setting in settings if setting.load == every_load[-1])
    where = f"At load {every_load[-1]:g}, " if len(every_load) > 1 else ""
    sentences = winners_by_load(settings, every_load) if len(every_load) > 1 else []
    return (*sentences, *compare(group, where), certainty(settings))


def summarise(setting: SeedGroup) -> list[str]:
    """Return the sentences about one setting by itself."""
    text = {name: shown(setting.mean(name), unit) for name, unit in SUMMARISED.items()}
    times = "once" if text["preemptions"] == "1" else f"{text['preemptions']} times"
    took = f"Average completion time {text['jct_mean_s']}, 99th percentile {text['jct_p99_s']}, average"
    return [
        *summarise_apps(setting),
        f"{setting.label} finished {count(setting, 'jobs')}{others(setting, 'jobs')}. "
        f"{took if setting.mean('jct_mean_s') is not None else 'Average'} "
        f"wait before the first start {text['queueing_mean_s']}.",
        f"Accelerators were busy {text['utilization']} of the time, jobs were preempted {times}, "
        f"and the worst finish-time fairness ρ was {text['rho_themis_max']}.",
    ]


def summarise_apps(setting: SeedGroup) -> list[str]:
    """Return how many apps finished and how long they took; nothing where there are none."""
    if APPS not in averages([setting]):
        return []
    took = setting.mean(APPS.name)
    average = "" if took is None else f" Average time of an app, from its first job on: {shown(took, 's')}."
    return [f"{setting.label} finished {count(setting, 'apps')}{others(setting, 'apps')}.{average}"]


SUMMARISED: dict[str, Unit] = {
    "jct_mean_s": "s",
    "jct_p99_s": "s",
    "queueing_mean_s": "s",
    "utilization": "share",
    "preemptions": "count",
    "rho_themis_max": "ratio",
}


def growth(settings: Sequence[SeedGroup]) -> tuple[str, ...]:
    """Return the sentences about one policy at several loads."""
    low, high, average = settings[0], settings[-1], averages(settings)[0]
    first, last = (shown(setting.mean(average.name), "s") for setting in (low, high))
    change = f"from {first} at load {low.load:g} to {last} at load {high.load:g}"
    return (*summarise(high), f"The {average.what} of {low.label} goes {change}. There is no other policy here.")


def winners_by_load(settings: Sequence[SeedGroup], every_load: tuple[float, ...]) -> list[str]:
    """Return the policies with the lowest first average at each load, ties included."""
    parts, average = [], averages(settings)[0]
    for load in every_load:
        ranked = ranking(comparable([s for s in settings if s.load == load], average.kind), average.name)
        if ranked:
            (least, best), *_ = ranked
            names = joined(level_with(best, ranked, average.name))
            parts.append(f"{names} at load {load:g} ({shown(least, 's')})")
    return [f"Lowest {average.what}: {'; '.join(parts)}."] if parts else []


def compare(group: tuple[SeedGroup, ...], where: str) -> list[str]:
    """Return the sentences about the settings of one load."""
    sentences: list[str] = []
    winners: list[SeedGroup] = []
    for average in averages(group):
        able = comparable(group, average.kind)
        ranked = ranking(able, average.name)
        sentences += left_out(group, able, average) + how_many(able, average)
        if len(ranked) > 1:
            winners.append(ranked[0][1])
            sentences.append(where + fastest(ranked, average))
    able = comparable(group)
    if not winners:
        return [*sentences, *(line for setting in able for line in summarise(setting))]
    winner = winners[0]
    tails = (worst(able, winner, name, what, unit) for name, what, unit in TAILS)
    return [*sentences, *filter(None, tails), *filter(None, (price(able, winner, *item) for item in PRICES))]


TAILS: tuple[tuple[str, str, Unit], ...] = (
    ("jct_p99_s", "99th percentile of completion time", "s"),
    ("rho_themis_max", "Worst-treated job, by its finish-time fairness ρ", "ratio"),
)
PRICES: tuple[tuple[str, str, Unit], ...] = (("preemptions", "Preemptions", "count"), ("cost_usd", "Cost", "usd"))


def ranking(group: Sequence[SeedGroup], name: str) -> Ranked:
    """Return the settings that have a value of `name`, least first; equal ones keep their order."""
    known = [(value, setting) for setting in group if (value := setting.mean(name)) is not None]
    return sorted(known, key=lambda pair: pair[0])


def level_with(setting: SeedGroup, ranked: Ranked, name: str) -> list[SeedGroup]:
    """Return `setting` and the settings that tie with it."""
    return [other for _, other in ranked if other is setting or tied(setting, other, name)]


def fastest(ranked: Ranked, average: Average) -> str:
    """Return the sentence that ranks the settings by an average time."""
    (least, best), (most, last) = ranked[0], ranked[-1]
    first = level_with(best, ranked, average.name)
    if len(first) == len(ranked):
        return f"{joined(first)} tie on {average.what} ({span(least, most, 's')})."
    if len(first) > 1:
        lead = f"{joined(first)} tie for the lowest {average.what} ({shown(least, 's')}"
        return f"{lead}); {last.label} has the highest, {shown(most, 's')}, {above(most, least)}."
    lead = f"{best.label} has the lowest {average.what}, {shown(least, 's')}"
    second, runner_up = ranked[1]
    if runner_up is last:
        return f"{lead}; {last.label} takes {shown(most, 's')}, {above(most, least)}."
    lead = f"{lead}; next is {runner_up.label} with {shown(second, 's')}, {above(second, least)}"
    return f"{lead}, and the highest is {last.label} with {shown(most, 's')}, {above(most, least)}."


def worst(group: Sequence[SeedGroup], winner: SeedGroup, name: str, what: str, unit: Unit) -> str | None:
    """Return the sentence about a tail metric, and whether the setting with the best average is worst in it."""
    ranked = ranking(group, name)
    if len(ranked) < 2:
        return None
    (least, best), (most, last) = ranked[0], ranked[-1]
    if tied(best, last, name):
        return f"{what}: a tie ({span(least, most, unit)})."
    losers = [s for s in level_with(last, ranked, name) if not tied(s, best, name)]
    gainers = [s for s in level_with(best, ranked, name) if not tied(s, last, name)]
    bad, good = (f"{joined(names)} {'are' if len(names) > 1 else 'is'}" for names in (losers, gainers))
    numbers = f"{bad} worst with {shown(most, unit)}, {good} best with {shown(least, unit)}"
    if winner in losers:
        return f"{what}: {numbers}; the best average comes at this price."
    if winner in gainers:
        return f"{what}: {numbers}, so the best average does not come at this price."
    between = winner.mean(name) if winner in group else None  # else its number leaves out unfinished jobs
    also = f"; {winner.label} has {shown(between, unit)}" if between is not None else ""
    return f"{what}: {numbers}{also}."


def price(group: Sequence[SeedGroup], winner: SeedGroup, name: str, what: str, unit: Unit) -> str | None:
    """Return what the winner spends and the least that any spends; None where they tie or the winner left out jobs."""
    ranked, spent = ranking(group, name), winner.mean(name)
    if winner not in group or spent is None or len(ranked) < 2 or tied(ranked[0][1], winner, name):
        return None
    least, cheapest = ranked[0]
    return f"{what}: {winner.label} has {shown(spent, unit)}, {cheapest.label} the least with {shown(least, unit)}."


def certainty(settings: Sequence[SeedGroup]) -> str:
    """Return how far the differences can be trusted."""
    seeds = min(len(setting.runs) for setting in settings)
    if seeds > 1:
        return f"Averages over {seeds} seeds; differences below 1 %, or within what seeds vary by (95 %), are ties."
    return "One seed: differences below 1 % are called ties, and how much another seed would move them is not known."


def above(value: float, least: float) -> str:
    """Return how far `value` is above `least`: in per cent, or as a multiple from 2 on."""
    if least <= 0:
        return "against none"
    return f"{value / least:.1f} times as long" if value >= 2 * least else f"{100 * (value / least - 1):.0f} % more"


def span(least: float, most: float, unit: Unit) -> str:
    """Return `least to most`, or one number where both are shown alike."""
    first, last = shown(least, unit), shown(most, unit)
    return first if first == last else f"{first} to {last}"
