"""The Standard Workload Format: which lines are jobs, what −1 means, and which machines the header counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import read, swf
from eunomia.traces.import_findings import History

Write = Callable[..., Path]
HEADER = ("; Version: 2.2", "; UnixStartTime: 1609459200", "; TimeZoneString: Europe/Berlin", "; MaxNodes: 16",
          ";  MaxProcs: 32 (of them 2 spare)")  # fmt: skip


def line(
    job: int, submit: float, wait: float, run: float, procs: int, *, asked: int = -1, status: int = 1, user: int = 3
) -> str:
    return f"{job:5} {submit} {wait} {run} {procs} -1 -1 {asked} 600 -1 {status} {user} 7 -1 2 1 -1 -1"


def history(written: Write, *lines: str, **options: str) -> History:
    return swf.read_history(written(*HEADER, *lines, name="log.swf"), **options)


def finding(found: History, words: str) -> tuple[str, int, int | None]:
    return next((one.kind, one.count, one.line) for one in found.findings if words in one.what)


def test_a_line_is_a_job_with_its_wait_and_the_header_dates_it(written: Write) -> None:
    found = history(written, line(1, 0, 10, 100, 4), line(2, 30.5, 0, 50, 2, status=0, user=-1), "", "; note: x")
    trace = found.trace
    assert (trace.job_id, trace.scale_factor.tolist(), trace.duration_s.tolist()) == (("1", "2"), [4, 2], [100, 50])
    assert (trace.submitted_s.tolist(), found.started_s.tolist()) == ([0, 30.5], [10, 30.5])
    assert (trace.tenant, trace.status, trace.row.tolist()) == (("3", ""), ("finished", "failed"), [6, 7])
    assert str(trace.began) == "2021-01-01 01:00:00"
    assert trace.unread == ("requested_time", "group", "queue", "partition")
    assert found.hours is not None
    assert found.hours.total == pytest.approx(500 / 3600)


def test_what_is_not_known_is_left_out_or_assumed_by_name(written: Write) -> None:
    found = history(
        written,
        line(1, 0, 10, 100, 4),
        line(2, 20, -1, -1, -1, asked=8, status=5),
        line(3, 20, 5, 0, 4, status=5),
        line(4, 30, 5, 10, -1, asked=8),
        line(5, 30, 5, 10, 0),
        line(6, -1, 5, 10, 1),
        line(7, 40, -1, 10, 1, status=-1),
        line(8, 50, 0, 0, 1),
    )
    assert found.trace.job_id == ("1", "4", "7", "8")
    assert finding(found, "never ran") == ("left out", 2, 7)
    assert finding(found, "no number of processors") == ("left out", 1, 10)
    assert finding(found, "no submit time") == ("left out", 1, 11)
    assert finding(found, "asked for counts") == ("assumed", 1, 9)
    assert finding(found, "no wait time") == ("missing", 1, 12)
    assert finding(found, "less than 1 s") == ("repaired", 1, 13)
    assert np.isnan(found.started_s).tolist() == [False, False, True, False]
    assert found.hours is not None
    lost = sum(one.change.total for one in found.findings)
    written_h = float((found.trace.duration_s * found.trace.scale_factor).sum()) / 3600
    assert found.hours.total + lost == pytest.approx(written_h)


def test_parts_of_a_run_count_once(written: Write) -> None:
    parts = [line(1, 0, 5, 100, 4), line(1, 0, 5, 60, 4, status=2), line(1, -1, 50, 40, 4, status=3)]
    alone = [line(2, 10, 5, 60, 2, status=2), line(2, -1, 50, 40, 2, status=4)]
    found = history(written, *parts, *alone)
    assert found.trace.job_id == ("1", "2")
    assert found.trace.duration_s.tolist() == [100, 100]
    assert found.trace.status == ("finished", "failed")
    assert finding(found, "parts of jobs that have a line for the whole") == ("repaired", 2, 7)
    assert finding(found, "listed in parts only") == ("assumed", 2, 9)
    assert found.hours is not None
    assert found.hours.total == pytest.approx(600 / 3600)


def test_options_choose_tenants_and_types(written: Write) -> None:
    lines = (line(1, 0, 0, 9, 1),)
    assert history(written, *lines, tenant="group").trace.tenant == ("7",)
    assert history(written, *lines, tenant="none").trace.tenant == ("",)
    assert history(written, *lines, type="v100").ran_on == ("v100",)
    assert history(written, *lines, type="partition").ran_on == ("partition-1",)
    with pytest.raises(InvalidInput, match="tenant"):
        history(written, *lines, tenant="usr")


def test_the_header_counts_the_machines(written: Write) -> None:
    nodes = swf.read_machines(written(*HEADER, name="log.swf"), "v100")
    assert [(node.type, node.accelerators) for node in nodes] == [("v100", 2)] * 16
    assert [node.accelerators for node in swf.read_machines(written("; MaxProcs: 12"))] == [8, 4]
    assert swf.read_machines(written(line(1, 0, 0, 9, 1))) == ()


@pytest.mark.parametrize("first", [HEADER[0], line(1, 0, 0, 9, 1), ""])
def test_the_format_is_detected_by_its_first_line_or_its_name(written: Write, first: str) -> None:
    path = written(first, line(1, 0, 0, 9, 1), name="log.swf")
    assert read(path, "auto").source == str(path)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["1 2 3"], "has 3 numbers where the Standard Workload Format has 18"),
        ([line(1, 0, 0, 9, 1).replace("9", "nine")], "run"),
        ([line(1, -5, 0, 9, 1)], "submit"),
        ([line(1, 0, 0, 9, 1, status=9)], "status"),
        ([], "at least one job"),
        ([line(1, 0, -1, -1, 1)], "no job here ran"),
    ],
)
def test_wrong_lines_are_refused(written: Write, lines: list[str], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        history(written, *lines)
