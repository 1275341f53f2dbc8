"""Asks the agent, which speaks to Ray in a process of its own."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from eunomia.backends.engines.engine import EngineAway, EngineRefused
from eunomia.child_process import ChildProcess, ProcessDied

START_S = 30.0  # that a question waits for the agent to reach the cluster
PATIENCE = 5  # questions in a row without an answer, after which another agent is started
TOKEN_REFUSED = (
    "the cluster refuses the token of this service: give it the cluster's own in RAY_AUTH_TOKEN_PATH (a file), "
    "RAY_AUTH_TOKEN or ~/.ray/auth_token, and the same RAY_AUTH_MODE"
)
_TOKEN = re.compile(
    r"unauthenticated|authenticationerror|invalid\w* (auth\w* )?token|auth\w* (token|failed|failure)",
    re.IGNORECASE,
)
Ask = Callable[..., Any]


def _cause(lines: Sequence[str]) -> str:
    """Return why Ray was not reached, of what its process printed last; "" where that is nothing.

    A refused token is named as such: the last line says only that the connection failed.
    """
    said = [line.strip() for line in lines if line.strip()]
    if refused := [line for line in said if _TOKEN.search(line)]:
        return f"{TOKEN_REFUSED} ({refused[0][:300]})"
    return said[-1][:300] if said else ""


class AgentClient:
    """Questions to an agent, one at a time; an agent that has ended is started again."""

    def __init__(self, address: str, namespace: str, timeout_s: float) -> None:
        self._process = ChildProcess(
            "eunomia.backends.ray.agent", address, namespace, variables={"RAY_USAGE_STATS_ENABLED": "0"},
            keeps_lines=True, own_session=True,
        )  # fmt: skip
        self._timeout_s, self._is_ready = timeout_s, False
        self._numbers, self._unanswered = count(1), 0
        self._one_at_a_time = threading.Lock()

    def ask(self, do: str, **about: Any) -> Any:
        """Return the answer. Raises EngineAway without one in time, EngineRefused if it cannot be done."""
        with self._one_at_a_time:
            if not self._is_ready:
                self._start()
            number = next(self._numbers)
            self._process.send(json.dumps({"id": number, "do": do, **about}).encode())
            return self._answer_to(number, self._timeout_s)

    def close(self) -> None:
        """End the agent; what runs in Ray goes on."""
        with self._one_at_a_time:
            self._end()

    def _answer_to(self, number: int, within_s: float) -> Any:
        until = time.monotonic() + within_s
        while True:
            try:
                answer = json.loads(self._process.receive(until - time.monotonic()))
            except TimeoutError:
                self._unanswered += 1
                if self._unanswered >= PATIENCE:
                    self._end()
                raise EngineAway(f"Ray did not answer within {within_s:g} s") from None
            except ProcessDied as death:
                self._end()  # another one is started for the next question
                raise EngineAway(f"Ray: {_cause(death.lines) or str(death)[:300]}") from None
            if answer["id"] == number:  # not that of an earlier question, which came too late
                break
        self._unanswered = 0
        if "away" in answer:
            raise EngineAway(f"Ray: {_cause([str(answer['away'])])}")
        if "refused" in answer:
            raise EngineRefused(answer["refused"])
        return answer["value"]

    def _start(self) -> None:
        """Wait for the agent, which the next question goes on to wait for if it takes longer on a busy machine."""
        self._process.start()
        try:
            self._answer_to(0, START_S)
        except EngineAway:
            if not self._unanswered:  # it did not reach it
                self._end()
            raise
        self._is_ready = True

    def _end(self) -> None:
        self._is_ready, self._unanswered = False, 0
        self._process.stop()
