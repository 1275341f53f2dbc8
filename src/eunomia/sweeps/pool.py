"""A pool of worker processes. A worker that dies fails its run, not the sweep."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from eunomia.kernels import announce_compiling

Task = Mapping[str, Any]
Answer = Mapping[str, Any]  # {} if done, else "error" and "traceback"; of a full disk also "errno" and "file"
THREAD_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM", "NUMEXPR")  # one thread each
WORKER = "eunomia.sweeps.worker"
LAST_BYTES = 2000  # of the stderr of a dead worker


class _Worker:
    """One process and its current task."""

    def __init__(self, module: str) -> None:
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (`end` closes it)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, env=_environment(),
        )  # fmt: skip
        self.task: Task | None = None
        self._buffer = b""

    @property
    def answers(self) -> int:
        """File descriptor of the pipe with answers."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def assign(self, task: Task) -> None:
        """Send a task. The death of a worker is detected when its answer is read."""
        assert self._process.stdin is not None
        self.task = task
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(task).encode() + b"\n")
            self._process.stdin.flush()

    def answer(self) -> Answer | None:
        """Return the answer, if complete; for a dead worker the cause of its death."""
        chunk = os.read(self.answers, 1 << 16)
        self._buffer += chunk
        if not chunk:
            return self._cause_of_death()
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            answer: Answer = json.loads(line)
            if "notice" not in answer:
                return answer
            announce_compiling()
        return None

    def _cause_of_death(self) -> Answer:
        code = self._process.wait()
        how = f"was killed by signal {-code}, as when memory runs out" if code < 0 else f"ended with exit code {code}"
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - LAST_BYTES))
        lines = self._stderr.read().decode(errors="replace").splitlines()
        return {"error": f"the worker process {how}", "traceback": lines}

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                with suppress(BrokenPipeError):  # unsent data of a dead process
                    stream.close()


def _environment() -> dict[str, str]:
    """Return the environment of a worker: one thread, and the module path of this process."""
    import eunomia

    paths = [*(path or os.getcwd() for path in sys.path), str(Path(eunomia.__file__).parents[1])]
    threads = {f"{name}_NUM_THREADS": "1" for name in THREAD_LIBRARIES}
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


class Pool:
    """Up to `workers` processes `python -m module`; leaving the context kills them."""

    def __init__(self, workers: int, module: str = WORKER):
        self.workers, self._module = workers, module
        self._running: list[_Worker] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self._running:
            worker.end()
        self._selector.close()

    def run(self, tasks: Iterable[Task], on_answer: Callable[[Task, Answer], None]) -> None:
        """Run all tasks, started in order; call `on_answer` as each ends."""
        waiting = deque(tasks)
        for _ in range(min(self.workers, len(waiting))):
            self._start_worker().assign(waiting.popleft())
        while any(worker.task for worker in self._running):
            for key, _ in self._selector.select():
                worker: _Worker = key.data
                answer = worker.answer()
                if answer is None:
                    continue
                if worker.task is None:  # it died while idle; select would return it forever
                    self._remove(worker)
                    continue
                task, worker.task = worker.task, None
                on_answer(task, answer)
                self._assign_next(worker, waiting)

    def _assign_next(self, worker: _Worker, waiting: deque[Task]) -> None:
        """Assign the next task to a worker, or to a new one if it is dead."""
        if not worker.alive:
            self._remove(worker)
        if waiting:
            (worker if worker in self._running else self._start_worker()).assign(waiting.popleft())

    def _start_worker(self) -> _Worker:
        worker = _Worker(self._module)
        self._running.append(worker)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)
        return worker

    def _remove(self, worker: _Worker) -> None:
        self._selector.unregister(worker.answers)
        self._running.remove(worker)
        worker.end()
