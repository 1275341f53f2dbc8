"""The verdict of a report: what to do, at what cost, and how certain that is.

Every sentence follows from figures that stand in the report's tables, ties and rounding included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eunomia.verdict.completion_text import APPS, Average, averages, count, how_many, joined, left_out, others
from eunomia.verdict.further_notes import (
    KNOWS,
    beside_history,
    durations_known,
    identical,
    idle,
    multiplicity,
    on_estimates,
    wait_of_history,
    worst_at_own_measure,
)
from eunomia.verdict.judgement import judge, tied
from eunomia.verdict.number_format import Unit, shown
from eunomia.verdict.ranking import (
    MEASURES,
    WORDS,
    Ranked,
    certainty,
    certainty_of_tie,
    less,
    level_with,
    policies_of,
    ranking,
    signed,
    span,
    worse_measures,
)
from eunomia.verdict.run_figures import ReportContent
from eunomia.verdict.seed_groups import SeedGroup, alike_seeds, comparable, loads, seed_groups
from eunomia.verdict.tenant_shares import least_part, shortfall, tenant_price, treats_best


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """One measure: the recommended policy, the best of the others, and the difference."""

    measure: str
    chosen: str
    best_other: str
    difference: str
    worse: bool | None  # whether the recommended policy is worse, for certain; None = no difference to speak of


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The verdict: the warnings, then the answer, its certainty, a small table and further sentences."""

    warnings: tuple[str, ...] = ()
    answer: str
    certainty: str = ""
    chosen: str = ""  # the recommended policy; "" = none
    without_durations: str = ""  # where that one knows durations: the recommended of those that do not
    rows: tuple[VerdictRow, ...] = ()
    more: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return all sentences, in the order in which they are shown."""
        return tuple(filter(None, (*self.warnings, self.answer, self.certainty, *self.more)))


PRICES = {  # a measure in which the recommended policy may be worse than another → in the answer
    "jct_p99_s": "its slowest jobs take {value} (99th percentile), {least} under {other}",
    "rho_themis_max": "its worst-treated job has ρ {value}, {other} keeps it to {least}",
    "cost_usd": "it costs {value}, {least} under {other}",
    "preemptions": "it preempts {value}, {other} {least}",
}
MOST_PRICES = 2
SUMMARISED: dict[str, Unit] = {
    "jct_mean_s": "s",
    "jct_p99_s": "s",
    "queueing_mean_s": "s",
    "utilization": "share",
    "preemptions": "count",
    "rho_themis_max": "ratio",
}


@beside_history
def findings(content: ReportContent) -> Findings:
    """Return the verdict; of several loads, policies are compared in full at the highest."""
    found = _findings(content)
    return replace(found, warnings=(*found.warnings, *on_estimates(run.summary for run in content.runs)))


def _findings(content: ReportContent) -> Findings:
    settings, every_load = seed_groups(content), loads(content)
    policies = policies_of(settings)
    history = wait_of_history(settings)
    alike = list(filter(None, [alike_seeds(settings)]))
    if len({setting.label for setting in policies}) < 2:
        return _of_one(settings, policies, history, alike)
    group = tuple(setting for setting in policies if setting.load == every_load[-1])
    where = f"At load {every_load[-1]:g} " if len(every_load) > 1 else ""
    before = winners_by_load(policies, every_load) if len(every_load) > 1 else []
    found = compare(group, where)
    more = (*before, *found.more, *worst_at_own_measure(group), *identical(group), *durations_known(group))
    return Findings(
        warnings=(*history, *found.warnings),
        answer=found.answer,
        certainty=found.certainty,
        chosen=found.chosen,
        without_durations=found.without_durations,
        rows=found.rows,
        more=(*more, *alike, *multiplicity(policies)),
    )


def _of_one(
    settings: Sequence[SeedGroup], policies: Sequence[SeedGroup], history: Sequence[str], alike: Sequence[str]
) -> Findings:
    """Return the verdict on one policy at one or several loads, or on the schedule as it was alone."""
    if len(policies) > 1:
        first, *rest = growth(policies)
        return Findings(warnings=tuple(history), answer=first, more=(*rest, *durations_known(policies[:1]), *alike))
    shown_one = policies[0] if policies else settings[0]
    first, *rest = summarise(shown_one)
    none = "there is no other policy" if len(settings) > 1 else "there is nothing"
    rest += [*durations_known([shown_one]), *alike, f"One policy at one load: {none} to compare it with."]
    return Findings(warnings=(*history, *shortfall(shown_one)), answer=first, more=tuple(rest))


def summarise(setting: SeedGroup) -> list[str]:
    """Return the sentences about one setting by itself."""
    text = {name: shown(value, SUMMARISED[name]) for name in SUMMARISED if (value := setting.mean(name)) is not None}
    averages = [f"completion time {text['jct_mean_s']}"] if "jct_mean_s" in text else []
    averages += [f"99th percentile {text['jct_p99_s']}"] if "jct_p99_s" in text else []
    waited = f"average wait to the first start {text['queueing_mean_s']}" if "queueing_mean_s" in text else ""
    took = ", ".join(filter(None, [*averages, waited]))
    took = f" Average {took}." if averages else f" {took[:1].upper()}{took[1:]}." if took else ""
    return [
        *summarise_apps(setting),
        f"{setting.label} finished {count(setting, 'jobs')}{others(setting, 'jobs')}.{took}",
        *_use(setting, text),
    ]


def _use(setting: SeedGroup, text: dict[str, str]) -> list[str]:
    """Return the sentence on utilisation, preemptions and fairness, as far as they are known."""
    offered = setting.offered_load
    asked = "" if offered is None else f" (the jobs ask for {shown(offered, 'share')} of them while they arrive)"
    parts = [f"accelerators were busy {text['utilization']} of the time{asked}"] if "utilization" in text else []
    parts += [f"jobs were preempted {_times(text['preemptions'])}"] if "preemptions" in text else []
    parts += [f"the worst finish-time fairness ρ was {text['rho_themis_max']}"] if "rho_themis_max" in text else []
    if not parts:
        return []
    text_of_all = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"
    return [f"{text_of_all[0].upper()}{text_of_all[1:]}."]


def _times(number: str) -> str:
    return "once" if number == "1" else f"{number} times"


def summarise_apps(setting: SeedGroup) -> list[str]:
    """Return how many apps finished and how long they took; nothing where there are none."""
    if APPS not in averages([setting]):
        return []
    took = setting.mean(APPS.name)
    average = "" if took is None else f" Average time of an app, from its first job on: {shown(took, 's')}."
    return [f"{setting.label} finished {count(setting, 'apps')}{others(setting, 'apps')}.{average}"]


def growth(settings: Sequence[SeedGroup]) -> tuple[str, ...]:
    """Return the sentences about one policy at several loads."""
    low, high, average = settings[0], settings[-1], averages(settings)[0]
    first, last = (setting.mean(average.name) for setting in (low, high))
    if first is None or last is None:
        return (*summarise(high), "There is no other policy here.")
    change = f"from {shown(first, 's')} at load {low.load:g} to {shown(last, 's')} at load {high.load:g}"
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


def compare(group: tuple[SeedGroup, ...], where: str) -> Findings:
    """Return the verdict on the policies of one load."""
    warnings: list[str] = []
    more: list[str] = []
    ranked: Ranked = []
    deciding: Average | None = None
    for average in averages(group):
        able = comparable(group, average.kind)
        warnings += left_out(group, able, average)
        more += how_many(able, average)
        if deciding is None and len(found := ranking(able, average.name)) > 1:
            ranked, deciding = found, average
    able = comparable(group)
    if deciding is None:
        lines = [line for setting in able for line in summarise(setting)]
        return Findings(
            warnings=tuple(warnings), answer=lines[0] if lines else "No run can be compared.",
            more=(*more, *lines[1:]),
        )  # fmt: skip
    first, chosen = choose(ranked, deciding)
    rows = tuple(filter(None, (measure_row(group, chosen, *measure) for measure in MEASURES)))
    if len(first) == len(ranked):
        values = span(ranked[0][0], ranked[-1][0], "s")
        it = f"{where}it" if where else "It"
        answer = f"{it} makes no difference to the {deciding.what}: {joined(first)} tie ({values})."
        answer += f" Of them, {chosen.label} treats tenants best." if treats_best(chosen, first) else ""
        sure = certainty_of_tie(ranked, deciding)
        return Findings(warnings=(*idle(first), *warnings), answer=answer, certainty=sure, rows=rows, more=tuple(more))
    answer, sure = recommend(chosen, ranked, first, deciding)
    answer = f"{f'{where}use' if where else 'Use'} {answer}{_drawbacks(group, chosen, deciding)}"
    real, unaided, sure_of_it = _without_durations(chosen, ranked, deciding)
    return Findings(
        warnings=tuple(warnings),
        answer=f"{answer}{unaided}",
        certainty=" ".join(dict.fromkeys(filter(None, (sure, sure_of_it)))),
        chosen=chosen.label,
        without_durations=real,
        rows=rows,
        more=tuple(more),
    )


def choose(ranked: Ranked, average: Average) -> tuple[list[SeedGroup], SeedGroup]:
    """Return the settings that tie for the lowest average, and the one of them to recommend.

    That is one which ties with all of them and with no other: if possible one that does not know durations, then the
    one under which the worst-off tenant gets most.
    """
    first = level_with(ranked[0][1], ranked, average.name)
    rest = [setting for _, setting in ranked if setting not in first]
    able = [
        setting
        for setting in first
        if all(setting is other or tied(setting, other, average.name) for other in first)
        and not any(tied(setting, other, average.name) for other in rest)
    ]

    def rank(setting: SeedGroup) -> tuple[bool, float, float]:
        return not setting.knows_durations, round(least_part(setting), 2), -(setting.mean(average.name) or 0.0)

    return first, max(able or first[:1], key=rank)


def recommend(chosen: SeedGroup, ranked: Ranked, first: Sequence[SeedGroup], average: Average) -> tuple[str, str]:
    """Return what to do, and how certain it is."""
    value = chosen.mean(average.name)
    noun = "apps take" if average is APPS else "jobs complete after"
    equal = [setting for setting in first if setting is not chosen]
    level = f", a tie with {joined(equal)}" if equal else ""
    rest = [(v, setting) for v, setting in ranked if setting not in first]
    text = f"{chosen.label}: {noun} {shown(value, 's')} on average{level}"
    if not rest:
        return f"{text}.", certainty_of_tie(ranked, average) if equal else ""
    second, runner_up = rest[0]
    nearest = "the next best" if len(rest) > 1 else "the alternative"
    text += f", {less(value or 0.0, second)} than under {runner_up.label}, {nearest} ({shown(second, 's')})."
    return text, certainty(chosen, runner_up, average)


def _without_durations(chosen: SeedGroup, ranked: Ranked, average: Average) -> tuple[str, str, str]:
    """Return the recommended policy that does not know durations, in a sentence, and its certainty.

    Nothing where `chosen` does not know them either.
    """
    if not chosen.knows_durations:
        return "", "", ""
    unaided = [pair for pair in ranked if not pair[1].knows_durations]
    knows = f" It knows {KNOWS}"
    if not unaided:
        return "", f"{knows}, and so do all policies that are compared here.", ""
    first, best = choose(unaided, average)
    text, sure = recommend(best, unaided, first, average)
    return best.label, f"{knows}: of the policies that do not know them use {text}", sure


def _drawbacks(group: Sequence[SeedGroup], chosen: SeedGroup, average: Average) -> str:
    """Return what pays for the recommended policy, tenants first, and what else is worse under it."""
    prices, named = _prices(group, chosen)
    worse = [WORDS[name] for name in worse_measures(group, chosen) if name not in (*named, average.name)]
    if prices:
        return f" The price: {'; '.join(prices)}.{f' Also worse under it: {listed(worse)}.' if worse else ''}"
    return f" Worse under it: {listed(worse)}." if worse else " No other measure here is worse for it."


def listed(words: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def measure_row(group: Sequence[SeedGroup], chosen: SeedGroup, name: str, what: str, unit: Unit) -> VerdictRow | None:
    """Return the row of one measure; None where fewer than two settings have it or all are equal."""
    ranked = ranking(comparable(group, "apps" if name.startswith("app_") else "jobs"), name)
    rest = [(value, setting) for value, setting in ranked if setting is not chosen]
    value = chosen.mean(name)
    if len(ranked) < 2 or value is None or not any(setting is chosen for _, setting in ranked):
        return None
    least, other = rest[0]
    found = judge(chosen, other, name)
    assert found is not None
    if found.change == 0 and ranked[0][0] == ranked[-1][0]:
        return None
    size = signed(found.change) if found.relative else ("more" if found.change > 0 else "fewer")
    ends = f" ({signed(found.low or 0.0)} to {signed(found.high or 0.0)})" if found.judged and found.relative else ""
    difference = "the same" if found.change == 0 else f"{size}{ends}{', a tie' if found.is_tie else ''}"
    worse = None if found.is_tie else found.change > 0
    return VerdictRow(
        measure=what, chosen=shown(value, unit), best_other=f"{shown(least, unit)} ({other.label})",
        difference=difference, worse=worse,
    )  # fmt: skip


def _prices(group: Sequence[SeedGroup], chosen: SeedGroup) -> tuple[list[str], list[str]]:
    """Return what pays for the recommended policy, tenants first; and the measures that are named."""
    able = comparable(group)
    texts, named = list(tenant_price(able, chosen)), list[str]()
    for name, text in PRICES.items():
        ranked, value = ranking(able, name), chosen.mean(name)
        is_compared = chosen in able and value is not None and len(ranked) > 1
        if len(texts) == MOST_PRICES or not is_compared or tied(ranked[0][1], chosen, name):
            continue
        least, other = ranked[0]
        unit = next(unit for field, _, unit in MEASURES if field == name)
        number, shown_least = shown(value, unit), shown(least, unit)
        if name == "preemptions":
            number, shown_least = _times(number), "never" if least == 0 else _times(shown_least)
        texts.append(text.format(value=number, other=other.label, least=shown_least))
        named.append(name)
    return texts, named
