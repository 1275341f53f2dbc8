"""Requests that only read and are being answered, such as streams of events: they end when their token does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.types import Message, Send

from eunomia.service.credentials import TokenRegistry


class OpenReads:
    """The tasks that answer them, each with the id of its token."""

    def __init__(self) -> None:
        self._token_of: dict[asyncio.Task[None], str] = {}
        self._ended: set[asyncio.Task[None]] = set()

    def add(self, token: str) -> None:
        """Note that the running task answers a request with that token, which changes nothing."""
        if token and (task := asyncio.current_task()) is not None:
            self._token_of[task] = token

    def end(self, tokens: TokenRegistry) -> None:
        """End those whose token holds no more; from the loop."""
        for task, token in self._token_of.items():
            if task not in self._ended and not ((known := tokens.by_id.get(token)) and tokens.holds(known)):
                self._ended.add(task)
                task.cancel()

    async def run(
        self, answer: Callable[[Send], Awaitable[None]], send: Send, refuse: Callable[[Send], Awaitable[None]]
    ) -> None:
        """Await `answer`. If it is ended, what it has begun to send ends there; else `refuse` answers instead."""
        has_begun = is_whole = False

        async def noted(message: Message) -> None:
            nonlocal has_begun, is_whole
            await send(message)
            has_begun = True
            is_whole = message["type"] == "http.response.body" and not message.get("more_body", False)

        task = asyncio.current_task()
        assert task is not None
        try:
            await answer(noted)
        except asyncio.CancelledError:
            if task not in self._ended:
                raise
            task.uncancel()
            if not has_begun:
                await refuse(send)
            elif not is_whole:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._token_of.pop(task, None)
            self._ended.discard(task)
