"""What `make bench` relies on: a second lock, which agrees with the first, and references that are right."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from benchmarks import growth, heap_loop, plain_loop
from packaging.requirements import Requirement

from eunomia.model.job import Job

ROOT = Path(__file__).parent.parent


def pins(lock: str) -> dict[str, str]:
    """Return the version of each package of a lock."""
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE))


BENCH, BASE = pins("requirements-bench.lock"), pins("requirements.lock")
EXTRA = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["bench"]


@pytest.mark.parametrize("asked", EXTRA)
def test_every_package_of_the_benchmarks_is_pinned_at_a_version_they_accept(asked: str) -> None:
    requirement = Requirement(asked)
    assert requirement.specifier.contains(BENCH[requirement.name])


def test_the_lock_of_the_benchmarks_changes_no_version_of_the_first() -> None:
    assert {name: pin for name, pin in BENCH.items() if name in BASE} == {
        name: pin for name, pin in BASE.items() if name in BENCH
    }


def test_the_lock_of_the_benchmarks_names_no_place_to_download_from_and_hashes_every_pin() -> None:
    lock = (ROOT / "requirements-bench.lock").read_text()
    reported = re.sub(r"--hash=sha256:[0-9a-f]{64}|# .*|-c requirements.lock", "", lock)
    assert not re.search(r"://|^\s*-|@ ", reported, re.MULTILINE)
    for name, pin in BENCH.items():
        assert re.search(rf"^{re.escape(name)}=={re.escape(pin)} \\\n    --hash=sha256:", lock, re.MULTILINE), name


def test_nothing_that_only_the_benchmarks_need_is_in_the_first_lock() -> None:
    assert not {Requirement(asked).name for asked in EXTRA} & set(BASE)


@pytest.mark.parametrize("accelerators", [1, 3])
@pytest.mark.parametrize("order", ["fifo", "srtf"])
def test_the_heaps_end_jobs_when_the_loop_over_all_jobs_does(order: str, accelerators: int) -> None:
    rng = np.random.default_rng(accelerators)
    submitted, duration = np.sort(rng.uniform(0, 100, 80)).tolist(), rng.lognormal(1.5, 1.0, 80).tolist()
    jobs = [
        Job(job_id=str(row), total_steps=left, submitted=at, sequence=row)
        for row, (at, left) in enumerate(zip(submitted, duration, strict=True))
    ]
    plain = (
        plain_loop.fifo(jobs, [accelerators], block=True) if order == "fifo" else plain_loop.srtf(jobs, [accelerators])
    )
    ends = getattr(heap_loop, order)(submitted, duration, accelerators)
    assert np.allclose(np.array(ends) - submitted, plain.completion_times(), rtol=1e-12)


def test_the_exponent_of_growth_is_that_of_a_power_and_unknown_where_a_time_is() -> None:
    jobs = (100, 400, 1600)
    assert growth.exponent(jobs, [3e-6 * n**1.5 for n in jobs]) == pytest.approx(1.5)
    assert growth.exponent(jobs, [1.0, None, 2.0]) is None
