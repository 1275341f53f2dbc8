"""A gang of the worlds' contract suite: it writes what happens to it, one JSON object a line, to a file.

`python recording_job.py FILE WORK [ARGUMENT ...]`, WORK being the JSON of a `Work`. Each step is saved through
`eunomia.lease`. A child process that ignores SIGTERM stands for the workers of a data loader.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

from eunomia.lease import Lease

KEPT = ("EUNOMIA_", "CONTRACT_", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID")
CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def write(path: str, what: str, **more: object) -> None:
    """Append one line whole."""
    line = {
        "what": what,
        "job_id": os.environ["EUNOMIA_JOB_ID"],
        "epoch": int(os.environ["EUNOMIA_EPOCH"]),
        "pid": os.getpid(),
        "at": time.monotonic(),
        **more,
    }
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, json.dumps(line).encode() + b"\n")
    os.close(handle)


def main() -> None:
    path, work, words = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
    if work["ignores_term"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))  # until the lease is opened
    if work["has_child"]:
        subprocess.Popen([sys.executable, "-c", CHILD])
    env = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    if work["ignores_term"]:
        write(path, "start", step=0, argv=words, env=env)
        time.sleep(work["steps"] * work["step_s"])
    else:
        with Lease() as lease:
            state = lease.load({"step": 0})
            write(path, "start", step=state["step"], argv=words, env=env)
            for step in lease.steps(work["steps"], start=state["step"]):
                time.sleep(work["step_s"])
                state = {"step": step + 1}
                lease.save(state)
                write(path, "step", step=step + 1)
            if lease.called_back:
                write(path, "called back", step=state["step"])
    write(path, "end", code=work["exit_code"])
    raise SystemExit(work["exit_code"])


if __name__ == "__main__":
    main()
