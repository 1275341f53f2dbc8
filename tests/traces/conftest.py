"""Where the real traces lie, and how a test writes a small one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(os.environ.get("EUNOMIA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


@pytest.fixture
def real() -> Callable[[str], Path]:
    """Return the path of a real file; the test is skipped where the data are absent."""

    def path_of(name: str) -> Path:
        if not (DATA / name).exists():
            pytest.skip(f"{DATA / name} is absent; set EUNOMIA_DATA to the folder of real data")
        return DATA / name

    return path_of


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes lines (or bytes) to a file and returns its path."""

    def write(*lines: str, name: str = "jobs.csv", raw: bytes | None = None) -> Path:
        path = tmp_path / name
        path.write_bytes("".join(line + "\n" for line in lines).encode() if raw is None else raw)
        return path

    return write
