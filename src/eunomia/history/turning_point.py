"""At which cost of a preemption a verdict turns: the policies that matter are run again at other costs, and compared.

The costs that are tried are those of a ladder of factors of two; between the last at which the policy is best and the
first at which it is not, one more in the middle is tried. A policy that preempted nothing is not run again, as a
preemption costs it nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from eunomia.mechanisms import DEFAULT, MECHANISMS
from eunomia.scenario import Scenario
from eunomia.scenario.schema_models import OverheadsSection

# Published costs are lower (ASTRAEA 25 s, Themis 45 s, Helios up to 60 s), and leave out that a container starts and
# data are loaded again. A logged run time includes the start of its job, so a first start costs nothing more.
ASSUMED = OverheadsSection(checkpoint_s=30.0, restore_s=90.0)
CAN_SAVE = (
    "a preempted job can save and goes on from there, which accounting does not say: [workload] interruptible = false "
    "holds every job on its accelerators until it ends"
)
NEVER = "no job is preempted: [workload] interruptible = false"
LADDER_S = (0.0, 15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3840.0, 7680.0)  # of a preemption
TIE = 0.01  # a mean completion time that is less by no more is no better
CANNOT_SAVE = math.inf  # the cost at which no job is preempted


@dataclass(frozen=True, kw_only=True)
class PricedScenario:
    """A scenario in which preemption has its cost, and what was assumed for that, in sentences."""

    scenario: Scenario
    assumed: tuple[str, ...]


def with_costs(scenario: Scenario) -> PricedScenario:
    """Return the scenario with the assumed costs if it declares no [overheads], and what is assumed."""
    if not scenario.workload.interruptible:
        return PricedScenario(scenario=scenario, assumed=(NEVER,))
    mechanism = DEFAULT if scenario.mechanism is None else scenario.mechanism.name
    if mechanism in MECHANISMS and "overheads" in MECHANISMS.load(mechanism).unsupported:
        rule = f"a preemption costs nothing: the mechanism {mechanism} knows no [overheads]"
        return PricedScenario(scenario=scenario, assumed=(rule,))
    if "overheads" in scenario.model_fields_set:
        costs = described_costs(scenario.overheads)
        return PricedScenario(scenario=scenario, assumed=(f"{costs}, as [overheads] of the scenario says",))
    priced = scenario.model_copy(update={"overheads": ASSUMED})
    text = f"the scenario declares no [overheads]: {described_costs(ASSUMED)}; change it there"
    return PricedScenario(scenario=priced, assumed=(text,))


def described_costs(costs: OverheadsSection) -> str:
    """Return "a preemption costs its job 30 s to save and 90 s to start again and restore"."""
    if costs.saves == "nothing":
        return "a preempted job loses what it did since its last checkpoint, or all where it writes none (saves)"
    if not preemption_s(costs) and not costs.restore_by_size:
        return "a preemption costs nothing"
    by_size = ", ".join(f"{s:g} s from {n} accelerators on" for n, s in costs.restore_by_size.items())
    more = f" ({by_size})" if by_size else ""
    return (
        f"a preemption costs its job {costs.checkpoint_s:g} s to save and {costs.restore_s:g} s{more} to start again "
        "and restore"
    )


def preemption_s(costs: OverheadsSection) -> float:
    """Return the seconds that a preemption costs a job on one accelerator."""
    return costs.checkpoint_s + costs.restore_s


class Outcome(NamedTuple):
    """One policy at one cost."""

    jct_s: float  # mean completion time; inf = it cannot run
    preemptions: int


Run = Callable[[Sequence[Scenario]], Sequence[Outcome]]


def at_cost(scenario: Scenario, cost_s: float) -> Scenario:
    """Return the scenario with this cost of a preemption on one accelerator, divided as it is into save and restore.

    `CANNOT_SAVE`: no job is preempted.
    """
    if cost_s == CANNOT_SAVE:
        work = scenario.workload.model_copy(update={"interruptible": False})
        return scenario.model_copy(update={"workload": work})
    own = scenario.overheads
    parts = own if preemption_s(own) else ASSUMED
    factor = cost_s / preemption_s(parts)
    scaled = {
        "checkpoint_s": round(parts.checkpoint_s * factor, 3),
        "restore_s": round(parts.restore_s * factor, 3),
        "restore_by_size": {size: round(s * factor, 3) for size, s in own.restore_by_size.items()},
    }
    return scenario.model_copy(update={"overheads": own.model_copy(update=scaled)})


@dataclass
class CostRange:
    """In which range of costs one policy is the best of several: `chosen`, among `scenarios` by label."""

    scenarios: Mapping[str, Scenario]
    chosen: str
    run: Run
    _found: dict[float, dict[str, Outcome]] = field(default_factory=dict)

    @property
    def own_s(self) -> float:
        """What a preemption costs in the scenario."""
        return preemption_s(self.scenarios[self.chosen].overheads)

    def outcomes(self, cost_s: float) -> dict[str, Outcome]:
        """Return how each policy does at a cost; each is run once."""
        if cost_s not in self._found:
            known = self._found.get(self.own_s, {})
            same = {label: one for label, one in known.items() if one.preemptions == 0}
            again = [label for label in self.scenarios if label not in same]
            found = self.run([at_cost(self.scenarios[label], cost_s) for label in again])
            self._found[cost_s] = same | dict(zip(again, found, strict=True))
        return self._found[cost_s]

    def best(self, cost_s: float) -> str:
        """Return the policy that is best at a cost: the chosen one unless another is better by more than a tie."""
        outcomes = self.outcomes(cost_s)
        label = min(self.scenarios, key=lambda one: (outcomes[one].jct_s, one != self.chosen))
        return label if outcomes[label].jct_s < outcomes[self.chosen].jct_s * (1 - TIE) else self.chosen

    def turn(self, costs: Sequence[float]) -> tuple[float, float] | None:
        """Return the last of these costs at which the chosen one is best, and the first at which it is not.

        `costs` begin at the scenario's own. None: it is best at the last one too.
        """
        good, bad, step = 0, 0, 1
        while bad == good:  # in growing steps, as runs at high costs take long
            if good == len(costs) - 1:
                return None
            place = min(good + step, len(costs) - 1)
            good, bad, step = (
                (place, place, step + 1) if self.best(costs[place]) == self.chosen else (good, place, step)
            )
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if self.best(costs[middle]) == self.chosen else (good, middle)
        middle_s = round((costs[good] + costs[bad]) / 2)
        if middle_s in (costs[good], costs[bad]):
            return costs[good], costs[bad]
        return (middle_s, costs[bad]) if self.best(middle_s) == self.chosen else (costs[good], middle_s)

    def sentence(self, where: str = "") -> str:
        """Return at which costs of a preemption the verdict turns, `where` being what was run; "" = nothing to say."""
        own_s = self.own_s
        if all(one.preemptions == 0 for one in self.outcomes(own_s).values()):
            return ""  # no policy preempts
        if (best := self.best(own_s)) != self.chosen:
            head = f"In {where} alone" if where else "By the mean completion time alone"
            return f"{head} {best} is best, not {self.chosen}: the cost at which that turns is not known."
        more = self.turn([own_s, *(cost for cost in LADDER_S if cost > own_s)])
        less = self.turn([own_s, *(cost for cost in reversed(LADDER_S) if cost < own_s)])
        parts = []
        if less is not None:
            parts.append(f"from {_cost(less[0])} on (at {_cost(less[1])} {self.best(less[1])} is better)")
        if more is not None:
            parts.append(f"up to {_cost(more[0])} (from {_cost(more[1])} on {self.best(more[1])} is better)")
        if not parts:
            parts.append(f"at every cost that was tried, 0 to {_cost(max(own_s, LADDER_S[-1]))}")
        never = self.best(CANNOT_SAVE)
        same = "it is best" if never == self.chosen else f"{never} is better"
        head = f"In {where} alone, by" if where else "By"
        return (
            f"{head} what a preemption costs its job, save and restore together, {self.chosen} is best "
            f"{' and '.join(parts)}; where no job can save, so that none is preempted, {same}."
        )


def _cost(seconds: float) -> str:
    return f"{round(seconds):,} s"
