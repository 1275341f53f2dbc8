"""What a preemption costs where a history is judged: as the scenario declares, else a named assumption."""

from __future__ import annotations

from dataclasses import dataclass

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
