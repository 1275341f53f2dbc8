"""A site on two declared accelerators: its controller alone, or the whole service as a process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.lease import write_whole
from eunomia.records.run import InlinePolicyRunner
from eunomia.service.client import Address, Client
from eunomia.service.clock import SetClock
from eunomia.service.controller import Controller
from eunomia.service.failed_starts import suspects
from eunomia.service.job_document import parse_job
from eunomia.service.messages import LongSubmission, Principal, Reply, Request, Submit
from eunomia.service.recovery import recover
from eunomia.service.site import Site, load_site
from eunomia.service.store import open_store
from eunomia.service.writer import Writer

SITE = """\
check = true
[service]
made_up = true
listen = "127.0.0.1:0"
supervisor_lease_s = 30
submit_per_second = 10000
[cluster]
accelerators = { cpu = 2 }
[policy]
name = "las"
quantum = 60
"""
ANN, BOB = Principal("ann", "vision", "submitter"), Principal("bob", "speech", "submitter")
ADMIN, OPERATOR = Principal("eve", "vision", "tenant-admin"), Principal("op", "operators", "operator")


class Bench:
    """Store, controller and writer of a site, without threads; `restart` is what a kill and a new start do."""

    def __init__(self, folder: Path, site: str = SITE, *, numbered: bool = False) -> None:
        self.starts = 0 if numbered else -1  # numbered starts give the same ids each time
        self.path = folder / "site.toml"
        self.path.write_text(site)
        self.site: Site = load_site(self.path)
        self.clock = SetClock(0.0)
        self._keys = 0
        self.orders: list[Any] = []
        self._open()

    def _open(self) -> None:
        self.store = open_store(self.site.place, self.site.state)
        try:
            self.starts += self.starts >= 0
            name = f"start{self.starts}" if self.starts > 0 else ""
            runner = InlinePolicyRunner(self.site.setup.policy)
            controller, self.orders = recover(self.store, self.site, runner, name, suspects(self.site.state))
        except BaseException:
            self.store.close()
            raise
        self.writer = Writer(controller, self.store, self.clock)

    @property
    def controller(self) -> Controller:
        """The present one: after a turn that failed it is another one."""
        return self.writer.controller

    def restart(self, site: str | None = None) -> None:
        self.store.close()
        if site is not None:
            self.path.write_text(site)
            self.site = load_site(self.path)
        self._open()

    def do(self, *inputs: Any) -> list[Reply | None]:
        """Take in what has arrived, and go on with long submissions until they have their replies."""
        turn = self.writer.turn(inputs)
        self.orders, replies = list(turn.orders), list(turn.replies)
        for place in range(len(replies)):
            while isinstance(found := replies[place], LongSubmission):
                turn = self.writer.turn([found])
                self.orders += turn.orders
                (replies[place],) = turn.replies
        return [one for one in replies if not isinstance(one, LongSubmission)]

    def submit(self, who: Principal = ANN, key: str = "", **document: Any) -> Reply:
        self._keys += 1
        key = key or f"key-{self._keys:05}"
        jobs = (parse_job({"command": ["train"], "interruptible": True, **document}),)
        (reply,) = self.do(Request(Submit(jobs, key, repr(sorted(document.items())), jobs[0].array is not None), who))
        assert reply is not None
        return reply

    def state(self, job_id: str) -> str:
        row = self.controller.rows.get(job_id) or self.store.job(job_id)
        assert row is not None
        return row.state


class LiveService:
    """`eunomia serve` as a process, in a folder of its own."""

    def __init__(self, folder: Path, site: str = SITE) -> None:
        self.folder = folder
        (folder / "site.toml").write_text(site)
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self, **variables: str) -> None:
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "eunomia", "serve", "site.toml"],
                cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **variables},
            )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), (self.folder / "log").read_text()
        self.url = line.split()[-1]

    @property
    def operator(self) -> Client:
        return Client(Address(self.url, (self.folder / "state" / "operator.token").read_text().strip()))

    def client(self, user: str, tenant: str, role: str = "submitter") -> Client:
        made = self.operator.send("POST", "/v1/tokens", {"user": user, "tenant": tenant, "role": role})
        return Client(Address(self.url, made["token"]))

    def kill(self, number: int = signal.SIGKILL) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(300)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def stop_jobs(self) -> None:
        """End what still runs, as a supervisor's lease would, and wait for it; the service must have ended.

        Jobs may have stopped their supervisors, and moved their files or put others in their place.
        """
        jobs = self.folder / "state" / "jobs"
        for lease in jobs.glob("*/lease-*.json"):
            write_whole(lease, '{"end_s": 0, "stop": 0.0}')
        locks = {lock.stat().st_ino for lock in jobs.glob("*/*.lock*") if lock.is_file() and not lock.is_symlink()}

        def have_ended() -> bool:
            supervisors = locked_by(locks)
            for pid in supervisors:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, signal.SIGTERM)  # which one without a lease takes, too
            return not supervisors

        until(have_ended)


def command_line(service: LiveService, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return what types a command as the operator of a service, and returns what it prints to standard output."""
    monkeypatch.setenv("EUNOMIA_STATE", str(service.folder / "state"))
    for name in ("EUNOMIA_URL", "EUNOMIA_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    def typed(*words: str) -> str:
        said = CliRunner().invoke(app, list(words))
        assert said.exit_code == 0, said.output
        return said.stdout

    return typed


def locked_by(files: set[int]) -> set[int]:
    """Return the processes that have locked files, which are given by their inodes."""
    words = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return {int(one[4]) for one in words if one[1] == "FLOCK" and int(one[5].rpartition(":")[2]) in files}


def until(holds: Callable[[], Any], within_s: float = 180.0, state: Callable[[], Any] = lambda: "") -> Any:
    """Wait until something holds, and return it; where it takes too long, raise an error with the state then."""
    deadline = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < deadline, f"it did not come to hold in time {state()}".rstrip()
        time.sleep(0.05)
    return found
