"""One real API server for all tests of this folder; `make test-kubernetes` runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest


class HandClock:
    """A clock that the test sets."""

    at = 100.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def between() -> Any:
    """What stands between the client and the server, with faults that the test sets."""
    from tests.kubernetes.transport import FaultyTransport

    return FaultyTransport()


@pytest.fixture
def client(server: Any, between: Any) -> Iterator[Any]:
    """A client of the server, which has no Jobs and pods left at the end."""
    with closing(server.client(transport=between, timeout=5.0)) as one:
        yield one
    server.clear()


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
