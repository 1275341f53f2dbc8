"""Worker processes and who of them does what. A worker that dies takes one run with it, not the sweep."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from eunomia.kernels import announce_compiling

Task = Mapping[str, Any]
Answer = Mapping[str, Any]  # {} = done, else "error" and "traceback", and "errno" and "file" of a full disk
SINGLE = ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM", "NUMEXPR")  # each worker has one thread
WORKER = "eunomia.sweeps.worker"
LAST_BYTES = 2000  # of what a dead worker said


class _Worker:
    """One process, and the task that it has."""

    def __init__(self, module: str) -> None:
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (`end` closes it)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, env=_environment(),
        )  # fmt: skip
        self.task: Task | None = None
        self._heard = b""

    @property
    def answers(self) -> int:
        """The descriptor on which answers come."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def give(self, task: Task) -> None:
        """Hand over a task. A worker that died meanwhile is noticed when its answer is read."""
        assert self._process.stdin is not None
        self.task = task
        try:
            self._process.stdin.write(json.dumps(task).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return

    def answer(self) -> Answer | None:
        """Return the answer if it is there by now; that of a dead worker is how it died."""
        heard = os.read(self.answers, 1 << 16)
        self._heard += heard
        if not heard:
            return self._death()
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            said: Answer = json.loads(line)
            if "notice" not in said:
                return said
            announce_compiling()
        return None

    def _death(self) -> Answer:
        code = self._process.wait()
        how = f"was killed by signal {-code}, as when memory runs out" if code < 0 else f"ended with exit code {code}"
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - LAST_BYTES))
        said = self._said.read().decode(errors="replace").splitlines()
        return {"error": f"the worker process {how}", "traceback": said}

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._said):
            if stream is not None:
                _close(stream)


def _close(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except BrokenPipeError:  # what it still had to say has no listener
        return


def _environment() -> dict[str, str]:
    """Return this environment, with one thread for each worker; it finds the modules that this process finds."""
    import eunomia

    paths = [*(path or os.getcwd() for path in sys.path), str(Path(eunomia.__file__).parents[1])]
    threads = {f"{name}_NUM_THREADS": "1" for name in SINGLE}
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


class Pool:
    """So many workers, each of them `python -m module`. Leaving it ends them all."""

    def __init__(self, workers: int, module: str = WORKER):
        self._most, self._module = workers, module
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self._workers:
            worker.end()
        self._selector.close()

    def run(self, tasks: Iterable[Task], heard: Callable[[Task, Answer], None]) -> None:
        """Do all tasks, begun in their order; `heard` is told of each as it ends."""
        waiting = deque(tasks)
        for _ in range(min(self._most, len(waiting))):
            self._hire().give(waiting.popleft())
        while any(worker.task for worker in self._workers):
            for key, _ in self._selector.select():
                worker: _Worker = key.data
                answer = worker.answer()
                if answer is None:
                    continue
                if worker.task is None:  # it died idle; its end would be heard for ever
                    self._dismiss(worker)
                    continue
                task, worker.task = worker.task, None
                heard(task, answer)
                self._next(worker, waiting)

    def _next(self, worker: _Worker, waiting: deque[Task]) -> None:
        """Give a worker, or the one that takes a dead one's place, what comes next."""
        if not worker.alive:
            self._dismiss(worker)
        if not waiting:
            return
        (worker if worker in self._workers else self._hire()).give(waiting.popleft())

    def _hire(self) -> _Worker:
        worker = _Worker(self._module)
        self._workers.append(worker)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)
        return worker

    def _dismiss(self, worker: _Worker) -> None:
        self._selector.unregister(worker.answers)
        self._workers.remove(worker)
        worker.end()
