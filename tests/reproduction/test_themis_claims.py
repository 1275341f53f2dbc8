"""Themis against its rivals: what is played, and what the rows say of it."""

from __future__ import annotations

from typing import Any

import pytest

from eunomia.runs.simulation import simulate
from eunomia_reproduction import themis
from eunomia_reproduction.table import Request


def reported(worst: list[float]) -> list[dict[str, Any]]:
    return [
        {"rho_themis_max": rho, "rho_themis_mean": rho / 2, "app_jct_mean_s": 3600.0, "cost_usd": 10.0} for rho in worst
    ]


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
    worst = {"Themis": [1.0, 2.0], "SRTF": [1.5, 1.0], "SLAQ": [3.0, 3.0]}
    monkeypatch.setattr(themis, "POLICY", dict.fromkeys(worst, "fifo"))
    monkeypatch.setattr(
        themis, "simulate_many", lambda runs, **_: [one for name in worst for one in reported(worst[name])]
    )
    table = themis.w1(Request(seeds=2))
    row = {(row.series, row.quantity): row for row in table.rows}
    assert row["w1: Themis", "rho_themis_max"].measured == 1.5
    assert row["w1: Themis", "rho_themis_max"].published == 1.3
    ahead = row["w1: Themis not behind SRTF", "seeds"]
    assert (ahead.published, ahead.measured, ahead.within) == (2, 1, False)
    assert row["w1: Themis not behind SLAQ", "seeds"].within is True


def test_the_sweep_has_a_row_for_each_published_point_and_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(themis, "simulate_many", lambda runs, **_: reported([4.0] * len(runs)))
    table = themis.sweep(Request())
    shown = {(row.series, row.x): row.published for row in table.rows if row.published is not None}
    assert shown == {
        (f"w1, leases of {lease} s", f): rho for lease, by_f in themis.BY_F.items() for f, rho in by_f.items()
    }
    assert len(table.rows) == 2 * sum(map(len, themis.ASKED.values()))
    (figure,) = table.figures
    assert [curve.published for curve in figure.curves] == [True, False, False, True, False, False]
