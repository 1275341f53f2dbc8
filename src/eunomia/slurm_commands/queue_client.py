"""The service as the commands see it: jobs by number, by array and by what was asked for."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

from eunomia.service.client import Client, ServiceRefusal, find_service
from eunomia.slurm_commands.command_line import Given, WrongUsage
from eunomia.slurm_commands.job_view import ARRAY_LIMIT, SlurmJob, short_state
from eunomia.slurm_commands.submission import ARRAY_LABEL

PAGE = 1000
LIVE = "pending,held,starting,running,stopping,preempted,unknown"
ID = re.compile(r"(\d{1,15})(?:_(\[[\d,\-:%]+\]|\d+|\*))?(?:[.+]\w+)?|(\d{1,15}-\w+)")


class NoSuchJob(WrongUsage):
    """No job that one may see has this number."""


class QueueClient:
    """One service. Raises ServiceRefusal and Unreachable as its client does."""

    def __init__(self) -> None:
        self.client = Client(find_service())

    @cached_property
    def nodes(self) -> list[dict[str, Any]]:
        """All nodes."""
        found: list[dict[str, Any]] = self.client.get("/v1/nodes")["nodes"]
        return found

    @cached_property
    def node_by_seat(self) -> dict[int, str]:
        """The names of nodes by seats, which are numbered node by node."""
        names = [node["name"] for node in self.nodes for _ in range(node["accelerators"])]
        return dict(enumerate(names))

    @cached_property
    def me(self) -> str:
        """The user of these commands, as the service knows it."""
        if not self.client.address.token:
            return getpass.getuser()
        mine = self.client.get("/v1/tokens")["tokens"]
        known = self.client.address.token.partition(".")[0]
        return next((str(one["user"]) for one in mine if known.endswith(one["id"])), getpass.getuser())

    def view(self, found: dict[str, Any]) -> SlurmJob:
        """Return a job in Slurm's words."""
        return SlurmJob(found, self.node_by_seat)

    def listed(self, *, states: str = "", label: str = "", before: int = 0) -> Iterator[SlurmJob]:
        """Yield jobs, the newest first."""
        cursor: str | None = str(before) if before else None
        while True:
            page = self.client.get("/v1/jobs", state=states, label=label, limit=PAGE, cursor=cursor)
            yield from map(self.view, page["jobs"])
            if (cursor := page["next"]) is None:
                return

    def by_number(self, number: int) -> SlurmJob:
        """Return the job of a number. Raises NoSuchJob."""
        page = self.client.get("/v1/jobs", limit=1, cursor=number + 1)["jobs"]
        if not page or (job := self.view(page[0])).number != number:
            raise NoSuchJob("Invalid job id specified")
        return job

    def jobs_of(self, text: str) -> list[SlurmJob]:
        """Return the jobs of `60`, `60_3`, `60_[1-4]` or an id of the service; of an array's number all its elements.

        Raises NoSuchJob.
        """
        found = ID.fullmatch(text.strip())
        if found is None:
            raise NoSuchJob(f"Invalid job id {text}")
        if found[3]:
            try:
                return [self.view(self.client.get(self.client.job_path(found[3])))]
            except ServiceRefusal as error:
                raise NoSuchJob("Invalid job id specified") from error
        job = self.by_number(int(found[1]))
        if job.array is None or job.array != job.number:
            if found[2] and job.array is None:
                raise NoSuchJob("Invalid job id specified")
            return [job]
        elements = list(self.listed(label=f"{ARRAY_LABEL}={job.token}")) if job.token else [job]
        elements.sort(key=lambda one: one.number)
        wanted = found[2]
        if not wanted or wanted == "*":
            return elements
        from eunomia.slurm_commands.submission import elements_of

        ranges = elements_of(wanted).pieces
        chosen = [one for one in elements if any(a <= one.found["array_index"] <= b for a, b in ranges)]
        if not chosen:
            raise NoSuchJob("Invalid job id specified")
        return chosen

    def ids(self, text: str) -> list[str]:
        """Return the ids of the service of the same."""
        return [job.found["id"] for job in self.jobs_of(text)]

    def with_reason(self, job: SlurmJob) -> SlurmJob:
        """Return a waiting job with the codes of why it waits."""
        if job.found["state"] not in ("pending", "preempted", "held"):
            return job
        try:
            found = self.client.get(f"{self.client.job_path(job.found['id'])}/why", played=0)
        except ServiceRefusal:
            return job
        reasons = [(one["code"], one["text"]) for one in found["reasons"]]
        codes = [ARRAY_LIMIT if code == "limit" and "its array" in text else code for code, text in reasons]
        return replace(job, codes=tuple(codes))

    def with_start(self, job: SlurmJob) -> SlurmJob:
        """Return a waiting job with the time at which it is said to start."""
        if job.state != "PENDING":
            return job
        try:
            found = self.client.get(f"{self.client.job_path(job.found['id'])}/when")
        except ServiceRefusal:
            return job
        return replace(job, start=(found["start"] or {}).get("p50"))

    def act(self, job: SlurmJob, method: str, suffix: str = "", body: Any = None) -> dict[str, Any]:
        """Send a request about a job."""
        return self.client.send(method, self.client.job_path(job.found["id"]) + suffix, body)


def is_chosen(job: SlurmJob, given: Given, me: str) -> bool:
    """Return whether a job is of the users, names, states and partitions that were given; what was not given, any."""
    users = given.listed("user") + given.listed("uid") + [me] * ("me" in given)
    names = given.listed("name") + given.listed("jobname")
    states = [short_state(one) for one in given.listed("states") + given.listed("state")]
    parts = [one for one in given.listed("partition") if one != "main"]
    return (
        (not users or job.found["owner"] in users or _same_user(job.found["owner"], users))
        and (not names or job.name in names)
        and (not states or "ALL" in states or job.state in states)
        and (not parts or any(one in job.partition.split(",") for one in parts))
    )


def _same_user(owner: str, users: Sequence[str]) -> bool:
    import pwd

    numbers = [int(one) for one in users if one.isascii() and one.isdigit()]
    try:
        return pwd.getpwnam(owner).pw_uid in numbers
    except (KeyError, ValueError):
        return False


def moment(text: str, now: datetime) -> datetime:
    """Return a time as sacct reads it: dates, times, now, today, now-1day. Raises WrongUsage."""
    from datetime import timedelta

    words = {"now": now, "today": now.replace(hour=0, minute=0, second=0, microsecond=0), "midnight": now.replace(
        hour=0, minute=0, second=0, microsecond=0)}  # fmt: skip
    if text in words:
        return words[text]
    units = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
    if found := re.fullmatch(r"(now|today|midnight)([+-])(\d{1,9})(second|minute|hour|day|week)?s?", text):
        shift = timedelta(seconds=int(found[3]) * units[found[4] or "second"])
        return words[found[1]] + (shift if found[2] == "+" else -shift)
    if text.isascii() and text.isdigit() and len(text) == 10:  # seconds since 1970
        return datetime.fromtimestamp(int(text)).astimezone()
    for form in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%m/%d/%y", "%m/%d/%y-%H:%M:%S", "%m%d%y"):
        try:
            return datetime.strptime(text, form).astimezone()
        except ValueError:
            continue
    for form in ("%H:%M:%S", "%H:%M", "%m/%d", "%m%d"):
        try:
            found_time = datetime.strptime(f"2000 {text}", f"%Y {form}")
        except ValueError:
            continue
        if ":" in form:
            return words["today"].replace(hour=found_time.hour, minute=found_time.minute, second=found_time.second)
        return words["today"].replace(month=found_time.month, day=found_time.day)
    raise WrongUsage(f"Invalid time specification (pos=0): {text}")


def inside_job() -> str:
    """Return the number of the job in which the command runs; "" outside."""
    return os.environ.get("SLURM_JOB_ID", "") if "EUNOMIA_JOB_ID" in os.environ else ""
