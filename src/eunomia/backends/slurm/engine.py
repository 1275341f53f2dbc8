"""Slurm as an engine: gangs are batch jobs with our mark in their comment.

A gang whose nodes give unequal numbers of accelerators is a heterogeneous job with one component for each number. Which
of a node's accelerators a gang has is Slurm's choice, given to the gang in CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

import math
import os
import shlex
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eunomia.backends.engines.engine import (
    OVER,
    EngineEnd,
    EngineGang,
    EngineNode,
    GangRequest,
    HeldSubmission,
    Mark,
)
from eunomia.backends.slurm.commands import (
    SEPARATOR,
    Runner,
    checked,
    records,
    rows,
    run_command,
    setting,
)
from eunomia.backends.slurm.states import accelerators, phase
from eunomia.inputs.slurm_values import NODE_LOST

AWAY = ("DOWN", "DRAIN", "FAIL", "MAINT", "POWER", "REBOOT", "NOT_RESP", "NO_RESP", "UNKNOWN", "FUTURE", "INVAL")
QUEUE = {"number": "%i", "state": "%T", "user": "%u", "reason": "%r", "comment": "%k"}
TAIL_BYTES = 1 << 20  # of the completion log
ALREADY_DONE = 2021 % 256  # exit code of a scancel that comes too late, and says nothing: ESLURM_ALREADY_DONE


class Slurm:
    """The Slurm cluster that this machine's commands speak to."""

    name = "Slurm"
    node_lost = NODE_LOST
    cluster = ""
    adopts = False

    def __init__(self, *, partition: str = "", account: str = "", timeout_s: float = 10.0,
                 run: Runner = run_command) -> None:  # fmt: skip
        self._partition, self._account, self._timeout_s, self._run = partition, account, timeout_s, run
        self._config: dict[str, str] | None = None

    def call(self, *argv: str) -> str:
        """Return what a command prints. Raises EngineAway or EngineRefused."""
        return checked(self._run(argv, self._timeout_s), argv[0])

    # ---- gangs ---------------------------------------------------------------------------------------------------

    def submit(self, request: GangRequest) -> str:
        """Submit a batch job that starts when its nodes have the accelerators free; return its number."""
        script = request.stdin.with_suffix(".sh")
        handle = os.open(script, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec {shlex.join(request.argv)} < {shlex.quote(str(request.stdin))}\n")
        argv = ["sbatch", "--parsable"]
        for number, component in enumerate(self._components(request)):
            argv += [":"] * (number > 0) + component
        return self.call(*argv, str(script)).strip().partition(";")[0]

    def _components(self, request: GangRequest) -> list[list[str]]:
        """Return the options of each component: nodes that give equally many accelerators."""
        by_count: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        for node, kind, count in request.parts:
            by_count[kind, count].append(node)
        total = sum(count for _, _, count in request.parts)
        components: list[list[str]] = []
        for (kind, count), nodes in by_count.items():
            share = count / total
            options = [
                f"--job-name={request.name}",
                f"--comment={request.mark}",
                f"--nodes={len(nodes)}",
                f"--nodelist={','.join(nodes)}",
                "--ntasks-per-node=1",
                f"--gres=gpu:{count}" if kind == "gpu" else f"--gres=gpu:{kind}:{count}",
            ]
            if request.cpus > 0:
                options.append(f"--cpus-per-task={max(math.ceil(request.cpus * share), 1)}")
            if request.memory_gib > 0:
                options.append(f"--mem={math.ceil(request.memory_gib * share * 1024)}M")
            if not components:
                options += self._job_options(request)
            elif self._partition:
                options.append(f"--partition={self._partition}")
            components.append(options)
        return components

    def _job_options(self, request: GangRequest) -> list[str]:
        options = [
            "--no-requeue",
            "--open-mode=append",
            "--output=/dev/null",
            f"--error={_pattern(request.log)}",
            "--chdir=/",
            f"--signal=B:TERM@{max(math.ceil(request.grace_s), 1)}",
        ]
        if request.longest_s is not None:
            options.append(f"--time={max(math.ceil(request.longest_s / 60), 1)}")
        if self._partition:
            options.append(f"--partition={self._partition}")
        if self._account:
            options.append(f"--account={self._account}")
        return options

    def gangs(self) -> list[EngineGang]:
        """Return all jobs that Slurm still knows, also ended ones; of a heterogeneous job its leader."""
        text = self.call("squeue", "--noheader", "--all", "--states=all", f"--format={SEPARATOR.join(QUEUE.values())}")
        found = []
        for row in rows(text, tuple(QUEUE)):
            number, _, component = row["number"].partition("+")
            if component in ("", "0"):
                mark = Mark.parse(row["comment"]) if row["comment"] != "(null)" else None
                found.append(EngineGang(number, mark, phase(row["state"]), row["state"], row["reason"], row["user"]))
        return found

    def submissions(self, cluster: str, new_key: Callable[[], str]) -> list[HeldSubmission]:
        """Return no jobs of users: they are left to Slurm."""
        return []

    def call_back(self, request: GangRequest, number: str) -> None:
        """Send SIGTERM to the batch script of a job, which is our supervisor."""
        self._cancel(request, number, "--signal=TERM", "--batch")

    def cancel(self, request: GangRequest, number: str, *, only_waiting: bool = False) -> None:
        """Cancel a job."""
        self._cancel(request, number, *(("--state=PENDING",) if only_waiting else ()))

    def _cancel(self, request: GangRequest, number: str, *options: str) -> None:
        """Signal a job if it still has our name: its number may have been used again."""
        said = self._run(("scancel", f"--name={request.name}", *options, number), self._timeout_s)
        if said.code != 0 and ("Invalid job id" in said.err or (said.code == ALREADY_DONE and not said.err)):
            return  # it is over
        checked(said, "scancel")

    def ended(self, request: GangRequest, number: str) -> EngineEnd | None:
        """Return how a job ended: from the controller, from accounting where it runs, or from the completion log."""
        if number:
            said = self._run(("scontrol", "show", "job", number), self._timeout_s)
            if said.code == 0:
                for job in records(said.out):
                    if Mark.parse(job.get("Comment", "")) == request.mark and phase(job["JobState"]) == OVER:
                        return EngineEnd(job["JobState"], _code(job.get("ExitCode", "")))
            elif "Invalid job id" not in said.err:
                checked(said, "scontrol")
        config = self.config()
        if setting(config, "AccountingStorageType").endswith("slurmdbd"):
            return self._accounted(request.name, number)
        if setting(config, "JobCompType") == "jobcomp/filetxt":
            return completed(Path(setting(config, "JobCompLoc")), request.name, number)
        return None

    def _accounted(self, name: str, number: str) -> EngineEnd | None:
        """Return how a job ended; an earlier run of the same job id has the same name, and another number."""
        text = self.call(
            "sacct", "--noheader", "--parsable2", "--allocations", "--starttime=now-30days", f"--name={name}",
            "--format=JobIDRaw,State,ExitCode,JobName",
        )  # fmt: skip
        for line in reversed(text.splitlines()):
            found, state, code, its_name = line.split("|", 3)
            if its_name == name and number in ("", found) and phase(state.split(" ")[0]) == OVER:
                return EngineEnd(state.split(" ")[0], _code(code))
        return None

    def config(self) -> dict[str, str]:
        """Return Slurm's settings, read once."""
        if self._config is None:
            lines = (line.partition("=") for line in self.call("scontrol", "show", "config").splitlines())
            self._config = {key.strip(): value.strip() for key, _, value in lines if key.strip()}
        return self._config

    # ---- nodes ---------------------------------------------------------------------------------------------------

    def nodes(self) -> list[EngineNode]:
        """Return Slurm's nodes with accelerators, by name in Slurm's order."""
        found = [node_of(record) for record in records(self.call("scontrol", "show", "node", "--details"))]
        return [node for node in found if node.accelerators]

    def set_node(self, name: str, reason: str) -> None:
        """Drain a node, with a reason, or resume it."""
        if reason:
            self.call("scontrol", "update", f"NodeName={name}", "State=DRAIN", f"Reason=eunomia: {reason}")
        else:
            self.call("scontrol", "update", f"NodeName={name}", "State=RESUME")

    def explain(self, number: str, why: str) -> None:
        """Do nothing: comments of jobs belong to their users."""

    def close(self) -> None:
        """Do nothing: each command is a process of its own."""


def node_of(record: dict[str, str]) -> EngineNode:
    """Return a node from its block of `scontrol show node --details`."""
    state = record.get("State", "UNKNOWN")
    away = ""
    if any(word in part for part in state.split("+") for word in AWAY) or state.endswith("*"):
        reason = record.get("Reason", "").partition(" [")[0]
        away = f"{state.lower()}{f', {reason}' if reason else ''}"
    return EngineNode(
        name=record["NodeName"],
        accelerators=accelerators(record.get("Gres", "")),
        used=accelerators(record.get("GresUsed", "")),
        away=away,
        cpus=_number(record.get("CPUTot", "")),
        memory_gib=_number(record.get("RealMemory", "")) / 1024,
    )


def _number(text: str) -> float:
    return float(text) if text.isdigit() else 0.0


def completed(log: Path, name: str, number: str) -> EngineEnd | None:
    """Return how a job ended from the completion log of `jobcomp/filetxt`; None if it is not there or unreadable."""
    try:
        with open(log, "rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - TAIL_BYTES, 0))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        fields: dict[str, Any] = dict(word.partition("=")[::2] for word in line.split(" ") if "=" in word)
        if fields.get("Name") == name and number in ("", fields.get("JobId")):
            return EngineEnd(fields.get("JobState", ""), _code(fields.get("ExitCode", "")))
    return None


def _code(text: str) -> int | None:
    code, _, _ = text.partition(":")
    return int(code) if code.isdigit() else None


def _pattern(path: Path) -> str:
    """Return a path for `--error`, in which Slurm replaces what follows %."""
    return str(path).replace("%", "%%")
