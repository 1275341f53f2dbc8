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

from eunomia.history.preemption_costs import ASSUMED, preemption_s
from eunomia.scenario import Scenario

LADDER_S = (0.0, 15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3840.0, 7680.0)  # of a preemption
TIE = 0.01  # a mean completion time that is less by no more is no better
CANNOT_SAVE = math.inf  # the cost at which no job is preempted


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
