"""The stream of events: one reader takes each event from the store and encodes it once, whoever listens.

Listeners that are up to date are handed the same parts. One that lags, or begins with an old event, reads parts from
the store in turn with the others, however few of the events are its own. Each pass of the loop serves a few listeners,
and new parts come the more rarely the more listen, so other requests are answered meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from eunomia.service.http.loop_turns import LoopTurns
from eunomia.service.job_row import iso
from eunomia.service.store.reader import Reader, detail_of

KEEP_ALIVE_S = 15.0
PART = 500  # events that are read and sent together
KEPT_PARTS = 32
A_PASS = 8  # parts that one pass of the loop sends
BETWEEN_S = 0.02  # least time between two readings
EACH_S = 0.001  # and for each listener so much more


@dataclass(frozen=True, slots=True)
class EventPart:
    """Events that follow each other up to number `last`, encoded: all of them, and those of each tenant."""

    last: int
    whole: bytes
    by_tenant: dict[str, bytes]

    def of(self, tenant: str | None) -> bytes:
        """Return the events of a tenant; None = all."""
        return self.whole if tenant is None else self.by_tenant.get(tenant, b"")


@dataclass(slots=True, eq=False)
class _Listener:
    tenant: str | None  # None = all
    after: int  # number of the last event that it has, or that is none of its own
    woken: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class EventFeed:
    """The streams of one service. `origin` is the wall-clock time of second 0."""

    def __init__(self, reader: Reader, origin: float) -> None:
        self._reader, self._origin = reader, origin
        self._thread = ThreadPoolExecutor(1, "events")
        self._loop = asyncio.get_running_loop()
        self._due = asyncio.Event()  # something was committed, or a listener has come
        self._is_notified = False
        self._reading = asyncio.Lock()
        self._parts: dict[int, EventPart] = {}  # by the number of the event before
        self._last = 0  # number of the last event that was read for all
        self._count = 0  # of listeners
        self._waiting: dict[_Listener, None] = {}  # for events
        self._turns = LoopTurns(A_PASS)  # of those with a part to send
        self.closing = False

    def notify(self) -> None:
        """Say that something was committed; from any thread."""
        if not self._is_notified and not self._loop.is_closed():
            self._is_notified = True
            self._loop.call_soon_threadsafe(self._due.set)

    def close(self) -> None:
        """Let all streams end."""
        self.closing = True
        self._due.set()
        for one in self._waiting:
            _wake(one.woken)

    async def run(self) -> None:
        """Read what was committed, for as long as there are listeners."""
        while not self.closing:
            await self._due.wait()
            self._due.clear()
            self._is_notified = False
            while self._count and not self.closing and (part := await self._read(self._last)) is not None:
                before, self._last = self._last, part.last
                for one in list(self._waiting):
                    if one.after == before and not part.of(one.tenant):
                        one.after = part.last
                    else:
                        _wake(one.woken)
            await asyncio.sleep(BETWEEN_S + EACH_S * self._count)

    async def stream(self, tenant: str | None, after: int) -> AsyncIterator[bytes]:
        """Yield the events of a tenant, or all, after one, as they come."""
        yield b": connected\n\n"
        if not self._count:
            self._parts.clear()
            self._last = await self._asked(lambda: self._reader.news_range()[1])
        one, said = _Listener(tenant, after), after
        self._count += 1
        self._due.set()
        try:
            while not self.closing:
                part = await self._read(one.after, self._last) if one.after < self._last else None
                if part is not None:
                    one.after = part.last
                    if text := part.of(tenant):
                        said = part.last
                        await self._turns.take()
                        yield text
                elif not await self._is_woken(one):
                    yield b": waiting\n\n" if said == one.after else b"id: %d\n\n" % one.after
                    said = one.after
        finally:
            self._count -= 1

    async def _is_woken(self, one: _Listener) -> bool:
        """Wait for events; False when none came for a while."""
        one.woken = self._loop.create_future()
        self._waiting[one] = None
        try:
            await asyncio.wait_for(one.woken, KEEP_ALIVE_S)
        except TimeoutError:
            return False
        finally:
            del self._waiting[one]
        return True

    async def _read(self, after: int, last: int = 2**62) -> EventPart | None:
        """Return the part after an event, up to another; None if there is none. One is read at a time."""
        if (found := self._parts.get(after)) is not None:
            return found
        async with self._reading:
            if (found := self._parts.get(after)) is None:
                begun = time.perf_counter()
                found = await self._asked(lambda: self._encoded(after, last))
                if found is None:
                    return None
                while len(self._parts) >= KEPT_PARTS:
                    del self._parts[next(iter(self._parts))]
                self._parts[after] = found
                if found.last < self._last:  # many that begin far back must not use a whole processor
                    await asyncio.sleep(time.perf_counter() - begun)
        return found

    async def _asked(self, ask: Any) -> Any:
        return await self._loop.run_in_executor(self._thread, ask)

    def _encoded(self, after: int, last: int) -> EventPart | None:
        rows = self._reader.news(after, last, PART)
        if not rows:
            return None
        whole, by_tenant = list[bytes](), defaultdict[str, list[bytes]](list)
        times, details = dict[float, str](), dict[str, dict[str, Any]]()
        for number, at, job, tenant, kind, text in rows:
            if at not in times:
                times[at] = iso(self._origin + at)
            if text not in details:
                details[text] = detail_of(text)
            event = as_event(number, kind, {"id": job, "at": times[at], **details[text]}).encode()
            whole.append(event)
            by_tenant[tenant].append(event)
        return EventPart(rows[-1][0], b"".join(whole), {name: b"".join(parts) for name, parts in by_tenant.items()})


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def as_event(number: int, kind: str, data: dict[str, Any]) -> str:
    """Return one server-sent event."""
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"
