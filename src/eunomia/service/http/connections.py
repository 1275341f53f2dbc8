"""Connections with deadlines of our own: uvicorn has none for the head of a request.

A connection has 10 s for each head. When there are more connections than descriptors allow, the one that has waited
longest without sending a head is closed, so that idle ones cannot keep others out; when one address has more than half
of them, one of its own is. On a unix socket the user of the
other end is noted: it is the credential.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
from collections import Counter
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 10.0
SPARE_DESCRIPTORS = 96  # for the store, logs and supervisors


def most_connections() -> int:
    """Return how many connections the descriptors of this process allow."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max((min(soft, 65_536) - SPARE_DESCRIPTORS) if soft > 0 else 4096, 16)


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

    waiting: ClassVar[dict[DeadlineProtocol, float]] = {}  # deadlines of those without a whole head, the oldest first
    watched_by: ClassVar[asyncio.AbstractEventLoop | None] = None  # that closes those whose deadline has passed
    open_count = 0
    count_by_address: ClassVar[Counter[str]] = Counter()
    app_state: dict[str, Any]  # of each request; begins as that of the server

    def connection_made(self, transport: Any) -> None:
        """Begin the deadline; close the connection that waited longest if there are too many."""
        super().connection_made(_JoinedWrites(transport, self.loop))
        peer = _peer_uid(transport.get_extra_info("socket"))
        if peer is not None:
            self.app_state = {**self.app_state, "peer_uid": peer}
        self.address = str(self.client[0]) if self.client else ""
        DeadlineProtocol.open_count += 1
        DeadlineProtocol.count_by_address[self.address] += 1
        self._await_head()
        most = most_connections()
        if DeadlineProtocol.count_by_address[self.address] > most // 2:
            self._close_oldest(self.address)
        elif DeadlineProtocol.open_count > most:
            self._close_oldest()

    @classmethod
    def _close_oldest(cls, address: str | None = None) -> None:
        """Close the connection, of one address or of all, that has waited longest without a head."""
        oldest = next((one for one in cls.waiting if address in (None, one.address)), None)
        if oldest is not None:
            oldest._close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        DeadlineProtocol.open_count -= 1
        DeadlineProtocol.count_by_address[self.address] -= 1
        if not DeadlineProtocol.count_by_address[self.address]:
            del DeadlineProtocol.count_by_address[self.address]
        self._has_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; a whole head ends the deadline."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._has_head()

    def on_response_complete(self) -> None:
        """Begin the deadline of the next request."""
        super().on_response_complete()
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self._await_head()

    def _await_head(self) -> None:
        self._has_head()
        DeadlineProtocol.waiting[self] = self.loop.time() + HEAD_S
        if DeadlineProtocol.watched_by is not self.loop:
            DeadlineProtocol.watched_by = self.loop
            self.loop.call_later(HEAD_S, DeadlineProtocol._close_late, self.loop)

    @classmethod
    def _close_late(cls, loop: asyncio.AbstractEventLoop) -> None:
        """Close the connections whose deadline has passed, and come back for the next one: one timer serves all."""
        now, oldest = loop.time(), next(iter(cls.waiting), None)
        while oldest is not None and cls.waiting[oldest] <= now:
            oldest._close()
            oldest = next(iter(cls.waiting), None)
        if oldest is None:
            DeadlineProtocol.watched_by = None
        else:
            loop.call_at(cls.waiting[oldest], cls._close_late, loop)

    def _has_head(self) -> None:
        DeadlineProtocol.waiting.pop(self, None)

    def _close(self) -> None:
        DeadlineProtocol.waiting.pop(self, None)
        if not self.transport.is_closing():
            self.transport.abort()


def _peer_uid(sock: Any) -> int | None:
    """Return the user at the other end of a unix socket; None for other connections."""
    if sock is None or sock.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return None
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(uid)
