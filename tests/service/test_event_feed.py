"""The stream of events: one reader for all listeners, nothing left out, and a loop that goes on meanwhile."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.service.bench import Bench

from eunomia.service.http import event_feed
from eunomia.service.http.event_feed import A_PASS, PART, EventFeed
from eunomia.service.store.reader import Reader
from eunomia.service.turn import Turn

LISTENERS = 40


class CountingReader(Reader):
    """A reader that counts the events that it reads."""

    count = 0

    def news(self, after: int, last: int = 2**62, limit: int = 1000) -> list[tuple[int, float, str, str, str, str]]:
        found = super().news(after, last, limit)
        self.count += len(found)
        return found


def add_news(bench: Bench, count: int, tenant: str = "vision") -> None:
    turn = Turn(1.0)
    turn.news += [(f"{n}-x", tenant, "submitted", '{"reason": "", "epoch": 0}') for n in range(count)]
    bench.store.commit(turn, bench.clock.stored(1.0))


def numbers(parts: list[bytes]) -> list[int]:
    return [int(found) for found in re.findall(rb"^id: (\d+)\nevent: ", b"".join(parts), re.MULTILINE)]


async def take(stream: AsyncIterator[bytes], last: int, found: list[bytes]) -> None:
    """Take parts until event `last` has come."""
    async for part in stream:
        found.append(part)
        if numbers([part])[-1:] == [last]:
            return


def play(bench: Bench, plays: Callable[[EventFeed, CountingReader], Awaitable[None]]) -> None:
    """Run a feed of the store of a bench while something is played with it."""

    async def run() -> None:
        reader = CountingReader(bench.site.place)
        feed = EventFeed(reader, 0.0)
        running = asyncio.create_task(feed.run())
        async with asyncio.timeout(120):
            await plays(feed, reader)
        feed.close()
        await running

    asyncio.run(run())


def test_each_event_is_read_once_for_all_listeners_and_comes_to_each_once_and_in_order(bench: Bench) -> None:
    count = 2 * PART + 10

    async def plays(feed: EventFeed, reader: CountingReader) -> None:
        found: list[list[bytes]] = [[] for _ in range(LISTENERS)]
        taking = [asyncio.create_task(take(feed.stream("vision", 0), count, one)) for one in found]
        while not all(found):
            await asyncio.sleep(0)
        for part in (10, count - 10):
            add_news(bench, part)
            feed.notify()
        await asyncio.gather(*taking)
        assert all(numbers(one) == list(range(1, count + 1)) for one in found)
        assert reader.count == count

    play(bench, plays)


def test_a_listener_that_begins_in_the_middle_gets_the_rest_beside_one_that_follows(bench: Bench) -> None:
    async def plays(feed: EventFeed, reader: CountingReader) -> None:
        add_news(bench, 700)
        late, live = list[bytes](), list[bytes]()
        both = [
            asyncio.create_task(take(feed.stream(None, after), 702, one)) for after, one in ((5, late), (700, live))
        ]
        while not (late and live):
            await asyncio.sleep(0)
        for _ in range(2):
            add_news(bench, 1)
            feed.notify()
        await asyncio.gather(*both)
        assert (numbers(late), numbers(live)) == (list(range(6, 703)), [701, 702])

    play(bench, plays)


def test_other_requests_get_their_turn_between_a_few_parts(bench: Bench) -> None:
    async def plays(feed: EventFeed, reader: CountingReader) -> None:
        found: list[list[bytes]] = [[] for _ in range(LISTENERS)]
        taking = [asyncio.create_task(take(feed.stream("vision", 0), PART, one)) for one in found]
        while not all(found):
            await asyncio.sleep(0)
        add_news(bench, PART)
        feed.notify()
        sent = 0
        while not all(one.done() for one in taking):
            await asyncio.sleep(0)  # what a request is in the loop
            now = sum(bool(numbers(one)) for one in found)
            assert now - sent <= A_PASS
            sent = now
        assert sent == LISTENERS

    play(bench, plays)


def test_events_of_others_wake_no_listener_and_still_move_the_number_to_begin_from(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "KEEP_ALIVE_S", 0.05)

    async def plays(feed: EventFeed, reader: CountingReader) -> None:
        stream, busy = feed.stream("speech", 0), list[bytes]()
        assert await anext(stream) == b": connected\n\n"
        waits: asyncio.Future[bytes] = asyncio.ensure_future(anext(stream))  # type: ignore[arg-type]
        taking = asyncio.create_task(take(feed.stream("vision", 0), 300, busy))
        while not busy:
            await asyncio.sleep(0)
        add_news(bench, 300)
        feed.notify()
        await taking
        while (said := await waits) == b": waiting\n\n":
            waits = asyncio.ensure_future(anext(stream))  # type: ignore[arg-type]
        assert said == b"id: 300\n\n"

    play(bench, plays)
