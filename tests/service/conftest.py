"""Fixtures: a controller without threads, and the whole service as a process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.bench import Bench, LiveService


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path)
    yield found
    found.store.close()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveService]:
    pytest.importorskip("uvicorn", reason='needs the extra: pip install "eunomia[service]"')
    service = LiveService(tmp_path)
    yield service
    if service.process is not None and service.process.poll() is None:
        service.kill(signal.SIGTERM)
    service.stop_jobs()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    """One running service for tests that only add to it."""
    pytest.importorskip("uvicorn", reason='needs the extra: pip install "eunomia[service]"')
    service = LiveService(tmp_path_factory.mktemp("service"))
    service.start()
    yield service
    service.kill(signal.SIGTERM)
    service.stop_jobs()
