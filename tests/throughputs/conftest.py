"""What the tests of throughputs share: the reference data, and a table written by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eunomia.throughputs import Throughputs, load

REPO = Path(__file__).resolve().parents[2]
TYPES = ("v100", "p100", "k80")


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of reference data; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("EUNOMIA_DATA", REPO.parent / "shared" / "data"))
    if not (folder / "gavel" / "simulation_throughputs.json.gz").is_file():
        pytest.skip(f"no reference data in {folder}; set EUNOMIA_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def gavel(reference: Path) -> Throughputs:
    """Gavel's measured table on its three accelerator types."""
    return load("gavel/simulation_throughputs.json.gz", TYPES, base=reference)


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Throughputs]:
    """Writes Gavel's JSON for type "x" and loads it: {("job", 2): rate or {"null": rate, …}}."""

    def make(gangs: dict[tuple[str, int], object], types: tuple[str, ...] = ("x",)) -> Throughputs:
        entries = {str(key): value if isinstance(value, dict) else {"null": value} for key, value in gangs.items()}
        path = tmp_path / "table.json"
        path.write_text(json.dumps(dict.fromkeys(types, entries)), encoding="utf-8")
        return load("table.json", types, base=tmp_path)

    return make
