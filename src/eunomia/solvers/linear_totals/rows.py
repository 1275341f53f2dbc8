"""The rows of a problem as the kernels take them: one column after the other, each row with a count."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.linear_totals.response import choose, choose_freely, proof, proof_freely
from eunomia.solvers.pricing.barrier import barrier
from eunomia.solvers.pricing.needs import ALWAYS
from eunomia.solvers.pricing.rows import NeedRows, draw_some
from eunomia.solvers.program import Infeasible

_SOME = 512
_NEAR = 0.1  # relative error above which an interior point has got nowhere
_ROUNDING = 1e-9  # relative


@dataclass(frozen=True, slots=True)
class LinearRows:
    """A problem laid out for the kernels: (column, row) arrays; every column has capacity."""

    worth: Floats  # (column, row)
    size: Floats  # (row,)
    rate: Floats  # (column, row); (column, 0) where no row has a floor
    floor: Floats  # (row,) −inf where there is none; (0,) likewise
    ceiling: float  # a price above all that may come out
    count: Floats | None = None  # (row,) how many rows each stands for, None: itself

    @property
    def free(self) -> bool:
        """Return whether no row has a floor."""
        return len(self.floor) == 0

    def only(self, rows: Ints) -> LinearRows:
        """Return the problem of these rows."""
        rate, floor = (self.rate, self.floor) if self.free else (self.rate.take(rows, axis=1), self.floor[rows])
        count = None if self.count is None else self.count[rows]
        return LinearRows(self.worth.take(rows, axis=1), self.size[rows], rate, floor, self.ceiling, count)

    def counts(self) -> Floats:
        """Return how many rows each stands for, (row,)."""
        return np.ones(len(self.size)) if self.count is None else self.count

    def some(self) -> LinearRows:
        """Return the problem of a few hundred rows, evenly spaced."""
        return self.only(np.arange(0, len(self.size), max(1, len(self.size) // _SOME)))

    def sample(self, count: int, attempt: int) -> LinearRows:
        """Return about `count` rows that stand for all; rows that stand for many are all among them."""
        counts = self.counts()
        dice = np.random.default_rng((len(counts), count, attempt)).random(count + 2)
        rows, times = draw_some(counts, 0.0, count / float(counts.sum()), dice)
        return replace(self.only(rows), count=times * counts[rows])

    def choose(self, centre: Floats, half: Floats, choice: Array) -> Floats:
        """Write each row's choice over the box; return what the decided rows use (column,)."""
        mass = self.size if self.count is None else self.size * self.count
        if self.free:
            return choose_freely(self.worth, self.size, mass, centre, half, choice)
        return choose(self.worth, self.size, mass, self.rate, self.floor, centre, half, choice)

    def refuse_if_proven(self, capacity: Floats, price: Floats) -> None:
        """Raise Infeasible if at these prices the floors alone cost more than all capacity is worth."""
        if self.free:
            return
        floor_price, time_price = proof(np.zeros_like(self.worth), self.size, self.rate, self.floor, price)
        owed = floor_price * np.where(np.isfinite(self.floor), self.floor, 0.0)
        value = dot(price, capacity) + dot(time_price - owed, self.counts())
        if value < -_ROUNDING * (dot(price, capacity)):
            raise Infeasible("the floors together need more than the capacity; lower them or give some up")

    def proof(self, price: Floats) -> tuple[Floats, Floats]:
        """Return λ of each floor and y of each row's time, (row,), that prove the least at these prices."""
        if self.free:
            return np.zeros(len(self.size)), proof_freely(self.worth, self.size, price)
        return proof(self.worth, self.size, self.rate, self.floor, price)

    def centre(self, capacity: Floats, tolerance: float) -> Floats | None:
        """Return prices (column,) at which the rows just fit; None where the interior point does not get near."""
        if self.free and not (self.worth > 0).any():
            return np.zeros(len(self.worth))
        count, columns = self.counts(), len(self.worth)
        unit = np.abs(self.worth).max(axis=0)
        unit = np.maximum(unit, 1e-12 * unit.max() + 1e-300) * count
        whole = float(unit.sum())
        worth = count * self.worth / whole
        rate, need = np.zeros_like(worth), np.full(len(count), -1.0)  # what −1 is asked for is never short
        if not self.free:
            rate, need = self.in_own_unit()
            need = np.maximum(need, -1.0)
        size, aim = count * self.size, unit * (len(unit) / whole)
        if not self.free:  # floors may need more than there is: then capacity is bought, row by row of one column each
            most, own = float(size.sum()), np.eye(columns, dtype=bool)
            dear = -self.ceiling * most / whole
            worth = np.concatenate((worth, np.where(own, dear, 10 * dear)), axis=1)
            size, aim = np.append(size, np.full(columns, -most)), np.append(aim, np.ones(columns))
            rate, need = (
                np.concatenate((rate, np.zeros((columns, columns))), axis=1),
                np.append(need, -np.ones(columns)),
            )
        rest = np.zeros((1, len(size)))
        room = np.maximum(capacity, 1e-12 * (1 + np.abs(capacity).max()))
        rates, worths = (np.ascontiguousarray(np.concatenate((each, rest))) for each in (rate, worth))
        scaled = NeedRows(rates, rest[0], size, np.full(len(size), ALWAYS), None, None, need).in_any_form()
        nothing = np.zeros((3, columns))
        price, _, error, _ = barrier(scaled, worths, aim, room, nothing, 0.0, 1.0, 0.1, tolerance)
        return np.asarray(price * whole) if error <= _NEAR else None

    def in_own_unit(self) -> tuple[Floats, Floats]:
        """Return rates (column, row), 0 without a floor, and floors (row,), as parts of each row's largest rate."""
        rate = np.where(np.isfinite(self.floor), self.rate, 0.0)
        unit = np.abs(rate).max(axis=0)
        unit[unit == 0] = 1.0
        return rate / unit, self.floor / unit
