"""Throughputs: what a table says, and what follows for gangs it did not measure."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput
from eunomia.throughputs import load
from eunomia.throughputs.job_type_facts import gavel_job_types, job_types
from eunomia.throughputs.measured_table import nearest_size

CSV = """type,job_type,scale_factor,steps_per_s,partner_job_type,partner_steps_per_s,placement
v100,small,1,10,,,
v100,small,2,18,,,consolidated
v100,small,1,6,large,2,
v100,large,1,4,,,
k80,small,1,2,,,
v100,small,2,12,,,unconsolidated
"""


def test_the_rates_of_gavels_table_are_returned_as_written_in_the_clusters_order(gavel):
    # Gavel's simulation_throughputs.json, key ('ResNet-50 (batch size 64)', 1)
    expected = [4.394774823323071, 2.6194694075770055, 0.6190282202246573]
    assert gavel.solo_throughput("ResNet-50 (batch size 64)", 1).tolist() == expected
    assert not gavel.extrapolated("ResNet-50 (batch size 64)", 1)


def test_the_rates_of_a_pair_are_those_of_each_of_the_two(gavel):
    # same table, A3C beside LM (batch size 5) on one accelerator
    assert np.allclose(gavel.packed_throughput("A3C", "LM (batch size 5)", 1), [3.73507381, 3.90281083, 2.10370559])
    together = gavel.packed_throughput(
        "ResNet-50 (batch size 128)", "A3C", 1
    )  # they fit a P100, but neither V100 nor K80
    assert (together > 0).tolist() == [False, True, False]


def test_the_built_in_job_types_of_gavel_are_those_of_its_table(gavel):
    assert set(gavel_job_types()) == set(gavel.job_types)
    assert len(gavel_job_types()) == 26


def test_a_scale_factor_beyond_the_table_is_anchored_at_the_nearest_measured_one(gavel):
    at_8, at_16 = (gavel.solo_throughput("ResNet-50 (batch size 64)", n) for n in (8, 16))
    assert gavel.extrapolated("ResNet-50 (batch size 64)", 16)
    assert ((at_16 > at_8) & (at_16 < 2 * at_8)).all()


def test_a_measured_zero_stays_zero_at_larger_sizes(gavel):
    assert gavel.solo_throughput("ResNet-50 (batch size 128)", 8)[2] == 0
    assert gavel.solo_throughput("ResNet-50 (batch size 128)", 64)[2] == 0


def test_job_types_that_the_catalogue_does_not_know_scale_by_the_fitted_power(table):
    rates = table({("mine", 4): 10.0})
    assert rates.solo_throughput("mine", 64).tolist() == pytest.approx([10.0 * 16**0.75])
    assert rates.solo_throughput("mine", 4).tolist() == [10.0]


@given(measured=st.lists(st.integers(1, 64), min_size=1, max_size=5, unique=True), n=st.integers(1, 128))
def test_the_nearest_size_is_nearest_by_ratio_and_a_measured_one_is_nearest_to_itself(measured, n):
    a = nearest_size(measured, n)
    assert all(max(a / n, n / a) <= max(b / n, n / b) * (1 + 1e-12) for b in measured)
    assert n not in measured or a == n


def test_of_two_sizes_equally_near_the_lower_is_the_anchor():
    assert nearest_size([8, 2], 4) == 2


@given(name=st.sampled_from(list(job_types())), n=st.integers(1, 64))
def test_a_throughput_is_never_negative_and_never_infinite(name, n):
    rates = load("catalogue", ["k80", "v100", "a100", "mi300x"]).solo_throughput(name, n)
    assert (rates >= 0).all()
    assert np.isfinite(rates).all()


@given(a=st.sampled_from(list(job_types())), b=st.sampled_from(list(job_types())), n=st.sampled_from([1, 2, 8]))
def test_no_gang_is_faster_beside_another_than_alone_in_the_catalogue(a, b, n):
    rates = load("catalogue", ["k80", "t4", "h100"])
    assert (rates.packed_throughput(a, b, n) <= rates.solo_throughput(a, n) + 1e-12).all()


def test_a_pair_at_a_size_not_measured_keeps_the_slowdown_of_the_nearest_size(table):
    rates = table({("a", 1): {"null": 10.0, "('b', 1)": [5.0, 1.0]}, ("a", 2): 16.0, ("b", 1): 2.0})
    assert rates.packed_throughput("a", "b", 2).tolist() == pytest.approx([8.0])
    assert rates.packed_throughput("b", "a", 1).tolist() == [0.0]  # never measured in this direction


def test_uniform_accepts_any_job_type_at_speed_1_whatever_its_size():
    rates = load("uniform", ["gpu", "tpu"])
    assert rates.job_types == ()
    assert rates.solo_throughput("anything", 7).tolist() == [1.0, 1.0]
    assert rates.packed_throughput("anything", "else", 1).tolist() == [0.0, 0.0]
    assert not rates.extrapolated("anything", 7)


def test_rates_cannot_be_written_to(gavel):
    with pytest.raises(ValueError, match="read-only"):
        gavel.solo_throughput("A3C", 1)[0] = 3.0


def test_an_unknown_job_type_is_answered_with_the_nearest(gavel):
    with pytest.raises(InvalidInput, match=r"did you mean 'ResNet-50 \(batch size 64\)'"):
        gavel.solo_throughput("ResNet-5 (batch size 64)", 1)
    with pytest.raises(InvalidInput, match="did you mean 'A3C'"):
        gavel.packed_throughput("CycleGAN", "A3", 1)


def test_a_gang_of_no_accelerators_is_refused(gavel):
    with pytest.raises(InvalidInput, match="at least 1 accelerator"):
        gavel.solo_throughput("A3C", 0)


def test_types_that_the_table_lacks_are_named_with_those_it_has(gavel, reference):
    with pytest.raises(InvalidInput, match="k80, p100, v100") as caught:
        load("gavel/simulation_throughputs.json.gz", ["h100", "v100", "t4"], base=reference)
    assert [problem.value for problem in caught.value.problems] == ["h100", "t4"]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_a_long_table_reads_alike_as_csv_gzip_and_parquet(name, tmp_path):
    write_long(tmp_path / name, CSV)
    rates = load(name, ["v100", "k80", "v100_unconsolidated"], base=tmp_path, missing="cannot_run")
    assert rates.job_types == ("small", "large")
    assert rates.solo_throughput("small", 1).tolist() == pytest.approx([10, 2, 12 * 0.5**0.75])
    assert rates.solo_throughput("small", 2).tolist() == pytest.approx([18, 2 * 2**0.75, 12])
    assert rates.solo_throughput("large", 1).tolist() == [4, 0, 0]
    assert rates.packed_throughput("small", "large", 1).tolist() == [6, 0, 0]
    assert rates.packed_throughput("large", "small", 1).tolist() == [2, 0, 0]


def write_long(path: Path, text: str) -> None:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
    elif path.suffix == ".parquet":
        import pyarrow.csv
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.csv.read_csv(pyarrow.py_buffer(text.encode())), path)
    else:
        path.write_text(text, encoding="utf-8")
