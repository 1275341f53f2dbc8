"""Few measurements beside the catalogue: intervals hold the truth, and wrong measurements are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import eunomia
from eunomia.cli.app import app
from eunomia.inputs.problems import InvalidInput
from eunomia.throughputs import load, read_table
from eunomia.throughputs.estimators.calibration import calibrate, check_one_by_one, errors_by_count
from eunomia.throughputs.estimators.type_transfer import FAMILY_SPREADS, TransferFacts, TypeTransfer, fit_calibration
from eunomia.throughputs.measured_table import Measurements

JOB = "ResNet-50 (batch size 64)"


def one(rate: float, job: str = JOB, **more: float) -> Measurements:
    return Measurements(
        "mine.csv", {("v100", job, 1): rate} | {(type, job, 1): each for type, each in more.items()}, {}
    )


def test_a_measured_cell_keeps_its_rate_and_others_follow_its_level() -> None:
    slow, fast = (calibrate(one(rate), ["a100-40gb"], [1, 2]) for rate in (4.0, 8.0))
    by_cell = {(row.type, row.scale_factor): row for row in slow}
    assert by_cell["v100", 1].median == 4.0
    assert by_cell["a100-40gb", 1].median > 4.0
    for a, b in zip(slow, fast, strict=True):
        assert b.median > 1.3 * a.median
        assert a.low < a.median < a.high


def test_what_is_further_from_the_measurements_is_less_sure() -> None:
    rows = {(row.type, row.scale_factor): row.high / row.low for row in calibrate(one(4.0), ["k80"], [1, 8])}
    assert rows["v100", 1] < rows["v100", 8] < rows["k80", 8]
    assert rows["v100", 1] < rows["k80", 1]


def grown(exponent: float, noise: float = 0.0, models: int = 4) -> Measurements:
    """Gangs of 1 to 16 of models unknown to the catalogue, whose rates grow with that power of their size."""
    rng = np.random.default_rng(0)
    alone = {
        ("v100", f"model {m}", size): float((m + 2) * size**exponent * np.exp(rng.normal(0, noise)))
        for m in range(models)
        for size in (1, 2, 4, 8, 16)
    }
    return Measurements("mine.csv", alone, {})


def test_how_gangs_grow_is_learnt_from_sizes_that_were_measured() -> None:
    for exponent in (0.5, 0.95):  # the analytic model says 0.75 of models that it does not know
        rows = {(row.job_type, row.scale_factor): row for row in calibrate(grown(exponent), [], [32, 64])}
        for m in range(4):
            assert rows[f"model {m}", 64].median == pytest.approx((m + 2) * 64**exponent, rel=0.08)
    exact, noisy = (calibrate(grown(0.95, each), [], [64])[-1] for each in (0.0, 0.3))
    assert noisy.high / noisy.low > 1.2 * exact.high / exact.low


def test_one_wild_size_in_fifty_moves_other_jobs_by_less_than_their_intervals() -> None:
    clean = grown(0.6, 0.05, models=10)
    wild = Measurements("mine.csv", {**clean.alone, ("v100", "model 3", 16): 100 * 5 * 16**0.6}, {})
    before, after = (calibrate(each, [], [32]) for each in (clean, wild))
    for row, moved in zip(before, after, strict=True):
        if row.job_type != "model 3":
            assert row.low <= moved.median <= row.high


def test_intervals_of_sizes_hold_what_was_left_out() -> None:
    found = check_one_by_one(grown(0.6, 0.15))
    assert len(found) == 20
    assert 0.7 <= np.mean([each.inside for each in found]) <= 0.95


@pytest.mark.slow
def test_intervals_of_sizes_are_wide_enough_where_each_model_grows_in_its_own_way() -> None:
    rng, inside = np.random.default_rng(0), list[bool]()
    for _ in range(3):
        alone = {
            (type, f"model {m}", size): (m + 2) * size ** float(exponent + rng.normal(0, 0.15))
            for m, exponent in enumerate(rng.uniform(0.1, 1.0, 5))
            for type in ("v100", "k80")
            for size in (1, 2, 4, 8)
        }
        inside += [each.inside for each in check_one_by_one(Measurements("mine.csv", alone, {}))]
    assert 0.76 <= np.mean(inside) <= 0.9


def test_further_sizes_on_one_type_do_not_make_other_types_surer() -> None:
    one_size = {("v100", f"model {m}", 1): 2.0 + m for m in range(4)}
    sizes = {("v100", f"model {m}", size): (2.0 + m) * size**0.75 for m in range(4) for size in (2, 4, 8)}
    width = [
        [row.high / row.low for row in calibrate(Measurements("mine.csv", alone, {}), ["k80"], [1]) if row.type == "k80"
         and row.scale_factor == 1]
        for alone in (one_size, one_size | sizes)
    ]  # fmt: skip
    assert width[0] == pytest.approx(width[1])


def test_more_measurements_make_smaller_errors_until_none_is_left_to_estimate() -> None:
    points = errors_by_count(grown(0.5))
    assert [count for count, _, _ in points] == [1, 2, 4]
    assert [left for _, _, left in points] == [16, 12, 4]
    assert points[0][1] > points[1][1] > points[2][1]


def test_the_truth_on_other_types_is_mostly_within_the_interval(reference: Path) -> None:
    measured = read_table(str(reference / "gavel" / "simulation_throughputs.json.gz"))
    jobs = sorted({job for _, job, _ in measured.alone})
    inside = []
    for job in jobs:
        rows = calibrate(one(measured.alone["v100", job, 1], job), ["p100", "k80"], [1])
        inside += [row.low <= measured.alone[row.type, job, 1] <= row.high for row in rows if row.type != "v100"]
    assert np.mean(inside) >= 0.7


def test_a_wild_measurement_counts_little() -> None:
    facts = TransferFacts(
        family=np.arange(20), job_class=np.zeros(20, dtype=np.int64), has_expected=np.ones(20),
        specs=np.zeros((2, 2)), type_group=np.arange(2), expected=np.zeros((20, 2)),
        traits=np.zeros((20, 2)),
    )  # fmt: skip
    jobs, types = np.repeat(np.arange(20), 2), np.tile([0, 1], 20)
    rates = np.exp(np.random.default_rng(1).normal(0, 0.05, 40))
    clean, wild = TypeTransfer(facts), TypeTransfer(facts)
    clean.learn(jobs, types, rates)
    poisoned = rates.copy()
    poisoned[7] *= 1e3
    wild.learn(jobs, types, poisoned)
    before, after = clean.estimate(), wild.estimate()
    others = np.arange(20) != 3
    assert (np.abs(np.log(after[0] / before[0])) < np.log(before[2] / before[1]))[others].all()


def families_on_types(spread: float, families: int = 8) -> tuple[TransferFacts, np.ndarray]:
    """Two jobs of each family on four types; families' rates differ by `spread` from the types' own."""
    rng = np.random.default_rng(0)
    family = np.repeat(np.arange(families), 2)
    facts = TransferFacts(
        family=family, job_class=np.zeros(len(family), dtype=np.int64), has_expected=np.ones(len(family)),
        specs=np.zeros((4, 2)), type_group=np.arange(4), expected=np.zeros((len(family), 4)),
        traits=np.zeros((len(family), 2)),
    )  # fmt: skip
    own = rng.normal(0, spread, (families, 4))
    return facts, np.exp(rng.normal(0, 0.3, 4) + own[family] + rng.normal(0, 0.01, (len(family), 4)))


def test_how_far_families_differ_is_taken_from_the_measurements() -> None:
    chosen = []
    for spread in (0.02, 0.3):
        facts, rates = families_on_types(spread, families=16)
        jobs, types = (each.ravel() for each in np.indices(rates.shape))
        chosen.append(fit_calibration(facts, jobs, types, rates.ravel()).family_spread)
    assert chosen[0] < chosen[1] == FAMILY_SPREADS[-1]


def test_intervals_are_as_wide_as_errors_on_families_that_were_left_out() -> None:
    for spread in (0.02, 0.3):
        facts, rates = families_on_types(spread, families=24)
        jobs, types = (each.ravel() for each in np.indices(rates.shape))
        known = jobs < 24
        fitted = fit_calibration(facts, jobs[known], types[known], rates.ravel()[known])
        base = TypeTransfer(facts, fitted)
        base.learn(jobs[known], types[known], rates.ravel()[known])
        inside = []
        for job in range(24, 48):
            beliefs = base.copy()
            beliefs.observe(job, 0, float(rates[job, 0]))
            _, low, high = beliefs.estimate()
            inside += ((low <= rates) & (rates <= high))[job, 1:].tolist()
        assert 0.62 <= np.mean(inside) <= 0.95  # of 72 cells in pairs


@pytest.mark.slow
def test_intervals_beside_relatives_are_as_wide_as_errors_on_jobs_that_were_left_out() -> None:
    rng = np.random.default_rng(2)
    facts, rates = families_on_types(0.05, families=16)
    rates = rates * np.exp(rng.normal(0, 0.25, rates.shape))  # jobs of a family differ
    jobs, types = (each.ravel() for each in np.indices(rates.shape))
    inside = list[bool]()
    for job in range(0, 32, 2):
        known = jobs != job
        beliefs = TypeTransfer(facts, fit_calibration(facts, jobs[known], types[known], rates.ravel()[known]))
        beliefs.learn(jobs[known], types[known], rates.ravel()[known])
        beliefs.observe(job, 0, float(rates[job, 0]))
        _, low, high = beliefs.estimate()
        inside += ((low <= rates) & (rates <= high))[job, 1:].tolist()
    assert 0.7 <= np.mean(inside) <= 0.92  # of 48 cells in threes


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (one(0.0), "has no measured rate above 0"),
        (one(4000.0), r"ResNet-50 .* on 1 v100 is a factor of [\d,]+ off its kind: is it in another unit"),
        (one(4.0, "my model", p100=3.0, k80=5000.0), r"my model on 1 k80 is a factor of [\d,]+ off its kind"),
        (Measurements("mine.csv", {("v1000", JOB, 1): 4.0}, {}), "not in the catalogue"),
    ],
)
def test_wrong_measurements_are_refused(measured: Measurements, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        calibrate(measured, ["a100-40gb"], [1])


def test_the_table_that_is_written_can_be_used_in_a_scenario(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(f"type,job_type,scale_factor,steps_per_s\nv100,{JOB},1,4.5\n")
    out = tmp_path / "throughputs.csv"
    words = ["calibrate", str(tmp_path / "mine.csv"), "--types", "k80", "--sizes", "1,2", "--out", str(out)]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.output
    assert out.read_text().startswith("type,job_type,scale_factor,steps_per_s,steps_per_s_p10,steps_per_s_p90,origin\n")
    assert load(str(out), ("v100", "k80")).solo_throughput(JOB, 1)[0] == 4.5
    scenario = {
        "cluster": {"accelerators": {"v100": 2, "k80": 2}},
        "workload": {"generator": "poisson", "jobs": 5, "job_types": {JOB: 1.0}},
        "throughputs": {"source": str(out)},
    }
    assert eunomia.simulate(scenario).summary["jobs_finished"] == 5
    assert CliRunner().invoke(app, words).exit_code == 2  # it exists


@pytest.mark.parametrize(("rate", "said"), [("-1", "at least 0"), ("nan", "finite"), ("fast", "finite")])
def test_a_rate_that_is_no_rate_is_refused_with_its_line(tmp_path: Path, rate: str, said: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"type,job_type,scale_factor,steps_per_s\nv100,{JOB},1,{rate}\n")
    with pytest.raises(InvalidInput, match=said):
        read_table(str(path))


def test_an_interval_without_its_rate_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    header = "type,job_type,scale_factor,steps_per_s,steps_per_s_p10,steps_per_s_p90"
    path.write_text(f"{header}\nv100,{JOB},1,4,5,6\n")
    with pytest.raises(InvalidInput, match="enclose its rate"):
        read_table(str(path))
