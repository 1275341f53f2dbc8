"""Turns in the event loop: each pass of it begins only so many, and owners take them one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from eunomia.service.fair_queue import FairQueue


class LoopTurns:
    """`a_pass` turns in each pass of the loop; who comes when there are none waits for a later pass."""

    def __init__(self, a_pass: int) -> None:
        self._a_pass = self._left = a_pass
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()
        self._is_called = False

    async def take(self, owner: Hashable = None) -> None:
        """Return when it is the owner's turn: at once, unless this pass has given all of them."""
        loop = asyncio.get_running_loop()
        if not self._is_called:
            self._is_called = True
            loop.call_soon(self._next, loop)
        if self._left and not len(self._waiting):
            self._left -= 1
            return
        mine: asyncio.Future[None] = loop.create_future()
        self._waiting.put(owner, mine)
        await mine

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        was_used = self._left < self._a_pass
        self._left = self._a_pass
        while self._left and len(self._waiting):
            following = self._waiting.pop()
            if not following.done():  # else its client has gone
                following.set_result(None)
                self._left -= 1
        self._is_called = was_used or self._left < self._a_pass
        if self._is_called:
            loop.call_soon(self._next, loop)
