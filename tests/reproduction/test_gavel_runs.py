"""The runs behind Gavel's figures: each is made once, and one that fails takes no other with it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from eunomia.setup.run_config import set_up
from eunomia_reproduction.gavel import batch, cost_figures, curves, published_means, runs, seed_means, sharing
from eunomia_reproduction.gavel.figure_runs import FigurePoint, FigureRun, throughputs_in
from eunomia_reproduction.gavel.reference import THROUGHPUTS
from eunomia_reproduction.gavel.runs import Runs, measure
from eunomia_reproduction.table import FigureTable, Request

FOLDER = Path(os.environ.get("EUNOMIA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "gavel"
with_data = pytest.mark.skipif(not (FOLDER / THROUGHPUTS).is_file(), reason=f"there are no throughputs in {FOLDER}")
SMALL = FigureRun(policy="gavel:isolated", rate=math.inf, jobs=4, window=None)
SHOWN = FigurePoint(
    jct_h=2.0,
    makespan_h=8.0,
    cost_usd=1.0,
    jct_s={"0": 7200.0},
    jct_by_weight_h={"1": 2.0, "5": 1.0},
    dropped=0,
    late=0,
    rounds=1,
    leases_renewed=0.5,
    cpu_s=0.0,
)


@pytest.mark.parametrize(
    "cell", [SMALL, FigureRun(policy="las", rate=4.0, multi=True, mechanism=(("name", "leases"),))]
)
def test_a_cell_survives_the_way_to_a_worker(cell: FigureRun) -> None:
    assert FigureRun.of_dict(cell.as_dict()) == cell


@with_data
def test_a_run_is_made_once_and_one_that_fails_leaves_the_others(tmp_path: Path) -> None:
    reported: list[str] = []
    request = Request(reference=FOLDER, keep=tmp_path / "runs", tell=reported.append)
    failing = replace(SMALL, policy="gavel:unknown")
    first = measure([SMALL, failing, SMALL], request)
    assert list(first.shown) == [SMALL]
    assert "unknown" in first.failed[failing]
    (row,) = first.failures()
    assert row.within is False
    assert "unknown" in row.note

    reported.clear()
    assert measure([SMALL], request) == Runs(shown=first.shown, failed={})
    assert reported == ["1 of 1 runs are there already"]
    other = measure([replace(SMALL, seed=1)], request)
    assert other.shown[replace(SMALL, seed=1)].jct_s != first.shown[SMALL].jct_s


@with_data
def test_a_cell_is_set_up_from_a_folder_given_by_a_relative_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER.parent)
    throughputs = throughputs_in(Request(reference=Path(FOLDER.name)))
    assert len(set_up(SMALL.scenario(throughputs)).jobs) == SMALL.jobs


@pytest.mark.parametrize(
    ("experiment", "way", "published"),
    [
        (curves.fig8, curves.OTHER_PAIRS[1], {25.65}),
        (curves.fig10, curves.ASKED_OFTEN[0], {23.38, 30.47, 33.9}),
        (
            curves.fig10,
            curves.ASKED_OFTEN[1],
            {20.43, 23.38, 27.93, 30.47, 33.9, 41.56, 43.05, 52.19, 64.38, 64.46, 85.54},
        ),
    ],
)
def test_some_points_are_run_in_another_way_too(
    experiment: Callable[[Request], FigureTable],
    way: curves.Again,
    published: set[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def doubled(cells: list[FigureRun], request: Request) -> Runs:
        other = {cell for cell in cells if replace(cell, **way.changes) == cell}
        return Runs(shown={cell: replace(SHOWN, jct_h=4.0 if cell in other else 2.0) for cell in cells}, failed={})

    monkeypatch.setattr(curves, "measure", doubled)
    rows = [row for row in experiment(Request()).rows if row.unit == "h"]
    other = [row for row in rows if row.measured == 4.0]
    assert {(row.series.removesuffix(f", {way.how}"), row.x) for row in other} == set(way.points)
    assert all((row.measured == 4.0) == row.series.endswith(f", {way.how}") for row in rows)
    assert {row.published for row in other} == published


@pytest.mark.parametrize("experiment", [curves.fig8, curves.fig9])
def test_max_min_fairness_with_gangs_ends_where_the_published_solver_does(
    experiment: Callable[[Request], FigureTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[FigureRun] = []

    def noted(cells: list[FigureRun], request: Request) -> Runs:
        asked.extend(cells)
        return Runs(shown=dict.fromkeys(cells, SHOWN), failed={})

    monkeypatch.setattr(curves, "measure", noted)
    experiment(Request())
    exact = {cell.policy for cell in asked if cell.as_solved}
    gangs = any(cell.multi for cell in asked)
    assert exact == ({"gavel:max_min_fairness", "gavel:max_min_fairness_perf"} if gangs else set())
    assert all(cell.as_solved for cell in asked if cell.policy in exact and cell.as_published)


def test_the_last_point_of_priorities_is_also_a_mean_of_two_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_seed(cells: list[FigureRun], request: Request) -> Runs:
        shown = {cell: replace(SHOWN, jct_by_weight_h={"1": 1.0 + cell.seed, "5": 5.0 + cell.seed}) for cell in cells}
        return Runs(shown=shown, failed={})

    monkeypatch.setattr(batch, "measure", by_seed)
    fewer = {row.series: row for row in batch.priorities(Request()).rows if row.series.endswith("seeds 0 and 1")}
    assert {name: (row.x, row.measured) for name, row in fewer.items()} == {
        "aware, weight 5, seeds 0 and 1": (2.4, 5.5),
        "aware, weight 1, seeds 0 and 1": (2.4, 1.5),
    }


@pytest.mark.parametrize(
    "experiment",
    [curves.fig8, curves.fig10, curves.cdf, batch.makespan, batch.priorities, sharing.ftf, cost_figures.cost],
)
def test_a_figure_whose_run_failed_says_so_and_is_drawn_without_it(
    experiment: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(cells: list[FigureRun], request: Request) -> Runs:
        wanted = list(dict.fromkeys(cells))
        return Runs(shown=dict.fromkeys(wanted[1:], SHOWN), failed={wanted[0]: "it stopped"})

    for module in (curves, batch, sharing, cost_figures):
        monkeypatch.setattr(module, "measure", half)
    table = experiment(Request(seeds=2))  # type: ignore[operator]
    (failed,) = (row for row in table.rows if row.quantity == "runs that failed")
    assert failed in table.outside
    assert failed.note == "it stopped"
    for figure in table.figures:
        assert all(len(curve.x) == len(curve.y) for curve in figure.curves)
        assert set(figure.pictures()) == {"svg", "png"}


def test_what_a_run_showed_survives_its_file() -> None:
    assert FigurePoint(**asdict(SHOWN)) == SHOWN
    assert runs.over(None, 2.0) is None
    assert runs.over(3.0, None) is None
    assert runs.over(3.0, 2.0) == 1.5


def test_headline_points_are_means_of_three_seeds_and_gains_are_of_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs take 1, 2 and 6 h under the three seeds, ten times as long under the agnostic policy: 30 ÷ 3."""

    def by_seed(cells: list[FigureRun], request: Request) -> Runs:
        hours = {0: 1.0, 1: 2.0, 2: 6.0}
        slow = {cell: 10.0 if cell.policy == "gavel:max_min_fairness" else 1.0 for cell in cells}
        return Runs(shown={cell: replace(SHOWN, jct_h=hours[cell.seed] * slow[cell]) for cell in cells}, failed={})

    monkeypatch.setattr(seed_means, "measure", by_seed)
    rows = seed_means.means(Request()).rows
    assert {row.measured for row in rows if row.unit == "h"} == {3.0, 30.0}
    gains = {row.series: (round(row.published or 0, 2), row.measured) for row in rows if row.unit == "×"}
    assert gains == {
        "LAS, agnostic ÷ Gavel": (3.46, 10.0),
        "LAS, agnostic ÷ Gavel, space sharing": (4.78, 10.0),
        "LAS, agnostic ÷ Gavel, gangs": (1.4, 10.0),
    }


def test_every_published_mean_belongs_to_a_point_of_seed_0() -> None:
    for curve in (*published_means.SINGLE_CURVES.values(), *published_means.MULTI_CURVES.values()):
        assert set(published_means.means_of(curve)) <= set(curve.known) | {2.2, 5.6, 6.0}, curve.name
