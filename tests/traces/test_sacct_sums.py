"""Accelerator-hours and waits of imported accounting are those of the history that it was written of."""

from __future__ import annotations

from math import isnan
from pathlib import Path

import pytest
from tests.traces.sacct_truth import LAYOUTS, ZONE, SacctHistory

from eunomia.history.importing import build_import
from eunomia.traces.accelerator_hours import AcceleratorHours
from eunomia.traces.import_findings import History
from eunomia.traces.machine_lists.named_nodes import type_name
from eunomia.traces.slurm import read_history

FEW, ALL = 25, 200
WITHOUT_START = ("21.08", "23.02")  # of runs that go on
TWICE = "the hour that the clock showed twice"


def check(seed: int, folder: Path, layout: str = "") -> None:
    history = SacctHistory(seed)
    files = history.write(folder, layout)
    read = read_history(files)
    if (
        not layout
        and history.season != "plain"
        and not any(f"read as those of {ZONE}" in each.what for each in read.findings)
    ):
        read = read_history(files, timezone=ZONE)  # no line shows that clocks were changed
    imported = build_import("slurm", [], read)
    balance = imported.balance
    assert balance is not None
    assert not balance.unexplained(), balance.unexplained()
    truth = AcceleratorHours(history.truth.hours).renamed({kind: type_name(kind) for kind, _ in history.truth.hours})
    moved = sum((each.hours for each in balance.changes if "name no accelerator type" in each.what), AcceleratorHours())
    repaired = sum((each.hours for each in balance.changes if "ran for 0 s" in each.what), AcceleratorHours())
    for owner, hours in (truth + moved + repaired - balance.written).by_owner.items():
        assert abs(hours) <= 1e-3 * max(truth.by_owner.get(owner, 0.0), 1e-3), (owner, hours)
    check_waits(history, read, layout)


def check_waits(history: SacctHistory, read: History, layout: str) -> None:
    """Compare the wait of each job; one in a night of clocks set back may be off by an hour where a finding says so."""
    trace = read.trace
    first: dict[str, tuple[float, float]] = {}  # of each job: its first start, and its wait
    for name, start, ready in zip(trace.job_id, read.started_s.tolist(), trace.may_start_s.tolist(), strict=True):
        job = name.partition("@")[0]
        first[job] = min(first.get(job, (start, start - ready)), (start, start - ready))
    undecided = sum(each.count for each in read.findings if TWICE in each.what)
    off = {
        job: (wait, first[job][1])
        for job, wait in history.truth.wait_s.items()
        if job in first and first[job][1] != wait and not (layout in WITHOUT_START and isnan(first[job][1]))
    }
    assert len(off) <= undecided, off
    assert all(abs(read_s - wait) == 3600 for wait, read_s in off.values()), off


@pytest.mark.parametrize("seed", range(FEW))
def test_sums_and_waits_are_those_of_the_history(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(6))
def test_json_of_every_version_has_the_sums_and_waits_of_the_history(seed: int, layout: str, tmp_path: Path) -> None:
    check(100 * seed + LAYOUTS.index(layout), tmp_path, layout)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FEW, ALL))
def test_sums_and_waits_are_those_of_many_histories(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)
