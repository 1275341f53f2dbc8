"""The settings of a comparison: their averages, and which of two is better, worse or neither."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
STUDENT_T = {2: 12.7062, 3: 4.30265, 4: 3.18245}  # 95 %, by number of seeds
TIME = r"([\d,.]+(?:e-\d+)?) (s|min|h|d)"
COLUMNS = {  # starred columns of the table of runs: their words, whether high is better
    "app_jct_mean_s": ("average time of an app", False), "jct_mean_s": ("average completion time", False),
    "jct_p50_s": ("median completion time", False), "jct_p95_s": ("95th percentile of completion time", False),
    "jct_p99_s": ("99th percentile of completion time", False), "utilization": ("utilisation", True),
    "queueing_mean_s": ("average wait to the first start", False), "makespan_s": ("makespan", False),
    "total_wait_mean_s": ("average wait in all", False), "preemptions": ("preemptions", False),
    "rho_themis_max": ("worst finish-time fairness ρ", False), "cost_usd": ("cost", False),
    "rho_themis_mean": ("average finish-time fairness ρ", False),
}  # fmt: skip
OWN = {**{name: what for name, (what, _) in COLUMNS.items()}, "deadlines_missed": "number of deadlines missed",
       "rho_isolated_max": "worst ρ against an even split of the cluster"}  # fmt: skip


class Contradicted(AssertionError):
    """A sentence that does not follow from the figures."""


def demand(holds: bool, sentence: str, why: object) -> None:
    """Raise Contradicted unless something holds."""
    if not holds:
        raise Contradicted(f"{sentence!r}: {why}")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One policy: a summary and rows of tenants.csv for each seed."""

    label: str
    knows: bool
    offered: float
    summaries: Mapping[int, Mapping[str, float | None]]  # by seed
    tenants: Mapping[int, Sequence[Mapping[str, float | str]]]  # by seed

    @property
    def one_run(self) -> bool:
        """Whether all seeds gave the same figures."""
        first, *others = self.summaries.values()
        return all(dict(other) == dict(first) for other in others)

    @property
    def counted(self) -> list[int]:
        """The seeds that count."""
        return list(self.summaries)[: 1 if self.one_run else None]

    def value(self, name: str) -> float:
        """Return the average over the seeds that count and have a value; nan without any."""
        values = [float(v) for seed in self.counted if (v := self.summaries[seed].get(name)) is not None]
        return sum(values) / len(values) if values else math.nan

    def done(self, kind: str) -> float:
        """Return the part of its jobs, or apps, that it finished, trials ended by their search included."""
        names = ["jobs_finished", "jobs_cancelled_by_tuner"] if kind == "jobs" else ["apps_finished"]
        return sum(self.value(name) for name in names if not math.isnan(self.value(name))) / self.value(
            f"{kind}_submitted"
        )

    def parts(self) -> dict[str, tuple[float, float]]:
        """Return what each tenant received and deserved."""
        found: dict[str, tuple[float, float]] = {}
        for seed in self.counted:
            for row in self.tenants[seed] if len(self.tenants[seed]) > 1 else ():
                got, owed = found.get(str(row["tenant"]), (0.0, 0.0))
                found[str(row["tenant"])] = (got + float(row["received_gpu_s"]), owed + float(row["deserved_gpu_s"]))
        return {name: pair for name, pair in found.items() if pair[1] > 0}

    def large(self) -> dict[str, float]:
        """Return received ÷ deserved of the tenants that were owed more than half a per cent of all."""
        every = self.parts()
        least = 0.005 * sum(owed for _, owed in every.values())
        return {name: got / owed for name, (got, owed) in every.items() if owed > least}


@dataclass(frozen=True)
class Interval:
    """A difference: this ÷ other − 1, or this − other where that is no ratio; its interval over seeds."""

    change: float
    low: float | None
    high: float | None
    ratio: bool
    agrees: bool

    @property
    def tie(self) -> bool:
        """Whether it is none to speak of."""
        small = abs(self.change) <= 0.01 if self.ratio else self.change == 0
        return (
            small or not self.agrees or (self.low is not None and self.high is not None and self.low <= 0 <= self.high)
        )


def difference(a: Setting, b: Setting, name: str) -> Interval:
    """Return the difference of two settings in one number."""
    one, two = a.value(name), b.value(name)
    seeds = [
        seed for seed in a.summaries
        if a.summaries[seed].get(name) is not None and b.summaries.get(seed, {}).get(name) is not None
    ]  # fmt: skip
    if (a.one_run and b.one_run) or len(seeds) < 2:
        ratio = one > 0 and two > 0
        return Interval(one / two - 1 if ratio else one - two, None, None, ratio, True)
    pairs = [(float(a.summaries[seed][name] or 0), float(b.summaries[seed][name] or 0)) for seed in seeds]
    ratio = all(x > 0 and y > 0 for x, y in pairs)
    values = [math.log(x / y) if ratio else x - y for x, y in pairs]
    middle, n = sum(values) / len(values), len(values)
    spread = math.sqrt(sum((v - middle) ** 2 for v in values) / (n - 1))
    ends = [middle - STUDENT_T[n] * spread / math.sqrt(n), middle, middle + STUDENT_T[n] * spread / math.sqrt(n)]
    low, change, high = (math.expm1(v) for v in ends) if ratio else ends
    return Interval(change, low, high, ratio, change * sum(x - y for x, y in pairs) >= 0)


def shows(text: str, value: float, unit: float = 1.0, slack: float = 0.0) -> bool:
    """Return whether a number as it is written is the value, rounded to as many places as it has."""
    plain = text.replace(",", "").replace("−", "-").replace("+", "")
    mantissa, _, exponent = plain.partition("e")
    places = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return abs(float(plain) * unit - value) <= (0.5 * 10.0**-places * unit + slack) * (1 + 1e-6) + 1e-9 * abs(value)
