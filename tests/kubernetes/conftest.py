"""One real API server for all tests of this folder; `make test-kubernetes` runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A running server; tests that use it are skipped where there cannot be one."""
    if not os.environ.get("EUNOMIA_TEST_KUBERNETES"):
        pytest.skip("starts an API server of Kubernetes: run make test-kubernetes")
    from tests.kubernetes.loopback import LoopbackServer, why_not

    if reason := why_not():
        pytest.skip(reason)
    one = LoopbackServer(tmp_path_factory.mktemp("kubernetes"))
    yield one
    one.close()
