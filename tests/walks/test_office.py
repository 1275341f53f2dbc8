"""A tiny trace end to end under every policy; the completion times are kept as text.

A change of `office.approved.txt` is a change of what users will see. If it is meant, run these tests with
EUNOMIA_APPROVE=1, look at the difference, and commit it.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

import eunomia
from eunomia.policies import POLICIES
from eunomia.records.replay import first_difference
from eunomia.scenario import load_scenario

HERE = Path(__file__).parent
APPROVED = HERE / "office.approved.txt"
SPELLINGS = {
    "fifo": ["fifo", "fifo?backfill=skip", "fifo?backfill=easy", "fifo?types=agnostic"],
    "las": ["las", "las?quantum=600"],
}
REJECTS = {"astraea": 1}  # jobs that ask for more than their tenant's quota
EVERY = [spelling for name in POLICIES for spelling in SPELLINGS.get(name, [name])]


def walk(policy: str, record_to: Path | None = None) -> eunomia.Result:
    return eunomia.simulate(load_scenario(HERE / "office.toml", [f"policy.name={policy!r}"]), record_to=record_to)


@functools.cache
def walked(policy: str) -> eunomia.Result:
    """Return a walk that several tests look at."""
    return walk(policy)


def as_text() -> str:
    """Return a table of completion times in seconds, one policy a line; then what each policy cost the jobs."""
    lines = []
    for policy in EVERY:
        result = walked(policy)
        jcts = [f"{name}={jct:.3f}" for name, jct in zip(result.jobs["job_id"], result.jobs["jct_s"], strict=True)]
        lines.append(f"{policy}: {' '.join(jcts)} preemptions={result.summary['preemptions']}")
    return "\n".join(lines) + "\n"


def test_completion_times_are_as_approved() -> None:
    found = as_text()
    if os.environ.get("EUNOMIA_APPROVE"):
        APPROVED.write_text(found, encoding="utf-8")
    assert found.splitlines() == APPROVED.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("policy", EVERY)
def test_every_job_of_the_office_finishes_or_is_refused_with_reason(policy: str) -> None:
    summary, rejected = walked(policy).summary, REJECTS.get(policy, 0)
    assert summary["jobs_submitted"] == 10
    assert (summary["jobs_finished"], summary["jobs_rejected"]) == (10 - rejected, rejected)


@pytest.mark.parametrize("policy", EVERY)
def test_a_record_of_the_office_replays_to_the_same_decisions(policy: str, tmp_path: Path) -> None:
    record = walk(policy, tmp_path / "record.jsonl.gz").record
    assert record is not None
    assert first_difference(record) is None
