"""The open streams to terminals and notebooks: each copies frames from a job's process, and takes bytes for it."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from socket import socket

from eunomia.backends.processes.interactive_session import (
    EXIT,
    HEAD,
    MOST_FRAME,
    NOTICE,
    OPEN,
    frame,
)
from eunomia.service.http.budgets import MOST_SESSIONS

KEEP_ALIVE_S = 15.0
ROOM_S = 20.0  # to wait for a program that does not read what is sent
WHO = tuple[str, str]  # user and tenant


class NoRoom(Exception):
    """The program does not read what was sent before."""


class Stream:
    """One attached client. Input is counted in bytes, so that what is sent again is taken once."""

    def __init__(self, job_id: str, who: WHO, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.id, self.job_id, self.who = secrets.token_urlsafe(18), job_id, who
        self.reader, self.writer, self.taken = reader, writer, 0
        self._turn = asyncio.Lock()

    async def send(self, at: int, data: bytes) -> None:
        """Pass on bytes that begin at byte `at` of the input. Raises NoRoom, ValueError for a gap, OSError."""
        async with self._turn:
            if at > self.taken:
                raise ValueError(f"the input so far has {self.taken} bytes")
            if at + len(data) <= self.taken:
                return
            try:
                await asyncio.wait_for(self.writer.drain(), ROOM_S)
            except TimeoutError:
                raise NoRoom from None
            self.writer.write(data[self.taken - at :])
            self.taken = at + len(data)

    async def frames(self, notice: Callable[[], str]) -> AsyncIterator[bytes]:
        """Yield frames until the process ends the stream. What `notice` says is shown when it is new."""
        said = ""
        while True:
            try:
                head = await asyncio.wait_for(self.reader.readexactly(HEAD.size), KEEP_ALIVE_S)
            except TimeoutError:
                text = notice()
                yield frame(NOTICE, text.encode() if text != said else b"")
                said = text
                continue
            kind, length = HEAD.unpack(head)
            if length > MOST_FRAME:  # it is no process of ours
                return
            yield head + await self.reader.readexactly(length)
            if kind == EXIT:
                return


class Sessions:
    """All of them; a user has at most MOST_SESSIONS."""

    def __init__(self) -> None:
        self._streams: dict[str, Stream] = {}
        self._count: Counter[WHO] = Counter()
        self.known: dict[tuple[WHO, str, int], None] = {}  # starts of jobs whose attaching is in the audit log

    def take(self, who: WHO) -> bool:
        """Count a further stream of a user, which `leave` ends; False if there are too many."""
        if self._count[who] >= MOST_SESSIONS:
            return False
        self._count[who] += 1
        return True

    def leave(self, who: WHO) -> None:
        """Count one less."""
        self._count[who] -= 1
        if not self._count[who]:
            del self._count[who]

    async def begin(self, job_id: str, who: WHO, connection: socket, first: bytes) -> Stream:
        """Begin a stream over a connection with the job's process; `first` says what it is for."""
        connection.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=MOST_FRAME)
        writer.transport.set_write_buffer_limits(high=MOST_FRAME)
        writer.write(frame(OPEN, first))
        stream = Stream(job_id, who, reader, writer)
        self._streams[stream.id] = stream
        return stream

    def find(self, stream_id: str, job_id: str, who: WHO) -> Stream | None:
        """Return a stream of a job, if that user has begun it."""
        found = self._streams.get(stream_id)
        return found if found is not None and (found.job_id, found.who) == (job_id, who) else None

    def end(self, stream: Stream) -> None:
        """Close the connection with the process, which goes on."""
        self._streams.pop(stream.id, None)
        stream.writer.transport.abort()

    def close(self) -> None:
        """End all, as the service ends."""
        for stream in list(self._streams.values()):
            self.end(stream)
