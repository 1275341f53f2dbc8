"""Totals, ratios, late rows and assignments small enough to be worked out on paper."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.solvers.assignment import held, soonest
from eunomia.solvers.fractional_program import best_ratio
from eunomia.solvers.linear import best_total
from eunomia.solvers.min_late_jobs import late_rows
from eunomia.solvers.optimal_face import Face, central, closest
from eunomia.solvers.program import INF, Infeasible, NoOptimum, Program

ONES = np.ones(2)


def test_a_column_goes_to_the_row_that_makes_most_of_it_and_its_price_is_what_the_next_would_pay() -> None:
    """One unit for sale: worth 5 to the first row, 3 to the second, who has all its time left over."""
    total = best_total(np.array([[5.0], [3.0]]), ONES, np.array([1.0]))
    np.testing.assert_allclose(total.x, [[1], [0]])
    assert total.objective == total.bound == 5
    assert 3 <= total.price[0] <= 5


def test_half_a_unit_is_sold_at_the_price_of_the_torn_row() -> None:
    """1½ units: the first row has one, the second a half; another unit would be worth 3."""
    total = best_total(np.array([[5.0], [3.0]]), ONES, np.array([1.5]))
    np.testing.assert_allclose(total.x, [[1], [0.5]])
    np.testing.assert_allclose(total.price, [3])
    np.testing.assert_allclose(total.time_price, [2, 0])


def test_a_floor_takes_from_the_best_use_and_its_price_says_how_much() -> None:
    """The second row must have a quarter of the unit: 5 · ¾ + 3 · ¼ = 4.5; a unit less of floor is worth 2 more."""
    worth = np.array([[5.0], [3.0]])
    total = best_total(worth, ONES, np.array([1.0]), rate=np.ones((2, 1)), floor=np.array([0.0, 0.25]))
    assert total.objective == pytest.approx(4.5)
    np.testing.assert_allclose(total.floor_price, [0, 2], atol=1e-9)


def test_the_cheapest_way_to_meet_a_floor_mixes_a_slow_column_with_a_fast_one() -> None:
    """Rates 1 and 3 at costs 1 and 4, floor 2, all time used: half and half, cost 2.5."""
    total = best_total(
        -np.array([[1.0, 4.0]]), np.ones(1), np.ones(2), rate=np.array([[1.0, 3.0]]), floor=np.array([2.0])
    )
    np.testing.assert_allclose(total.x, [[0.5, 0.5]], atol=1e-9)
    assert total.objective == pytest.approx(-2.5)


def test_floors_beyond_the_capacity_are_refused_and_the_least_set_of_late_rows_is_named() -> None:
    """Two units for floors of 1, 1 and 2 units: giving up the last row alone, or weighing 5, the first two."""
    rate, size, floor = np.ones((3, 1)), np.array([1.0, 1.0, 2.0]), np.ones(3)
    with pytest.raises(Infeasible):
        best_total(rate, size, np.array([2.0]), rate=rate, floor=floor)
    assert late_rows(rate, size, np.array([2.0]), floor).rows.tolist() == [2]
    heavy = late_rows(rate, size, np.array([2.0]), floor, weight=np.array([1.0, 1.0, 5.0]))
    assert heavy.rows.tolist() == [0, 1]
    assert heavy.least and heavy.bound == pytest.approx(2)


def test_of_rows_alike_the_later_ones_are_late() -> None:
    assert late_rows(np.ones((5, 1)), np.ones(5), np.array([2.0]), np.ones(5)).rows.tolist() == [2, 3, 4]


def test_without_a_base_the_best_ratio_is_that_of_the_best_place() -> None:
    """Worth per cost is 3 / 2, 4 / 1 and less: only the place of 4 / 1 is used."""
    top, bottom = np.array([[3.0, 4.0], [1.0, 1.0]]), np.array([[2.0, 1.0], [2.0, 1.0]])
    ratio = best_ratio(top, bottom, ONES, ONES)
    assert ratio.objective == pytest.approx(4)
    assert (ratio.x > 0).sum() == 1 and ratio.x[0, 1] > 0


def test_a_base_is_spread_over_more_work() -> None:
    """With a base of 1, 4 / 2 alone beats (4 + 1) / 3 with the second row; with a base of 9, 5 / 11 beats 4 / 10."""
    top, bottom = np.array([[4.0], [1.0]]), np.ones((2, 1))
    assert best_ratio(top, bottom, ONES, np.array([2.0]), base=1.0).objective == pytest.approx(2)
    assert best_ratio(top, bottom, ONES, np.array([2.0]), base=9.0).objective == pytest.approx(5 / 11)


def test_nothing_per_nothing_is_no_ratio() -> None:
    with pytest.raises(NoOptimum, match="base"):
        best_ratio(np.zeros((1, 1)), np.ones((1, 1)), np.ones(1), np.ones(1))


def test_of_equal_optima_one_stays_and_one_is_central() -> None:
    """Two rows, two columns, all worths 1: any full split is optimal."""
    worth = np.ones((2, 2))
    total = best_total(worth, ONES, ONES)
    face = Face.of_prices(worth, ONES, ONES, total.price)
    previous = np.array([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(closest(face, previous), previous, atol=1e-9)
    np.testing.assert_allclose(central(face), np.full((2, 2), 0.5), atol=1e-6)


def test_what_no_job_needs_is_not_taken_away_for_nothing() -> None:
    """Any share from ½ on meets the floor: who has 0.9 keeps it, and who has 0.2 gets no more than ½."""
    rate = np.ones((2, 1))
    nothing, half = np.zeros((2, 1)), np.full(2, 0.5)
    face = Face.of_prices(nothing, ONES, np.array([2.0]), np.zeros(1), rate=rate, floor=half)
    np.testing.assert_allclose(closest(face, np.array([[0.9], [0.2]])), [[0.9], [0.5]], atol=1e-9)


def test_rows_are_served_shortest_first_and_each_delays_those_behind_it() -> None:
    """One server, times 1, 2, 3: finishes 1, 3 and 6; from the end they are third, second, first."""
    column, position = soonest(np.array([[2.0], [1.0], [3.0]]), np.array([1]))
    assert column.tolist() == [0, 0, 0]
    assert position.tolist() == [2, 3, 1]


def test_a_slow_column_is_better_than_a_queue() -> None:
    """Waiting behind a time of 4 costs more than 5 elsewhere; two servers abreast need no queue."""
    column, position = soonest(np.array([[4.0, 5.0], [4.0, 5.0]]), np.array([1, 1]))
    assert sorted(column.tolist()) == [0, 1] and position.tolist() == [1, 1]
    column, position = soonest(np.array([[4.0, 5.0], [4.0, 5.0]]), np.array([2, 1]))
    assert column.tolist() == [0, 0] and position.tolist() == [1, 1]


def test_a_row_that_no_column_serves_has_no_place() -> None:
    column, position = soonest(np.array([[np.inf, 2.0], [np.inf, np.inf], [1.0, np.inf]]), np.array([0, 1]))
    assert column.tolist() == [1, -1, -1] and position.tolist() == [1, -1, -1]


def test_forbidden_places_are_avoided_or_refused() -> None:
    places = np.arange(2), np.ones(2), np.ones(2, dtype=np.int64)
    assert held(np.array([[1.0, 9.0], [1.0, np.inf]]), *places).tolist() == [1, 0]
    with pytest.raises(Infeasible, match="row"):
        held(np.array([[1.0, np.inf], [1.0, np.inf]]), *places)


def test_a_program_says_what_another_unit_of_a_side_is_worth() -> None:
    """max 3a + 2b, a + b ≤ 4, a ≤ 1: a = 1, b = 3; the sides are worth 2 and 1."""
    row, column = np.array([0, 0, 1]), np.array([0, 1, 0])
    program = Program.of_entries(np.array([3.0, 2.0]), row, column, np.ones(3), np.full(2, -INF), np.array([4.0, 1.0]))
    solved = program.solve()
    assert solved.objective == solved.bound == 9
    np.testing.assert_allclose(solved.row_price, [2, 1])
    program.change_costs(np.array([1.0, 2.0]))
    assert program.solve().objective == 8
    program.change_sides(np.array([0]), -INF, 5.0)
    assert program.solve().objective == 10
    program.change_bounds(np.array([1]), 0.0, 2.0)
    assert program.solve().objective == 5


def test_a_program_grows_by_columns_and_rows() -> None:
    program = Program.of_entries(
        np.ones(1), np.zeros(1, int), np.zeros(1, int), np.ones(1), np.array([-INF]), np.array([4.0])
    )
    program.add_columns(np.array([3.0]), np.array([0, 1]), np.array([0]), np.array([2.0]), 0.0, INF)
    assert program.solve().objective == 6
    program.add_rows(np.array([-INF]), np.array([1.0]), np.array([0, 1]), np.array([1]), np.ones(1))
    assert program.solve().objective == 5


def test_whole_numbers_come_with_the_bound_of_the_search() -> None:
    program = Program.of_entries(
        np.array([3.0, 2.0]),
        np.zeros(2, int),
        np.arange(2),
        np.full(2, 2.0),
        np.array([-INF]),
        np.array([5.0]),
        whole=np.ones(2, dtype=bool),
    )
    solved = program.solve()
    assert solved.objective == solved.bound == 6


@pytest.mark.parametrize(("low", "high", "error"), [(-INF, -1.0, Infeasible), (1.0, INF, NoOptimum)])
def test_a_program_without_an_optimum_says_so(low: float, high: float, error: type[Exception]) -> None:
    program = Program.of_entries(
        np.ones(1), np.zeros(1, int), np.zeros(1, int), np.ones(1), np.array([low]), np.array([high])
    )
    with pytest.raises(error):
        program.solve()


def test_a_program_without_variables_is_answered_too() -> None:
    none = np.empty(0, dtype=np.int64)
    empty = Program.of_entries(np.empty(0), none, none, np.empty(0), np.zeros(1), np.ones(1))
    assert empty.solve().objective == 0
    with pytest.raises(Infeasible):
        Program.of_entries(np.empty(0), none, none, np.empty(0), np.ones(1), np.ones(1)).solve()
