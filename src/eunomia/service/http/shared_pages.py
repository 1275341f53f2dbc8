"""Pages that open tabs load again: made once for all who may see the same, unless a tab has seen newer events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass

from starlette.responses import Response

SHARED_S = 2.0  # for so long a page is given to others
MOST_KEPT = 64
AFTER = "eunomia-after"  # header: number of the last event that a tab has seen


@dataclass(frozen=True, slots=True)
class _Made:
    at: float
    newest: asyncio.Task[int]  # number of the last event before it was made
    answer: asyncio.Task[Response]


class SharedPages:
    """The pages of the last seconds, by address and by who may see them. `newest` returns the last event's number."""

    def __init__(self, newest: Callable[[], Awaitable[int]]) -> None:
        self._newest = newest
        self._kept: dict[Hashable, _Made] = {}

    async def answer(self, key: Hashable, after: int, make: Callable[[], Awaitable[Response]]) -> Response:
        """Return a page that has what event `after` changed: one that was made, or is being made, or a new one."""
        while True:
            found, now, is_mine = self._kept.get(key), time.monotonic(), False
            if found is None or now - found.at > SHARED_S:
                found, is_mine = self._begin(key, now, make), True
            if await asyncio.shield(found.newest) >= after or is_mine:  # a client may name an event that there is not
                break
            if self._kept.get(key) is found:
                del self._kept[key]
        page = await asyncio.shield(found.answer)  # that one tab is closed must not fail the others
        return Response(page.body, page.status_code, media_type=page.media_type)

    def _begin(self, key: Hashable, now: float, make: Callable[[], Awaitable[Response]]) -> _Made:
        while len(self._kept) >= MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        newest = asyncio.ensure_future(self._asked())
        found = self._kept[key] = _Made(now, newest, asyncio.ensure_future(_page(newest, make)))
        return found

    async def _asked(self) -> int:
        return await self._newest()


async def _page(newest: asyncio.Task[int], make: Callable[[], Awaitable[Response]]) -> Response:
    await newest
    return await make()
