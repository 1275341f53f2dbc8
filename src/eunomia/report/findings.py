"""The verdict of a report: what to do, at what cost, and how certain that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from eunomia.report.completion_text import APPS, Average, averages, count, how_many, joined, left_out, others
from eunomia.report.content import ReportContent
from eunomia.report.estimated_throughputs import on_estimates
from eunomia.report.judgement import JudgedDifference, comparisons, judge, tied
from eunomia.report.number_format import Unit, shown
from eunomia.report.seed_groups import SeedGroup, comparable, loads, seed_groups

Ranked = list[tuple[float, SeedGroup]]

OWED_ENOUGH = 0.9  # a tenant that gets a smaller part of what it is owed is named
OWED_LEAST = 0.005  # of all that is owed: a smaller tenant is not named
BUSY = 0.9  # offered load at which queues are to be expected
IDLE_WAIT = 0.02  # of the completion time: where no policy makes jobs wait longer, the cluster is idle
MOST_TENANTS = 3  # named in the verdict
NOT_KNOWN = "other weeks might reverse it; more seeds (--seed 0 1 2 …) or a longer trace would tell"


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
    rows: tuple[VerdictRow, ...] = ()
    more: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return all sentences, in the order in which they are shown."""
        return tuple(filter(None, (*self.warnings, self.answer, self.certainty, *self.more)))


MEASURES: tuple[tuple[str, str, Unit], ...] = (
    ("app_jct_mean_s", "average time of an app", "s"),
    ("jct_mean_s", "average completion time", "s"),
    ("jct_p99_s", "99th percentile of completion time", "s"),
    ("rho_themis_max", "worst finish-time fairness ρ", "ratio"),
    ("queueing_mean_s", "average wait", "s"),
    ("makespan_s", "makespan", "s"),
    ("preemptions", "preemptions", "count"),
    ("cost_usd", "cost", "usd"),
)
PRICES = {  # a measure in which the recommended policy may be worse than another → in the answer
    "jct_p99_s": "its slowest jobs take {value} (99th percentile), {least} under {other}",
    "rho_themis_max": "its worst-treated job has ρ {value}, {other} keeps it to {least}",
    "cost_usd": "it costs {value}, {least} under {other}",
    "preemptions": "it preempts {value} times, {other} {least}",
}
MOST_PRICES = 2
OWN_MEASURES: dict[str, tuple[str, Unit]] = {  # that policies are meant to keep small
    **{name: (what, unit) for name, what, unit in MEASURES},
    "rho_isolated_max": ("worst ρ against an even split of the cluster", "ratio"),
    "deadlines_missed": ("number of deadlines missed", "count"),
}
MOST_RIVALS = 2  # of which the worst is not worth a sentence


def findings(content: ReportContent) -> Findings:
    """Return the verdict; of several loads, policies are compared in full at the highest."""
    found = _findings(content)
    return replace(found, warnings=(*found.warnings, *on_estimates(run.summary for run in content.runs)))


def _findings(content: ReportContent) -> Findings:
    settings, every_load = seed_groups(content), loads(content)
    if len(settings) == 1:
        first, *rest = summarise(settings[0])
        rest.append("One policy at one load: there is nothing to compare it with.")
        return Findings(warnings=_shortfall(settings[0]), answer=first, more=tuple(rest))
    if len({setting.label for setting in settings}) == 1:
        first, *rest = growth(settings)
        return Findings(answer=first, more=tuple(rest))
    group = tuple(setting for setting in settings if setting.load == every_load[-1])
    where = f"At load {every_load[-1]:g} " if len(every_load) > 1 else ""
    before = winners_by_load(settings, every_load) if len(every_load) > 1 else []
    found = compare(group, where)
    more = (*before, *found.more, *worst_at_own_measure(group), *identical(group), *multiplicity(settings))
    return Findings(
        warnings=(*idle(settings, every_load), *found.warnings),
        answer=found.answer,
        certainty=found.certainty,
        chosen=found.chosen,
        rows=found.rows,
        more=more,
    )


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
        f"Accelerators were busy {text['utilization']} of the time{_offered_text(setting)}, jobs were preempted "
        f"{times}, and the worst finish-time fairness ρ was {text['rho_themis_max']}.",
    ]


def _offered_text(setting: SeedGroup) -> str:
    offered = setting.offered_load
    return "" if offered is None else f" (the jobs ask for {shown(offered, 'share')} of them while they arrive)"


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


def compare(group: tuple[SeedGroup, ...], where: str) -> Findings:
    """Return the verdict on the settings of one load."""
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
    first = level_with(ranked[0][1], ranked, deciding.name)
    chosen = max(first, key=lambda setting: (round(least_part(setting), 2), -(setting.mean(deciding.name) or 0.0)))
    rows = tuple(filter(None, (measure_row(group, chosen, *measure) for measure in MEASURES)))
    if len(first) == len(ranked):
        values = span(ranked[0][0], ranked[-1][0], "s")
        it = f"{where}it" if where else "It"
        answer = f"{it} makes no difference to the {deciding.what}: {joined(first)} tie ({values})."
        answer += f" Of them, {chosen.label} treats tenants best." if _tenants_differ(first) else ""
        certainty = _certainty_of_tie(ranked, deciding)
        return Findings(warnings=tuple(warnings), answer=answer, certainty=certainty, rows=rows, more=tuple(more))
    answer, certainty = recommend(chosen, ranked, first, deciding)
    prices = _prices(group, chosen)
    worse = " and ".join(row.measure for row in rows if row.worse)
    price = f" Worse under it: {worse}." if worse else " No other measure here is worse for it."
    if prices:
        price = f" The price: {'; '.join(prices)}."
    answer = f"{f'{where}use' if where else 'Use'} {answer}{price}"
    return Findings(
        warnings=tuple(warnings), answer=answer, certainty=certainty, chosen=chosen.label, rows=rows, more=tuple(more)
    )


def recommend(chosen: SeedGroup, ranked: Ranked, first: Sequence[SeedGroup], average: Average) -> tuple[str, str]:
    """Return what to do, and how certain it is."""
    value = chosen.mean(average.name)
    noun = "apps take" if average is APPS else "jobs complete after"
    equal = [setting for setting in first if setting is not chosen]
    level = f", a tie with {joined(equal)}" if equal else ""
    rest = [(v, setting) for v, setting in ranked if setting not in first]
    text = f"{chosen.label}: {noun} {shown(value, 's')} on average{level}"
    if not rest:
        return f"{text}.", _certainty_of_tie(ranked, average)
    second, runner_up = rest[0]
    found = judge(chosen, runner_up, average.name)
    nearest = "the next best" if len(rest) > 1 else "the alternative"
    text += f", {less(value or 0.0, second)} than under {runner_up.label}, {nearest} ({shown(second, 's')})."
    return text, _certainty(found, runner_up)


def _certainty(found: JudgedDifference | None, other: SeedGroup) -> str:
    """Return how certain the advantage over `other` is."""
    if found is None:
        return ""
    if not found.judged:
        jobs = sum(run.jct_s.size for run in other.runs)
        return (
            f"This holds for these {jobs:,} jobs. How far other jobs would change it is not known: there is one seed, "
            f"and the trace is too short to resample its weeks."
        )
    interval = f"{signed(found.low or 0.0)} to {signed(found.high or 0.0)}"
    return f"Certain at 95 %, over {found.basis}: the difference to {other.label} is {interval}."


def _certainty_of_tie(ranked: Ranked, average: Average) -> str:
    found = judge(ranked[0][1], ranked[-1][1], average.name)
    if found is None or not found.judged:
        return "Differences below 1 % are ties."
    interval = f"{signed(found.low or 0.0)} to {signed(found.high or 0.0)}"
    return (
        f"Lowest against highest, over {found.basis}: {signed(found.change)} ({interval} at 95 %): {NOT_KNOWN}."
        if not (found.low or 0.0) > -0.01
        else f"Lowest against highest, over {found.basis}: {signed(found.change)}."
    )


def _tenants_differ(group: Sequence[SeedGroup]) -> bool:
    parts = [least_part(setting) for setting in group]
    return max(parts) - min(parts) > 1 - OWED_ENOUGH


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


def _prices(group: Sequence[SeedGroup], chosen: SeedGroup) -> list[str]:
    """Return who and what pays for the recommended policy, tenants first."""
    texts = list(_tenant_price(group, chosen))
    able = comparable(group)
    for name, text in PRICES.items():
        ranked, value = ranking(able, name), chosen.mean(name)
        if chosen not in able or value is None or len(ranked) < 2 or tied(ranked[0][1], chosen, name):
            continue
        least, other = ranked[0]
        unit = next(unit for field, _, unit in MEASURES if field == name)
        shown_least = "never" if name == "preemptions" and least == 0 else shown(least, unit)
        texts.append(text.format(value=shown(value, unit), other=other.label, least=shown_least))
    return texts[:MOST_PRICES]


def _tenant_price(group: Sequence[SeedGroup], chosen: SeedGroup) -> list[str]:
    """Return a sentence about the tenants that get too little under the recommended policy."""
    short = short_tenants(chosen)
    if not short:
        return []
    text = f"tenant{'s' * (len(short) > 1)} {_named(short)}"
    fairest = max(group, key=least_part)
    if least_part(fairest) > least_part(chosen) + 0.02:
        text += f" (under {fairest.label} none gets less than {100 * least_part(fairest):.0f} %)"
    return [text]


def _shortfall(setting: SeedGroup) -> tuple[str, ...]:
    """Return the warning that tenants get too little."""
    short = short_tenants(setting)
    return (f"Some tenants do not get what they are owed: {_named(short)}.",) if short else ()


def _named(short: Sequence[tuple[str, float]]) -> str:
    """Return `bio gets 57 % of what it is owed, vision 80 % and 2 more less than 90 %`."""
    (first, part), *rest = short[:MOST_TENANTS]
    named = [f"{first} gets {100 * part:.0f} % of what it is owed", *(f"{name} {100 * p:.0f} %" for name, p in rest)]
    left = len(short) - MOST_TENANTS
    return ", ".join(named) + (f" and {left} more less than {100 * OWED_ENOUGH:.0f} %" if left > 0 else "")


def tenant_parts(setting: SeedGroup) -> dict[str, float]:
    """Return what each tenant got of what it was owed, over all seeds; small tenants are left out."""
    owed: dict[str, float] = {}
    got: dict[str, float] = {}
    for run in setting.runs:
        if run.tenants is not None and len(run.tenants.names) > 1:
            for u, name in enumerate(run.tenants.names):
                owed[name] = owed.get(name, 0.0) + float(run.tenants.deserved[u])
                got[name] = got.get(name, 0.0) + float(run.tenants.received[u])
    least = OWED_LEAST * sum(owed.values())
    return {name: got[name] / amount for name, amount in owed.items() if amount > least}


def short_tenants(setting: SeedGroup) -> list[tuple[str, float]]:
    """Return the tenants that got less than 90 % of what they were owed, the worst first."""
    short = [(name, part) for name, part in tenant_parts(setting).items() if part < OWED_ENOUGH]
    return sorted(short, key=lambda pair: (pair[1], pair[0]))


def least_part(setting: SeedGroup) -> float:
    """Return the least that a tenant got of what it was owed, at most 1."""
    return min((1.0, *tenant_parts(setting).values()))


def idle(settings: Sequence[SeedGroup], every_load: tuple[float, ...]) -> list[str]:
    """Return the warning that the cluster is too idle to tell policies apart, with a load at which it would not be."""
    group = [setting for setting in settings if setting.load == every_load[-1]]
    offered = group[0].offered_load
    waits = [(setting.mean("queueing_mean_s") or 0.0, setting.mean("jct_mean_s") or 0.0) for setting in group]
    if not offered or offered >= BUSY or any(wait > IDLE_WAIT * jct for wait, jct in waits):
        return []
    enough = math.ceil(10 * every_load[-1] * BUSY / offered) / 10
    return [
        f"The cluster is too idle to tell policies apart: the jobs ask for {shown(offered, 'share')} of it, and none "
        f"waits. Queues, and with them differences, are to be expected from about load {enough:g} on (--load "
        f"{enough:g})."
    ]


def worst_at_own_measure(group: Sequence[SeedGroup]) -> list[str]:
    """Return a sentence about each policy that is the worst of at least three at what it is meant to keep small."""
    found = []
    for setting in group:
        name = setting.runs[0].own_measure
        ranked = ranking(comparable(group), name)
        if len(ranked) > MOST_RIVALS and ranked[-1][1] is setting and not tied(setting, ranked[-2][1], name):
            what, unit = OWN_MEASURES[name]
            value, least = shown(ranked[-1][0], unit), shown(ranked[0][0], unit)
            found.append(
                f"{setting.label} is the worst of {len(ranked)} at what it is meant to keep small, the {what}: "
                f"{value}, {least} under {ranked[0][1].label}."
            )
    return found


def identical(group: Sequence[SeedGroup]) -> list[str]:
    """Return a sentence about each set of policies that made the very same run."""
    labels_by_run: dict[object, list[SeedGroup]] = {}
    for setting in group:
        key = tuple((tuple(run.summary.items()), run.jct_s.tobytes(), run.queueing_s.tobytes()) for run in setting.runs)
        labels_by_run.setdefault(key, []).append(setting)
    same = [equal for equal in labels_by_run.values() if len(equal) > 1]
    return [
        f"{joined(equal)} made the very same run: nothing in these jobs tells them apart (see the notes)."
        for equal in same
    ]


def multiplicity(settings: Sequence[SeedGroup]) -> list[str]:
    """Return how many differences were judged, and how many would look real by chance."""
    from eunomia.report.table import COLUMNS

    judged = comparisons(settings, [column.name for column in COLUMNS if column.better])
    if judged < 2:
        return []
    return [
        f"{judged:,} differences were judged at 95 %: if there were none, about {0.05 * judged:.2g} would still look "
        "real."
    ]


def ranking(group: Sequence[SeedGroup], name: str) -> Ranked:
    """Return the settings that have a value of `name`, least first; equal ones keep their order."""
    known = [(value, setting) for setting in group if (value := setting.mean(name)) is not None]
    return sorted(known, key=lambda pair: pair[0])


def level_with(setting: SeedGroup, ranked: Ranked, name: str) -> list[SeedGroup]:
    """Return `setting` and the settings that tie with it."""
    return [other for _, other in ranked if other is setting or tied(setting, other, name)]


def less(value: float, other: float) -> str:
    """Return how far `value` is below `other`, in per cent of it."""
    part = 100 * (1 - value / other) if other > 0 else 0.0
    return f"{part:.0f} % sooner" if part >= 10 else f"{part:.1f} % sooner"


def signed(part: float) -> str:
    """Return a change in per cent with its sign; from ten times on as a multiple."""
    percent = 100 * part
    if percent > 1000:
        return f"{part + 1:,.0f} times"
    digits = 0 if abs(percent) >= 10 else 1
    return f"{percent:+.{digits}f} %".replace("-", "−")


def span(least: float, most: float, unit: Unit) -> str:
    """Return `least to most`, or one number where both are shown alike."""
    first, last = shown(least, unit), shown(most, unit)
    return first if first == last else f"{first} to {last}"
