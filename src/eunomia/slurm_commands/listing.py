"""`squeue` and `sacct`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from eunomia.slurm_commands.command_line import Given, say, typed
from eunomia.slurm_commands.job_view import FIELDS, LETTERS, SlurmJob
from eunomia.slurm_commands.queue_client import LIVE, NoSuchJob, QueueClient, is_chosen, moment
from eunomia.slurm_commands.submission import from_environment
from eunomia.slurm_commands.tables import SACCT, SQUEUE
from eunomia.slurm_commands.text_tables import TextColumn, by_letters, by_names, cut_with_plus, lines_of, ruled

SQUEUE_FORM = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
SQUEUE_LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
SQUEUE_START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
SACCT_FORM = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
SACCT_LONG = "JobID,JobName,Partition,User,Account,AllocTRES,State,ExitCode,Submit,Start,End,Elapsed,Timelimit,NodeList"
_NAMES = """
    JobID JobIDRaw JobName User UID Account AssocID QOS Partition Cluster State ExitCode DerivedExitCode
    Reason Elapsed ElapsedRaw Timelimit TimelimitRaw Submit Eligible Start End NodeList NNodes NCPUS
    AllocCPUS AllocNodes ReqCPUS NTasks ReqMem AllocTRES ReqTRES WorkDir StdOut StdErr Comment Priority
    SubmitLine MaxRSS AveCPU TotalCPU CPUTime CPUTimeRAW Group Reservation Licenses
"""
TITLES = {name.lower(): name for name in _NAMES.split()}  # fields of sacct
WIDTHS = {"JobID": -12, "ExitCode": 8, "DerivedExitCode": 15, "Start": 19, "End": 19, "Submit": 19, "Eligible": 19,
          "NodeList": 15, "User": 9, "NNodes": 8, "NTasks": 8, "JobIDRaw": -12, "AllocNodes": 10, "WorkDir": 20,
          "ElapsedRaw": 10, "TimelimitRaw": 12, "Comment": 14, "Reason": 22, "Reservation": 20}  # fmt: skip
LONG_TITLES = {
    "TIMEUSED": "TIME",
    "REASONLIST": "NODELIST(REASON)",
    "USERNAME": "USER",
    "USERID": "USER",
    "STATECOMPACT": "ST",
    "TIMELIMIT": "TIME_LIMIT",
    "TIMELEFT": "TIME_LEFT",
    "STARTTIME": "START_TIME",
    "ENDTIME": "END_TIME",
    "SUBMITTIME": "SUBMIT_TIME",
    "NUMNODES": "NODES",
    "NUMCPUS": "CPUS",
    "JOBARRAYID": "JOBID",
    "ARRAYJOBID": "ARRAY_JOB_ID",
    "ARRAYTASKID": "ARRAY_TASK_ID",
    "MINMEMORY": "MIN_MEMORY",
    "TRES-PER-NODE": "TRES_PER_NODE",
    "TRES-ALLOC": "TRES_ALLOC",
    "WORKDIR": "WORK_DIR",
}
MOST_REASONS = 100  # waiting jobs of a list whose reasons are asked for
NEEDS_REASON = frozenset("rR")


def squeue(words: Sequence[str]) -> int:
    """List jobs that are not over."""
    given = typed("squeue", "[OPTIONS]", SQUEUE, words)
    from_environment(given, SQUEUE, dict(os.environ), "SQUEUE")
    given.say_ignored()
    queue = QueueClient()
    found, code = _wanted(queue, given)
    me = queue.me if "me" in given else ""
    if not given.listed("states"):
        found = [job for job in found if job.is_live]
    found = [job for job in found if is_chosen(job, given, me)]
    found.sort(key=_queue_order(given.get("sort")), reverse=given.get("sort").startswith("-"))
    rows = found if "array" in given else _collapsed(found)
    if "start" in given:
        rows = [queue.with_start(row) for row in rows if row.state == "PENDING"]
    if "json" in given:
        print(
            json.dumps(
                {"jobs": [as_json(queue.with_reason(job)) for job in found], "warnings": [], "errors": []}, indent=1
            )
        )
        return code
    if "long" in given and "noheader" not in given:
        print(time.strftime("%a %b %d %H:%M:%S %Y"))
    for line in _queue_lines(queue, given, rows):
        print(line)
    return code


def _wanted(queue: QueueClient, given: Given) -> tuple[list[SlurmJob], int]:
    """Return the jobs of the numbers that were given, else all that may be listed, and an exit code."""
    numbers = given.listed("jobs") + [one for word in given.words for one in word.split(",") if one]
    if not numbers:
        states = "" if given.listed("states") else LIVE
        return list(queue.listed(states=states)), 0
    found, code = list[SlurmJob](), 0
    for number in numbers:
        try:
            found += queue.jobs_of(number)
        except NoSuchJob as error:
            if len(numbers) == 1:
                say("slurm_load_jobs error", str(error))
                code = 1
    return found, code


def _queue_order(sort: str) -> Any:
    """Return the key of an order: waiting jobs behind the others, each by number, or by number alone for `i`."""
    if sort.strip("+-").startswith(("i", "A", "S")):
        return lambda job: job.number
    return lambda job: (job.state != "PENDING", job.number)


def _queue_lines(queue: QueueClient, given: Given, rows: Sequence[SlurmJob]) -> list[str]:
    if "Format" in given and "format" not in given:
        names = [one for one in given.get("Format").split(",") if one]
        named = by_names(names, {**FIELDS, "jobid": FIELDS["jobidraw"]}, ":", 20, upper=True)
        columns, behind = [replace(one, title=LONG_TITLES.get(one.title, one.title)) for one in named], ""
        asks = any("reason" in name.lower() for name in names)
    else:
        form = given.get("format") or (
            SQUEUE_START if "start" in given else SQUEUE_LONG if "long" in given else SQUEUE_FORM
        )
        columns, behind = by_letters(form, LETTERS)
        asks = any(one.show is LETTERS[letter][1] for one in columns for letter in NEEDS_REASON)
    if asks:
        rows = [queue.with_reason(row) if place < MOST_REASONS else row for place, row in enumerate(rows)]
    return lines_of(columns, rows, header="noheader" not in given, after=behind)


@dataclass(frozen=True, eq=False)
class WaitingElements(SlurmJob):
    """The elements of an array that wait, as one line."""

    indices: tuple[int, ...] = ()

    @property
    def shown_id(self) -> str:
        """The array and its elements, as in 60_[3-99%4]."""
        pieces: list[list[int]] = []
        for index in self.indices:
            if pieces and pieces[-1][1] == index - 1:
                pieces[-1][1] = index
            else:
                pieces.append([index, index])
        text = ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in pieces)
        _, sign, most = str(self.found["spec"].get("array", "")).partition("%")
        return f"{self.array}_[{text}{sign}{most}]"


def _collapsed(jobs: Iterable[SlurmJob]) -> list[SlurmJob]:
    """Return jobs with one line for all elements of an array that wait."""
    found: list[SlurmJob] = []
    place: dict[tuple[str, str], int] = {}
    for job in jobs:
        key = job.token, job.found["state"]
        if not job.token or job.state != "PENDING":
            found.append(job)
        elif key not in place:
            place[key] = len(found)
            found.append(WaitingElements(job.found, job.nodes, job.codes, job.start, (job.found["array_index"],)))
        else:
            first = found[place[key]]
            assert isinstance(first, WaitingElements)
            found[place[key]] = replace(first, indices=tuple(sorted((*first.indices, job.found["array_index"]))))
    return found


def as_json(job: SlurmJob) -> dict[str, Any]:
    """Return a job as `squeue --json` has it: names of the fields of Slurm's own, where there is one."""

    def at(name: str) -> int:
        return 0 if job.found[name] is None else int(datetime.fromisoformat(job.found[name]).timestamp())

    code, _, number = job.exit_code.partition(":")
    return {
        "job_id": job.number, "array_job_id": {"set": True, "infinite": False, "number": job.array or 0},
        "array_task_id": {"set": job.array is not None, "infinite": False, "number": job.found["array_index"] or 0},
        "name": job.name, "user_name": job.found["owner"], "account": job.found["tenant"], "partition": job.partition,
        "job_state": [job.state], "state_reason": job.reason, "nodes": job.node_list,
        "submit_time": {"set": True, "infinite": False, "number": at("submitted_at")},
        "start_time": {"set": True, "infinite": False, "number": at("started_at")},
        "end_time": {"set": True, "infinite": False, "number": at("ended_at")},
        "time_limit": {"set": job.limit != "UNLIMITED", "infinite": job.limit == "UNLIMITED",
                       "number": int((job.found["spec"].get("max_run_s") or 0) // 60)},
        "exit_code": {"return_code": {"set": True, "infinite": False, "number": int(code)},
                      "signal": {"id": {"set": number != "0", "infinite": False, "number": int(number)}}},
        "tres_req_str": job.tres(), "tres_alloc_str": job.tres(job.found["type"] or ""), "comment": job.comment,
        "current_working_directory": job.found["spec"].get("cwd", ""), "standard_output": job.files[0],
        "standard_error": job.files[1], "command": job.settings.get("path", ""), "cluster": "eunomia",
    }  # fmt: skip


# ---- sacct -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BatchStep(SlurmJob):
    """The one step that the accounting has of a job that has started: its script."""

    @property
    def shown_id(self) -> str:
        """Its name."""
        return f"{super().shown_id}.batch"

    @property
    def name(self) -> str:
        """What steps of scripts are called."""
        return "batch"


STEP_FIELDS = {
    name: (lambda job: "") for name in ("user", "partition", "uid", "timelimit", "timelimitraw", "qos", "reqtres")
}


def sacct(words: Sequence[str]) -> int:
    """List jobs, also those that are over."""
    given = typed("sacct", "[OPTIONS]", SACCT, words)
    if "helpformat" in given:
        print("\n".join(sorted(TITLES.values())))
        return 0
    from_environment(given, SACCT, dict(os.environ), "SACCT")
    given.say_ignored()
    queue = QueueClient()
    jobs = _recorded(queue, given)
    if "json" in given:
        print(json.dumps({"jobs": [as_json(job) for job in jobs], "warnings": [], "errors": []}, indent=1))
        return 0
    names = given.listed("format") or (
        ["JobID", "State", "ExitCode"]
        if "brief" in given
        else (SACCT_LONG if "long" in given else SACCT_FORM).split(",")
    )
    columns = [_titled(one) for one in by_names(names, _RECORD, "%", 0, upper=False)]
    rows = list[SlurmJob]()
    for job in jobs if "array" in given else _collapsed(jobs):
        rows.append(job)
        if "allocations" not in given and job.found["started_at"] is not None:
            rows.append(BatchStep(job.found, job.nodes))
    parsable = "parsable2" if "parsable2" in given else "parsable" if "parsable" in given else ""
    columns = columns if parsable else [cut_with_plus(one) for one in columns]
    for line in ruled(
        columns, rows, header="noheader" not in given, parsable=parsable, delimiter=given.get("delimiter", "|")
    ):
        print(line)
    return 0


def _record(name: str) -> Any:
    show, of_step = FIELDS[name], STEP_FIELDS.get(name, FIELDS[name])
    if name == "state":
        return lambda job: job.state if isinstance(job, BatchStep) else show(job)
    if name == "jobidraw":
        return lambda job: f"{job.number}.batch" if isinstance(job, BatchStep) else show(job)
    return lambda job: of_step(job) if isinstance(job, BatchStep) else show(job)


_RECORD = {name: _record(name) for name in TITLES if name in FIELDS}


def _titled(column: TextColumn) -> TextColumn:
    """Return a column with the title and the width that sacct has for it."""
    title = TITLES[column.title.lower()]
    if column.width:
        return replace(column, title=title)
    width = WIDTHS.get(title, 10)
    return replace(column, title=title, width=abs(width), right=width > 0)


def _recorded(queue: QueueClient, given: Given) -> list[SlurmJob]:
    """Return the jobs that were asked for, the oldest first."""
    now = datetime.now().astimezone()
    numbers = given.listed("jobs") + [one for word in given.words for one in word.split(",") if one]
    begin = given.get("starttime") or ("" if numbers or given.listed("state") else "today")
    since = moment(begin, now) if begin else None
    until = moment(given.get("endtime"), now) if given.get("endtime") else None
    found = list[SlurmJob]()
    if numbers:
        for number in numbers:
            try:
                found += queue.jobs_of(number)
            except NoSuchJob:
                continue
    else:
        found = list(queue.listed())
        if not given.listed("user") and not given.listed("uid") and "allusers" not in given:
            me = queue.me
            found = [job for job in found if job.found["owner"] == me]
    found = [job for job in found if is_chosen(job, given, "") and _is_within(job, since, until)]
    return sorted({job.number: job for job in found}.values(), key=lambda job: job.number)


def _is_within(job: SlurmJob, since: datetime | None, until: datetime | None) -> bool:
    ended, submitted = job.found["ended_at"], datetime.fromisoformat(job.found["submitted_at"])
    return (since is None or ended is None or datetime.fromisoformat(ended) >= since) and (
        until is None or submitted <= until
    )
