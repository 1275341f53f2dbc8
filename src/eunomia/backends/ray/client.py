"""Asks the agent, which speaks to Ray in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

from eunomia.backends.engines.engine import EngineAway, EngineRefused

START_S = 30.0  # for the agent to reach the cluster
PATIENCE = 5  # questions in a row without an answer, after which another agent is started
Ask = Callable[..., Any]


class AgentClient:
    """Questions to an agent, one at a time; an agent that has ended is started again."""

    def __init__(self, address: str, namespace: str, timeout_s: float) -> None:
        self._command = [sys.executable, "-m", "eunomia.backends.ray.agent", address, namespace]
        self._timeout_s = timeout_s
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._said: deque[str] = deque(maxlen=5)  # last lines on standard error
        self._numbers, self._unanswered = count(1), 0
        self._one_at_a_time = threading.Lock()

    def ask(self, do: str, **about: Any) -> Any:
        """Return the answer. Raises EngineAway without one in time, EngineRefused if it cannot be done."""
        with self._one_at_a_time:
            if self._process is None:
                self._start()
            number = next(self._numbers)
            assert self._process is not None and self._process.stdin is not None
            try:
                self._process.stdin.write(json.dumps({"id": number, "do": do, **about}) + "\n")
                self._process.stdin.flush()
            except OSError:
                raise self._gone() from None
            return self._answer_to(number, self._timeout_s)

    def close(self) -> None:
        """End the agent; what runs in Ray goes on."""
        with self._one_at_a_time:
            self._end()

    def _answer_to(self, number: int, within_s: float) -> Any:
        until = time.monotonic() + within_s
        while True:
            try:
                answer = self._answers.get(timeout=max(until - time.monotonic(), 1e-3))
            except queue.Empty:
                self._unanswered += 1
                if self._unanswered >= PATIENCE:
                    self._end()
                raise EngineAway(f"Ray did not answer within {within_s:g} s") from None
            if answer is None:
                raise self._gone()
            if answer["id"] == number:  # not that of an earlier question, which came too late
                break
        self._unanswered = 0
        if "away" in answer:
            raise EngineAway(f"Ray: {answer['away']}")
        if "refused" in answer:
            raise EngineRefused(answer["refused"])
        return answer["value"]

    def _start(self) -> None:
        self._said.clear()
        self._answers, self._unanswered = queue.SimpleQueue(), 0
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        )  # fmt: skip
        threading.Thread(target=_read, args=(self._process, self._answers), daemon=True).start()
        threading.Thread(target=_keep, args=(self._process, self._said), daemon=True).start()
        try:
            self._answer_to(0, START_S)
        except EngineAway:
            self._end()
            raise

    def _gone(self) -> EngineAway:
        """Return why the agent ended; another one is started for the next question."""
        self._end()
        last = next((line for line in reversed(self._said) if line.strip()), "the process that speaks to it ended")
        return EngineAway(f"Ray: {last.strip()[:300]}")

    def _end(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.kill()
            self._process.wait()
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process = None


def _read(process: subprocess.Popen[str], answers: queue.SimpleQueue[dict[str, Any] | None]) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            answers.put(json.loads(line))
    answers.put(None)


def _keep(process: subprocess.Popen[str], lines: deque[str]) -> None:
    assert process.stderr is not None
    with process.stderr as said:
        lines.extend(said)
