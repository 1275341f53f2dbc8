"""The learned order: the history of tenants, the guard, and the shipped model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.learning.model_file import Feature
from eunomia.learning.order.features import (
    FEATURES,
    PRIOR_LOG,
    SEEN_RATE,
    SEEN_SERVICE,
    TenantHistory,
    job_features,
    prior_mean,
)
from eunomia.learning.order.policy import LearnedOrder
from eunomia.learning.perceptron import Perceptron
from eunomia.learning.shipped import load_model
from eunomia.learning.training import train
from eunomia.model import elementary
from eunomia.model.tenants import Tenants
from eunomia.model.view import View
from eunomia.scenario import scenario_from_dict

NEW = {SEEN_SERVICE: -1.0, SEEN_RATE: 0.0}


def view_of(
    at: float, service: list[float], *, run_time: list[float] | None = None, memory: dict[str, object] | None = None,
    size: int = 2, running: bool = True,
) -> View:  # fmt: skip
    """Return jobs of one tenant on one type."""
    count = len(service)
    columns = {
        "scale_factor": np.full(count, size), "throughput": np.ones((count, 1)), "capacity": np.array([2.0]),
        "on_type": np.full(count, 0 if running else -1), "running": np.full(count, running),
        "service": np.array(service),
        "run_time": np.array(run_time or service), "submitted": np.zeros(count),
        "tenant": np.zeros(count, dtype=np.int64), "tenants": Tenants.of(["a"]),
    }  # fmt: skip
    fresh = {name: np.full(count, value) for name, value in NEW.items()}
    return View(at=at, types=("v100",), jobs=count, columns=columns, memory={**fresh, **(memory or {})})


def remembered(before: View, rows: list[int]) -> dict[str, object]:
    """Return the memory of the jobs that stay, as the core hands it over."""
    kept = TenantHistory.at(before).memory(before)
    return {name: value[rows] if name in NEW else value for name, value in kept.items()}


def test_a_job_that_is_gone_has_finished_with_the_service_up_to_its_end() -> None:
    """Two gangs of 2 with 100 and 40 accelerator-seconds at time 50; the first is gone at 60: 100 + 2 · 10."""
    before = view_of(50.0, [100.0, 40.0])
    history = TenantHistory.at(view_of(60.0, [60.0], memory=remembered(before, [1])))
    assert history.finished.tolist() == [1]
    assert history.log_service.tolist() == pytest.approx([elementary.log1p(120.0)])


def test_jobs_that_stay_or_come_leave_the_history_as_it_is() -> None:
    before = view_of(50.0, [100.0, 40.0])
    memory = remembered(before, [0, 1])
    memory[SEEN_SERVICE] = np.append(memory[SEEN_SERVICE], -1.0)
    memory[SEEN_RATE] = np.append(memory[SEEN_RATE], 0.0)
    history = TenantHistory.at(view_of(60.0, [120.0, 60.0, 0.0], memory=memory))
    assert history.finished.tolist() == history.log_service.tolist() == [0]


def test_a_new_tenant_has_the_prior_and_a_known_one_its_own_mean() -> None:
    found = prior_mean(np.array([0.0, 1e6]), np.array([0.0, 3e6]))
    assert found == pytest.approx([PRIOR_LOG, 3.0], abs=1e-4)


def test_the_time_of_day_is_the_distance_from_midnight() -> None:
    at = [
        job_features(np.zeros(1), np.ones(1), np.zeros(1), np.zeros(1), np.zeros(1), 3600.0 * h)[0, 5] for h in (1, 23)
    ]
    assert at[0] == at[1] == (1 - FEATURES[5].mean) / FEATURES[5].scale


def test_jobs_that_have_run_long_are_behind_new_ones() -> None:
    order = LearnedOrder().decide(view_of(2e5, [0.0, 1e5], run_time=[0.0, 5e4], running=False))
    assert order.rows.job.tolist() == [0, 1]


@pytest.mark.parametrize("weight", [np.nan, 1e9])
def test_keys_that_no_job_can_have_are_answered_with_the_order_of_las(weight: float) -> None:
    policy = LearnedOrder()
    broken = Perceptron(policy.network.weights, (*policy.network.biases[:-1], np.array([weight])))
    object.__setattr__(policy, "network", broken)
    found = policy.decide(view_of(2e5, [9000.0, 0.0, 3700.0]))
    assert found.rows.job.tolist() == [1, 2, 0]
    assert float(found.memory["guarded"]) == 1


def test_jobs_with_nearly_equal_keys_do_not_preempt_each_other() -> None:
    view = view_of(1e4, [2.0, 0.0], run_time=[1.0, 0.0])
    waits = replace(view, columns={**view.columns, "running": np.array([False, True])})
    assert LearnedOrder(step=50.0).decide(waits).rows.job.tolist() == [1, 0]


def test_a_model_of_other_features_is_refused_by_name() -> None:
    model = load_model("", "order")
    other = replace(model, header=replace(model.header, features=(Feature(name="duration"), *FEATURES[1:])))
    with pytest.raises(ValueError, match="'log_run_time'"):
        other.check_features(FEATURES)


def test_a_resumed_training_ends_with_the_bytes_of_one_without_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    from eunomia.learning.order.training import OrderTraining

    scenario = scenario_from_dict(
        {"cluster": {"accelerators": {"v100": 64}}, "workload": {"generator": "philly-like", "jobs": 600}}, tmp_path
    )
    monkeypatch.setattr(OrderTraining, "judge_every", 3)
    train("order", scenario, tmp_path / "whole.safetensors", steps=9)
    plain = OrderTraining.train

    def interrupted(self: OrderTraining, step: int) -> None:
        if step == 7:
            raise KeyboardInterrupt
        plain(self, step)

    monkeypatch.setattr(OrderTraining, "train", interrupted)
    assert train("order", scenario, tmp_path / "m.safetensors", steps=9).interrupted
    monkeypatch.setattr(OrderTraining, "train", plain)
    train("order", scenario, tmp_path / "m.safetensors", steps=9, resume=True)
    assert (tmp_path / "m.safetensors").read_bytes() == (tmp_path / "whole.safetensors").read_bytes()


@pytest.mark.parametrize(("jobs", "known", "count"), [(499, "90,", "499 of 499"), (600, ",100", "0 of 600")])
def test_a_trace_that_it_cannot_learn_from_is_refused_and_nothing_is_written(
    jobs: int, known: str, count: str, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    lines = [
        "job_id,job_type,submitted_s,scale_factor,duration_s,total_steps",
        *(f"{k},,{60 * k},1,{known}" for k in range(jobs)),
    ]
    (tmp_path / "jobs.csv").write_text("\n".join(lines))
    found = scenario_from_dict({"cluster": {"accelerators": {"v100": 64}}, "workload": {"trace": "jobs.csv"}}, tmp_path)
    with pytest.raises(InvalidInput, match=f"durations of at least 500 jobs, and {count} have one"):
        train("order", found, tmp_path / "m.safetensors", steps=1)
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.csv"]


@pytest.mark.parametrize("parameters", [{"step": 0.0}, {"ask_s": np.inf}, {"size_weight": -1.0}])
def test_a_wrong_parameter_is_refused(parameters: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(parameters))):
        LearnedOrder(**parameters)  # type: ignore[arg-type]


def test_a_missing_model_is_refused_with_its_path() -> None:
    with pytest.raises(ValueError, match=r"gone\.safetensors"):
        LearnedOrder(model="gone.safetensors")


def test_an_example_has_no_feature_that_gives_the_duration_away() -> None:
    """The age of an example must not grow with what is left of the job."""
    pytest.importorskip("torch", reason="training needs torch")
    from eunomia.learning.order.training import examples
    from eunomia.traces.table import trace_of

    rng = np.random.default_rng(0)
    count = 4000
    trace = trace_of(
        "x", [str(m) for m in range(count)], np.arange(count) * 60.0, np.ones(count, dtype=np.int64),
        duration_s=np.exp(rng.normal(7, 2, count)),
    )  # fmt: skip
    x, y = examples(trace, rng)
    waiting = x[:count]
    assert abs(np.corrcoef(waiting[:, 4], y[:count])[0, 1]) < 0.05
