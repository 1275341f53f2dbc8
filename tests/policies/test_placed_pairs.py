"""Space sharing with placement: pairs on one machine or spread, against programs with a column for each placement."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import oracles
from tests.policies.test_policies_in_pairs import PRICE, decide, objective, rates
from tests.solvers.test_sharing import Instance

from eunomia.model.answers import ANYWHERE, ONE_MACHINE, Shares
from eunomia.model.arrays import Floats, Ints
from eunomia.model.topology import Node, Topology
from eunomia.policies import build

few = settings(max_examples=40, deadline=None)
PLACED = "space_sharing=true&placement=sensitive"
SPELLINGS = [
    "max_min_fairness?", "makespan?", "max_throughput?", "proportional_fairness?", "water_filling?",
    "finish_time_fairness?", "hierarchical?inner=fairness&", "throughput_per_cost?",
    "throughput_per_cost?objective=sum&", "min_cost?",
]  # fmt: skip


@dataclass(frozen=True)
class Placed:
    """An instance whose gangs are slower when spread; `machine` (type,) has the accelerators of each machine."""

    one: Instance  # rates on one machine
    spread: Floats  # (kind, type)
    spread_pairs: Floats  # (kind, kind, type)
    machine: Ints

    @property
    def fits(self) -> Any:
        return self.one.size[:, None] <= self.machine

    @property
    def best(self) -> Instance:
        """The instance with rates in the best placement there is."""
        rate = np.where(self.fits, self.one.rate, self.spread)
        return replace(self.one, rate=rate, beside=np.where(self.fits[:, None], self.one.beside, self.spread_pairs))

    def by_level(self) -> Floats:
        """Return the rates of each row beside each, on one machine and then spread, (row, row, 2 · type)."""
        one = replace(self.one, rate=self.one.rate * self.fits, beside=self.one.beside * self.fits[:, None])
        return np.concatenate((one.by_row(), replace(one, rate=self.spread, beside=self.spread_pairs).by_row()), axis=2)

    def decide(self, spelling: str, **more: Any) -> tuple[Shares, Floats]:
        """Return the answer, and what each job does in the best placement."""
        one = self.one
        nodes = [Node(type="abc"[j], accelerators=n) for j, n in enumerate(self.machine.tolist())]
        columns = {
            "throughput": one.rate[one.of],
            "packed_throughput": one.beside,
            "spread_throughput": self.spread[one.of],
            "packed_spread_throughput": self.spread_pairs,
            "topology": Topology.of(nodes),
            "submitted": np.zeros(len(one.of)),
            "equal_share_throughput": np.ones(len(one.of)),
        }
        return decide(spelling, self.best, **{**columns, **more})


@st.composite
def placed_problems(draw: st.DrawFn, most_rows: int = 8, slows: bool = True) -> Placed:
    """Draw jobs of a few kinds, many of them gangs of 2, on types with machines of 1 or 2 accelerators."""
    rows, kinds, types = draw(st.integers(1, most_rows)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    never = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    of, size = rng.integers(0, kinds, rows), rng.choice([1.0, 2.0, 2.0], kinds)
    rate, fits = rng.uniform(0.1, 10, (kinds, types)), rng.random((kinds, kinds, types)) < 0.9
    beside = rate[:, None] * rng.uniform(0.4, 1.05, (kinds, kinds, types)) * (fits & fits.transpose(1, 0, 2))
    capacity = rng.integers(1, max(2, int(size[of].sum())) + 1, types).astype(float)
    one = Instance(of, rate, beside, size, capacity, rng)
    rates(one)
    alone, part = np.ones(rate.shape), np.ones(beside.shape)
    if slows:
        alone, part = (rng.uniform(0.3, 1.2, some.shape).clip(max=1.0) for some in (alone, part))
        gone = (rng.random(part.shape) < 0.3) & never  # such a pair cannot run when it is spread
        part[gone | gone.transpose(1, 0, 2)] = 0.0
    alone[size == 1], part[size == 1] = 1.0, 1.0  # a single accelerator is on one machine
    return Placed(one, one.rate * alone, one.beside * part, rng.choice([1, 2], types))


def sizes(case: Placed) -> tuple[Floats, Floats]:
    return case.one.size[case.one.of], case.one.capacity


@given(placed_problems())
@few
def test_the_worst_off_has_the_level_of_the_program_with_a_column_for_each_placement(case: Placed) -> None:
    size, capacity = sizes(case)
    best = case.best.rate[case.one.of]
    if not best.any():
        return
    need = best @ (capacity / capacity.sum()) / size
    level = oracles.highest_shared_level(case.by_level(), size, capacity, need)
    for name in ("max_min_fairness", "water_filling"):
        assert objective(case.decide(f"{name}?{PLACED}")[0]) == pytest.approx(level, rel=1e-7)


@given(placed_problems())
@few
def test_the_total_is_that_of_the_program_with_a_column_for_each_placement(case: Placed) -> None:
    most = oracles.best_shared_total(np.ones(len(case.one.of)), case.by_level(), *sizes(case))
    answer, done = case.decide(f"max_throughput?normalised=false&{PLACED}")
    assert objective(answer) == pytest.approx(most, rel=1e-7, abs=1e-9) == float(done.sum())


@given(placed_problems())
@few
def test_the_bill_is_that_of_the_program_with_a_column_for_each_placement(case: Placed) -> None:
    (size, capacity), T = sizes(case), case.best.rate[case.one.of]
    price, none = PRICE[: T.shape[1]], np.zeros(len(T))
    alone = oracles.isolated_speed(T, size, capacity) * (1 - 1e-9)
    least = oracles.best_shared_bill(none, case.by_level(), size, capacity, np.tile(price, 2), alone)
    assert least is not None
    assert objective(case.decide(f"min_cost?{PLACED}")[0]) == pytest.approx(-least, rel=1e-7, abs=1e-9)
    if not T.any():
        return
    answer, done = case.decide(f"throughput_per_cost?{PLACED}")
    best = T.max(axis=1)
    worth = np.divide(1.0, best, out=none.copy(), where=best > 0)
    fee = objective(answer) * np.tile(price, 2)
    left = oracles.best_shared_bill(worth, case.by_level(), size, capacity, fee, none)
    assert left == pytest.approx(0.0, abs=1e-7 * worth @ done)  # nothing is left to win at that price of a step


@given(placed_problems(most_rows=6))
@few
def test_the_fairest_product_is_that_of_the_program_with_a_column_for_each_placement(case: Placed) -> None:
    answer, done = case.decide(f"proportional_fairness?{PLACED}")
    able = done > 0
    if able.any():
        around = np.where(able, done, 1.0)
        bound = oracles.shared_product_bound(case.by_level(), *sizes(case), np.ones(len(done)), around)
        assert objective(answer) == pytest.approx(float(np.log(done[able]).sum()), abs=1e-8)
        assert objective(answer) >= bound - 2e-6 * len(done)


@given(placed_problems(slows=False), st.sampled_from(SPELLINGS))
@few
def test_where_spreading_costs_nothing_the_answer_is_that_of_pairs_alone(case: Placed, spelling: str) -> None:
    if not case.one.rate.any():
        return
    placed, plain = (case.decide(spelling + more)[0] for more in (PLACED, "space_sharing=true"))
    assert placed.rows is not None and plain.rows is not None
    assert placed.x.tobytes() == plain.x.tobytes()
    for name in ("job", "type", "partner"):
        assert getattr(placed.rows, name).tobytes() == getattr(plain.rows, name).tobytes()
    assert (placed.rows.filled()[2] == ANYWHERE).all()


@given(placed_problems(), st.sampled_from(SPELLINGS))
@few
def test_where_no_pair_fits_the_answer_is_that_of_placement_alone(case: Placed, spelling: str) -> None:
    if not case.best.rate.any():
        return
    case.one.beside[:], case.spread_pairs[:] = 0.0, 0.0
    both, placed = (case.decide(spelling + more)[0] for more in (PLACED, "placement=sensitive"))
    assert both.rows is not None
    assert (both.rows.filled()[0] == -1).all()
    assert objective(both) == pytest.approx(objective(placed), rel=1e-6, abs=1e-6)


@given(placed_problems(), st.sampled_from(SPELLINGS))
@few
def test_a_row_asks_for_one_machine_where_that_holds_it_and_one_of_its_jobs_would_lose(
    case: Placed, spelling: str
) -> None:
    answer, one = case.decide(spelling + PLACED)[0], case.one
    if answer.rows is None:
        return
    partner, _, within = answer.rows.filled()
    for m, n, j, level in zip(answer.rows.job, partner, answer.rows.type, within, strict=True):
        a, b = one.of[m], one.of[n]
        loses = case.spread[a, j] < one.rate[a, j]
        if n >= 0:
            loses = case.spread_pairs[a, b, j] < one.beside[a, b, j] or case.spread_pairs[b, a, j] < one.beside[b, a, j]
        assert level == (ONE_MACHINE if loses and case.fits[a, j] else ANYWHERE)


@pytest.mark.parametrize(
    ("machine", "spread", "level", "within"),
    [
        (2, 0.1, 1.6, ONE_MACHINE),  # 0.8 each on the machine; in turns 0.5 each
        (1, 0.1, 1.0, ANYWHERE),  # no machine holds them: in turns 0.25 each, side by side 0.1
        (1, 0.4, 1.6, ANYWHERE),  # side by side 0.4 each
    ],
)
def test_two_gangs_share_two_accelerators_by_hand(machine: int, spread: float, level: float, within: int) -> None:
    """Two gangs of 2, alone 1 on one machine and 0.5 spread, beside each other 0.8 on one machine.

    A gang is at level 1 with a half of its speed alone in the best place: that on its 2 accelerators, over 2.
    """
    one = Instance(
        np.array([0, 0]), np.ones((1, 1)), np.full((1, 1, 1), 0.8), np.full(1, 2.0), np.full(1, 2.0),
        np.random.default_rng(0),
    )  # fmt: skip
    case = Placed(one, np.full((1, 1), 0.5), np.full((1, 1, 1), spread), np.array([machine]))
    answer, done = case.decide(f"max_min_fairness?{PLACED}")
    assert answer.rows is not None
    assert objective(answer) == pytest.approx(level)
    np.testing.assert_allclose(done, level * (1.0 if machine == 2 else 0.5) / 2)
    assert set(answer.rows.filled()[2].tolist()) == {within}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_policy_that_does_both_reads_the_rates_of_spread_pairs(spelling: str) -> None:
    assert "packed_spread_throughput" in build(spelling + PLACED).info.needs
    for alone in ("placement=sensitive", "space_sharing=true"):
        assert "packed_spread_throughput" not in build(spelling + alone).info.needs
