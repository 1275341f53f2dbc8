"""Connections with deadlines of our own: uvicorn has none for a request, nor for taking the answer.

A connection that waits for its client has 10 s for each head, 30 s for each body, and 30 s to take what was written.
When there are more connections than descriptors allow, one that waits for its client is closed, so that what is left
half done cannot keep others out: the one that has waited longest, of those without a credential or of those with one,
whichever are more. Those without one may be no more than half from one address. What waits for the service itself is
bounded in `budgets`. On a unix socket the user of the other end is noted: it is the credential.
"""

from __future__ import annotations

import asyncio
import functools
import os
import resource
import socket
import struct
import time
from collections import Counter
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from eunomia.service.http.api import BODY_S

HEAD_S = 10.0
GRACE_S = 5.0  # in which its handler may still say that it came too late
ANSWER_S = 30.0  # for a client to take a part of an answer
LOOK_S = 1.0  # between looks at the deadlines
SPARE_DESCRIPTORS = 96  # for the store, logs and supervisors, and connections that are accepted at once
ACCEPTED = 64  # at once
BACKLOG = 1024  # connections that wait to be accepted
LEAST_CONNECTIONS = 16


def most_connections() -> int:
    """Return how many connections the descriptors of this process allow, beside those that it has for other things."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft <= 0:
        return 4096
    others = max(_other_descriptors(int(time.monotonic() / LOOK_S)) - SPARE_DESCRIPTORS // 2, 0)
    return max(min(soft, 65_536) - SPARE_DESCRIPTORS - others, LEAST_CONNECTIONS)


@functools.lru_cache(maxsize=1)
def _other_descriptors(now: int) -> int:
    """Return how many descriptors are of no connection, such as those of gangs; counted anew when `now` is another."""
    folder = "/proc/self/fd"
    return len(os.listdir(folder)) - DeadlineProtocol.open_count if os.path.isdir(folder) else 0


class _JoinedWrites:
    """A transport whose writes of one pass of the loop leave together: head and body of an answer in one packet."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send data with what else is written until the loop goes on."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        """Send what was written, and close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))


class DeadlineProtocol(H11Protocol):
    """One connection."""

    # Connections that wait for their client, and until when; that which has waited longest comes first.
    waiting: ClassVar[dict[DeadlineProtocol, float]] = {}
    watched_by: ClassVar[asyncio.AbstractEventLoop | None] = None  # that closes those whose deadline has passed
    open_count = 0
    strangers: ClassVar[dict[DeadlineProtocol, None]] = {}  # those without a credential so far, the oldest first
    strangers_of: ClassVar[Counter[str]] = Counter()  # how many of them an address has
    app_state: dict[str, Any]  # of each request; begins as that of the server
    is_known = False
    _allowed_s = 0.0  # for what it waits for

    def connection_made(self, transport: Any) -> None:
        """Begin the deadline; close the connection that waited longest if there are too many."""
        super().connection_made(_JoinedWrites(transport, self.loop))
        self.app_state = {**self.app_state, "connection": self}
        peer = _peer_uid(transport.get_extra_info("socket"))
        if peer is not None:
            self.app_state["peer_uid"] = peer
        self.address = str(self.client[0]) if self.client else ""
        DeadlineProtocol.open_count += 1
        DeadlineProtocol.strangers[self] = None
        DeadlineProtocol.strangers_of[self.address] += 1
        if peer is not None:
            self.know()
        self.loop.call_soon(self.loop.call_soon, self._begin_wait)  # once the loop has read what has arrived already
        most = most_connections()
        if DeadlineProtocol.strangers_of[self.address] > most // 2:
            self._close_first([one for one in self.strangers if one.address == self.address])
        elif DeadlineProtocol.open_count > most:
            known = [one for one in self.waiting if one.is_known]
            self._close_first(max(known, list(self.strangers), key=len))

    def know(self) -> None:
        """Note that a request over this connection had a credential."""
        self.is_known = True
        self._forget_stranger()

    def _forget_stranger(self) -> None:
        if DeadlineProtocol.strangers.pop(self, self) is None:
            DeadlineProtocol.strangers_of[self.address] -= 1
            if not DeadlineProtocol.strangers_of[self.address]:
                del DeadlineProtocol.strangers_of[self.address]

    def _close_first(self, among: list[DeadlineProtocol]) -> None:
        """Close the connection that has waited longest for its client; if none of them does, the first one."""
        mine = set(among)
        longest = next((one for one in self.waiting if one in mine), None)
        if longest is None and among:
            longest = among[0]
        if longest is not None:
            longest._close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        DeadlineProtocol.open_count -= 1
        self._forget_stranger()
        DeadlineProtocol.waiting.pop(self, None)
        self.app_state = {}  # which names this connection
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; a head and a body have each their deadline."""
        super().data_received(data)
        self._note_wait()

    def on_response_complete(self) -> None:
        """Begin the deadline of the next request."""
        super().on_response_complete()
        if self.cycle.response_complete:  # else the next request has come already
            DeadlineProtocol.waiting.pop(self, None)
        self._note_wait()

    def pause_writing(self) -> None:
        """Begin the deadline for the client to take what it asked for."""
        super().pause_writing()
        self._note_wait()

    def resume_writing(self) -> None:
        """Go on writing: the client takes it."""
        super().resume_writing()
        if not self._wait_s():
            DeadlineProtocol.waiting.pop(self, None)

    def _wait_s(self) -> float:
        """Return how long the client may take for what it is to do; 0 = the connection waits for us."""
        if self.flow.write_paused:
            return ANSWER_S
        if self.cycle is None or self.cycle.response_complete:
            return HEAD_S
        return BODY_S + GRACE_S if self.cycle.more_body else 0.0

    def _begin_wait(self) -> None:
        if not self.transport.is_closing():
            self._note_wait()

    def _note_wait(self) -> None:
        wait_s = self._wait_s()
        if not wait_s:
            DeadlineProtocol.waiting.pop(self, None)
            return
        begun = self.loop.time()
        if self in DeadlineProtocol.waiting and wait_s == self._allowed_s:
            return  # what trickles in does not put it off
        self._allowed_s = wait_s
        DeadlineProtocol.waiting[self] = begun + wait_s
        if DeadlineProtocol.watched_by is not self.loop:
            DeadlineProtocol.watched_by = self.loop
            self.loop.call_later(LOOK_S, DeadlineProtocol._close_late, self.loop)

    @classmethod
    def _close_late(cls, loop: asyncio.AbstractEventLoop) -> None:
        """Close the connections whose deadline has passed, and look again later: one timer serves all."""
        now = loop.time()
        for late in [one for one, deadline in cls.waiting.items() if deadline <= now]:
            late._close()
        if cls.waiting:
            loop.call_later(LOOK_S, cls._close_late, loop)
        else:
            cls.watched_by = None

    def _close(self) -> None:
        DeadlineProtocol.waiting.pop(self, None)
        self._forget_stranger()  # now: several may be closed before the loop tells that they are lost
        self.transport.abort()  # also one that is being closed, which would wait until all is taken


def _peer_uid(sock: Any) -> int | None:
    """Return the user at the other end of a unix socket; None for other connections."""
    if sock is None or sock.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return None
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(uid)
