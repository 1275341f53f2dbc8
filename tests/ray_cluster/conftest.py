"""One real Ray cluster for all tests of this folder; `make test-ray` runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.ray_cluster.loopback import RayCluster


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[RayCluster]:
    """A running cluster; tests that use it are skipped where there cannot be one."""
    if not os.environ.get("EUNOMIA_TEST_RAY"):
        pytest.skip("starts a Ray cluster: run make test-ray")
    pytest.importorskip("ray", reason="needs the extra ray")
    cluster = RayCluster()
    yield cluster
    cluster.close()
