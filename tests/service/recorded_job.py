"""A job that records by itself what happened to it: on each of its accelerators when it held it, and each step it did.

`python recorded_job.py LEDGER STEPS SECONDS`: that many steps of so many seconds, saved after each. It locks one file
an accelerator while it runs; a lock that another job has is written down as a double use.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time
from pathlib import Path

from eunomia.lease import Lease


def write(ledger: Path, *words: object) -> None:
    """Append one line whole."""
    handle = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, (" ".join(map(str, words)) + "\n").encode())
    os.close(handle)


def lock_seats(ledger: Path) -> list[int]:
    """Lock a file for each accelerator of this job, for as long as the open files that are returned are open."""
    found = list[int]()
    for seat in os.environ["EUNOMIA_SEATS"].split(","):
        found.append(os.open(ledger.with_name(f"seat-{seat}"), os.O_RDWR | os.O_CREAT))
        try:
            fcntl.flock(found[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            write(ledger, "DOUBLE", os.environ["EUNOMIA_JOB_ID"], os.environ["EUNOMIA_EPOCH"], seat)
    return found


def main() -> None:
    ledger, steps, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    job, epoch = os.environ["EUNOMIA_JOB_ID"], os.environ["EUNOMIA_EPOCH"]
    lock_seats(ledger)
    signal.signal(
        signal.SIGTERM, signal.SIG_IGN
    )  # after its last step: one that is stopped while it exits starts again
    with Lease() as lease:
        state = lease.load({"step": 0})
        write(ledger, "start", job, epoch, state["step"])
        for step in lease.steps(steps, start=state["step"]):
            time.sleep(seconds)
            state = {"step": step + 1}
            write(ledger, "step", job, epoch, step)  # before it is saved: a kill between the two repeats the step
            lease.save(state)
        write(ledger, "end", job, epoch, state["step"])


if __name__ == "__main__":
    main()
