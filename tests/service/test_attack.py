"""A short run of the attack on both stores; `make test-attack` runs a longer one."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra service")
from tests.service import attack

pytestmark = pytest.mark.slow
SECONDS = 20.0


def test_an_attack_on_a_file_leaves_honest_jobs_seats_and_the_service_whole(tmp_path: Path) -> None:
    assert attack.run(tmp_path, SECONDS)["honest_jobs"] > 0


def test_an_attack_on_a_database_leaves_honest_jobs_seats_and_the_service_whole(tmp_path: Path, database: str) -> None:
    assert attack.run(tmp_path, SECONDS, database)["honest_jobs"] > 0
