"""Lets a training script be stopped with a checkpoint and resumed. Standard library only; copy it anywhere.

    from eunomia.lease import Lease

    with Lease() as lease:
        state = lease.load({"step": 0, "weights": [0.0, 0.0]})
        for step in lease.steps(1000, start=state["step"]):
            state = {"step": step + 1, "weights": train(state["weights"])}
        lease.save(state)

On SIGTERM, or when the lease has ended, `steps` ends early; the script saves, and leaving the `with` block ends the
process with exit code `CALLED_BACK`: stopped with a checkpoint, not done. Started by hand, the script has an infinite
lease.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

CALLED_BACK = 75  # exit code: stopped early, to be started again (EX_TEMPFAIL of sysexits.h)
KEPT = 2  # checkpoints on disk: the newest, and one in case the newest is unreadable
POLL_S = 1.0  # of the lease file
LATE_S = 1.0  # after the end of the lease the supervisor acts first, and after this delay the script


class Lease:
    """The right to run until called back. Open it with `with`, once, in the main thread.

    `checkpoint_dir` may also hold files of the script; started by hand, its default is `checkpoint` in the current
    folder.
    """

    def __init__(self, checkpoint_dir: str | os.PathLike[str] | None = None) -> None:
        self.checkpoint_dir = Path(checkpoint_dir or os.environ.get("EUNOMIA_CHECKPOINT_DIR") or "checkpoint")
        self.job_id = os.environ.get("EUNOMIA_JOB_ID", "")
        self.epoch = int(os.environ.get("EUNOMIA_EPOCH") or 1)
        self.scale_factor = int(os.environ.get("EUNOMIA_SCALE_FACTOR") or 1)
        self._lease_file = os.environ.get("EUNOMIA_LEASE_FILE")
        self._progress_file = os.environ.get("EUNOMIA_PROGRESS_FILE")
        self._called_back = False
        self._left_early = self._are_steps_done = False
        self._end = math.inf  # in s of time.monotonic
        self._poll_at = -math.inf
        self._old_handler: Any = signal.SIG_DFL

    def __enter__(self) -> Lease:
        self._old_handler = signal.signal(signal.SIGTERM, self._on_sigterm)  # raises ValueError outside the main thread
        if self._progress_file and os.environ.get("RANK", "0") == "0" and not os.path.exists(self._progress_file):
            with contextlib.suppress(OSError):  # a full disk ends no script that has nothing to save yet
                self.progress(0)  # says that this script can save
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        succeeded = error is None or (isinstance(error, SystemExit) and not error.code)
        # A call-back now would make a job that has finished run again.
        is_over = self._are_steps_done and succeeded and self._lease_file
        signal.signal(signal.SIGTERM, signal.SIG_IGN if is_over else self._old_handler or signal.SIG_DFL)
        if self._left_early and succeeded:
            raise SystemExit(CALLED_BACK)

    @property
    def total_steps(self) -> float:
        """Total steps of the job, over all accelerators of the gang; inf when started by hand."""
        return float(os.environ.get("EUNOMIA_TOTAL_STEPS") or math.inf)

    @property
    def called_back(self) -> bool:
        """Whether to save and leave now; never reset."""
        self._called_back = self._called_back or self._has_expired()
        return self._called_back

    def steps(self, total: float | None = None, start: int = 0) -> Iterator[int]:
        """Yield start, start + 1, … below `total` (default: `total_steps`); end early when the lease is called back."""
        end = self.total_steps if total is None else total
        self._are_steps_done = False
        for step in itertools.count(start):
            if step >= end:
                self._are_steps_done = True
                return
            if self.called_back:
                self._left_early = True
                return
            yield step

    def leave(self) -> None:
        """Exit with `CALLED_BACK`; for scripts that do not use `steps`. Save first."""
        self._left_early = True
        raise SystemExit(CALLED_BACK)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of this trial, such as {"lr": 0.01}; empty if the job is no trial of a tuner."""
        return dict(json.loads(os.environ.get("EUNOMIA_SETTINGS") or "{}"))

    def progress(self, step: float, loss: float | None = None) -> None:
        """Report that `step` steps since the job began are in a checkpoint; `save` calls this.

        The `loss` goes to the tuner of the job, if any.
        """
        if self._progress_file:
            report = {"step": step} if loss is None else {"step": step, "loss": loss}
            write_whole(Path(self._progress_file), json.dumps(report))

    def save(self, state: Mapping[str, Any], step: float | None = None) -> None:
        """Write a checkpoint of JSON values atomically; report `step` (default `state["step"]`) and `state["loss"]`."""
        body = json.dumps(dict(state))
        self.checkpoint_dir.mkdir(parents=True, exist_ok=True)
        old = self._checkpoints()
        number = _number(old[0]) + 1 if old else 1
        write_whole(self.checkpoint_dir / f"checkpoint-{number:09}.json", f"{_digest(body)}\n{body}", durable=True)
        for path in old[KEPT - 1 :]:
            path.unlink(missing_ok=True)
        self._report(state, step)

    def load(self, default: Mapping[str, Any]) -> dict[str, Any]:
        """Return the newest intact checkpoint, or `default`. Damaged ones are reported on stderr."""
        for path in self._checkpoints():
            state = _read(path)
            if state is not None:
                self._report(state, None)
                return state
            sys.stderr.write(f"eunomia: {path} is damaged; going back to the checkpoint before it\n")
        return dict(default)

    def _report(self, state: Mapping[str, Any], step: float | None) -> None:
        steps = state.get("step") if step is None else step
        loss = state.get("loss")
        if isinstance(steps, (int, float)):
            self.progress(steps, loss if isinstance(loss, (int, float)) else None)

    def _checkpoints(self) -> list[Path]:
        """Return checkpoint files, newest first."""
        paths = (path for path in self.checkpoint_dir.glob("checkpoint-*.json") if _number(path) > 0)
        return sorted(paths, key=_number, reverse=True)

    def _on_sigterm(self, _signal: int, _frame: FrameType | None) -> None:
        self._called_back = True

    def _has_expired(self) -> bool:
        now = time.monotonic()
        if now >= self._poll_at or now > self._end + LATE_S:  # read the file again before the lease counts as ended
            self._end, self._poll_at = self._read_end(), now + POLL_S
        return now > self._end + LATE_S

    def _read_end(self) -> float:
        if not self._lease_file:
            return math.inf
        try:
            end = json.loads(Path(self._lease_file).read_bytes())["end_s"]
        except (OSError, ValueError, KeyError, TypeError):
            return self._end  # the last end remains valid
        return math.inf if end is None else float(end)


def write_whole(path: Path, text: str, *, durable: bool = False, mode: int | None = None) -> None:
    """Replace a file atomically; with `durable` also sync it to disk, with `mode` let others than its owner read it."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    try:
        with contextlib.suppress(FileNotFoundError):  # one of a process that was killed, or what a job has put there
            draft.unlink()
        with open(draft, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            if durable:
                os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):  # keep the first error
            draft.unlink()
        raise
    if durable:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Sync renames in a folder to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(path: Path) -> dict[str, Any] | None:
    """Return the state in a checkpoint; None if it is truncated or altered."""
    try:
        digest, _, body = path.read_bytes().decode().partition("\n")
        state = json.loads(body) if digest == _digest(body) else None
    except ValueError:  # not text, or not JSON
        return None
    return state if isinstance(state, dict) else None


def _number(path: Path) -> int:
    digits = path.stem.partition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
