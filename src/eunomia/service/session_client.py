"""The client's side of terminals and notebooks: a stream of frames over HTTP. Standard library only."""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Iterator
from urllib.parse import urlencode

from eunomia.backends.processes.interactive_session import DATA, FACTS, HEAD, MOST_FRAME, NOTICE, SIZE, frame
from eunomia.service.client import Client, ServiceRefusal, Unreachable

STREAM = "X-Eunomia-Stream"
FRESH_S = 5.0  # for which a connection is used again: the service closes one that waits for 10 s
READY_S = 120.0  # for the job's process to begin


class SessionStream:
    """One stream. Raises ServiceRefusal, Unreachable."""

    def __init__(self, client: Client, job_id: str, **query: int | str) -> None:
        self._client, self._path = client, f"{client.job_path(job_id)}/session"
        self._connection, self._answer = client.open_stream(f"{self._path}?{urlencode(query)}")
        self._id = self._answer.getheader(STREAM) or ""
        self._sender: http.client.HTTPConnection | None = None
        self._sent, self._used_at = 0, 0.0

    def frames(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield what comes, until the stream ends. Raises Unreachable if it breaks off."""
        try:
            while head := self._answer.read(HEAD.size):
                kind, length = HEAD.unpack(head)
                yield kind, self._answer.read(length)
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as error:  # also closed by `close`
            raise Unreachable(f"the connection was lost ({error or type(error).__name__})") from error

    def send(self, kind: bytes, data: bytes) -> None:
        """Send a frame, however long it takes the program to read what came before."""
        for start in range(0, max(len(data), 1), MOST_FRAME - HEAD.size):
            self._post(frame(kind, data[start : start + MOST_FRAME - HEAD.size]))

    def send_size(self, rows: int, columns: int) -> None:
        """Say how large the terminal is now."""
        self.send(SIZE, rows.to_bytes(2, "big") + columns.to_bytes(2, "big"))

    def close(self) -> None:
        """End the stream; the job goes on."""
        for one in (self._connection, self._sender):
            if one is not None:
                with contextlib.suppress(OSError):
                    if one.sock is not None:
                        one.sock.shutdown(2)  # wakes a thread that reads from it
                one.close()
        self._answer.close()

    def _post(self, body: bytes) -> None:
        path = f"{self._path}/{self._id}?at={self._sent or ''}"
        is_again = False
        while True:
            if self._sender is None or time.monotonic() - self._used_at > FRESH_S:
                if self._sender is not None:
                    self._sender.close()
                self._sender = self._client.connect()
            try:
                status = self._client.post_bytes(self._sender, path, body)
            except (OSError, http.client.HTTPException) as error:
                self._sender.close()
                self._sender = None
                if is_again:
                    raise Unreachable(f"the connection was lost ({error or type(error).__name__})") from error
                is_again = True  # bytes that came are not taken again, as `at` says where they begin
                continue
            self._used_at = time.monotonic()
            if status not in (429, 503):  # no room now
                break
            time.sleep(0.1)
        if status >= 300:
            raise Unreachable("the stream has ended")
        self._sent += len(body)


def wait_until_ready(client: Client, job_id: str, **query: int | str) -> SessionStream:
    """Return a stream to a job that has just been started. Raises ServiceRefusal, Unreachable."""
    deadline = time.monotonic() + READY_S
    while True:
        try:
            return SessionStream(client, job_id, **query)
        except ServiceRefusal as error:
            is_early = str(error.problem.get("type", "")).endswith(":not_ready")
            if not is_early or time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def notebook_facts(client: Client, job_id: str) -> str:
    """Return the facts about a notebook server, as JSON, once it listens. Raises ServiceRefusal, Unreachable."""
    deadline, said = time.monotonic() + READY_S, "it did not begin"
    while time.monotonic() < deadline:
        stream = wait_until_ready(client, job_id, open="facts")
        for kind, data in stream.frames():
            if kind == FACTS:
                stream.close()
                return data.decode()
            said = data.decode(errors="replace") if kind == NOTICE else said
        stream.close()
        time.sleep(0.5)
    raise Unreachable(f"the notebook server does not answer: {said}")


__all__ = ["DATA", "NOTICE", "SessionStream", "notebook_facts", "wait_until_ready"]
