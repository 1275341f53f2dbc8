"""Published scaling curves as sources of throughputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.throughputs import load, read_table


def test_elasticflows_curves_are_iterations_of_the_whole_batch(reference: Path) -> None:
    table = load("throughputs/elasticflow/throughputs.csv", ("a100", "t4"), base=reference, missing="cannot_run")
    curve = [table.solo_throughput("bert (batch size 64)", n)[0] for n in (1, 2, 4, 8, 16, 32, 64)]
    assert curve == pytest.approx([6.03, 8.64, 10.36, 11.06, 10.99, 10.61, 9.25], abs=0.005)
    assert table.solo_throughput("bert (batch size 64)", 1)[1] == 0.0  # measured on A100 only, and stated by `missing`
    assert len(table.job_types) == 26


def test_a_size_that_elasticflow_did_not_measure_is_extrapolated_and_not_zero(reference: Path) -> None:
    table = load("throughputs/elasticflow/throughputs.csv", ("a100",), base=reference)
    assert table.extrapolated("resnet50_cifar10 (batch size 64)", 16)  # written as 0: not measured
    assert table.solo_throughput("resnet50_cifar10 (batch size 64)", 16)[0] > 0


def test_muris_iteration_times_are_rates_of_the_whole_gang(reference: Path) -> None:
    table = load("throughputs/muri-stage-times/stage_times.csv", ("v100",), base=reference)
    assert table.solo_throughput("bert (batch size 4)", 8).tolist() == pytest.approx([8 / 0.192])
    assert len(table.job_types) == 8


def test_everything_wrong_with_a_scaling_table_is_reported(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("gpu_type,model,global_batch_size,1,2\nA100,a,0,1,2\nA100,b,8,fast,-1\n")
    with pytest.raises(InvalidInput) as caught:
        read_table("e.csv", tmp_path)
    assert [(problem.row, problem.column) for problem in caught.value.problems] == [
        (2, "global_batch_size"),
        (3, "1"),
        (3, "2"),
    ]


def test_a_column_that_is_no_number_of_accelerators_is_named(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("gpu_type,model,global_batch_size,1,two\nA100,a,8,1,2\n")
    with pytest.raises(InvalidInput, match="two"):
        read_table("e.csv", tmp_path)


def test_a_table_of_nothing_but_zeros_is_refused(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("gpu_type,model,global_batch_size,1\nA100,a,8,0\n")
    with pytest.raises(InvalidInput, match="no throughput"):
        read_table("e.csv", tmp_path)
