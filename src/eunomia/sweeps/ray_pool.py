"""Runs of a sweep as tasks of a Ray cluster: inputs are sent to it once, results come back to the folder of the sweep.

A task whose process dies is tried again `RETRIES` times; then its run fails, and the others go on. A task whose node
dies is tried again as well, and more often, as that says nothing of the task. The tries are counted here, as Ray by
itself tries tasks that it ended for want of memory again for ever.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from socket import gethostname
from types import TracebackType
from typing import Any

from eunomia import __version__
from eunomia.inputs.install_hint import install_command
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.runs.fingerprint import input_files
from eunomia.scenario import scenario_from_dict
from eunomia.sweeps.pool import Answer, Task
from eunomia.sweeps.store import Store
from eunomia.sweeps.worker import attempt, simulate_task

RETRIES = 2  # of a task after the death of its process
NODES_LOST = 20  # by one task: Ray gives tasks to a dead node until it is missed
PAUSE_S = 1.5  # before a task is tried again, longer before the next time
AHEAD = 2  # tasks a core that Ray knows of, so that none waits for us
KEPT_S = 7 * 86_400.0  # for which a node keeps inputs that no sweep uses
Files = dict[str, bytes]


class RayPool:
    """The cores of a Ray cluster; leaving the context ends the tasks that run."""

    def __init__(self, address: str, store: Store, workers: int):
        self._store, self._address = store, address
        self._ray, self._is_ours = _connected(address)
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        self.workers = min(workers or cores, cores)
        self._at_once = self.workers if self.workers < cores else AHEAD * cores
        self._running: dict[Any, Task] = {}
        self._failures: Counter[str] = Counter()  # by hash of the task
        self._nodes_lost: Counter[str] = Counter()  # likewise; not failures of the task

    def __enter__(self) -> RayPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for task in self._running:
            self._ray.cancel(task, force=True)
        if self._is_ours:
            self._ray.shutdown()

    def run(self, tasks: Iterable[Task], on_answer: Callable[[Task, Answer], None]) -> None:
        """Run all tasks, started in order; call `on_answer` as each ends."""
        ray, waiting = self._ray, deque(tasks)
        inputs = dict(_inputs(waiting))
        key = _key(inputs)
        held = [ray.put(inputs)]  # in a list: a task fetches it only if its node does not have the files yet
        del inputs
        remote = ray.remote(num_cpus=1, max_retries=0)(run_on_node)
        while waiting or self._running:
            while waiting and len(self._running) < self._at_once:
                task = waiting.popleft()
                self._running[remote.remote(dict(task), __version__, str(Path.cwd()), key, held)] = task
            for done in ray.wait(list(self._running), num_returns=1)[0]:
                task = self._running.pop(done)
                try:
                    answer, files = ray.get(done)
                except ray.exceptions.RayError as error:
                    if self._may_retry(task, error):
                        time.sleep(PAUSE_S * max(self._failures[task["hash"]], 1))
                        waiting.append(task)
                        continue
                    tries = self._failures[task["hash"]]
                    why = f"Ray gave it up after {tries} {'try' if tries == 1 else 'tries'}: {error}"
                    answer = {"error": why, "traceback": []}
                else:
                    if files:
                        self._store.keep(task["hash"], files)
                on_answer(task, answer)

    def _may_retry(self, task: Task, error: Exception) -> bool:
        """Whether a task is to be tried again: not after an error of its own, which would come again."""
        is_lost = isinstance(error, (self._ray.exceptions.NodeDiedError, self._ray.exceptions.ObjectLostError))
        if is_lost and self._nodes_lost[task["hash"]] < NODES_LOST:
            self._nodes_lost[task["hash"]] += 1
            return True
        self._failures[task["hash"]] += 1
        is_own = isinstance(error, self._ray.exceptions.RayTaskError)
        return not is_own and self._failures[task["hash"]] <= RETRIES


def _connected(address: str) -> tuple[Any, bool]:
    """Return the module of Ray, connected, and whether that is new: a program on Ray may be connected already.

    Raises InvalidInput if Ray is not installed or no cluster is there.
    """
    if find_spec("ray") is None:
        raise InvalidInput([Problem(file="--on", rule="Ray is not installed", fix=install_command("ray"))])
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if ray.is_initialized():
        connected = ray.get_runtime_context().gcs_address
        if address not in ("auto", connected):
            rule = f"this process is connected to the Ray cluster at {connected} already, not to {address!r}"
            raise InvalidInput([Problem(file="--on", rule=rule, fix="call ray.shutdown() before")])
        return ray, False
    try:
        ray.init(address=address, namespace="eunomia", log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError) as error:
        rule = f"no Ray cluster answers at {address!r}: {str(error).splitlines()[0]}"
        raise InvalidInput([Problem(file="--on", rule=rule, fix="start one with ray start --head")]) from error
    return ray, True


def _inputs(tasks: Iterable[Task]) -> Iterator[tuple[str, bytes]]:
    """Yield absolute path and content of each file that the runs read."""
    seen: set[Path] = set()
    for task in tasks:
        scenario = scenario_from_dict(task["scenario"], Path(task["base"]), task["name"])
        for path in input_files(scenario):
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file() and file not in seen:
                    seen.add(file)
                    yield os.path.abspath(file), file.read_bytes()


def _key(inputs: Files) -> str:
    """Return a digest of names and contents."""
    digest = sha256()
    for name, content in sorted(inputs.items()):
        digest.update(sha256(name.encode()).digest() + sha256(content).digest())
    return digest.hexdigest()[:32]


def run_on_node(
    task: dict[str, Any], version: str, cwd: str, key: str, held: list[Any]
) -> tuple[dict[str, Any], Files]:
    """Run one task on a node of Ray; return its answer, and the files of the run by name.

    The run reads copies of the files of the sweep, below one folder and with the paths that they had.
    """
    if version != __version__:
        why = f"{gethostname()} has Eunomia {__version__}, and the sweep is of {version}: install the same"
        return {"error": why, "traceback": []}, {}
    root = _unpacked(key, held)
    base, here = (Path(f"{root}{os.path.abspath(folder)}") for folder in (task["base"], cwd))
    for folder in (base, here):
        folder.mkdir(parents=True, exist_ok=True)
    os.chdir(here)
    with tempfile.TemporaryDirectory() as out:
        folder = Path(out) / "runs" / task["hash"]
        folder.parent.mkdir()
        answer = attempt({**task, "base": str(base), "out": out}, simulate_task)
        files = {file.name: file.read_bytes() for file in folder.iterdir()} if folder.is_dir() else {}
    return {key: value for key, value in answer.items() if key not in ("errno", "file")}, files  # another disk


def _unpacked(key: str, held: list[Any]) -> Path:
    """Return the folder with the copies on this node; it is made by the first task that needs it."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eunomia" / "inputs"
    root = place / key
    if root.is_dir():
        root.touch()
        return root
    import ray

    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    for other in place.iterdir():
        if other.stat().st_mtime < time.time() - KEPT_S:
            shutil.rmtree(other, ignore_errors=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{key}-", dir=place))
    for name, content in ray.get(held[0]).items():
        copy = Path(f"{draft}{name}")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
    with suppress(OSError):  # another task was first
        draft.rename(root)
    shutil.rmtree(draft, ignore_errors=True)
    return root
