"""Runs a submitted script on its accelerators: sets Slurm's variables, and writes its output where it asked for it.

`python -m eunomia.slurm_commands.job_runner SETTINGS PART… WORD…`: SETTINGS is a JSON object, PARTs are the text of the
script, WORDs its arguments. What the script prints goes to its files and to the job's log; its exit code is the job's.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

CHUNK = 65_536
DRAIN_S = 2.0  # for output of processes that outlive the script
FAILED, NOT_RUN = 1, 127


def job_number(job_id: str) -> int:
    """Return the number at the beginning of an id, which no other job of the service has."""
    return int(job_id.partition("-")[0])


def array_base(number: int, array: Mapping[str, int], index: int) -> int:
    """Return the number of an array, that of its first element: they were numbered one after the other."""
    return number - array["before"] - (index - array["from"])


def slurm_variables(settings: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Slurm sets for a batch script (sbatch(1), "Output environment variables")."""
    number, host = job_number(given["EUNOMIA_JOB_ID"]), socket.gethostname().partition(".")[0]
    accelerators, tasks, cpus = given.get("EUNOMIA_SCALE_FACTOR", "1"), settings["ntasks"], settings["cpus"]
    restarts = int(given.get("EUNOMIA_EPOCH", "1")) - 1
    found = {
        "JOB_ID": number, "JOBID": number, "JOB_NAME": settings["name"], "SUBMIT_DIR": settings["submit_dir"],
        "SUBMIT_HOST": settings["submit_host"], "NTASKS": tasks, "NPROCS": tasks, "JOB_NUM_NODES": 1, "NNODES": 1,
        "NODEID": 0, "PROCID": 0, "LOCALID": 0, "JOB_NODELIST": host, "NODELIST": host, "TASKS_PER_NODE": tasks,
        "CPUS_ON_NODE": tasks * (cpus or 1), "JOB_CPUS_PER_NODE": tasks * (cpus or 1), "JOB_USER": getpass.getuser(),
        "JOB_UID": os.getuid(), "JOB_PARTITION": given.get("EUNOMIA_ACCELERATOR_TYPE", "main"),
        "CLUSTER_NAME": "eunomia", "GPUS": accelerators, "GPUS_ON_NODE": accelerators,
        "JOB_GPUS": given.get("CUDA_VISIBLE_DEVICES", ""), "JOB_START_TIME": int(time.time()),
        "GTIDS": 0, "TASK_PID": os.getpid(),
    }  # fmt: skip
    optional = {"CPUS_PER_TASK": cpus, "MEM_PER_NODE": settings["mem_mib"], "RESTART_COUNT": restarts}
    found |= {name: value for name, value in optional.items() if value}
    if settings.get("limit_s"):
        found["JOB_END_TIME"] = int(time.time() + settings["limit_s"])
    if (array := settings.get("array")) is not None and "EUNOMIA_ARRAY_INDEX" in given:
        index = int(given["EUNOMIA_ARRAY_INDEX"])
        found |= {"ARRAY_JOB_ID": array_base(number, array, index), "ARRAY_TASK_ID": index}
        found |= {f"ARRAY_TASK_{name.upper()}": array[name] for name in ("count", "min", "max", "step")}
    return {f"SLURM_{name}": str(value) for name, value in found.items()} | {"SLURMD_NODENAME": host}


def filled(pattern: str, variables: Mapping[str, str], task: int = 0) -> str:
    """Return the name of a file from its pattern, as in `slurm-%A_%4a.out`; `\\\\` at its front leaves it as it is."""
    if pattern.startswith("\\\\"):
        return pattern[2:]
    number = variables["SLURM_JOB_ID"]
    values = {
        "%": "%", "j": number, "J": f"{number}.{variables.get('SLURM_STEP_ID', '0')}",
        "A": variables.get("SLURM_ARRAY_JOB_ID", number), "a": variables.get("SLURM_ARRAY_TASK_ID", "4294967294"),
        "x": variables["SLURM_JOB_NAME"].replace("/", "_"), "u": variables.get("SLURM_JOB_USER", ""),
        "N": variables["SLURMD_NODENAME"], "n": str(task), "t": str(task), "s": variables.get("SLURM_STEP_ID", "batch"),
    }  # fmt: skip
    parts, rest = [], pattern
    while rest:
        before, sign, rest = rest.partition("%")
        parts.append(before)
        if sign:
            digits = len(rest) - len(rest.lstrip("0123456789"))
            width, letter, rest = rest[:digits], rest[digits : digits + 1], rest[digits + 1 :]
            value = values.get(letter)
            parts.append(f"%{width}{letter}" if value is None else value.zfill(min(int(width or 0), 10)))
    return "".join(parts)


class _Copies:
    """Copies output to several places. One that cannot be written any more is left out, and stderr says so."""

    def __init__(self, targets: Sequence[tuple[int, str]]) -> None:
        self._targets = list(targets)

    def copy(self, source: int) -> None:
        while piece := os.read(source, CHUNK):
            for target, name in tuple(self._targets):
                try:
                    rest = memoryview(piece)
                    while rest:
                        rest = rest[os.write(target, rest) :]
                except OSError as error:
                    self._targets.remove((target, name))
                    with contextlib.suppress(OSError):
                        os.write(2, f"slurm: {name} cannot be written any more: {error.strerror}\n".encode())


def _files(settings: Mapping[str, Any], variables: Mapping[str, str]) -> tuple[list[tuple[int, str]], ...]:
    """Open the files of output and standard error, beside the log. Raises OSError."""
    mode = os.O_APPEND if settings.get("mode", "").startswith("a") else os.O_TRUNC
    opened: dict[str, int] = {}

    def opened_as(pattern: str) -> list[tuple[int, str]]:
        if not pattern:
            return []
        name = filled(pattern, variables)
        if name not in opened:
            opened[name] = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | mode, 0o666)
        return [(opened[name], name)]

    return [(1, "log"), *opened_as(settings["output"])], [
        (2, "log"), *opened_as(settings["error"] or settings["output"])
    ]  # fmt: skip


def _warning(settings: Mapping[str, Any], process: subprocess.Popen[bytes]) -> threading.Timer | None:
    """Return what sends the signal of --signal before the time limit: to the script (B:), or to what it runs."""
    wanted = settings.get("signal")
    if not wanted or not settings.get("limit_s"):
        return None

    def send() -> None:
        targets = [process.pid] if wanted["script"] else _descendants(process.pid)
        for pid in targets:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, wanted["number"])

    timer = threading.Timer(max(settings["limit_s"] - wanted["before_s"], 0.0), send)
    timer.daemon = True
    return timer


def _descendants(pid: int) -> list[int]:
    """Return the processes below one."""
    found: list[int] = []
    for children in Path("/proc").glob(f"{pid}/task/*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                found += [child, *_descendants(child)]
    return found


def run_script(settings: Mapping[str, Any], script: str, words: Sequence[str]) -> int:
    """Run a script to its end; return its exit code, as a shell has it for one that a signal ended."""
    given = dict(os.environ)
    variables = slurm_variables(settings, given)
    path = Path(given.get("EUNOMIA_CHECKPOINT_DIR", "."), "slurm_script")
    try:
        path.unlink(missing_ok=True)
        path.write_text(script, encoding="utf-8")
        path.chmod(0o700)
        out, errors = _files(settings, variables)
        source = open(filled(settings["input"] or "/dev/null", variables), "rb")  # noqa: SIM115
        pipes = os.pipe(), os.pipe()
        process = subprocess.Popen(
            [path, *words], stdin=source, stdout=pipes[0][1], stderr=pipes[1][1],
            env={**given, **settings.get("env", {}), **variables}, restore_signals=True,
        )  # fmt: skip
    except OSError as error:
        print(f"slurm: the script cannot be run: {error}", file=sys.stderr)
        return NOT_RUN if error.filename == str(path) else FAILED
    for _, end in pipes:
        os.close(end)
    threads = [
        threading.Thread(target=_Copies(targets).copy, args=(pipe[0],), daemon=True)
        for targets, pipe in zip((out, errors), pipes, strict=True)
    ]
    if (timer := _warning(settings, process)) is not None:
        threads.append(timer)
    for thread in threads:
        thread.start()
    code = process.wait()
    until = time.monotonic() + DRAIN_S
    for thread in threads[:2]:
        thread.join(max(until - time.monotonic(), 0.0))
    return code


def ended_like(code: int) -> int:
    """End as the script did: by the same signal, so that the job's reason names it; else return its exit code."""
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    return code if code >= 0 else 128 - code


def _go_on(*_: object) -> None:
    """Take a signal that the script receives too: what ends the runner is the script's end."""


def main(words: Sequence[str], run: Callable[..., int] = run_script) -> int:
    """Run what the words say."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, _go_on)
    settings = json.loads(words[0])
    parts = settings["parts"]
    return run(settings, "".join(words[1 : 1 + parts]), words[1 + parts :])


if __name__ == "__main__":
    sys.stdout.flush()
    code = ended_like(main(sys.argv[1:]))
    os._exit(code)
