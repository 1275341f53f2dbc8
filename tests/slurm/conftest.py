"""One real Slurm for all tests of this folder; `make test-slurm` runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.slurm.loopback import LoopbackCluster, why_not


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackCluster]:
    """A running cluster; tests that use it are skipped where there cannot be one."""
    if not os.environ.get("EUNOMIA_TEST_SLURM"):
        pytest.skip("starts a Slurm cluster: run make test-slurm")
    if reason := why_not():
        pytest.skip(reason)
    cluster = LoopbackCluster(tmp_path_factory.mktemp("slurm"))
    yield cluster
    cluster.close()
