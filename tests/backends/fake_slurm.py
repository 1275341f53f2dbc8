"""Slurm's commands as functions: a queue in memory that answers in the formats of squeue, scontrol and sbatch."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eunomia.backends.engines.engine import EngineAway
from eunomia.backends.slurm.commands import SEPARATOR, Said

INVALID = Said(1, "", "slurm_load_jobs error: Invalid job id specified")
NODES = """\
NodeName=v100-0 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=0.10
   Gres=gpu:v100:4(S:0)
   GresDrain=N/A
   GresUsed=gpu:v100:{used}(IDX:N/A)
   RealMemory=4096 State={state} ThreadsPerCore=1
   Reason={reason}

NodeName=k80-0 Arch=x86_64 CoresPerSocket=1
   CPUTot=8 Gres=gpu:k80:8
   GresUsed=gpu:k80:0(IDX:N/A)
   RealMemory=4096 State=IDLE ThreadsPerCore=1
"""


@dataclass
class FakeJob:
    """One batch job."""

    name: str
    comment: str
    spec: Path  # of the supervisor
    state: str = "RUNNING"


@dataclass
class FakeSlurm:
    """A cluster that starts every job at once and runs nothing."""

    jobs: dict[str, FakeJob] = field(default_factory=dict)
    argv: list[tuple[str, ...]] = field(default_factory=list)
    fault: str = ""  # timeout, unreachable, empty, lost answer, truncated
    used: int = 0
    node_state: str = "IDLE"
    reason: str = ""
    next_number: int = 1

    def __call__(self, argv: Sequence[str], timeout_s: float) -> Said:
        """Answer a command."""
        self.argv.append(tuple(argv))
        if self.fault == "timeout":
            raise EngineAway(f"{argv[0]} did not answer within {timeout_s:g} s")
        if self.fault == "unreachable":
            return Said(1, "", f"{argv[0]}: error: Unable to contact slurm controller (connect failure)")
        match argv:
            case ["sbatch", *_]:
                return self._sbatch(argv)
            case ["squeue", *_]:
                return self._squeue()
            case ["scontrol", "show", "node", *_]:
                return Said(0, NODES.format(used=self.used, state=self.node_state, reason=self.reason), "")
            case ["scontrol", "show", "job", number]:
                return INVALID if number not in self.jobs or self.fault == "empty" else self._shown(number)
            case ["scontrol", "show", "config"]:
                return Said(0, "AccountingStorageType   = accounting_storage/none\nJobCompType = jobcomp/none\n", "")
            case ["scancel", name, *_, number]:
                job = self.jobs.get(number)
                if job is not None and name == f"--name={job.name}":
                    self.finish(number, "CANCELLED", 75, "asked")
                return Said(0, "", "")
        return Said(0, "", "")

    def _sbatch(self, argv: Sequence[str]) -> Said:
        options = dict(word.removeprefix("--").split("=", 1) for word in argv if word.startswith("--") and "=" in word)
        if options.get("partition") == "none":
            return Said(1, "", "sbatch: error: invalid partition specified: none")
        script = Path(argv[-1]).read_text().splitlines()[1]
        number, self.next_number = str(self.next_number), self.next_number + 1
        self.jobs[number] = FakeJob(options["job-name"], options["comment"], Path(shlex.split(script)[-1]))
        if self.fault == "lost answer":
            raise EngineAway("sbatch did not answer")
        return Said(0, f"{number};loop\n", "")

    def _squeue(self) -> Said:
        if self.fault == "empty":
            return Said(0, "", "")
        rows = [(number, job.state, "ann", "None", job.comment) for number, job in self.jobs.items()]
        text = "".join(SEPARATOR.join(row) + "\n" for row in rows)
        return Said(0, text[:-20] if self.fault == "truncated" else text, "")

    def _shown(self, number: str) -> Said:
        job = self.jobs[number]
        return Said(0, f"JobId={number} JobName={job.name}\n   JobState={job.state} Comment={job.comment}\n", "")

    def finish(self, number: str, state: str = "COMPLETED", code: int = 0, cause: str = "exited") -> None:
        """End a job as its supervisor would: with an exit record."""
        job = self.jobs[number]
        spec = json.loads(job.spec.read_text())
        Path(spec["exit"]).write_text(json.dumps({"code": code, "cause": cause, "epoch": spec["epoch"]}))
        job.state = state

    def calls(self, command: str) -> list[tuple[str, ...]]:
        return [argv for argv in self.argv if argv[0] == command]


def soon(holds: object, within_s: float = 60.0) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + within_s
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
