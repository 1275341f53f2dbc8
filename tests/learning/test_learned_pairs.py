"""Learned pairs: what the network sees, what it may change, and its training."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.learning.model_file import Feature, ModelFile, ModelHeader, read_model, write_model
from eunomia.learning.pairs.features import FEATURES, LEAST, NAMES, corrected, pair_features
from eunomia.learning.pairs.policy import ARCHITECTURE, LearnedPairs
from eunomia.learning.perceptron import Perceptron
from eunomia.learning.training import train
from eunomia.model.view import View
from eunomia.policies import build
from eunomia.scenario import scenario_from_dict

KEPT = np.array([[[0.5, 0.9]], [[0.7, 0.0]]])  # (job type, type, partner); two of the second do not fit


def constant(shift: float) -> Perceptron:
    """Return a network that adds `shift` to every pair."""
    zero = Perceptron.drawn(ARCHITECTURE["correction"], np.random.default_rng(0))
    weights = (*zero.weights[:-1], np.zeros_like(zero.weights[-1]))
    return Perceptron(weights, (*zero.biases[:-1], np.array([shift])))


def view_of(packed: np.ndarray, throughput: np.ndarray) -> View:
    """Return one accelerator of each type, and a job of each class."""
    jobs, types = throughput.shape
    columns = {
        "scale_factor": np.ones(jobs, dtype=np.int64), "weight": np.ones(jobs), "throughput": throughput,
        "capacity": np.ones(types), "job_class": np.arange(jobs), "packed_throughput": packed,
    }  # fmt: skip
    return View(at=0.0, types=tuple("abc"[:types]), jobs=jobs, columns=columns)


def test_a_pair_is_seen_with_its_reverse_and_the_means_of_the_pairs_that_fit() -> None:
    x = pair_features(KEPT) * [one.scale for one in FEATURES] + [one.mean for one in FEATURES]
    seen = dict(zip(NAMES, x[0, 0, 1].tolist(), strict=True))
    assert seen == pytest.approx(
        {
            "kept": 0.9, "partner_kept": 0.7, "mean_kept": 0.7, "partner_mean_kept": 0.7, "mean_kept_beside": 0.6,
            "partner_mean_kept_beside": 0.9, "kept_on_all_types": 0.9, "partner_kept_on_all_types": 0.7,
        }
    )  # fmt: skip


def test_a_correction_stays_a_share_of_the_speed_alone_and_pairs_that_do_not_fit_stay_apart() -> None:
    assert corrected(constant(0.2), KEPT).tolist() == [[[0.7, 1.0]], [[pytest.approx(0.9), 0.0]]]
    assert corrected(constant(-9.0), KEPT).tolist() == [[[LEAST, LEAST]], [[LEAST, 0.0]]]


def write(path: Path, shift: float, features: tuple[Feature, ...] = FEATURES) -> Path:
    header = ModelHeader(trained="pairs", architecture=ARCHITECTURE, features=features)
    write_model(path, ModelFile(header=header, arrays=constant(shift).arrays("correction")))
    return path


@pytest.mark.parametrize(("shift", "shared"), [(0.0, True), (-0.3, False)])
def test_two_jobs_share_where_the_model_expects_more_of_both_than_of_one(
    shift: float, shared: bool, tmp_path: Path
) -> None:
    """On one accelerator both keep 0.6: 1.2 together; less 0.3 each it is 0.6, below the 1 of one job alone."""
    view = view_of(np.full((2, 2, 1), 6.0), np.full((2, 1), 10.0))
    answer = LearnedPairs(model=str(write(tmp_path / "m.safetensors", shift))).decide(view)
    assert answer.rows is not None and answer.rows.partner is not None
    held = answer.x > 1e-9
    assert bool((answer.rows.partner[held] >= 0).all()) == shared


def test_a_class_without_a_job_in_the_view_changes_nothing() -> None:
    packed = np.random.default_rng(0).uniform(3, 9, (3, 3, 2))
    view = view_of(packed, np.full((2, 2), 10.0))
    two = view_of(packed[:2, :2], np.full((2, 2), 10.0))
    policy, T = LearnedPairs(), view.throughput
    drawn = Perceptron.drawn(ARCHITECTURE["correction"], np.random.default_rng(1))
    object.__setattr__(policy, "network", drawn)
    found = policy.rates(view, T)[:2, :2]
    assert np.array_equal(found, policy.rates(two, T)) and not np.allclose(found, packed[:2, :2])


def test_a_model_of_other_features_is_refused_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "m.safetensors", 0.0, (Feature(name="spread"), *FEATURES[1:]))
    with pytest.raises(InvalidInput, match="'kept'"):
        build(f"learned_pairs?model={path}")


def table_of(folder: Path, job_types: int) -> Path:
    """Write a table of pairs on two types: jobs of light and of heavy use of the accelerator."""
    use = np.random.default_rng(1).uniform(0.2, 1.0, job_types)
    lines = ["type,job_type,scale_factor,steps_per_s,partner_job_type,partner_steps_per_s"]
    for type, speed in (("a", 1.0), ("b", 3.0)):
        lines += [f"{type},t{i},1,{speed}," for i in range(job_types)]
        for i in range(job_types):
            for k in range(i, job_types):
                rate = speed / max(1.0, use[i] + use[k])
                lines.append(f"{type},t{i},1,{rate:.6f},t{k},{rate:.6f}")
    (folder / "table.csv").write_text("\n".join(line if line.count(",") == 5 else f"{line}," for line in lines))
    return folder


def scenario(folder: Path) -> object:
    return scenario_from_dict(
        {
            "cluster": {"accelerators": {"a": 4, "b": 4}}, "workload": {"generator": "poisson", "jobs": 20},
            "throughputs": {"source": "table.csv", "reference_type": "a"},
        },
        folder,
    )  # fmt: skip


@pytest.mark.slow
def test_training_corrects_unseen_job_types_and_a_resumed_one_ends_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    from eunomia.learning.pairs.training import PairsTraining

    found = scenario(table_of(tmp_path, 12))
    monkeypatch.setattr(PairsTraining, "judge_every", 20)
    train("pairs", found, tmp_path / "whole.safetensors", steps=60)  # type: ignore[arg-type]
    plain = PairsTraining.train

    def interrupted(self: PairsTraining, step: int) -> None:
        if step == 47:
            raise KeyboardInterrupt
        plain(self, step)

    monkeypatch.setattr(PairsTraining, "train", interrupted)
    assert train("pairs", found, tmp_path / "m.safetensors", steps=60).interrupted  # type: ignore[arg-type]
    monkeypatch.setattr(PairsTraining, "train", plain)
    train("pairs", found, tmp_path / "m.safetensors", steps=60, resume=True)  # type: ignore[arg-type]
    assert (tmp_path / "m.safetensors").read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    header = read_model(tmp_path / "m.safetensors").header
    curve = json.loads((tmp_path / "m.safetensors.json").read_text())["curve"]
    assert curve[0]["error_reduction"] == 0.0 and header.metrics["error_reduction"] > 0.1


def test_a_table_of_few_job_types_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    found = scenario(table_of(tmp_path, 3))
    with pytest.raises(InvalidInput, match="at least 8 job types"):
        train("pairs", found, tmp_path / "m.safetensors", steps=1)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
