"""Comparisons from Python: policies as objects, short texts, Arrow tables, figures with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import eunomia
from eunomia import RECALLABLE, InvalidInput, Order, PolicyInfo, View, by_fastest
from eunomia.report.figure import draw_figure

SCENARIO = {
    "cluster": {"accelerators": {"gpu": 4}},
    "workload": {"generator": "poisson", "jobs": 20, "rate_per_hour": 6.0},
    "throughputs": {"source": "uniform"},
}


@dataclass(frozen=True)
class Widest:
    """Wide gangs run first."""

    strength: float = 1.0
    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="widest", answer_type="order", objective="few idle machines", technique="priority", paper="",
        needs=frozenset({"scale_factor", "throughput", "capacity"}), mechanism=RECALLABLE,
    )  # fmt: skip

    def decide(self, view: View) -> Order:
        return Order(by_fastest(view, np.argsort(-view.scale_factor, kind="stable")))


@pytest.fixture(scope="module")
def runs() -> eunomia.Comparison:
    return eunomia.compare(SCENARIO, [Widest(strength=2.0), "fifo", "srtf"], seeds=3)


def test_objects_and_names_run_the_same_jobs(runs: eunomia.Comparison) -> None:
    frame = runs.frame()
    assert frame.num_rows == 9
    assert frame["policy"].to_pylist()[:3] == ["widest?strength=2.0", "fifo", "srtf"]
    assert frame["seed"].to_pylist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    spelt = eunomia.simulate({**SCENARIO, "policy": {"name": "srtf"}}).summary
    assert runs.rows[2]["jct_mean_s"] == spelt["jct_mean_s"]
    assert eunomia.simulate(SCENARIO, policy=eunomia.policies.load("srtf")()).summary == spelt


def test_texts_are_short_and_say_what_to_do(runs: eunomia.Comparison) -> None:
    assert len(repr(runs)) < 600
    assert repr(runs).startswith("<Comparison: 9 runs of 3 policies. ")
    assert len(repr(runs.results[0])) < 120
    assert len(repr(eunomia.generate_trace("poisson", seed=0, jobs=500))) < 120
    page = runs._repr_html_()
    assert runs.findings.answer.split(":")[0] in page
    assert page.count("<tr>") == 4


def test_jobs_and_traces_are_arrow_tables(runs: eunomia.Comparison) -> None:
    jobs = runs.results[0].frame()
    assert jobs.num_rows == 20
    assert jobs["jct_s"].to_pylist() == runs.results[0].jobs["jct_s"].tolist()
    assert eunomia.generate_trace("poisson", seed=0, jobs=5).frame().num_rows == 5


def test_points_are_averages_with_intervals_over_the_seeds() -> None:
    rows = [
        {"policy": "p", "load": load, "jct_mean_s": 3600.0 * (load + seed)} for load in (1, 2) for seed in (0, 1, 2)
    ]
    (pane,) = draw_figure(rows, "jct_mean_s", "load").axes
    (container,) = pane.containers
    line, _, (bars,) = container.lines
    assert line.get_ydata().tolist() == pytest.approx([2.0, 3.0])
    half = 4.302652729911275 / np.sqrt(3)  # Student's t, 2 degrees of freedom, standard deviation 1 h
    assert bars.get_segments()[0][:, 1].tolist() == pytest.approx([2 - half, 2 + half])
    assert pane.get_ylabel() == "average completion time (h)"
    assert pane.get_title() == ""


@pytest.mark.parametrize("form", ["pdf", "svg", "png"])
def test_a_figure_is_written_in_the_format_of_its_name_with_text_as_text(
    runs: eunomia.Comparison, tmp_path: Path, form: str
) -> None:
    names = {"widest?strength=2.0": "Ours"}
    for name in ("one", "two"):
        runs.plot("jct_mean_s", file=tmp_path / f"{name}.{form}", names=names)
    written = (tmp_path / f"one.{form}").read_bytes()
    assert written == (tmp_path / f"two.{form}").read_bytes()
    if form == "svg":
        assert b">Ours<" in written
    if form == "pdf":
        assert b"/TrueType" in written or b"/CIDFontType2" in written
        assert b"/Type3" not in written


def test_a_figure_of_something_unknown_is_refused(runs: eunomia.Comparison, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="jct_mean_s"):
        runs.plot("jct_mean")
    with pytest.raises(InvalidInput, match="several values"):
        draw_figure([{"policy": "p", "load": load, "jct_mean_s": 1.0} for load in (1, 2)], "jct_mean_s", "policy")
    with pytest.raises(InvalidInput, match=r"\.pdf"):
        runs.plot(file=tmp_path / "fig.bmp")
    assert not list(tmp_path.iterdir())


def test_one_policy_twice_or_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="twice"):
        eunomia.compare(SCENARIO, [Widest(), Widest()])
    with pytest.raises(InvalidInput, match="at least one"):
        eunomia.compare(SCENARIO, [])


def test_a_sweep_from_python_has_the_same_methods(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'scenario = { cluster.accelerators = { gpu = 2 }, workload = { generator = "poisson", jobs = 5 },'
        ' throughputs.source = "uniform" }\n[axes]\npolicy = ["fifo", "srtf"]\nseed = [0, 1]\n'
    )
    outcome = eunomia.sweep(tmp_path / "s.toml", tmp_path / "out", workers=1)
    assert outcome.frame().num_rows == 4
    assert outcome.failures == ()
    assert "<table>" in outcome._repr_html_()
    outcome.plot(file=tmp_path / "fig.pdf")
    assert (tmp_path / "out" / "report.html").is_file()
