"""A small kubelet of the tests: commands of bound pods run as processes of this machine, and it reports their phase."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx2
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Pod, PodStatus
from lightkube.types import PatchType
from tests.kubernetes.loopback import LoopbackServer

POLL_S = 0.1


@dataclass
class _Run:
    process: subprocess.Popen[bytes]
    node: str
    kill_at: float | None = None


class Kubelet:
    """One for all nodes, in a thread."""

    def __init__(self, server: LoopbackServer) -> None:
        self._client = server.client()
        self._runs: dict[str, _Run] = {}  # by uid of the pod
        self._ended = threading.Event()
        self.dead: set[str] = set()  # nodes whose processes have ended, and of which nothing is reported
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(POLL_S):
            with suppress(ApiError, httpx2.HTTPError):  # the server is away: later
                for pod in self._client.list(Pod, namespace="*"):
                    if pod.spec.nodeName and pod.spec.nodeName not in self.dead:
                        self._look(pod)

    def _look(self, pod: Any) -> None:
        uid, run = pod.metadata.uid, self._runs.get(pod.metadata.uid)
        if run is None:
            if pod.metadata.deletionTimestamp is None and pod.status.phase == "Pending":
                self._runs[uid] = _Run(self._start(pod), pod.spec.nodeName)
                self._report(pod, "Running")
            elif pod.metadata.deletionTimestamp is not None:
                self._client.delete(Pod, pod.metadata.name, namespace=pod.metadata.namespace, grace_period=0)
            return
        code = run.process.poll()
        if pod.metadata.deletionTimestamp is not None:
            if run.kill_at is None and code is None:
                run.kill_at = time.monotonic() + (pod.metadata.deletionGracePeriodSeconds or 0)
                _signal(run, signal.SIGTERM)
            elif code is None and run.kill_at is not None and time.monotonic() >= run.kill_at:
                _signal(run, signal.SIGKILL)
            elif code is not None:
                self._client.delete(Pod, pod.metadata.name, namespace=pod.metadata.namespace, grace_period=0)
        elif code is not None and pod.status.phase == "Running":
            self._report(pod, "Failed" if code else "Succeeded")

    def _start(self, pod: Any) -> subprocess.Popen[bytes]:
        [container] = pod.spec.containers
        count = int(container.resources.limits["nvidia.com/gpu"])
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(count)))}
        return subprocess.Popen(container.command, cwd="/", env=environment, start_new_session=True)

    def _report(self, pod: Any, phase: str) -> None:
        name, namespace = pod.metadata.name, pod.metadata.namespace
        change = {"status": {"phase": phase}}
        self._client.patch(PodStatus, name, change, namespace=namespace, patch_type=PatchType.MERGE)

    def lose(self, node: str) -> None:
        """End what runs on a node, without a word."""
        self.dead.add(node)
        for run in self._runs.values():
            if run.node == node:
                _signal(run, signal.SIGKILL)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        for run in self._runs.values():
            _signal(run, signal.SIGKILL)
            run.process.wait()
        self._client.close()


def _signal(run: _Run, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        if number == signal.SIGKILL:
            os.killpg(run.process.pid, number)
        else:
            run.process.send_signal(number)
