"""What a training script needs to be stopped and go on later. Standard library only; copy it anywhere.

    from eunomia.lease import Lease

    with Lease() as lease:
        state = lease.load({"step": 0, "weights": [0.0, 0.0]})
        for step in lease.steps(1000, start=state["step"]):
            state = {"step": step + 1, "weights": train(state["weights"])}
        lease.save(state)

When the seats are wanted back (SIGTERM), or the lease has run out, `steps` ends early; the script saves, and leaving
the `with` block ends the process with `CALLED_BACK`, which says "stopped with a checkpoint, not done". Started by
hand the same script runs with an endless lease.
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

CALLED_BACK = 75  # exit code: stopped before the end, to be started again (EX_TEMPFAIL of sysexits.h)
KEPT = 2  # checkpoints on disk: the newest, and the one before it should the newest be unreadable
LOOK_S = 1.0  # between two looks at the lease file
LATE_S = 1.0  # the supervisor acts on an expired lease first; the script does so if nobody watches it any more


class Lease:
    """The right to go on until it is called back. Open it with `with`, once, in the main thread.

    `checkpoint_dir` is a folder for the script's own files too; started by hand it is `checkpoint` in the current
    folder unless given.
    """

    def __init__(self, checkpoint_dir: str | os.PathLike[str] | None = None) -> None:
        self.checkpoint_dir = Path(checkpoint_dir or os.environ.get("EUNOMIA_CHECKPOINT_DIR") or "checkpoint")
        self.job_id = os.environ.get("EUNOMIA_JOB_ID", "")
        self.epoch = int(os.environ.get("EUNOMIA_EPOCH") or 1)
        self.scale_factor = int(os.environ.get("EUNOMIA_SCALE_FACTOR") or 1)
        self._lease_file = os.environ.get("EUNOMIA_LEASE_FILE")
        self._progress_file = os.environ.get("EUNOMIA_PROGRESS_FILE")
        self._called_back = False
        self._left_early = False
        self._end = math.inf  # on the clock of time.monotonic
        self._look_at = -math.inf
        self._before: Any = signal.SIG_DFL

    def __enter__(self) -> Lease:
        self._before = signal.signal(signal.SIGTERM, self._hear)  # raises ValueError outside the main thread
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        signal.signal(signal.SIGTERM, self._before or signal.SIG_DFL)
        went_well = error is None or (isinstance(error, SystemExit) and not error.code)
        if self._left_early and went_well:
            raise SystemExit(CALLED_BACK)

    @property
    def total_steps(self) -> float:
        """Steps the job was submitted with, over all accelerators of the gang; inf when started by hand."""
        return float(os.environ.get("EUNOMIA_TOTAL_STEPS") or math.inf)

    @property
    def called_back(self) -> bool:
        """Whether to save and leave now. Once true it stays true."""
        self._called_back = self._called_back or self._expired()
        return self._called_back

    def steps(self, total: float | None = None, start: int = 0) -> Iterator[int]:
        """Yield start, start + 1, … below `total` (default: `total_steps`); end early when the lease is called back."""
        end = self.total_steps if total is None else total
        for step in itertools.count(start):
            if step >= end:
                return
            if self.called_back:
                self._left_early = True
                return
            yield step

    def leave(self) -> None:
        """End the process as called back; for scripts that do not use `steps`. Save first."""
        self._left_early = True
        raise SystemExit(CALLED_BACK)

    @property
    def settings(self) -> dict[str, Any]:
        """What a search wants this trial to be run with, such as {"lr": 0.01}; empty where no search asked for it."""
        return dict(json.loads(os.environ.get("EUNOMIA_SETTINGS") or "{}"))

    def progress(self, step: float, loss: float | None = None) -> None:
        """Report that `step` steps since the job began are safe in a checkpoint. `save` does this by itself.

        The `loss` goes to the search that the job is a trial of, if it is one.
        """
        if self._progress_file:
            said = {"step": step} if loss is None else {"step": step, "loss": loss}
            write_whole(Path(self._progress_file), json.dumps(said))

    def save(self, state: Mapping[str, Any], step: float | None = None) -> None:
        """Write a checkpoint of JSON values, whole or not at all; report `step`, or `state["step"]`, as safe.

        `state["loss"]`, where there is one, is reported with it.
        """
        body = json.dumps(dict(state))
        self.checkpoint_dir.mkdir(parents=True, exist_ok=True)
        old = self._checkpoints()
        number = _number(old[0]) + 1 if old else 1
        write_whole(self.checkpoint_dir / f"checkpoint-{number:09}.json", f"{_digest(body)}\n{body}", durable=True)
        for path in old[KEPT - 1 :]:
            path.unlink(missing_ok=True)
        self._report(state, step)

    def load(self, default: Mapping[str, Any]) -> dict[str, Any]:
        """Return the newest checkpoint that is whole, or `default`. Says on stderr what it passes over."""
        for path in self._checkpoints():
            state = _read(path)
            if state is not None:
                self._report(state, None)
                return state
            sys.stderr.write(f"eunomia: {path} is damaged; going back to the checkpoint before it\n")
        return dict(default)

    def _report(self, state: Mapping[str, Any], step: float | None) -> None:
        done = state.get("step") if step is None else step
        loss = state.get("loss")
        if isinstance(done, (int, float)):
            self.progress(done, loss if isinstance(loss, (int, float)) else None)

    def _checkpoints(self) -> list[Path]:
        """Return checkpoint files, newest first."""
        found = (path for path in self.checkpoint_dir.glob("checkpoint-*.json") if _number(path) > 0)
        return sorted(found, key=_number, reverse=True)

    def _hear(self, _signal: int, _frame: FrameType | None) -> None:
        self._called_back = True

    def _expired(self) -> bool:
        now = time.monotonic()
        if now >= self._look_at or now > self._end + LATE_S:  # believe an end only after a fresh look
            self._end, self._look_at = self._read_end(), now + LOOK_S
        return now > self._end + LATE_S

    def _read_end(self) -> float:
        if not self._lease_file:
            return math.inf
        try:
            end = json.loads(Path(self._lease_file).read_bytes())["end_s"]
        except (OSError, ValueError, KeyError, TypeError):
            return self._end  # no news: what was promised stands
        return math.inf if end is None else float(end)


def write_whole(path: Path, text: str, *, durable: bool = False) -> None:
    """Replace a file in one step, so that no reader and no crash sees half of it; `durable` outlives a power cut."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    try:
        with open(draft, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to show
            draft.unlink()
        raise
    if durable:
        _sync_names(path.parent)


def _sync_names(folder: Path) -> None:
    """Make renames in this folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(path: Path) -> dict[str, Any] | None:
    """Return the state in a checkpoint, or None where it is cut short or altered."""
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
