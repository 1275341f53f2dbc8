"""Histories of known truth in each format, with every oddity: an import keeps their sums and waits, or says why not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from tests.traces.generated import alibaba_jobs, kubernetes_list, ray_lists, swf_log, table_of_jobs
from tests.traces.generated.truth import Truth, check

from eunomia.traces.import_findings import History

Generate = Callable[[Random, Path], tuple[History, Truth]]
FORMATS: dict[str, tuple[str, Generate]] = {  # name → engine, generator
    "kubernetes": ("kubernetes", kubernetes_list.generate),
    "ray": ("ray", ray_lists.generate),
    "csv": ("csv", table_of_jobs.generate),
    "parquet": ("csv", table_of_jobs.generate_parquet),
    "swf": ("swf", swf_log.generate),
    "alibaba-2026": ("csv", alibaba_jobs.generate),
}
FEW, MANY = 8, 200


def compare(name: str, seed: int, folder: Path) -> None:
    engine, generate = FORMATS[name]
    history, truth = generate(Random(f"{name} {seed}"), folder)
    check(engine, history, truth)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("seed", range(FEW))
def test_sums_and_waits_of_a_generated_history_are_kept(name: str, seed: int, tmp_path: Path) -> None:
    compare(name, seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_sums_and_waits_of_many_generated_histories_are_kept(name: str, tmp_path: Path) -> None:
    for seed in range(FEW, MANY):
        compare(name, seed, tmp_path)
