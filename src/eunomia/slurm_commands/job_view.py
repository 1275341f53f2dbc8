"""A job of the service in Slurm's words: its states, reasons, numbers, times and fields.

Reference: SchedMD, squeue(1) and sacct(1): "Job State Codes", "Job Reason Codes", fields of --format.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from eunomia.slurm_commands.job_runner import array_base, filled, job_number
from eunomia.slurm_commands.submission import ARRAY_LABEL, COMMENT_LABEL, DEFAULT_PARTITION, NAME_LABEL

STATES = {  # of the service → of Slurm
    "pending": "PENDING",
    "held": "PENDING",
    "preempted": "PENDING",
    "starting": "CONFIGURING",
    "running": "RUNNING",
    "unknown": "RUNNING",
    "stopping": "COMPLETING",
    "succeeded": "COMPLETED",
    "failed": "FAILED",
    "cancelled": "CANCELLED",
    "rejected": "CANCELLED",
    "quarantined": "NODE_FAIL",
}
SHORT = {
    "PENDING": "PD",
    "CONFIGURING": "CF",
    "RUNNING": "R",
    "SUSPENDED": "S",
    "COMPLETING": "CG",
    "COMPLETED": "CD",
    "FAILED": "F",
    "TIMEOUT": "TO",
    "OUT_OF_MEMORY": "OOM",
    "CANCELLED": "CA",
    "NODE_FAIL": "NF",
    "PREEMPTED": "PR",
    "DEADLINE": "DL",
    "BOOT_FAIL": "BF",
}
LIVE = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED")
ARRAY_LIMIT = "array limit"  # of the codes `limit`, that of its own array
REASONS = {  # codes of `eunomia why` → Slurm's
    "no_capacity": "Resources",
    "fragmentation": "Resources",
    "behind": "Priority",
    "share_used": "Priority",
    "policy": "Priority",
    "preempted": "Priority",
    "quota": "AssocGrpGRES",
    "limit": "QOSMaxGRESPerUser",
    ARRAY_LIMIT: "JobArrayTaskLimit",
    "held": "JobHeldUser",
    "after": "Dependency",
    "types_absent": "PartitionNodeLimit",
    "world_unknown": "ReqNodeNotAvail",
    "backoff": "BeginTime",
    "quarantined": "NodeDown",
}
_SIGNALLED = re.compile(r"killed by (?:SIG)?(\w+)")
_EXIT = re.compile(r"exit code (-?\d+)")
UNKNOWN = "Unknown"


def short_state(text: str) -> str:
    """Return the long state of a long or short one in any case; as it is where there is no such state."""
    upper = text.strip().upper()
    return next((long for long, short in SHORT.items() if upper in (long, short)), upper)


def span(seconds: float, *, hours: bool) -> str:
    """Return a span as sacct ([D-]HH:MM:SS) or, without `hours`, squeue has it ([[D-]H:]M:SS)."""
    days, rest = divmod(max(int(seconds), 0), 86_400)
    minutes, s = divmod(rest, 60)
    h, m = divmod(minutes, 60)
    if days:
        return f"{days}-{h:02}:{m:02}:{s:02}"
    if hours:
        return f"{h:02}:{m:02}:{s:02}"
    return f"{h}:{m:02}:{s:02}" if h else f"{m}:{s:02}"


def local_time(text: str | None, none: str = UNKNOWN) -> str:
    """Return a time of the service as Slurm writes it, in local time."""
    return none if text is None else datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%dT%H:%M:%S")


@dataclass(frozen=True, eq=False)
class SlurmJob:
    """One job. `nodes` are names by seat, `reason_code` what `why` says of it where that was asked."""

    found: Mapping[str, Any]
    nodes: Mapping[int, str]
    codes: tuple[str, ...] = ()
    start: str | None = None  # when it is said to start

    @property
    def number(self) -> int:
        """The number by which Slurm's commands know it."""
        return job_number(self.found["id"])

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What the shim gave to its runner; empty for other jobs."""
        command = self.found["spec"].get("command", [])
        if len(command) > 3 and command[2] == "eunomia.slurm_commands.job_runner":
            try:
                found = json.loads(command[3])
            except ValueError:
                return {}
            return found if isinstance(found, dict) else {}
        return {}

    @cached_property
    def array(self) -> int | None:
        """The number of its array; None for a job of none."""
        index = self.found["array_index"]
        if index is None:
            return None
        try:
            mine = self.settings.get("array") or {"before": 0, "from": int(self.found["spec"]["array"].split("-")[0])}
            return array_base(self.number, mine, index)
        except (KeyError, ValueError, TypeError):
            return self.number

    @property
    def token(self) -> str:
        """What all elements of its array have as a label, and no others."""
        return str(self.found["labels"].get(ARRAY_LABEL, ""))

    @property
    def shown_id(self) -> str:
        """Its number, or ARRAY_INDEX."""
        return str(self.number) if self.array is None else f"{self.array}_{self.found['array_index']}"

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.found["labels"].get(NAME_LABEL) or self.found["name"])

    @cached_property
    def state(self) -> str:
        """Its state in Slurm's words."""
        reason = self.found["reason"] or ""
        if self.found["state"] == "failed":
            if "max_run_s" in reason:
                return "TIMEOUT"
            if "of memory" in reason:
                return "OUT_OF_MEMORY"
        return STATES.get(self.found["state"], "PENDING")

    @property
    def is_live(self) -> bool:
        """Whether it is not over."""
        return self.state in LIVE

    @cached_property
    def exit_code(self) -> str:
        """Exit code and signal, as in 1:0."""
        reason = self.found["reason"] or ""
        if self.state == "TIMEOUT":
            return "0:15"
        if self.state == "OUT_OF_MEMORY":
            return "0:125"
        if self.found["state"] == "failed":
            if found := _SIGNALLED.search(reason):
                return f"0:{int(getattr(signal, f'SIG{found[1]}', 9))}"
            found = _EXIT.search(reason)
            return f"{abs(int(found[1])) % 256 if found else 1}:0"
        return "0:0"

    @property
    def reason(self) -> str:
        """Why it waits, or why it has failed, as one word."""
        if self.state == "PENDING":
            if self.found["state"] == "held":
                return "Dependency" if "follows" in (self.found["reason"] or "") else "JobHeldUser"
            return next((REASONS[code] for code in self.codes if code in REASONS), "None")
        failed = {"TIMEOUT": "TimeLimit", "OUT_OF_MEMORY": "OutOfMemory", "NODE_FAIL": "NodeDown"}
        if self.state == "FAILED":
            return "RaisedSignal:" + self.exit_code[2:] if self.exit_code[0:2] == "0:" else "NonZeroExitCode"
        return failed.get(self.state, "None")

    @cached_property
    def node_list(self) -> str:
        """Names of the nodes that it holds, with commas."""
        return ",".join(dict.fromkeys(self.nodes.get(seat, "") for seat in self.found["seats"]))

    @property
    def partition(self) -> str:
        """The accelerator type that it runs on, or may."""
        types = self.found["spec"].get("types") or ()
        return self.found["type"] or ",".join(types) or DEFAULT_PARTITION

    @property
    def elapsed_s(self) -> float:
        """Seconds from its start to its end, or to now."""
        if self.found["started_at"] is None:
            return 0.0
        ended = self.found["ended_at"]
        until = datetime.now(UTC) if ended is None else datetime.fromisoformat(ended)
        return (until - datetime.fromisoformat(self.found["started_at"])).total_seconds()

    def end(self, none: str) -> str:
        """When it ended, or ends at the latest."""
        longest, started = self.found["spec"].get("max_run_s"), self.found["started_at"]
        if self.found["ended_at"] is not None or longest is None or started is None:
            return local_time(self.found["ended_at"], none)
        return local_time((datetime.fromisoformat(started) + timedelta(seconds=longest)).isoformat(), none)

    @property
    def limit(self) -> str:
        """Its longest time."""
        longest = self.found["spec"].get("max_run_s")
        return "UNLIMITED" if longest is None else span(longest, hours=True)

    @property
    def tasks(self) -> int:
        """Processes of its steps."""
        return int(self.settings.get("ntasks") or 1)

    @property
    def cpus(self) -> int:
        """CPUs that it asks for; 1 where it does not say."""
        return int(self.found["spec"].get("cpus") or self.tasks)

    @property
    def memory(self) -> str:
        """Memory of the whole job, as in 16G."""
        mib = round(float(self.found["spec"].get("memory_gib") or 0) * 1024)
        return f"{mib // 1024}G" if mib % 1024 == 0 and mib else f"{mib}M" if mib else "0"

    def tres(self, kind: str = "") -> str:
        """Return what it holds or asks for, as in billing=1,cpu=1,gres/gpu=1."""
        count, memory = self.found["accelerators"], self.memory
        parts = [f"billing={self.cpus}", f"cpu={self.cpus}", f"gres/gpu={count}"]
        parts += [f"gres/gpu:{kind}={count}"] if kind else []
        return ",".join([*parts, *([f"mem={memory}"] if memory != "0" else []), "node=1"])

    @property
    def files(self) -> tuple[str, str]:
        """Where its output and its standard error go; "" for jobs of others than sbatch."""
        if not self.settings:
            return "", ""
        variables = {"SLURM_JOB_ID": str(self.number), "SLURM_JOB_NAME": self.name}
        variables |= {"SLURM_JOB_USER": self.found["owner"], "SLURMD_NODENAME": self.node_list}
        if self.array is not None:
            variables |= {"SLURM_ARRAY_JOB_ID": str(self.array), "SLURM_ARRAY_TASK_ID": str(self.found["array_index"])}
        folder = self.found["spec"].get("cwd", "")
        out = filled(self.settings["output"], variables)
        errors = filled(self.settings["error"] or self.settings["output"], variables)
        shown = [one if one.startswith("/") or not one else f"{folder}/{one}" for one in (out, errors)]
        return shown[0], shown[1]

    @property
    def comment(self) -> str:
        """What --comment gave."""
        return str(self.found["labels"].get(COMMENT_LABEL, ""))

    @property
    def dependency(self) -> str:
        """The jobs that it follows, while it waits for them."""
        after = self.found["spec"].get("after") or ()
        if not after or self.state != "PENDING":
            return ""
        return ",".join(
            one if one == "singleton" else f"{kind or 'afterok'}:{job_number(job)}(unfulfilled)"
            for one in after for kind, _, job in [one.rpartition(":")]
        )  # fmt: skip


Field = Callable[[SlurmJob], object]
_CANCELLED = "cancelled by "


def _state_of_record(job: SlurmJob) -> str:
    """Return the state as sacct has it, which says who has cancelled a job."""
    reason = job.found["reason"] or ""
    return f"CANCELLED by {_uid(reason.removeprefix(_CANCELLED))}" if reason.startswith(_CANCELLED) else job.state


def _uid(user: str) -> str:
    import pwd

    try:
        return str(pwd.getpwnam(user).pw_uid)
    except (KeyError, ValueError):
        return user


def _start(job: SlurmJob, none: str) -> str:
    return local_time(job.found["started_at"] or job.start, none)


def _started_or(none: str) -> Field:
    return lambda job: _start(job, none)


# Fields by the names of sacct and of squeue -O, in lower case.
FIELDS: dict[str, Field] = {
    "jobid": lambda job: job.shown_id,
    "jobidraw": lambda job: job.number,
    "jobarrayid": lambda job: job.shown_id,
    "arrayjobid": lambda job: job.number if job.array is None else job.array,
    "arraytaskid": lambda job: "N/A" if job.array is None else job.found["array_index"],
    "jobname": lambda job: job.name,
    "name": lambda job: job.name,
    "user": lambda job: job.found["owner"],
    "username": lambda job: job.found["owner"],
    "uid": lambda job: _uid(job.found["owner"]),
    "userid": lambda job: _uid(job.found["owner"]),
    "account": lambda job: job.found["tenant"],
    "associd": lambda job: 0,
    "qos": lambda job: "normal",
    "partition": lambda job: job.partition,
    "cluster": lambda job: "eunomia",
    "state": _state_of_record,
    "statecompact": lambda job: SHORT[job.state],
    "exitcode": lambda job: job.exit_code,
    "exit_code": lambda job: job.exit_code,
    "derivedexitcode": lambda job: "0:0",
    "reason": lambda job: job.reason,
    "reasonlist": lambda job: job.node_list or f"({job.reason})",
    "elapsed": lambda job: span(job.elapsed_s, hours=True),
    "elapsedraw": lambda job: int(job.elapsed_s),
    "timeused": lambda job: span(job.elapsed_s, hours=False),
    "timelimit": lambda job: job.limit,
    "timelimitraw": lambda job: int((job.found["spec"].get("max_run_s") or 0) // 60) or "",
    "submit": lambda job: local_time(job.found["submitted_at"]),
    "submittime": lambda job: local_time(job.found["submitted_at"]),
    "eligible": lambda job: local_time(job.found["submitted_at"]),
    "eligibletime": lambda job: local_time(job.found["submitted_at"]),
    "start": _started_or(UNKNOWN),
    "starttime": _started_or("N/A"),
    "end": lambda job: local_time(job.found["ended_at"]),
    "endtime": lambda job: job.end("N/A"),
    "nodelist": lambda job: job.node_list or ("None assigned" if job.found["started_at"] is None else ""),
    "schednodes": lambda job: "(null)",
    "nnodes": lambda job: max(len(job.node_list.split(",")), 1),
    "numnodes": lambda job: max(len(job.node_list.split(",")), 1),
    "allocnodes": lambda job: max(len(job.node_list.split(",")), 1),
    "ncpus": lambda job: job.cpus,
    "numcpus": lambda job: job.cpus,
    "alloccpus": lambda job: job.cpus if job.found["started_at"] else 0,
    "reqcpus": lambda job: job.cpus,
    "ntasks": lambda job: job.tasks,
    "numtasks": lambda job: job.tasks,
    "reqmem": lambda job: job.memory,
    "minmemory": lambda job: job.memory,
    "tres": lambda job: job.tres(),
    "tres-per-node": lambda job: f"gres/gpu:{job.found['accelerators']}",
    "tres-alloc": lambda job: job.tres(job.found["type"] or ""),
    "alloctres": lambda job: job.tres(job.found["type"] or "") if job.found["started_at"] else "",
    "reqtres": lambda job: job.tres((job.found["spec"].get("types") or [""])[0]),
    "gres": lambda job: f"gpu:{job.found['accelerators']}",
    "workdir": lambda job: job.found["spec"].get("cwd", ""),
    "stdout": lambda job: job.files[0],
    "stderr": lambda job: job.files[1],
    "comment": lambda job: job.comment,
    "dependency": lambda job: job.dependency or "(null)",
    "priority": lambda job: job.found["spec"].get("priority", 0),
    "prioritylong": lambda job: job.found["spec"].get("priority", 0),
    "restartcnt": lambda job: max(job.found["epoch"] - 1, 0),
    "requeue": lambda job: int(job.found["interruptible"]),
    "command": lambda job: job.settings.get("path") or "(null)",
    "submitline": lambda job: f"sbatch {job.settings.get('path', '')}",
    "feature": lambda job: "(null)",
    "reservation": lambda job: "(null)",
    "licenses": lambda job: "(null)",
    "maxrss": lambda job: "",
    "avecpu": lambda job: "",
    "totalcpu": lambda job: "00:00:00",
    "cputime": lambda job: span(job.elapsed_s * job.cpus, hours=True),
    "cputimeraw": lambda job: int(job.elapsed_s) * job.cpus,
    "group": lambda job: job.found["tenant"],
    "groupname": lambda job: job.found["tenant"],
}


def _left(job: SlurmJob) -> str:
    longest = job.found["spec"].get("max_run_s")
    return "UNLIMITED" if longest is None else span(longest - job.elapsed_s, hours=False)


def _short_limit(job: SlurmJob) -> str:
    longest = job.found["spec"].get("max_run_s")
    return "UNLIMITED" if longest is None else span(longest, hours=False)


FIELDS["timeleft"] = _left

# Letters of squeue -o: title, and field.
LETTERS: dict[str, tuple[str, Field]] = {
    "i": ("JOBID", FIELDS["jobid"]),
    "A": ("JOBID", FIELDS["jobidraw"]),
    "F": ("ARRAY_JOB_ID", FIELDS["arrayjobid"]),
    "K": ("ARRAY_TASK_ID", FIELDS["arraytaskid"]),
    "P": ("PARTITION", FIELDS["partition"]),
    "j": ("NAME", FIELDS["name"]),
    "u": ("USER", FIELDS["user"]),
    "U": ("USER", FIELDS["uid"]),
    "a": ("ACCOUNT", FIELDS["account"]),
    "g": ("GROUP", FIELDS["group"]),
    "t": ("ST", FIELDS["statecompact"]),
    "T": ("STATE", lambda job: job.state),
    "M": ("TIME", FIELDS["timeused"]),
    "l": ("TIME_LIMIT", _short_limit),
    "L": ("TIME_LEFT", _left),
    "D": ("NODES", FIELDS["numnodes"]),
    "C": ("CPUS", FIELDS["numcpus"]),
    "m": ("MIN_MEMORY", FIELDS["minmemory"]),
    "b": ("TRES_PER_NODE", FIELDS["tres-per-node"]),
    "R": ("NODELIST(REASON)", lambda job: job.node_list if job.state != "PENDING" else f"({job.reason})"),
    "N": ("NODELIST", lambda job: job.node_list),
    "r": ("REASON", FIELDS["reason"]),
    "S": ("START_TIME", _started_or("N/A")),
    "e": ("END_TIME", FIELDS["endtime"]),
    "V": ("SUBMIT_TIME", FIELDS["submit"]),
    "Z": ("WORK_DIR", FIELDS["workdir"]),
    "o": ("COMMAND", FIELDS["command"]),
    "k": ("COMMENT", lambda job: job.comment or "(null)"),
    "E": ("DEPENDENCY", FIELDS["dependency"]),
    "p": ("PRIORITY", FIELDS["priority"]),
    "Q": ("PRIORITY", FIELDS["priority"]),
    "q": ("QOS", FIELDS["qos"]),
    "Y": ("SCHEDNODES", FIELDS["schednodes"]),
    "f": ("FEATURES", FIELDS["feature"]),
    "v": ("RESERVATION", FIELDS["reservation"]),
    "B": ("EXEC_HOST", lambda job: job.node_list.partition(",")[0] or "n/a"),
    "h": ("OVER_SUBSCRIBE", lambda job: "NO"),
}
