"""Jobs in a snapshot: written by field, and read back to the bit."""

from __future__ import annotations

import json
import math
import zlib
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.conftest import Sit

from eunomia.core.belief import LearntThroughput
from eunomia.core.mechanism import ImpliedRule
from eunomia.model.events import Estimated, JobSubmitted
from eunomia.model.job import InvalidJob, Job
from eunomia.policies import build
from eunomia.records.long_lists import LONG, PART, LongList, WrittenParts
from eunomia.records.packed_objects import MOVED, capture, pack, restore, unpack
from eunomia.records.scheduler_digest import digest

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


def test_a_field_that_a_snapshot_was_made_without_has_its_default() -> None:
    content = pack(LearntThroughput(np.ones(2), np.zeros(2), np.zeros(2, dtype=bool), np.array([3, 0])))
    size = int.from_bytes(content[:8], "big")
    head = json.loads(content[8 : 8 + size])
    del head["objects"][0][2]["failed_starts"]
    older = json.dumps(head).encode()
    assert unpack(content).failed.tolist() == [3, 0]
    assert unpack(len(older).to_bytes(8, "big") + older + content[8 + size :]).failed.tolist() == [0, 0]


def test_a_field_of_a_named_tuple_that_a_snapshot_was_made_without_has_its_default() -> None:
    rule = ImpliedRule(True, False, 3, 60.0)
    content = pack(rule)
    head = json.loads(content[8:])
    _, _, values = head["objects"][0]

    def framed(values: list[object]) -> bytes:
        head["objects"][0][2] = values
        text = json.dumps(head).encode()
        return len(text).to_bytes(8, "big") + text

    assert unpack(framed(values)) == unpack(framed(values[:-1])) == rule
    with pytest.raises(ValueError, match="shorter"):
        unpack(framed([*values, 0]))


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


def test_a_long_list_is_written_in_parts_and_only_those_that_changed_are_written_again() -> None:
    count = 2 * PART + 7
    jobs = [Job(job_id=str(n), total_steps=n + 0.5, tenant="a" if n % 2 else "b") for n in range(count)]
    parts = WrittenParts()
    lists = [LongList("Job", jobs), LongList("", [job.job_id for job in jobs])]
    (*whole, last), _ = first = parts.write(lists)
    jobs.append(Job(job_id="more", total_steps=1.0))
    (*again, longer), names = parts.write(lists)
    assert all(one is other for one, other in zip(again, whole, strict=True)) and names[0] is first[1][0]
    assert longer != last and json.loads(zlib.decompress(longer[1]))[0] == 8
    assert parts.write([LongList("Job", jobs[1:])])[0][0] != whole[0]


def test_a_state_of_many_jobs_is_restored_as_it_was_captured_though_it_has_changed_since(sit: Sit) -> None:
    desk, parts = sit(build("las?quantum=60")), WrittenParts()
    one, names = desk.scheduler, [f"job-{n}" for n in range(LONG + 50)]
    desk.tell(1.0, *(JobSubmitted(Job(job_id=name, total_steps=100.0, submitted=1.0, sequence=n))
                     for n, name in enumerate(names[: LONG + 10])))  # fmt: skip
    desk.tell(2.0, *(Estimated(name, 10.0 + n, 1.0, 99.0, 3) for n, name in enumerate(names[: LONG + 10])))
    for n in range(LONG + 10, LONG + 50, 20):
        captured, then = capture(one), digest(one)
        jobs, estimates = list(one.state.submitted), dict(one.belief.estimates)
        desk.submit(float(n), *names[n : n + 20])
        content = captured.content(parts)
        assert content == captured.content()
        fresh = sit(build("las?quantum=60")).scheduler
        restore(fresh, content)
        assert digest(fresh) == then != digest(one)
        assert fresh.state.submitted == jobs == fresh.belief._jobs and fresh.belief.estimates == estimates
        assert fresh.state.row_of == {job.job_id: row for row, job in enumerate(jobs)}
    with pytest.raises(ValueError, match="end is missing"):
        restore(fresh, content[:-3])


def test_a_job_in_a_list_is_read_and_a_wrong_one_is_refused() -> None:
    def framed(objects: list[object]) -> bytes:
        head = json.dumps({"root": {"o": 0}, "objects": objects, "arrays": []}).encode()
        return len(head).to_bytes(8, "big") + head

    one = {"is": "Job", "job_id": "a", "total_steps": 5}
    assert unpack(framed([["l", [{"j": one}]]])) == [Job(job_id="a", total_steps=5)]
    with pytest.raises(InvalidJob):
        unpack(framed([["Q", "Job", [[1, {"job_id": ["a"], "total_steps": [-5.0]}]]]]))
    with pytest.raises(ValueError, match=r"shorter|longer"):
        unpack(framed([["Q", "Job", [[3, {"job_id": ["a", "b"], "total_steps": [5.0]}]]]]))


def test_a_restored_scheduler_keeps_its_own_card_of_the_policy_whatever_fields_the_snapshot_has_of_it(sit: Sit) -> None:
    scheduler = sit(build("srtf")).scheduler
    card = ["i", "eunomia.model.policy:PolicyInfo", {"complete": True}]
    objects = [["i", "eunomia.core.scheduler:Scheduler", {"info": {"o": 1}, "seed": 7}], card]
    head = json.dumps({"root": {"o": 0}, "objects": objects, "arrays": []}).encode()
    restore(scheduler, zlib.compress(len(head).to_bytes(8, "big") + head))
    assert vars(scheduler)["seed"] == 7 and scheduler.info is scheduler.asks.info
    assert b"PolicyInfo" not in pack(scheduler)


@pytest.mark.parametrize("former", MOVED)
def test_a_snapshot_that_names_the_former_module_of_a_class_is_read(former: str) -> None:
    module = import_module(MOVED[former])
    cls = next(one for one in vars(module).values() if isinstance(one, type) and one.__module__ == MOVED[former])
    content = pack(cls)
    assert MOVED[former].encode() in content
    text = content[8:].replace(MOVED[former].encode(), former.encode())
    assert unpack(len(text).to_bytes(8, "big") + text) is cls
