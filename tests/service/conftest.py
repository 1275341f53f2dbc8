"""Fixtures: a controller without threads, and the whole service as a process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.bench import Bench, LiveService
from tests.service.postgres_server import programs, server


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path)
    yield found
    found.store.close()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveService]:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(tmp_path)
    yield service
    if service.process is not None and service.process.poll() is None:
        service.kill(signal.SIGTERM)
    service.stop_jobs()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    """One running service for tests that only add to it."""
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(tmp_path_factory.mktemp("service"))
    service.start()
    yield service
    service.kill(signal.SIGTERM)
    service.stop_jobs()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The folder of the socket of a PostgreSQL server."""
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    if (binaries := programs()) is None:
        pytest.skip("PostgreSQL is not installed")
    with server(binaries) as folder:
        yield folder


@pytest.fixture
def database(postgres: str, request: pytest.FixtureRequest) -> str:
    """The address of a new database."""
    import psycopg

    name = f"test_{abs(hash(request.node.name))}"
    with psycopg.connect(f"postgresql://tester@/postgres?host={postgres}", autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name} TEMPLATE template0")  # type: ignore[arg-type, unused-ignore]
    return f"postgresql://tester@/{name}?host={postgres}"
