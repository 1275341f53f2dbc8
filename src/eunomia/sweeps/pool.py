"""A pool of worker processes, for scenarios from Python, too. A worker that dies fails its run, not the sweep."""

from __future__ import annotations

import json
import selectors
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from eunomia.child_process import ChildProcess, ProcessDied
from eunomia.kernels import announce_compiling
from eunomia.runs.fingerprint import scenario_hash
from eunomia.scenario import Scenario
from eunomia.sweeps.store import Store

Task = Mapping[str, Any]
Answer = Mapping[str, Any]  # {} if done, else "error" and "traceback"; of a full disk also "errno" and "file"
THREAD_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM", "NUMEXPR")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in THREAD_LIBRARIES}
WORKER = "eunomia.sweeps.worker"


class _Worker:
    """One process and its current task."""

    def __init__(self, module: str) -> None:
        self.process = ChildProcess(module, variables=ONE_THREAD, keeps_lines=True)
        self.task: Task | None = None

    @property
    def answers(self) -> int:
        """File descriptor of the pipe with answers."""
        pipe = self.process.start().stdout
        assert pipe is not None
        return pipe.fileno()

    def assign(self, task: Task) -> None:
        """Send a task. The death of a worker is detected when its answer is read."""
        self.task = task
        self.process.send(json.dumps(task).encode())

    def answer(self) -> Answer | None:
        """Return the answer, if complete; for a dead worker the cause of its death."""
        try:
            while "notice" in (answer := json.loads(self.process.receive(0.0))):
                announce_compiling()
        except TimeoutError:
            return None
        except ProcessDied as death:
            return {"error": f"the worker process {death.how}", "traceback": death.lines}
        return dict(answer)


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
            worker.process.stop()
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
        if not worker.process.alive:
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
        worker.process.stop()


class RunsFailed(RuntimeError):
    """Some runs failed; the others are done."""


def simulate_many(
    scenarios: Sequence[Scenario], *, workers: int, folder: Path | None = None
) -> list[dict[str, float | int | None]]:
    """Return the numbers of summary.json of each scenario, run in `workers` processes.

    With `folder` runs are stored there, and stored runs are not repeated. Raises RunsFailed after all runs have ended
    if one failed, and InvalidInput if `folder` cannot be used.
    """
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return simulate_many(scenarios, workers=workers, folder=Path(temporary) / "runs")
    store, failed = Store(folder), dict[str, str]()

    def on_answer(task: Task, answer: Answer) -> None:
        if "error" in answer:
            failed[task["hash"]] = answer["error"]

    hashes = [scenario_hash(scenario) for scenario in scenarios]
    by_hash = dict(zip(hashes, scenarios, strict=True))
    with store.opened(""), Pool(workers) as pool:
        pool.run([store.task(key, one) for key, one in by_hash.items() if not store.finished(key)], on_answer)
        if failed:
            raise RunsFailed("; ".join(f"{by_hash[key].name}: {error}" for key, error in failed.items()))
        return [store.summary(key) for key in hashes]
