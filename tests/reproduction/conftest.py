"""Where other systems' results lie, and a desk to type commands at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("EUNOMIA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


@pytest.fixture
def peers() -> Path:
    """The folder of other systems' results; the test is skipped where it is absent."""
    if not (DATA / "peers").is_dir():
        pytest.skip(f"{DATA / 'peers'} is absent; set EUNOMIA_DATA to the folder of published data")
    return DATA / "peers"
