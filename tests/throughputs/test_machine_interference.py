"""Interference between gangs on one machine: measured pairs, and the synthetic loads of Harmony's section 2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import eunomia
from eunomia.throughputs import load
from eunomia.throughputs.interference import LOADS, MEDIAN_KEPT, PairNeighbours, SyntheticNeighbours

TABLE = (
    "type,job_type,scale_factor,steps_per_s,partner_job_type,partner_steps_per_s\n"
    "gpu,a,1,4,,\ngpu,b,1,2,,\ngpu,c,1,1,,\ngpu,a,1,2,b,1.6\n"
)


@pytest.fixture
def pairs(tmp_path: Path) -> PairNeighbours:
    (tmp_path / "t.csv").write_text(TABLE)
    return PairNeighbours(load("t.csv", ("gpu",), base=tmp_path))


def test_slowdowns_of_measured_pairs_add_up(pairs: PairNeighbours) -> None:
    assert pairs.slowdown(("a", 1), 1, [("b", 1)]) == pytest.approx(2.0)  # 4 / 2
    assert pairs.slowdown(("b", 2), 1, [("a", 1)]) == pytest.approx(1.25)  # 2 / 1.6
    assert pairs.slowdown(("a", 1), 1, [("b", 1), ("b", 4)]) == pytest.approx(3.0)
    assert pairs.slowdown(("a", 1), 1, [("c", 1)]) == pytest.approx(1 / MEDIAN_KEPT)  # not measured


def test_synthetic_pairs_of_different_types_lose_a_third_on_average_and_half_where_the_paper_says() -> None:
    names, model = list(LOADS), SyntheticNeighbours()
    pair = np.array([[model.slowdown((a, 1), 1, [(b, 1)]) for b in names] for a in names])
    others = ~np.eye(len(names), dtype=bool)
    assert (1 - 1 / pair[others]).mean() == pytest.approx(0.33, abs=0.02)
    by_name = {(a, b): pair[i, j] for i, a in enumerate(names) for j, b in enumerate(names)}
    assert by_name["resnext", "ctc"] == pytest.approx(2.0, abs=0.1) and pair[others].max() < 2.1
    assert max(by_name["resnet", "seq2seq"], by_name["resnet", "wlm"]) <= 1.05


def test_synthetic_pairs_of_one_type_and_three_jobs_slow_by_more_than_the_published_pairs() -> None:
    """Two AlexNets, by hand: CPU 1 + 0.68 · 0.3, disk 1 + 0.68 · 0.8, network 1 + 0.68 · 0.4; PCIe loads are 0.6."""
    model = SyntheticNeighbours()
    two = model.slowdown(("alexnet", 1), 1, [("alexnet", 1)])
    assert two == pytest.approx(1.204 * 1.544 * 1.272)
    assert model.slowdown(("ctc", 1), 1, [("ctc", 1)]) == pytest.approx(2.06, abs=0.005)
    assert model.slowdown(("alexnet", 1), 1, [("alexnet", 1), ("alexnet", 1)]) > two > 2.3


@pytest.mark.parametrize("kind", ["synthetic", "pairs"])
def test_a_simulation_slows_gangs_on_one_machine(kind: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE.replace(",a,", ",resnext,").replace(",b,", ",ctc,").replace("2,b,", "2,ctc,"))
    rows = "".join(f"{name},{name},0,100,1\n" for name in ("resnext", "ctc"))
    (tmp_path / "jobs.csv").write_text(f"job_id,job_type,submitted_s,duration_s,scale_factor\n{rows}")
    source = {"synthetic": "uniform", "pairs": str(tmp_path / "t.csv")}[kind]
    scenario = {
        "cluster": {"nodes": [{"type": "gpu", "count": 1, "accelerators": 2}]},
        "workload": {"trace": str(tmp_path / "jobs.csv")},
        "throughputs": {"source": source, "reference_type": "gpu"},
        "physics": {"neighbours": kind},
    }
    found = eunomia.simulate(scenario).jobs
    assert found["jct_s"].max() > 130
    alone = eunomia.simulate({**scenario, "physics": {}}).jobs
    assert alone["jct_s"].tolist() == pytest.approx([100.0, 100.0])
