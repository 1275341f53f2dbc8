"""Work in threads beside the loop, in which each tenant has its turn, however much another one asks for."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from eunomia.service.fair_queue import FairQueue

P = ParamSpec("P")
T = TypeVar("T")
TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="")  # of the request that is answered


class FairThreads:
    """A few threads for the requests of one loop."""

    def __init__(self, count: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(count, name)
        self._free = count
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()

    async def run(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """Return `work(*args, **more)`, once a thread is free and it is the turn of this request's tenant."""
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        if self._free:
            self._free -= 1
        else:
            mine: asyncio.Future[None] = loop.create_future()
            self._waiting.put(TENANT.get(), mine)
            try:
                await mine
            except asyncio.CancelledError:
                if mine.done() and not mine.cancelled():
                    self._release()
                raise

        def released(_: Future[Any]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._release)

        job: Future[T] = self._threads.submit(lambda: context.run(work, *args, **more))
        job.add_done_callback(released)
        return await asyncio.wrap_future(job)

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _release(self) -> None:
        while len(self._waiting):
            following = self._waiting.pop()
            if not following.done():
                following.set_result(None)
                return
        self._free += 1
