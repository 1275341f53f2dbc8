"""Jobs in a snapshot: written by field, and read back to the bit."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.model.job import InvalidJob, Job
from eunomia.records.scheduler_snapshot import pack, unpack

STEPS = st.floats(1e-300, 1e300) | st.integers(1, 10**9)
JOBS = st.lists(
    st.builds(
        Job, job_id=st.text(max_size=5), total_steps=STEPS, submitted=st.floats(allow_nan=False),
        scale_factor=st.integers(1, 64), other_shapes=st.lists(st.integers(1, 9), max_size=2).map(tuple),
        deadline=st.floats(0, math.inf), weight=st.floats(1e-9, 1e9), debug=st.booleans(),
        command=st.lists(st.text(max_size=3), max_size=2).map(tuple),
        loss=st.none() | st.tuples(*[st.floats(-1e9, 1e9)] * 3),
    ),
    max_size=6,
)  # fmt: skip


@given(JOBS)
def test_jobs_come_back_as_they_were(jobs: list[Job]) -> None:
    found = unpack(pack(jobs))
    assert found == jobs
    assert [repr(job) for job in found] == [repr(job) for job in jobs]  # 1 and 1.0, 0.0 and -0.0 differ


def test_zeros_keep_their_signs_and_whole_numbers_their_kind() -> None:
    jobs = [Job(job_id="a", total_steps=steps, submitted=at, loss=(at, 1.0, 1.0))
            for steps, at in ((1, 0.0), (1.0, -0.0), (True, 0.0))]  # fmt: skip
    assert [repr(job) for job in unpack(pack(jobs))] == [repr(job) for job in jobs]
    assert [repr(job) for job in unpack(pack(jobs[1:2]))] == [repr(jobs[1])]


def test_like_jobs_take_little_room_and_one_job_is_not_spread_over_all() -> None:
    like = [Job(job_id=str(n), total_steps=86_400.0, tenant="vision", submitted=float(n)) for n in range(1000)]
    assert len(pack(like)) < 25 * len(like)
    assert unpack(pack(like)) == like
    assert unpack(pack([like[0]])) == [like[0]]


def test_a_snapshot_of_an_earlier_version_is_read_and_a_wrong_job_is_refused() -> None:
    def framed(objects: list[object]) -> bytes:
        head = json.dumps({"root": {"o": 0}, "objects": objects, "arrays": []}).encode()
        return len(head).to_bytes(8, "big") + head

    one = {"is": "Job", "job_id": "a", "total_steps": 5}
    assert unpack(framed([["l", [{"j": one}]]])) == [Job(job_id="a", total_steps=5)]
    with pytest.raises(InvalidJob):
        unpack(framed([["J", 1, {"job_id": ["a"], "total_steps": [-5.0]}]]))
    with pytest.raises(ValueError, match=r"shorter|longer"):
        unpack(framed([["J", 3, {"job_id": ["a", "b"], "total_steps": [5.0]}]]))
