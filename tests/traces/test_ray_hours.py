"""Accelerator-hours of Ray: parts of devices, tasks and actors, lists that overlap, and jobs without an end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eunomia.traces import ray
from eunomia.traces.import_findings import History

Write = Callable[..., Path]
Json = dict[str, Any]
HOUR_MS = 3_600_000
BEGAN = 1_704_067_200_000


def ms(hour: float) -> int:
    return BEGAN + int(hour * HOUR_MS)


def job(name: str, end: float | None = 2, gpus: float = 0, status: str = "SUCCEEDED") -> Json:
    """Return a job that started at hour 0."""
    return {"job_id": name, "submission_id": f"sub-{name}", "status": status if end else "RUNNING", "start_time": ms(0),
            "end_time": ms(end) if end else 0, "metadata": {"user": "ann"}, "entrypoint_num_gpus": gpus}  # fmt: skip


def task(name: str, start: float, end: float | None, gpus: float = 1, **more: Any) -> Json:
    return {"task_id": name, "attempt_number": 0, "job_id": "01", "type": "NORMAL_TASK", "state": "FINISHED",
            "required_resources": {"GPU": gpus}, "start_time_ms": ms(start),
            "end_time_ms": ms(end) if end else None, "placement_group_id": None, **more}  # fmt: skip


def of_ray(written: Write, *items: Json) -> History:
    return ray.read_history([written(raw=json.dumps(items).encode())])


def finding(found: History, words: str) -> tuple[str, int, str]:
    return next((one.kind, one.count, one.example) for one in found.findings if words in one.what)


def hours(found: History) -> float:
    assert found.hours is not None
    return found.hours.total


def test_a_part_of_an_accelerator_is_a_whole_one_with_a_note(written: Write) -> None:
    found = of_ray(written, job("01", 1, 0.5), job("02", 2, 4))
    assert found.trace.scale_factor.tolist() == [1, 4]
    assert hours(found) == pytest.approx(8.5)
    assert finding(found, "read as a whole one") == ("assumed", 1, "sub-01")
    change = next(one.change for one in found.findings if "read as a whole one" in one.what)
    assert change.total == pytest.approx(0.5)


def test_tasks_outside_of_groups_are_one_job_with_their_accelerator_time(written: Write) -> None:
    inside = task("c", 0, 2, 8, placement_group_id="pg")
    calls = task("d", 0, 2, 1, type="ACTOR_TASK", actor_id="a")
    found = of_ray(written, job("01"), task("a", 0, 1, 2), task("b", 0.5, 1.5, 2), inside, calls)
    assert found.trace.job_id == ("sub-01/tasks",)
    assert (found.trace.scale_factor.tolist(), found.trace.duration_s.tolist()) == ([4], [3600])
    assert hours(found) == pytest.approx(4)
    assert finding(found, "did not start and end together") == ("assumed", 1, "a")


def test_an_actor_holds_its_accelerators_from_its_creation_to_the_end_of_its_job(written: Write) -> None:
    creation = task("a", 0.5, 0.6, 1, type="ACTOR_CREATION_TASK", actor_id="x")
    actors = [{"actor_id": name, "job_id": "01", "state": "DEAD", "required_resources": {"GPU": 2}} for name in "xy"]
    found = of_ray(written, job("01"), creation, *actors)
    assert hours(found) == pytest.approx(1.5)
    assert finding(found, "until their job ended") == ("assumed", 1, "a")
    assert finding(found, "no task that created them") == ("left out", 1, "y")


def test_tasks_of_several_types_are_jobs_of_their_own(written: Write) -> None:
    kinds = [{"required_resources": {"GPU": 1, f"accelerator_type:{kind}": 0.001}} for kind in ("T4", "H100")]
    found = of_ray(written, job("01"), *[task(str(k), 0, 1 + k) | kind for k, kind in enumerate(kinds)])
    assert found.hours is not None
    assert found.hours.by_type() == pytest.approx({"T4": 1, "H100": 2})
    assert found.ran_on == ("T4", "H100")


def test_a_job_that_ended_at_no_time_is_left_out(written: Write) -> None:
    found = of_ray(written, job("01", 30, 1), job("02", 1, 8) | {"end_time": None})
    assert found.trace.job_id == ("sub-01",)
    assert finding(found, "nothing says when") == ("left out", 1, "sub-02")


def test_of_two_lists_the_later_state_counts_in_either_order_and_a_job_is_cut_where_it_was_last_seen(
    tmp_path: Path,
) -> None:
    lists = {
        "jan": [job("01", None, 2), job("gone", None, 4), job("done", 3, 1)],  # listed at 3 o'clock
        "feb": [job("01", 5, 2), job("late", 9, 1)],
    }
    for name, items in lists.items():
        (tmp_path / name).write_text(json.dumps(items))
    for names in (("jan", "feb"), ("feb", "jan")):
        found = ray.read_history([tmp_path / name for name in names])
        lasted = dict(zip(found.trace.job_id, (found.trace.duration_s / 3600).tolist(), strict=True))
        assert lasted == {"sub-01": 5, "sub-gone": 3, "sub-done": 3, "sub-late": 9}
        assert finding(found, "still ran")[1] == 1
        assert hours(found) == pytest.approx(10 + 12 + 3 + 9)


def test_a_list_of_as_many_entries_as_ray_gives_at_most_is_doubted(written: Write) -> None:
    found = of_ray(written, *[job(str(k), 1, 1) for k in range(100)])
    assert "there may be more" in found.assumed[0]
    assert not of_ray(written, *[job(str(k), 1, 1) for k in range(99)]).assumed
