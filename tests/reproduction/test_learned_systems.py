"""`eunomia reproduce metis | symphony | bo`: the rows that say which goal was reached, on few and small workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from eunomia.learning.metis.baselines import steepest
from eunomia.learning.metis.slot_state import SlotState
from eunomia.learning.metis.slot_world import SlotRun, draw_jobs
from eunomia_reproduction import bayesian, harmony_ablations, metis
from eunomia_reproduction.symphony import decisions as symphony_decisions
from eunomia_reproduction.symphony import even as symphony_even
from eunomia_reproduction.symphony import experiment as symphony
from eunomia_reproduction.table import FigureTable, Request


@pytest.fixture
def reproduce(tmp_path: Path) -> Callable[[ModuleType, int], FigureTable]:
    """Return a call of an experiment with some seeds."""
    return lambda module, seeds: module.reproduce(
        Request(reference=None, keep=tmp_path, seeds=seeds, processes=1, tell=lambda line: None)
    )


def intervals(table: FigureTable, system: str) -> dict[str, list[float]]:
    """Return low end, ratio and high end of each first quotient of a system."""
    found: dict[str, list[float]] = {}
    for row in table.rows:
        if row.measured is not None and row.series.startswith(f"{system} ÷ "):
            found.setdefault(row.series, []).append(row.measured)
    return {name: [ends[1], ends[0], ends[2]] for name, ends in found.items()}


def test_metis_is_compared_with_every_baseline_by_a_paired_interval(
    reproduce: Callable[[ModuleType, int], FigureTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert metis.FEWEST >= 20
    monkeypatch.setattr(metis, "JOBS", 5)
    monkeypatch.setattr(metis, "FEWEST", 3)
    found = intervals(reproduce(metis, 1), "metis")
    assert {name.partition(" ÷ ")[2].partition(",")[0] for name in found} == {
        "fifo", "drf", "srtf", "optimus", "slaq", "steepest", "exhaustive"
    }  # fmt: skip
    assert all(low <= ratio <= high for low, ratio, high in found.values())


def test_the_mean_loss_is_that_of_the_jobs_that_have_arrived() -> None:
    jobs = draw_jobs(np.random.default_rng(0), jobs=2, nodes=4, load=1.0)
    jobs = replace(jobs, arrival=np.array([0, 2]))
    run = SlotRun(
        time_to=np.zeros((3, 2)), completion=np.zeros(2), makespan=4.0, rewards=(0.5, 0.5, 0.25, 0.75), decisions=()
    )
    assert metis.mean_loss(jobs, run) == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert metis.discounted(run) == pytest.approx(sum(reward * 0.95**k for k, reward in enumerate(run.rewards)))


def test_the_rule_towards_90_percent_serves_jobs_beyond_it_last() -> None:
    """Two jobs gain alike from the one node; the first is at 95 % of its quality."""
    ladder = np.array([[0, 1], [0, 1]])
    state = SlotState(
        nodes=1, sizes=ladder, speed=ladder.astype(float), decrease=np.array([[0.0, 0.04], [0.0, 0.02]]),
        last_step=np.ones(2, dtype=np.int64), age=np.zeros(2), progress=np.array([0.95, 0.5]),
        held=np.zeros(2, dtype=np.int64), work_left=np.ones(2),
    )  # fmt: skip
    assert steepest(state).tolist() == [1, 0]
    assert metis.towards_quality(state).tolist() == [0, 1]


def test_symphony_is_compared_with_its_baselines_and_the_published_ratios(
    reproduce: Callable[[ModuleType, int], FigureTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert symphony.FEWEST >= 20
    monkeypatch.setattr(symphony, "TASKS", 10)
    monkeypatch.setattr(symphony, "FEWEST", 3)
    table = reproduce(symphony, 1)
    found = intervals(table, "symphony")
    assert set(found) == {f"symphony ÷ {other}" for other in ("sparrow", "graphene", "paragon", "oracle")}
    assert all(low <= ratio <= high for low, ratio, high in found.values())
    published = {(row.series, row.published) for row in table.rows if row.published is not None}
    assert {("symphony ÷ paragon", 0.68), ("symphony ÷ oracle", 1.06)} <= published


def test_on_the_even_machine_schedulers_without_loads_are_compared_with_the_oracle_by_workload(
    reproduce: Callable[[ModuleType, int], FigureTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert symphony_even.FEWEST >= 20
    monkeypatch.setattr(symphony_even, "TASKS", 10)
    monkeypatch.setattr(symphony_even, "FEWEST", 3)
    rows = {(row.series, row.quantity): row.measured or 0.0 for row in reproduce(symphony_even, 1).rows}
    for other in ("graphene", "paragon"):
        mean = "mean time of a kernel, ratio"
        low, ratio, high = (rows[f"{other} ÷ oracle", mean + end] for end in (", low", "", ", high"))
        assert low <= ratio <= high
        half = np.log(high / ratio) / 4.303 * 3**0.5  # Student's t of three workloads
        assert rows[f"{other} ÷ oracle", f"{mean}, deviation of its logarithm"] == pytest.approx(half, abs=2e-3)


def test_the_search_has_a_row_for_every_method_and_the_published_share_of_seeds(
    reproduce: Callable[[ModuleType, int], FigureTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(bayesian.OBJECTIVES) >= 6
    monkeypatch.setattr(bayesian, "OBJECTIVES", {"parameter servers": bayesian.OBJECTIVES["parameter servers"]})
    table = reproduce(bayesian, 2)
    means = {row.series: row.measured or 0 for row in table.rows if row.quantity == "best found ÷ optimum, mean"}
    assert set(means) == {"gp-ei", "gp-lcb", "rf-ei", "rf-lcb", "random", "grid"} and min(means.values()) >= 1
    shares = [row for row in table.rows if row.quantity.startswith("share of seeds")]
    assert {row.published: row.within for row in shares} == {0.95: None, 0.56: None}  # two seeds say nothing of a share
    best, level = (row for row in table.rows if row.quantity.startswith("objectives in which"))
    assert (best.published, best.within) == (1, best.measured == 1)
    assert level.measured == 1  # no interval of two seeds is above 1
    against = {row.quantity: row.measured or 0 for row in table.rows if row.quantity.startswith("best found ÷ that of")}
    assert len(against) == 3 * (5 + 1)  # five methods, and the best of the other pairs once more
    means_only = [name for name in against if name.endswith("mean")]
    assert all(against[f"{name}, low"] <= against[name] <= against[f"{name}, high"] for name in means_only)


def test_symphony_is_compared_with_graphene_when_decisions_take_time(
    reproduce: Callable[[ModuleType, int], FigureTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(symphony_decisions, "TASKS", 6)
    monkeypatch.setattr(symphony_decisions, "FEWEST", 2)
    monkeypatch.setattr(symphony_decisions, "CASES", symphony_decisions.CASES[:2])
    table = reproduce(symphony_decisions, 1)
    ratios = [row for row in table.rows if row.quantity == "median time of a kernel, ratio"]
    medians = [row.measured or 0.0 for row in ratios if row.series.startswith("symphony ÷ graphene")]
    assert len(medians) == len(symphony_decisions.CASES)
    assert medians[1] > medians[0]  # decisions that take 4 s cost more than those that take 0.4 s


def test_the_rate_of_harmonys_actor_is_chosen_on_traces_that_do_not_judge(
    reproduce: Callable[[ModuleType, int], FigureTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, fast = harmony_ablations.RATES

    def trained(
        runs: Iterable[harmony_ablations.Training], request: Request
    ) -> tuple[dict[harmony_ablations.Training, harmony_ablations.Trained], dict[str, str]]:
        found = {
            run: harmony_ablations.Trained(*((0.2, (30.0 + run.seed,) * 2) if run.rate == slow else (0.1, (10.0,) * 2)))
            for run in runs
        }  # gain, and mean JCTs
        return found, {}

    monkeypatch.setattr("eunomia_reproduction.harmony.TRACES", (1000, 1001))
    monkeypatch.setattr(harmony_ablations, "trainable_class", lambda name: None)
    monkeypatch.setattr(harmony_ablations, "_trained", trained)
    table = reproduce(harmony_ablations, 2)
    found = {(row.series, row.x): row.measured for row in table.rows if row.quantity.startswith("mean JCT")}
    assert found[f"{harmony_ablations.PUBLISHED}, rate {fast:g}", 0] == pytest.approx(
        (found[f"{harmony_ablations.PUBLISHED}, rate {slow:g}", 0] or 0.0) / 3, abs=1e-3
    )  # judged better, and not chosen
    for variant in harmony_ablations.VARIANTS:
        assert found[variant, 0] == found[f"{harmony_ablations.PUBLISHED}, rate {slow:g}", 0]
        assert (found[variant, 1] or 0.0) > (found[variant, 0] or 0.0)
