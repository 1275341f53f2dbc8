"""`sbatch` and `srun`."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, TextIO

from eunomia.slurm_commands.command_line import Given, WrongUsage, say, typed
from eunomia.slurm_commands.job_runner import filled, job_number
from eunomia.slurm_commands.job_view import SlurmJob, local_time
from eunomia.slurm_commands.queue_client import QueueClient, inside_job
from eunomia.slurm_commands.submission import Batch, accelerators_of, documents, from_environment, read_batch, whole
from eunomia.slurm_commands.tables import SBATCH, SRUN

POLL_S = 0.5, 5.0  # first and longest pause between looks at a job that is waited for
CANCELLED = 130
JOIN_S = 10.0
START_LINE = re.compile(r"^--- epoch \d+\n", re.MULTILINE)


def sbatch(words: Sequence[str]) -> int:
    """Submit a script. Returns the exit code."""
    given = typed("sbatch", "[OPTIONS] script [args]", SBATCH, words, _NOTES, intermixed=False)
    from_environment(given, SBATCH, dict(os.environ), "SBATCH")
    batch = read_batch(given, SBATCH, sys.stdin.read)
    queue = QueueClient()
    made, notes = documents(batch, queue.ids, os.getcwd())
    _say_all(given, notes)
    if "test-only" in given:
        return _test_only(queue, made)
    ids = _submitted(queue, given, made)
    number = job_number(ids[0])
    if "array" in given and [job_number(one) for one in ids] != list(range(number, number + len(ids))):
        say("sbatch", "jobs of others were numbered between its elements: SLURM_ARRAY_JOB_ID differs in the later ones")
    if "hold" in given:
        for job_id in ids:
            queue.client.send("POST", f"{queue.client.job_path(job_id)}/hold")
    if "quiet" not in given:  # as Slurm's own
        print(number if "parsable" in given else f"Submitted batch job {number}", flush=True)
    return max(_waited(queue, job_id) for job_id in ids) if "wait" in given else 0


_NOTES = (
    "Submits a script to Eunomia, and prints its number. Options may stand in #SBATCH lines too.",
    "What a job here is and has: docs/coming-from-slurm.md.",
)


_STEP_NOTES = (
    "Outside a job it submits one, shows its output and ends with its exit code; Ctrl-C cancels it.",
    "Inside a job it runs the command, -n times.",
)


def _say_all(given: Given, notes: Sequence[str]) -> None:
    if "quiet" not in given:
        given.say_ignored()
        for note in notes:
            say(given.command, note)


def _submitted(queue: QueueClient, given: Given, made: list[dict[str, Any]]) -> list[str]:
    answer = queue.client.submit(made if len(made) > 1 else made[0])
    if "quiet" not in given:
        for note in answer.get("notes", ()):
            say(given.command, note)
    return list(answer.get("ids") or [answer["id"]])


def _test_only(queue: QueueClient, made: list[dict[str, Any]]) -> int:
    document = {key: value for key, value in made[0].items() if key not in ("after", "array")}
    found = queue.client.send("POST", "/v1/whatif", {"job": document})
    start = (found["new_job"] or {}).get("start")
    newest = queue.client.get("/v1/jobs", limit=1)["jobs"]
    number = job_number(newest[0]["id"]) + 1 if newest else 1
    where = ",".join(document.get("types", ())) or "main"
    say("sbatch", f"Job {number} to start at {local_time(start)} using {int(document.get('cpus', 1))} processors "
                  f"in partition {where}")  # fmt: skip
    return 0


def _waited(queue: QueueClient, job_id: str) -> int:
    """Return the exit code of a job, once it is over."""
    pause, longest = POLL_S
    while (job := queue.view(queue.client.get(queue.client.job_path(job_id)))).is_live:
        time.sleep(pause)
        pause = min(2 * pause, longest)
    return _exit_code(job)


def _exit_code(job: SlurmJob) -> int:
    code, _, number = job.exit_code.partition(":")
    return int(code) or (128 + int(number) if int(number) else 1 if job.state != "COMPLETED" else 0)


def srun(words: Sequence[str]) -> int:
    """Run a command: inside a job as its processes, else as a job whose output is shown. Returns the exit code."""
    given = typed("srun", "[OPTIONS] command [args]", SRUN, words, _STEP_NOTES, intermixed=False)
    if not given.words:
        raise WrongUsage("fatal: No command given to execute.")
    return run_step(given) if inside_job() else _run_as_job(given)


def _run_as_job(given: Given) -> int:
    from_environment(given, SRUN, dict(os.environ), "SLURM")
    tasks = whole(given.get("ntasks", "1"), "--ntasks")
    step = f"exec {shlex.quote(sys.executable)} -m eunomia.slurm_commands srun -n {tasks} " if tasks > 1 else "exec "
    step += "--label -- " if tasks > 1 and "label" in given else "-- " if tasks > 1 else ""
    given.values.setdefault("job-name", os.path.basename(given.words[0]))
    batch = Batch(given, f"#!/bin/sh\n{step}{shlex.join(given.words)}\n")
    queue = QueueClient()
    made, notes = documents(batch, queue.ids, os.getcwd())
    _say_all(given, notes)
    made[0]["stderr"] = "apart"
    (job_id,) = _submitted(queue, given, made)
    number = job_number(job_id)
    if "quiet" not in given:
        say("srun", f"job {number} queued and waiting for resources")
    try:
        errors = threading.Thread(target=_follow, args=(queue, job_id, "errors", sys.stderr), daemon=True)
        errors.start()
        _follow(queue, job_id, "log", sys.stdout)
        code = _waited(queue, job_id)
        errors.join(JOIN_S)
    except KeyboardInterrupt:
        queue.client.send("DELETE", queue.client.job_path(job_id))
        say("srun", f"interrupt: job {number} is cancelled")
        return CANCELLED
    if code:
        say("srun", f"error: job {number}: Exited with exit code {code}")
    return code


def _follow(queue: QueueClient, job_id: str, stream: str, target: TextIO) -> None:
    """Write what a job prints as it comes, without the lines that mark its starts."""
    path = f"{queue.client.job_path(job_id)}/log?follow=1" + "&stream=errors" * (stream == "errors")
    for _, kind, data in queue.client.events(path):
        if kind == "log":
            target.write(START_LINE.sub("", data["text"]))
            target.flush()


def run_step(given: Given) -> int:
    """Run a command as the processes of a step; return the largest exit code."""
    tasks = whole(given.get("ntasks", os.environ.get("SLURM_NTASKS", "1")), "--ntasks")
    step = str(os.getpid())
    counts = ("SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_NPROCS", "SLURM_TASKS_PER_NODE")
    common = {**os.environ, "SLURM_STEP_ID": step, "SLURM_STEPID": step, **dict.fromkeys(counts, str(tasks))}
    devices = [one for one in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if one]
    each = accelerators_of(given.get("gpus-per-task"), "--gpus-per-task")[0] if "gpus-per-task" in given else 0
    running, threads = list[subprocess.Popen[bytes]](), list[threading.Thread]()
    for task in range(tasks):
        own = {**common, "SLURM_PROCID": str(task), "SLURM_LOCALID": str(task), "SLURM_NODEID": "0"}
        if each and devices:
            own["CUDA_VISIBLE_DEVICES"] = ",".join(devices[task * each : (task + 1) * each])
        files = {name: _step_file(given, name, own, task) for name in ("output", "error")}
        out = files["output"] or (subprocess.PIPE if "label" in given else None)
        errors = files["error"] or (subprocess.STDOUT if files["output"] else None)
        try:
            process = subprocess.Popen(given.words, env=own, stdout=out, stderr=errors, cwd=given.get("chdir") or None)
        except OSError as error:
            say("srun", f"error: task {task}: {given.words[0]}: {error.strerror}")
            for one in running:
                one.terminate()
            return 2
        running.append(process)
        if process.stdout is not None:
            threads.append(threading.Thread(target=_labelled, args=(process, task), daemon=True))
            threads[-1].start()
    return _step_ended(running, threads)


def _step_file(given: Given, name: str, variables: dict[str, str], task: int) -> int | None:
    pattern = given.get(name)
    if not pattern:
        return None
    mode = os.O_APPEND if given.get("open-mode").startswith("a") or "%t" not in pattern else os.O_TRUNC
    return os.open(filled(pattern, variables, task), os.O_WRONLY | os.O_CREAT | os.O_APPEND | mode, 0o666)


def _labelled(process: subprocess.Popen[bytes], task: int) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        sys.stdout.buffer.write(f"{task}: ".encode() + line)
        sys.stdout.buffer.flush()


def _step_ended(running: Sequence[subprocess.Popen[bytes]], threads: Sequence[threading.Thread]) -> int:
    """Hand signals on to the processes, and return the largest of their exit codes."""

    def forward(number: int, _: object) -> None:
        for one in running:
            one.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
        signal.signal(number, forward)
    codes = [one.wait() for one in running]
    for thread in threads:
        thread.join()
    for task, code in enumerate(codes):
        if code:
            how = f"Exited with exit code {code}" if code > 0 else f"{signal.Signals(-code).name}"
            say("srun", f"error: {os.environ.get('SLURMD_NODENAME', 'localhost')}: task {task}: {how}")
    return max(code if code >= 0 else 128 - code for code in codes)
