"""What `make bench` relies on: a second lock, which agrees with the first."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

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
