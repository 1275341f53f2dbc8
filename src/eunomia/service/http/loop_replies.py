"""Brings the writer's replies into the loop: all that have come by then by one call, as one commit answers many."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any

from eunomia.service.messages import Reply


class LoopReplies:
    """Replies on their way from the writer's thread to the requests that wait for them."""

    def __init__(self) -> None:
        self._came: deque[tuple[asyncio.Future[Reply], Reply | BaseException]] = deque()
        self._is_called = False
        self._awaited: set[asyncio.Future[Reply]] = set()

    def awaited(self) -> AwaitedReply:
        """Return what one request of the running loop waits for."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._awaited.add(future)
        future.add_done_callback(self._awaited.discard)
        return AwaitedReply(self, future)

    def give_up(self, error: Exception) -> None:
        """Let no request wait any longer; from the loop. What was asked for may still be done."""
        for future in list(self._awaited):
            if not future.done():
                future.set_exception(error)

    def put(self, future: asyncio.Future[Reply], found: Reply | BaseException) -> None:
        """Hand over what came of a request; from any thread."""
        self._came.append((future, found))
        loop = future.get_loop()
        if not self._is_called and not loop.is_closed():
            self._is_called = True
            loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_called = False
        while self._came:
            future, found = self._came.popleft()
            if future.done():
                continue  # its client has gone
            if isinstance(found, BaseException):
                future.set_exception(found)
            else:
                future.set_result(found)


@dataclass(slots=True)
class AwaitedReply:
    """The reply of one request: the writer's thread sets it, the loop waits for `future`."""

    _replies: LoopReplies
    future: asyncio.Future[Reply]
    _is_set: bool = False

    def cancelled(self) -> bool:
        """Say whether the request no longer waits; what was asked for is done all the same."""
        return False

    def done(self) -> bool:
        """Say whether the reply has been set."""
        return self._is_set

    def set_result(self, reply: Any) -> None:
        """Hand over the reply."""
        self._is_set = True
        self._replies.put(self.future, reply)

    def set_exception(self, error: BaseException) -> None:
        """Hand over why there is none."""
        self._is_set = True
        self._replies.put(self.future, error)
