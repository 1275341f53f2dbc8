"""The same source gives the same answers, compiled or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import eunomia

PROGRAM = """
from eunomia.testing.small_worlds import draw, play
from eunomia.policies import POLICIES, load
from eunomia.policies.order.fifo import Fifo
for policy in [*(load(name)() for name in POLICIES), Fifo(backfill="easy")]:
    for seed in (3, 4):
        for at, decision in play(policy, draw(seed, jobs=8)).decisions:
            print(at, decision)
"""


def story(disable_jit: str) -> str:
    source = str(Path(eunomia.__file__).parents[1])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": disable_jit, "PYTHONPATH": source}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow
def test_decisions_do_not_depend_on_the_compiler() -> None:
    compiled = story("0")
    assert "Start(" in compiled
    assert story("1") == compiled
