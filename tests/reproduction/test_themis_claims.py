"""Themis against its rivals: what is played, and what the rows say of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from eunomia.runs.simulation import simulate
from eunomia_reproduction import themis, themis_more, themis_runs
from eunomia_reproduction.table import Request
from eunomia_reproduction.themis_runs import Played, Shown, scenario_of

Made = Callable[..., tuple[dict[Played, Shown], dict[Played, str]]]


def made(worst: dict[tuple[str, int], float]) -> Made:
    """Return what stands in for the runs: two apps each, the worse one with this ρ by policy and seed, else 4."""

    def make(orders: dict[Played, Any], *_: object) -> tuple[dict[Played, Shown], dict[Played, str]]:
        rho = {run: worst.get((run.policy, run.seed), 4.0) for run in orders}
        return {run: shown(value) for run, value in rho.items()}, {}

    return make


def shown(worst: float) -> Shown:
    """Return a run of three apps whose worst ρ is that by `share`, twice that by `work`."""
    by_share = [worst / 2, worst, 1.0]
    rho = {"share": by_share, "work": [2 * one for one in by_share], "longest": [0.1] * 3}
    return Shown([3600.0, 7200.0, 60.0], rho, 10.0, 0.9, 1.5)


@pytest.mark.parametrize("work", ["w1", "w2"])
@pytest.mark.parametrize("world", ["rigid", "elastic"])
def test_every_app_of_a_small_workload_finishes_under_themis(work: str, world: str) -> None:
    result = simulate(scenario_of(Played(work, "themis", 1, world=world, jobs=150)))
    summary = result.summary
    assert summary["jobs_unfinished"] == summary["jobs_failed"] == summary["jobs_rejected"] == 0
    assert summary["apps_finished"] == len(set(result.jobs["app"].tolist())) > 1
    assert summary["jobs_cancelled"] > 0


def test_the_machines_are_256_accelerators_of_one_type() -> None:
    scenario = scenario_of(Played("w1", "themis", 0))
    assert sum(group.count * group.accelerators for group in scenario.cluster.nodes) == 256
    assert scenario.cluster.types == ("gpu",)


def test_a_run_keeps_its_rho_by_each_reading_and_its_placement() -> None:
    one = Shown(**themis_runs.show(**Played("w2", "themis", 0, jobs=150)._asdict()))
    assert set(one.rho) == {"share", "work", "longest"}
    assert len(one.jct_s) == len(one.rho["share"]) > 1
    assert 0 < one.placement <= 1
    assert max(one.rho["longest"]) <= max(one.rho["share"]) + 1e-9  # N times the longest is never less


def test_every_policy_gives_a_trial_what_is_left_in_the_elastic_world_and_all_or_nothing_in_the_rigid_one() -> None:
    spelt = [
        themis_runs.in_world(policy, "elastic") for policy in ("themis", "srtf?measure=service", "locality", "slaq")
    ]
    assert spelt == ["themis", "shrinking?inner=srtf?measure=service", "locality?shrink=true", "slaq"]
    assert themis_runs.in_world("srtf", "rigid") == "srtf"
    assert scenario_of(Played("w1", "srtf", 0)).workload.elastic == "off"
    assert scenario_of(Played("w1", spelt[1], 0, world="elastic")).workload.elastic == "halves"


def test_rows_hold_means_and_under_how_many_seeds_themis_is_not_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    worst = {("themis", 0): 1.0, ("themis", 1): 2.0, ("srtf", 0): 1.5, ("srtf", 1): 1.0}
    monkeypatch.setattr(themis, "RIVALS", {"SRTF": "srtf", "SLAQ": "slaq"})
    monkeypatch.setattr(themis_runs, "make_all", made(worst))
    table = themis.w1(Request(seeds=2))
    row = {(row.series, row.x, row.quantity): row for row in table.rows}
    assert row["w1, rigid: Themis", "", "rho_share_max"].measured == 1.5
    assert row["w1, rigid: Themis", "", "rho_share_max"].published == 1.3
    assert row["w1, rigid: Themis", "", "rho_work_max"].measured == 3.0
    assert row["w1, rigid: Themis, ideal=work", "", "rho_share_max"].measured == 4.0
    assert row["w1, elastic: DRF", "", "rho_share_max"].published is None
    ahead = row["w1, rigid: Themis not behind SRTF", "share", "seeds"]
    assert (ahead.published, ahead.measured, ahead.within) == (2, 1, False)
    assert row["w1, rigid: Themis not behind SLAQ", "share", "seeds"].within is True
    assert row["w1, elastic: Themis not behind SRTF", "work", "seeds"].within is True  # all are 8 there
    assert [figure.name for figure in table.figures] == ["themis-w1-rigid", "themis-w1-elastic"]


def test_who_lost_by_sharing_is_counted_and_by_how_much() -> None:
    summary = themis_runs.summary_of(shown(3.0))  # by share 1.5, 3 and 1
    assert (summary["apps_behind"], summary["apps_behind_by"]) == (2, pytest.approx((0.5 + 2.0) / 2))
    assert (summary["rho_share_max"], summary["rho_work_max"]) == (3.0, 6.0)


def test_an_app_that_did_not_end_has_no_part_in_means() -> None:
    rho = {ideal: [1.0, math.nan] for ideal in ("share", "work", "longest")}
    summary = themis_runs.summary_of(Shown([150.0, math.nan], rho, 1.0, 0.9, 1.0))
    assert (summary["rho_share_max"], summary["app_jct_mean_s"], summary["apps_behind"]) == (1.0, 150.0, 0)


def test_rivals_run_under_the_leases_of_themis() -> None:
    leased = scenario_of(Played("w2", "las", 0, 1200.0)).mechanism
    assert leased is not None
    assert (leased.name, leased.length_s, leased.aligned, leased.recall) == ("leases", 1200.0, False, False)
    assert scenario_of(Played("w2", "las", 0)).mechanism is None


def test_the_sweep_has_a_row_for_each_published_point_on_both_workloads_and_a_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(themis_runs, "make_all", made({}))
    table = themis.sweep(Request())
    published = {(row.series, row.x): row.published for row in table.rows if row.published is not None}
    assert published == {
        (f"{work}: leases of 1200 s", f): rho for work in ("w1", "w2") for f, rho in themis.BY_F.items()
    }
    (figure,) = table.figures
    assert [curve.published for curve in figure.curves] == [True, False, False]


def test_a_liar_is_compared_with_itself_and_every_policy_has_network_bound_apps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lie = "themis?liar=app-2&lie=3.0"
    seen: list[Played] = []

    def make(orders: dict[Played, Any], *_: object) -> tuple[dict[Played, Shown], dict[Played, str]]:
        seen.extend(orders)
        return {run: shown(1.0)._replace(jct_s=[1.0, 1.0, 30.0 if run.policy == lie else 20.0]) for run in orders}, {}

    monkeypatch.setattr(themis_runs, "make_all", make)
    rows = {(row.series, row.x, row.quantity): row.measured for row in themis_more.more(Request()).rows}
    name = "time of the liar ÷ its honest time"
    assert rows["liar: empty=finite", 3.0, name] == 1.5
    assert rows["liar: empty=infinite, lease", 10.0, name] == 1.0
    bound = {(run.policy, run.network_bound) for run in seen if run.network_bound is not None}
    assert bound == {(policy, share) for policy, _ in themis_more.POLICIES.values() for share in (0.0, 0.5, 1.0)}
    assert all(scenario_of(run) for run in seen)
