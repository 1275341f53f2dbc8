"""Which accelerators to buy for a budget, judged by simulating weeks of one's own history.

Candidates are the most machines of each type that the budget pays, then mixes of the best types. They are judged by
successive halving: all on one week, the better half on twice as many weeks, and so on; the last ones on every week.
K. Jamieson and A. Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", AISTATS 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.history.cluster_change import PER_NODE, ClusterChange, changed, known_type
from eunomia.history.paired_runs import PeriodRun, PeriodRuns, on_period
from eunomia.history.turning_point import with_costs
from eunomia.history.weeks import NO_STARTS, Period, baseline_of, described, logged_wait
from eunomia.history.whatif import CONFIDENCE, RelativeChange, jct_change, mean_wait_s, prepare, sooner
from eunomia.inputs.problems import InvalidInput, refused
from eunomia.metrics.statistics import paired
from eunomia.model import elementary
from eunomia.scenario import Scenario
from eunomia.throughputs.catalogue import accelerators, find
from eunomia.traces import Trace
from eunomia.verdict.number_format import duration, plural, shown

MONTH_H = 730.5
MIXED = 3  # best types that are mixed with each other
SPOT = "spot"  # terms of a price that is not compared with prices on demand unless asked for
FINALISTS = 3  # candidates that are judged on every week

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOffer:
    """What one accelerator of a type costs for the whole time."""

    type: str
    usd: float
    size: int  # accelerators of a machine
    source: str


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A purchase, and what its runs say so far."""

    add: Mapping[str, int]
    usd: float
    scenario: Scenario
    runs: tuple[PeriodRun, ...] = ()  # of the first periods
    change: RelativeChange | None = None

    @property
    def name(self) -> str:
        """What is bought: "16 h100 + 8 l40s"."""
        return " + ".join(f"{count:,} {kind}" for kind, count in self.add.items())


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """The result: candidates by rank, those judged on every period first."""

    budget_usd: float
    months: float
    periods: tuple[Period, ...]
    order: tuple[int, ...]  # in which periods were used: positions in `periods`
    today: tuple[PeriodRun, ...]  # in that order
    ranked: tuple[Candidate, ...]
    assumed: tuple[str, ...]
    log_sentence: str  # how far the simulation of today's cluster explains the wait that the history shows
    never: int

    @property
    def finalists(self) -> tuple[Candidate, ...]:
        """The candidates that were judged on every period, the best first."""
        return tuple(one for one in self.ranked if len(one.runs) == len(self.periods))

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "recommendation": recommend(self),
            "budget_usd": self.budget_usd,
            "months": self.months,
            "periods": [self.periods[k].name for k in self.order],
            "confidence": CONFIDENCE,
            "today": [asdict(run.all) for run in self.today],
            "candidates": [
                {
                    "add": dict(one.add),
                    "usd": one.usd,
                    "periods": len(one.runs),
                    "jct_change": None if one.change is None else asdict(one.change),
                    "jct_mean_s": _mean([run.all.jct_mean_s for run in one.runs]),
                    "queueing_mean_s": mean_wait_s(one.runs) if one.runs else None,
                    "utilization": _mean([run.utilization or 0.0 for run in one.runs]),
                }
                for one in self.ranked
            ],
            "log_sentence": self.log_sentence,
            "assumed": list(self.assumed),
            "jobs_that_never_fit": self.never,
        }


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def offers(
    scenario: Scenario, months: float, prices: Mapping[str, float], only: Sequence[str]
) -> tuple[tuple[PriceOffer, ...], tuple[str, ...]]:
    """Return what can be bought, and notes.

    `prices` are US$ for one accelerator, bought; without one it is rented for the `months` at the scenario's or the
    catalogue's price for an hour. `only` names the types to consider. Raises InvalidInput for a type without a price
    that is named, and for one without throughputs.
    """
    own = scenario.cluster.prices
    sizes = {group.type: group.accelerators for group in scenario.cluster.nodes}
    names = list(only) or list(dict.fromkeys([*prices, *own, *accelerators()]))
    found, unpriced, unknown, spot = dict[str, PriceOffer](), list[str](), list[str](), list[str]()
    for name in names:
        listed = find(name)
        hourly = own.get(name, None if listed is None else listed.price_usd_per_hour)
        if name not in prices and not hourly:
            unpriced.append(name)
            continue
        if listed is not None and listed.price_terms == SPOT and not {name} & {*only, *prices, *own}:
            spot.append(name)
            continue
        try:
            kind = known_type(scenario, name)
        except InvalidInput:
            if name in only or name in prices:
                raise
            unknown.append(name)
            continue
        usd = prices[name] if name in prices else (hourly or 0.0) * MONTH_H * months
        source = "bought" if name in prices else f"{hourly:g} US$ an hour for {months:g} months"
        found.setdefault(kind, PriceOffer(type=kind, usd=usd, size=sizes.get(kind, PER_NODE), source=source))
    if only and unpriced:
        rule, fix = "this type has no price in the catalogue", f"give one: --price {unpriced[0]}=30000"
        raise refused("command line", "--only", unpriced[0], rule, fix)
    notes = [
        f"prices of one accelerator: {', '.join(f'{o.type} {o.usd:,.0f} US$ ({o.source})' for o in found.values())}"
    ]
    if unpriced:
        notes.append(f"not considered, as no price is known (--price): {', '.join(unpriced)}")
    if spot:
        notes.append(f"not considered, as the catalogue has a {SPOT} price only (--only, --price): {', '.join(spot)}")
    if unknown:
        notes.append(f"not considered, as the scenario's throughputs lack them: {', '.join(unknown)}")
    return tuple(found.values()), tuple(notes)


def _affordable(offer: PriceOffer, usd: float) -> int:
    """Return the accelerators that the money pays: whole machines, or a part of one that is 1, 2 or 4."""
    count = int(usd / offer.usd + 1e-9)
    if count >= offer.size:
        return count // offer.size * offer.size
    return max((part for part in (1, 2, 4) if part <= count), default=0)


def _single(scenario: Scenario, parts: Mapping[str, int], offer_by_type: Mapping[str, PriceOffer]) -> Candidate:
    add = {kind: count for kind, count in parts.items() if count}
    usd = sum(count * offer_by_type[kind].usd for kind, count in add.items())
    return Candidate(add=add, usd=usd, scenario=changed(scenario, ClusterChange(add=add)))


def plan_purchase(
    scenario: Scenario,
    budget_usd: float,
    *,
    months: float,
    prices: Mapping[str, float],
    only: Sequence[str],
    weeks: int,
    folder: Path,
    runs: PeriodRuns,
    tell: Tell,
) -> Purchase:
    """Return the ranked purchases. Raises InvalidInput if the budget pays none."""
    priced = with_costs(scenario)
    scenario = priced.scenario
    offered, notes = offers(scenario, months, prices, only)
    by_type = {offer.type: offer for offer in offered}
    singles = [
        _single(scenario, {offer.type: count}, by_type)
        for offer in offered
        if (count := _affordable(offer, budget_usd))
    ]
    if not singles:
        least = min(offered, key=lambda offer: offer.usd)
        rule = f"pays no accelerator; the cheapest is one {least.type} for {least.usd:,.0f} US$"
        raise refused("command line", "--budget-usd", f"{budget_usd:g}", rule, "give more, or fewer --months")
    # Candidates only add machines, so what fits today fits them all.
    trace, periods, files, never = prepare((scenario,), weeks, folder)
    log = logged_wait(trace, periods)
    held = np.array([_work(trace, period) for period in periods])
    order = np.argsort(-held, kind="stable").tolist()  # the busiest first

    def judge(candidates: Sequence[Candidate], count: int) -> tuple[list[PeriodRun], list[Candidate]]:
        places = order[:count]
        tell(f"{plural(len(candidates), 'candidate')} on {plural(count, 'week')}")
        every = [scenario, *(one.scenario for one in candidates)]
        done = runs.run([on_period(one, periods[k], files[k]) for one in every for k in places])
        rows = [tuple(done[m : m + count]) for m in range(0, len(done), count)]
        judged = [
            Candidate(add=c.add, usd=c.usd, scenario=c.scenario, runs=row, change=jct_change(rows[0], row))
            for c, row in zip(candidates, rows[1:], strict=True)
        ]
        return list(rows[0]), sorted(judged, key=_rank)

    today, judged = judge(singles, 1)
    out: list[Candidate] = []
    mixes = _mixes(scenario, judged, by_type, budget_usd)
    count = 1
    while count < len(periods):
        keep = max(FINALISTS, len(judged) // 2)
        out = judged[keep:] + out
        count = min(2 * count, len(periods))
        today, judged = judge([*judged[:keep], *mixes], count)
        mixes = []
    return Purchase(
        budget_usd=budget_usd,
        months=months,
        periods=periods,
        order=tuple(order),
        today=tuple(today),
        ranked=(*judged, *out),
        assumed=(*notes, *priced.assumed, *_assumed(scenario)),
        log_sentence=NO_STARTS if log is None else log.beside(mean_wait_s(today), baseline_of(scenario)),
        never=never,
    )


def _rank(candidate: Candidate) -> tuple[float, float]:
    """Return the change of the completion time, then the cost: lower is better."""
    assert candidate.change is not None
    return candidate.change.mean, candidate.usd


def _mixes(
    scenario: Scenario, ranked: Sequence[Candidate], by_type: Mapping[str, PriceOffer], budget_usd: float
) -> list[Candidate]:
    """Return purchases of two of the best types, half of the money for each, the rest for the first."""
    best = [next(iter(one.add)) for one in ranked[:MIXED]]
    mixes = []
    for one, other in combinations(best, 2):
        second = _affordable(by_type[other], budget_usd / 2)
        first = _affordable(by_type[one], budget_usd - second * by_type[other].usd)
        if first and second:
            mixes.append(_single(scenario, {one: first, other: second}, by_type))
    return mixes


def _work(trace: Trace, period: Period) -> float:
    """Return the work that is submitted in a period: accelerator-seconds, accelerators where there are no durations."""
    inside = (trace.submitted_s >= period.start_s) & (trace.submitted_s < period.end_s)
    return float((np.where(np.isnan(trace.duration_s), 1.0, trace.duration_s) * trace.scale_factor)[inside].sum())


def _assumed(scenario: Scenario) -> tuple[str, ...]:
    return (
        f"the cluster's own policy, {scenario.policy.name}, goes on; users go on submitting what they submitted",
        "machines are of the size that the cluster has of their type, else of 8 accelerators; hosts, network, space, "
        "power and people are in no price",
        f"throughputs are those of {scenario.throughputs.source}",
    )


def recommend(found: Purchase) -> str:
    """Return the recommendation in one sentence."""
    finalists = found.finalists
    best, weeks = finalists[0], described(found.periods)
    assert best.change is not None
    change = best.change
    money = f"{found.budget_usd:,.0f} US$"
    if change.low is None or change.high is None:
        sure = "one period, so no interval"
        if change.mean >= 0:
            return f"For {money} no purchase shortens the time to completion ({sure})."
    else:
        ends = " to ".join(sooner(end) for end in sorted((change.low, change.high), key=abs))
        sure = f"{100 * CONFIDENCE:g} % interval over {weeks}: {ends}"
        if not (change.is_real and change.mean < 0):
            return (
                f"For {money} no purchase is certain to shorten the time to completion, as weeks differ by more: the "
                f"best, {best.name}, gives {sooner(change.mean)} ({sure}); judge it on more --weeks, or keep the money."
            )
    waits = [mean_wait_s(runs) for runs in (found.today, best.runs)]
    text = (
        f"For {money} buy {best.name} ({best.usd:,.0f} US$): jobs are then done {sooner(change.mean)} on average "
        f"({sure}), and wait {duration(waits[1])} to their first start instead of {duration(waits[0])}"
    )
    return text + (_beside(best, finalists[1]) if len(finalists) > 1 else "") + "."


def _beside(best: Candidate, second: Candidate) -> str:
    """Return how the best compares with the second on the same periods."""
    values = [{k: run.all.jct_mean_s for k, run in enumerate(one.runs)} for one in (best, second)]
    difference = paired(values[0], values[1], CONFIDENCE)
    assert difference is not None and difference.log_ratio is not None
    ahead = shown(-elementary.expm1(difference.log_ratio.mean), "share")
    if difference.real is None:
        return f"; {second.name} comes next, {ahead} behind"
    sure = "more" if difference.real else "not more"
    return f"; {second.name} comes next, {ahead} behind, which is {sure} than weeks differ"
