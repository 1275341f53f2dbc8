"""`eunomia reproduce harmony | learned-order | symphony-samples | pairs` on few and small workloads, to the end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia.learning.metis.slot_state import SlotState
from eunomia.learning.metis.slot_world import SlotRun
from eunomia.sweeps.worker import attempt
from eunomia_reproduction import (
    harmony,
    harmony_ablations,
    learned_order,
    metis,
    metis_rewards,
    pairs,
    worker,
)
from eunomia_reproduction.symphony import samples as symphony_samples
from eunomia_reproduction.table import Request

pytestmark = pytest.mark.slow


def request_of(folder: Path, reference: Path | None = None) -> Request:
    return Request(reference=reference, keep=folder, seeds=1, processes=1)


def test_harmony_is_compared_with_every_baseline_and_the_best_placement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(harmony.TRACES) >= 20
    monkeypatch.setattr(harmony, "TRACES", (1000, 1001))
    monkeypatch.setattr(harmony, "HOURS", dict.fromkeys(harmony.HOURS, (0.2, 0.4)))
    table = harmony.reproduce(request_of(tmp_path))
    named = {row.quantity for row in table.rows}
    others = ("load balancing", "Tetris", "LIF-Line", "LIF-Quad")
    assert {f"mean JCT over that of {other}" for other in others} <= named
    assert "over the best of all placements" in named
    assert all(row.measured is not None and row.measured > 0 for row in table.rows)
    assert any("give --reference DIR" in note for note in table.notes)


def test_the_learned_order_is_placed_between_fifo_and_srtf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, lines = np.random.default_rng(0), ["job_id,submitted_s,scale_factor,job_type,duration_s,tenant"]
    for k, run_s in enumerate(rng.exponential(3600, 150)):
        lines.append(f"{k},{600 * k},{2 ** (k % 4)},,{run_s + 1:.0f},t{k % 3}")
    (tmp_path / "jobs.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(learned_order, "TRACES", {"tiny": ("jobs.csv", {"format": "native"}, 0.0, 2.0, 4)})
    monkeypatch.setattr(learned_order, "LOADS", (1.2,))
    table = learned_order.reproduce(request_of(tmp_path, tmp_path))
    hours = {row.series: row.measured or 0.0 for row in table.rows if row.quantity == "mean JCT"}
    assert set(hours) == {f"tiny, {name}" for name in learned_order.POLICIES}
    assert hours["tiny, srtf"] < hours["tiny, learned_order"] < hours["tiny, fifo"]
    closed = next(row.measured for row in table.rows if row.quantity.startswith("part of the gap"))
    gap = hours["tiny, fifo"] - hours["tiny, srtf"]
    assert closed == pytest.approx((hours["tiny, fifo"] - hours["tiny, learned_order"]) / gap, abs=1e-2)


def test_symphony_and_its_twin_are_trained_in_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    assert symphony_samples.FEWEST >= 3 and symphony_samples.MOST == 400
    for name, value in {"MOST": 2, "EVERY": 1, "FEWEST": 2}.items():
        monkeypatch.setattr(symphony_samples, name, value)
    monkeypatch.setattr("eunomia_reproduction.symphony.training.JUDGED_TASKS", 6)
    monkeypatch.setattr("eunomia_reproduction.symphony.training.STEPS", 3)
    monkeypatch.setattr("eunomia_reproduction.symphony.training.JUDGED", 1)
    table = symphony_samples.reproduce(request_of(tmp_path))
    counted = [row for row in table.rows if row.quantity == "iterations to 30% loss"]
    assert {row.series for row in counted} == {
        f"{name}, {way}" for name in symphony_samples.NAMES for way in symphony_samples.WAYS
    }
    assert all(row.measured in (1.0, 2.0) for row in counted)
    ratios = [row for row in table.rows if row.published == symphony_samples.PUBLISHED]
    assert [row.series for row in ratios] == [f"black-box twin ÷ symphony, {way}" for way in symphony_samples.WAYS]


def test_a_training_of_harmony_shows_its_gain_and_the_mean_jct_of_each_trace_that_judges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    from eunomia.learning.harmony import training

    monkeypatch.setattr(training, "PLACEMENTS", 100)
    monkeypatch.setattr(training, "JUDGED", (1,))
    monkeypatch.setattr(training.HarmonyTraining, "default_steps", 4)
    monkeypatch.setattr(training.HarmonyTraining, "judge_every", 2)
    monkeypatch.setattr(harmony, "TRACES", (1000, 1001))
    monkeypatch.setitem(harmony_ablations.SCENARIO, "workload", {"generator": "poisson", "jobs": 6, "rate_per_hour": 3})
    harmony_ablations._with_reward_model.cache_clear()
    one, other = (harmony_ablations.show(("warm_start",), 0, rate, 1) for rate in (1e-5, 1e-2))
    harmony_ablations._with_reward_model.cache_clear()
    assert one["gain"] < 1 and len(one["jct"]) == len(other["jct"]) == 2 and min(one["jct"]) > 0
    assert one != other  # the rate is of the actor, which is trained after what both share


def test_metis_is_trained_under_both_rewards_and_compared_with_the_rule_that_it_starts_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    from eunomia.learning.metis import training

    monkeypatch.setattr(training, "JOBS", 3)
    monkeypatch.setattr(training, "JUDGED", 1)
    monkeypatch.setattr(metis_rewards, "STEPS", 1)
    monkeypatch.setattr(training.MetisTraining, "judge_every", 1)
    monkeypatch.setattr(metis, "JOBS", 4)
    monkeypatch.setattr(metis_rewards, "FEWEST", 2)

    def here(orders: Any, experiment: str, read: Any, tell: Any, request: Request) -> Any:
        for order in orders.values():
            file = str(tmp_path / order.name)
            attempt({"experiment": experiment, "run": order.task, "file": file}, worker.work)
        return {run: read(tmp_path / order.name) for run, order in orders.items()}, {}

    monkeypatch.setattr(metis_rewards, "make_all", here)
    table = metis_rewards.reproduce(replace(request_of(tmp_path), seeds=2))
    assert "to the end ÷ steepest, curves with plateaus" in {row.series for row in table.rows}
    ratios = [row for row in table.rows if row.quantity == "time to 90 % quality, ratio" and row.x != ""]
    assert [(row.series.split(" ÷ ")[0], row.x) for row in ratios] == [
        (f"trained for the {what}", seed)
        for what in ("time to 90 % quality", "decrease of the loss", "decrease of the loss, curves with plateaus")
        for seed in (0, 1)
    ]
    assert all((row.measured or 0.0) > 0.5 for row in ratios)


def test_a_trace_that_a_trained_network_never_ends_is_counted_and_left_out_of_the_ratios(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"step": 20, "quality": [2, null, 8], "completion": [3, null, 12]}')
    rule = SlotRun(time_to=np.full((3, 1), 4.0), completion=np.array([6.0]), makespan=6.0, rewards=(), decisions=())
    trained = metis_rewards._read(tmp_path / "run.json")
    rows = metis_rewards._trained(metis_rewards.Training("loss", True, 0), trained, [rule] * 3)
    found = {row.quantity: row.measured for row in rows}
    assert (found["best step"], found["traces that never end"]) == (20, 1)
    assert found["time to 90 % quality, ratio"] == found["completion time, ratio"] == 1.0  # half, and twice


def test_by_the_mean_decrease_to_its_end_a_job_on_its_plateau_is_served_before_a_nearly_converged_one() -> None:
    both = {"sizes": np.array([[0, 1]] * 2), "speed": np.array([[0.0, 1.0]] * 2), "last_step": np.ones(2, dtype=int)}
    state = SlotState(
        nodes=1, decrease=np.array([[0.0, 0.001], [0.0, 0.004]]), age=np.zeros(2), progress=np.array([0.3, 0.95]),
        held=np.zeros(2, dtype=int), work_left=np.array([10.0, 10.0]), **both,
    )  # fmt: skip
    assert metis_rewards.to_the_end(state).tolist() == [1, 0]
    assert metis.BASELINES["steepest"](state).tolist() == [0, 1]


def test_a_network_is_there_at_the_first_of_two_losses_within_30_percent() -> None:
    assert symphony_samples.iterations([0.2, 0.4, 0.3, 0.1, 0.9]) == 30
    assert symphony_samples.iterations([0.2, 0.4, 0.1]) == symphony_samples.MOST


def test_without_a_correction_learned_pairs_matches_as_the_estimates_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    gavel = Path(__file__).parents[2].parent / "shared" / "data" / "gavel"
    if not gavel.is_dir():
        pytest.skip("needs data/gavel")
    from eunomia.learning.pairs.training import PairsTraining

    assert pairs.FEWEST >= 20
    for name, value in {"FEWEST": 2, "JOBS": 8, "DRAWS": 2}.items():
        monkeypatch.setattr(pairs, name, value)
    two = {name: pairs.METHODS[name] for name in ("greedy by true rates", pairs.BASE)}
    monkeypatch.setattr(pairs, "METHODS", two)
    monkeypatch.setattr("eunomia.learning.pairs.training.DRAWS", 1)
    monkeypatch.setattr("eunomia.learning.pairs.training.JUDGED", 1)
    monkeypatch.setattr(PairsTraining, "default_steps", 0)
    table = pairs.reproduce(request_of(tmp_path, gavel))
    series = f"{pairs.LEARNED} ÷ {pairs.BASE}"
    assert [row.measured for row in table.rows if row.series == series] == [1.0, 1.0, 1.0]
