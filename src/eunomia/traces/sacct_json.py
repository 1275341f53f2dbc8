"""One file of `sacct --json`: the columns of text that `sacct --parsable2` would have, from its objects.

The layouts of Slurm 21.08 to 25.05 (data_parser v0.0.37 to v0.0.43) are read: a number may be written as
`{"set": true, "infinite": false, "number": 4}`, the state as a word or as a list, of which the last counts as in the
text. Times are seconds since 1970, memory is in MiB. Until Slurm 23.02 `start` was the time of becoming eligible.
Reference: SchedMD, Slurm's plugins data_parser and openapi, "slurmdb_job_rec_t".
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from eunomia.inputs.file_contents import decoded
from eunomia.inputs.json_text import NotJson, items_under
from eunomia.inputs.problems import Problems, refused
from eunomia.traces.engine_objects import at
from eunomia.traces.sacct_file import FIELDS, SacctFile

COMMAND = "sacct --allusers --allocations --duplicates --json --starttime 2024-01-01 --endtime now"
TRUE_START = (23, 11)  # version of Slurm from which on starts are those of runs
NO_VALUE = 4_294_967_294  # of 32 bits, and above: Slurm's "not set" and "unlimited"
NEEDED = ("job_id", "time.submission", "state.current", "tres")
READ = frozenset({"job_id", "array", "het", "cluster", "time", "state", "account", "user", "association", "partition",
                  "qos", "allocation_nodes", "nodes", "tres", "restart_cnt", "steps"})  # fmt: skip
COLUMNS = tuple(name for name in FIELDS if name not in ("JobIDRaw", "Elapsed", "AllocNodes", "AllocGRES", "ReqGRES"))
WRONG_START = (
    "runs have the time when they became eligible as their start, as Slurm before 23.11 writes it; End less Elapsed "
    "counts"
)
NO_START = "runs go on and have that time too; when they started is not known"
Json: TypeAlias = dict[str, Any]


def begins_sacct(text: str) -> bool:
    """Say whether a text begins as sacct's JSON: kubectl's begins with apiVersion."""
    return re.match(r'\s*\{\s*"(?:jobs|meta|errors|warnings)"', text) is not None


def is_json(raw: bytes) -> bool:
    """Say whether a file begins as JSON."""
    return raw.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def read_json_file(raw: bytes, name: str) -> SacctFile:
    """Return one file of sacct's JSON. Raises InvalidInput for another file, with each job that lacks a field."""
    problems, fix = Problems(name), f"write the file with: {COMMAND}"
    cells: dict[str, list[str]] = {column: [] for column in COLUMNS}
    line: list[int] = []
    wrong: list[int] = []  # places of runs that have another start than the file says
    unsure: list[int] = []  # of runs that go on, and began when they became eligible
    unread: dict[str, None] = {}
    text = decoded(name, raw)
    release = re.search(r'"release"\s*:\s*"(\d+)\.(\d+)', text)
    is_old = release is not None and (int(release[1]), int(release[2])) < TRUE_START
    try:
        for row, job in items_under(text, "jobs"):
            if not _check(job, row, problems, fix):
                continue
            unread |= dict.fromkeys(key for key in job if key not in READ)
            said, started = _number(at(job, "time", "start")), _start(job)
            if started != said:
                wrong.append(len(line))
            elif said and said == _number(at(job, "time", "eligible")) and not _number(at(job, "time", "end")):
                unsure.append(len(line))
            for column, cell in zip(COLUMNS, _cells(job, started), strict=True):
                cells[column].append(cell)
            line.append(row)
    except NotJson as error:
        raise refused(name, None, None, f"this is not JSON of sacct ({error.rule})", fix, row=error.row) from None
    problems.raise_if_any()
    found = []
    if wrong or is_old:
        for kind, what, places in (("repaired", WRONG_START, wrong), ("missing", NO_START, unsure)):
            if places:
                found.append((kind, what, len(places), line[places[0]], f"JobID={cells['JobID'][places[0]]}"))
        for m in unsure:
            cells["Start"][m] = ""
    return SacctFile(
        name=name,
        raw=b"",
        columns={column: pa.array(texts, pa.string()) for column, texts in cells.items()},
        unread=tuple(unread),
        line=np.array(line, dtype=np.int64),
        found=tuple(found),
    )


def _check(job: Any, row: int, problems: Problems, fix: str) -> bool:
    """Say whether a job has what is needed; what it lacks is a problem of its row."""
    if not isinstance(job, dict):
        problems.add("a job must be an object", fix, row=row, column="jobs", value=str(job)[:80])
        return False
    known = problems.count
    for field in NEEDED:
        if at(job, *field.split(".")) is None:
            problems.add("this field is missing", fix, row=row, column=field)
    for field in ("job_id", "time.submission", "time.eligible", "time.start", "time.end", "time.elapsed",
                  "time.suspended", "allocation_nodes", "restart_cnt"):  # fmt: skip
        found = at(job, *field.split("."))
        if found is not None and not _is_number(found):
            problems.add("must be a number", fix, row=row, column=field, value=str(found)[:80])
    for field in ("allocated", "requested"):
        listed = at(job, "tres", field, default=[])
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            problems.add("must be a list of objects", fix, row=row, column=f"tres.{field}", value=str(listed)[:80])
    return problems.count == known


def _cells(job: Json, started: int | None) -> tuple[str, ...]:
    """Return the text of each of COLUMNS."""
    suspended = _number(at(job, "time", "suspended")) or 0
    return (
        _job_id(job),
        _text(job, "cluster"),
        _written(at(job, "time", "submission")),
        _written(at(job, "time", "eligible")),
        "" if started is None else str(started),
        _written(at(job, "time", "end")),
        _written(at(job, "time", "elapsed")),
        f"0:{suspended}",
        _state(at(job, "state", "current")),
        _text(job, "account") or _text(job, "association", "account"),
        _text(job, "user") or _text(job, "association", "user"),
        _text(job, "partition"),
        _text(job, "qos"),
        _written(job.get("allocation_nodes")),
        _text(job, "nodes"),
        _tres(job, "allocated"),
        _tres(job, "requested"),
        _written(job.get("restart_cnt")),
    )


def _job_id(job: Json) -> str:
    """Return the id as sacct's text has it: 12_3 of an array, 12_[4-9] of its tasks that wait, 12+1 of a component."""
    number, array, het = (_written(at(job, *where)) for where in (("job_id",), ("array", "job_id"), ("het", "job_id")))
    if array not in ("", "0"):
        task, waiting = _written(at(job, "array", "task_id")), _text(job, "array", "task")
        return f"{array}_{task}" if task else f"{array}_[{waiting}]" if waiting else number
    offset = _written(at(job, "het", "job_offset"))
    return f"{het}+{offset or 0}" if het not in ("", "0") else number


def _start(job: Json) -> int | None:
    """Return when a run started; of a file that has its eligible time there, from its end."""
    started, eligible, ended, elapsed, suspended = (
        _number(at(job, "time", name)) for name in ("start", "eligible", "end", "elapsed", "suspended")
    )
    if started and started == eligible and ended and elapsed:
        return max(started, ended - elapsed - (suspended or 0))
    return started


def _state(current: Any) -> str:
    words = current if isinstance(current, list) else [current]
    return str(words[-1]) if words else ""


def _tres(job: Json, which: str) -> str:
    """Return a list of resources as sacct's text has it, such as cpu=8,mem=65536M,gres/gpu:a100=4."""
    found = []
    for one in at(job, "tres", which, default=[]):
        kind, name, count = _text(one, "type"), _text(one, "name"), _number(one.get("count"))
        if count is not None and count > 0:
            found.append(f"{kind}{f'/{name}' if name else ''}={count}{'M' if kind == 'mem' else ''}")
    return ",".join(found)


def _text(job: Json, *keys: str) -> str:
    found = at(job, *keys)
    return found.strip() if isinstance(found, str) else ""


def _is_number(value: Any) -> bool:
    if isinstance(value, dict):
        return _is_number(value.get("number", 0))
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(value: Any) -> int | None:
    """Return a number of Slurm; None for one that is not set, or unlimited."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
    if not _is_number(value) or not 0 <= value < NO_VALUE:
        return None
    return int(value)


def _written(value: Any) -> str:
    found = _number(value)
    return "" if found is None else str(found)
