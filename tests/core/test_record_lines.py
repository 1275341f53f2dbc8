"""What a record writes of one decision that starts many gangs, and of reports in arrays."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia.model.decisions import Decision, Renew, Start, Starts, Stop
from eunomia.model.events import Moment, Progressed
from eunomia.model.job_ids import JobIdList
from eunomia.records.record import Record, Recorder, from_json, to_json

PLAIN = (Start("a", 1, (0,), 360.0), Start('b"\n', 2, (1, 2), math.inf), Start("", 3, (3,), 0.1))
MORE_FIELDS = (
    Start("a", 1, (0,), 360.0, shape=1),
    Start("b", 2, (1, 2), 360.0, partner_id="c", partner_epoch=4),
    Start("d", 2, (3,), 360.0, max_steps=12.5),
)


def written(path: Path, *decisions: Decision) -> list[Any]:
    """Return the decisions of a record of one moment."""
    with Recorder(path, {}) as recorder:
        recorder.observe(Moment(1.5, ()), decisions)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file][2:]


@pytest.mark.parametrize("starts", [PLAIN, MORE_FIELDS, PLAIN + MORE_FIELDS])
def test_many_starts_are_written_as_if_each_were_a_decision(tmp_path: Path, starts: tuple[Start, ...]) -> None:
    each = [{"at": 1.5, "kind": "decision", "decision": to_json(start)} for start in starts]
    assert written(tmp_path / "r.gz", Starts.of(*starts)) == each
    assert [from_json(line["decision"]) for line in each] == list(starts)


def test_ids_named_by_rows_are_written_as_ids(tmp_path: Path) -> None:
    names = JobIdList(np.array([1, 0]), ["a", "b"])
    lines = written(tmp_path / "r.gz", Stop(names, np.array([3, 4])), Renew(names, math.inf))
    assert [line["decision"] for line in lines] == [
        {"is": "Stop", "job_ids": ["b", "a"], "epochs": [3, 4]},
        {"is": "Renew", "job_ids": ["b", "a"], "until": {"number": "inf"}},
    ]


def test_what_is_safe_survives_the_round_trip_to_the_last_bit(tmp_path: Path) -> None:
    report = Progressed(JobIdList(np.array([1, 0]), ["a", "b"]), np.array([0.1 + 0.2, 1e300]))
    with Recorder(tmp_path / "r.gz", {}) as recorder:
        recorder.observe(Moment(0.0, (report,)), ())
    [(_, moment, _)] = Record(tmp_path / "r.gz").steps()
    [found] = moment.events
    assert isinstance(found, Progressed)
    assert (list(found.job_ids), list(found.steps)) == (["b", "a"], [0.1 + 0.2, 1e300])
