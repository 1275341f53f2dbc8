"""What a search of a job's shape maximises: steps per second, or steps per US$."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eunomia.inputs.problems import Problems
from eunomia.job_tuning.measurements import StepRate
from eunomia.job_tuning.shapes import JobShape
from eunomia.throughputs.catalogue import price_usd_per_hour

SPEED, PRICE = "speed", "price"
OBJECTIVES = (SPEED, PRICE)
SERVER = "server"  # the word for a parameter server among prices
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Objective:
    """`speed` counts steps/s; `price` counts steps/US$, of prices per accelerator-hour and per server-hour."""

    name: str
    prices: Mapping[str, float]  # US$ an hour by accelerator type, and of a server under `SERVER`; empty with `speed`

    @property
    def unit(self) -> str:
        """The unit of `gain`."""
        return "steps/US$" if self.name == PRICE else "steps/s"

    def hourly(self, shape: JobShape) -> float:
        """Return US$ an hour."""
        return shape.workers * self.prices[shape.type] + shape.servers * self.prices[SERVER]

    def gain(self, shape: JobShape, steps_per_s: float) -> float:
        """Return what is maximised, in `unit`."""
        return steps_per_s * SECONDS_PER_HOUR / self.hourly(shape) if self.name == PRICE else steps_per_s

    def interval(self, shape: JobShape, rate: StepRate) -> tuple[float | None, float | None]:
        """Return the ends of the interval of the gain; None where there is no such end."""
        low, high = (None if end is None else self.gain(shape, end) for end in (rate.low, rate.high))
        return low, high


def objective_of(name: str, types: Sequence[str], servers: Sequence[int], given: Mapping[str, float]) -> Objective:
    """Return the objective with given prices and, for types without one, those of the catalogue.

    Raises InvalidInput with every price that is missing, or that nothing has.
    """
    problems = Problems("command line")
    if name != PRICE:
        for one in given:
            rule, fix = "prices count with --objective price only", "give that objective, or leave the price out"
            problems.add(rule, fix, column="--price", value=one)
        problems.raise_if_any()
        return Objective(name, {})
    asked = (*types, SERVER) if any(servers) else tuple(types)
    for one in given:
        if one not in asked:
            fix = f"the prices that count are of {', '.join(asked)}"
            problems.add("no shape of this search has it", fix, column="--price", value=one)
    prices = {SERVER: 0.0}
    for one in asked:
        price = given.get(one, None if one == SERVER else price_usd_per_hour(one))
        if price is None:
            fix = f"give US$ an hour, for example --price {one}=1.5"
            problems.add("its price is not known", fix, column="--price", value=one)
        else:
            prices[one] = price
    problems.raise_if_any()
    return Objective(name, prices)
