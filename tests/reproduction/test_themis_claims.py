"""Themis against its rivals: what is played, and what the rows say of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from eunomia.runs.simulation import simulate
from eunomia_reproduction import themis
from eunomia_reproduction.table import Request
from eunomia_reproduction.themis import Played, Shown


def played(worst: dict[tuple[str, int], float]) -> Callable[..., tuple[dict[Played, Shown], dict[Played, str]]]:
    """Return what stands in for the runs: two apps each, the worse one with this ρ by policy and seed, else 4."""

    def made(orders: dict[Played, Any], *_: object) -> tuple[dict[Played, Shown], dict[Played, str]]:
        rho = {run: worst.get((run.policy, run.seed), 4.0) for run in orders}
        return {run: Shown([3600.0, 7200.0], [value / 2, value], 10.0) for run, value in rho.items()}, {}

    return made


@pytest.mark.parametrize("work", ["w1", "w2"])
def test_every_app_of_a_small_workload_finishes_under_themis(work: str) -> None:
    result = simulate(themis.scenario_of(work, "themis", seed=1, jobs=150))
    summary = result.summary
    assert summary["jobs_unfinished"] == summary["jobs_failed"] == summary["jobs_rejected"] == 0
    assert summary["apps_finished"] == len(set(result.jobs["app"].tolist())) > 1
    assert summary["jobs_cancelled"] > 0


def test_the_machines_are_256_accelerators_of_one_type() -> None:
    scenario = themis.scenario_of("w1", "themis", seed=0)
    assert sum(group.count * group.accelerators for group in scenario.cluster.nodes) == 256
    assert scenario.cluster.types == ("gpu",)


def test_rows_hold_means_and_under_how_many_seeds_themis_is_not_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    worst = {("themis", 0): 1.0, ("themis", 1): 2.0, ("srtf", 0): 1.5, ("srtf", 1): 1.0}
    monkeypatch.setattr(themis, "POLICY", {"Themis": "themis", "SRTF": "srtf", "SLAQ": "slaq"})
    monkeypatch.setattr(themis, "make_all", played(worst))
    table = themis.w1(Request(seeds=2))
    row = {(row.series, row.quantity): row for row in table.rows}
    assert row["w1: Themis", "rho_themis_max"].measured == 1.5
    assert row["w1: Themis", "rho_themis_max"].published == 1.3
    assert row["w1: SRTF, at every event", "rho_themis_max"].published is None  # the paper's rivals have leases
    ahead = row["w1: Themis not behind SRTF", "seeds"]
    assert (ahead.published, ahead.measured, ahead.within) == (2, 1, False)
    assert row["w1: Themis not behind SLAQ", "seeds"].within is True


def test_with_one_ideal_time_for_all_policies_only_the_end_of_an_app_counts() -> None:
    equal = Shown([100.0, 200.0], [1.0, 2.0], 0.0)  # T_id is 100 s for both
    summary = themis.summary_of(Shown([150.0, 50.0], [9.0, 9.0], 1.0), equal)
    assert (summary["rho_fixed_max"], summary["rho_fixed_mean"]) == (1.5, 1.0)
    assert summary["rho_themis_max"] == 9.0


def test_an_app_that_did_not_end_has_no_part_in_means() -> None:
    summary = themis.summary_of(Shown([150.0, math.nan], [1.0, math.nan], 1.0), Shown([100.0, 100.0], [1.0, 1.0], 0.0))
    assert (summary["rho_fixed_max"], summary["app_jct_mean_s"]) == (1.5, 150.0)


def test_rivals_run_under_the_leases_of_themis_and_at_every_event() -> None:
    leased = themis.scenario_of("w2", "las", seed=0, lease_s=1200.0).mechanism
    assert leased is not None
    assert (leased.name, leased.length_s, leased.aligned, leased.recall) == ("leases", 1200.0, False, False)
    assert themis.scenario_of("w2", "las", seed=0).mechanism is None


def test_the_sweep_has_a_row_for_each_published_point_and_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(themis, "make_all", played({}))
    table = themis.sweep(Request())
    shown = {(row.series, row.x): row.published for row in table.rows if row.published is not None}
    assert shown == {
        (f"w1, leases of {lease} s", f): rho for lease, by_f in themis.BY_F.items() for f, rho in by_f.items()
    }
    assert len(table.rows) == 3 * sum(map(len, themis.ASKED.values()))
    (figure,) = table.figures
    assert [curve.published for curve in figure.curves] == [True, False, False, True, False, False]
