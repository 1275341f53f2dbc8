"""A job that does its worst: `python worst_job.py LEDGER KIND`.

It locks one file an accelerator first, as `recorded_job` does, and whatever it starts keeps the lock: so a job that
gets an accelerator on which any of that still runs writes a double use down.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.service.recorded_job import lock_seats

REPORTS = (
    b'{"step": 1' + b"0" * 400 + b"}", b'{"step": "\0"}', b"\0" * 1000, b'{"step": 5e-324}', b'{"step": NaN}',
    b'{"step": [1]}', b'{"step": "\\ud800"}', b"[" * 100_000, b'{"step": 1e308, "loss": 1e400}', b"x" * 2**20, b"",
)  # fmt: skip


def spoil_reports(own: Path) -> None:
    for text in REPORTS:
        own.write_bytes(text)
        time.sleep(0.3)
    own.unlink()
    os.mkfifo(own)


def spoil_folder(own: Path) -> None:
    for path in own.parent.iterdir():
        with contextlib.suppress(OSError):
            path.rename(path.with_name(f"{path.name}-gone"))
            os.symlink("/dev/zero", path)


def start_without_end(own: Path) -> None:
    while True:
        with contextlib.suppress(OSError):
            if os.fork() == 0:
                time.sleep(600)


def escape(own: Path) -> None:
    """Leave session, process group and environment; the parent ends, so that init adopts it."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.execve("/bin/sleep", ["sleep", "600"], {})
        os._exit(0)


def write_without_end(own: Path) -> None:
    os.execvp("yes", ["yes", "x" * 1000])


def use_memory(own: Path) -> None:
    subprocess.run([sys.executable, "-c", "held = [bytearray(2**20) for _ in range(2000)]"], check=False)


def stop_supervisor(own: Path) -> None:
    os.kill(os.getppid(), signal.SIGSTOP)


def kill_supervisor(own: Path) -> None:
    escape(own)
    os.kill(os.getppid(), signal.SIGKILL)


KINDS: dict[str, Callable[[Path], None]] = {
    each.__name__: each
    for each in (
        spoil_reports, spoil_folder, start_without_end, escape, write_without_end, use_memory, stop_supervisor,
        kill_supervisor,
    )
}  # fmt: skip


def main() -> None:
    ledger, kind = Path(sys.argv[1]), sys.argv[2]
    for handle in lock_seats(ledger):
        os.set_inheritable(handle, True)
    KINDS[kind](Path(os.environ["EUNOMIA_PROGRESS_FILE"]))
    time.sleep(600)


if __name__ == "__main__":
    main()
