"""Replies on their way from the writer's thread into the loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from eunomia.service.http.loop_replies import LoopReplies
from eunomia.service.messages import Reply


def test_replies_reach_those_who_wait_and_a_client_that_has_gone_keeps_none_from_another() -> None:
    async def main() -> None:
        replies = LoopReplies()
        gone, failed, *others = [replies.awaited() for _ in range(5)]
        gone.future.cancel()

        def answer() -> None:
            gone.set_result(Reply(200, {"id": "gone"}))
            failed.set_exception(RuntimeError("the service has failed"))
            for number, other in enumerate(others):
                other.set_result(Reply(201, {"id": number}))

        thread = threading.Thread(target=answer)
        thread.start()
        assert [(await other.future).body["id"] for other in others] == [0, 1, 2]
        with pytest.raises(RuntimeError, match="has failed"):
            await failed.future
        thread.join()
        assert failed.done() and others[0].done()

    asyncio.run(main())


def test_a_reply_that_comes_after_the_loop_has_ended_is_dropped() -> None:
    async def ask() -> None:
        late.append(replies.awaited())

    replies, late = LoopReplies(), []
    asyncio.run(ask())
    late[0].set_result(Reply(200, {}))
    assert late[0].done() and not late[0].future.done()
