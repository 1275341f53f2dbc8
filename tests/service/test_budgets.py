"""What one tenant, or a stranger, may use of the service: however much it asks for, the others have their turn."""

from __future__ import annotations

import asyncio
import hashlib
import json
import resource
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="needs the extra service")
from tests.service.bench import LiveService

from eunomia.service.client import Address, Client, ServiceRefusal
from eunomia.service.fair_queue import FairQueue
from eunomia.service.http import routes
from eunomia.service.http.budgets import KEPT_PLACES, MOST_BODY_BYTES_EACH, BodyBytes, Bucket, Places, Submissions
from eunomia.service.http.fair_threads import TENANT, FairThreads
from eunomia.service.http.loop_turns import LoopTurns
from eunomia.service.inbox import Inbox
from eunomia.service.job_document import InvalidRequest, JobDocument

DESCRIPTORS = 200  # of the service: fewer connections than a test opens
DOCUMENT = {"command": ["true"]}


@given(st.lists(st.sampled_from("abc"), max_size=40))
def test_a_queue_gives_each_owner_its_items_in_order_and_no_other_comes_twice_between(owners: list[str]) -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue()
    for number, owner in enumerate(owners):
        queue.put(owner, (owner, number))
    taken = [queue.pop() for _ in range(len(queue))]
    for owner in set(owners):
        mine = [place for place, (other, _) in enumerate(taken) if other == owner]
        assert [taken[place][1] for place in mine] == [n for n, other in enumerate(owners) if other == owner]
        begins = [0, *(place + 1 for place in mine)]
        between = [Counter(other for other, _ in taken[a:b]) for a, b in zip(begins, mine, strict=False)]
        assert all(count <= 1 for counts in between for count in counts.values())


def test_a_turn_takes_what_is_urgent_first_and_then_of_each_tenant_in_turn_up_to_its_size() -> None:
    inbox: Inbox[str] = Inbox()
    for number in range(6):
        inbox.put(f"flood {number}", "flood", size=200)
    inbox.put("large", "large", size=10_000)
    inbox.put("other", "other")
    inbox.put("report", "", is_urgent=True)
    turns = []
    while len(inbox):
        turns.append(inbox.take(0.0, 500)[0])
    assert turns[:3] == [["report", "flood 0"], ["large"], ["other", "flood 1", "flood 2"]]
    for number in range(600):
        inbox.put(f"report {number}", "", is_urgent=True)
    inbox.put("other", "other")
    assert "other" in inbox.take(0.0, 500)[0]
    inbox.stop()
    assert inbox.take(0.0, 500) == ([f"report {number}" for number in range(500, 600)], False)
    assert inbox.take(0.0, 500) == ([], False)


def test_the_loop_begins_a_few_requests_a_pass_and_one_of_another_owner_comes_next() -> None:
    async def run() -> None:
        turns, begun = LoopTurns(2), list[str]()

        async def one(owner: str) -> None:
            await turns.take(owner)
            begun.append(owner)

        flood = [asyncio.create_task(one("flood")) for _ in range(100)]
        other = asyncio.create_task(one("other"))
        before = 0
        while not all(task.done() for task in (*flood, other)):
            await asyncio.sleep(0)
            assert len(begun) - before <= 2
            before = len(begun)
        assert begun.index("other") <= 4

    asyncio.run(run())


def test_threads_serve_the_tenants_in_turn_also_when_a_client_leaves_its_place() -> None:
    async def run() -> None:
        threads, done, hold = FairThreads(1, "test"), list[str](), threading.Event()

        async def one(tenant: str) -> None:
            TENANT.set(tenant)
            await threads.run(lambda: (hold.wait(60), done.append(tenant)))

        tasks = [asyncio.create_task(one("flood")) for _ in range(20)]
        tasks.append(asyncio.create_task(one("other")))
        await asyncio.sleep(0)
        tasks[5].cancel()  # waits
        hold.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert done.index("other") <= 2
        assert len(done) == 20
        assert await threads.run(lambda: "free again") == "free again"

    asyncio.run(run())


def test_a_tenant_has_as_many_places_as_are_left_and_a_further_one_always_finds_some() -> None:
    room = 16 * KEPT_PLACES
    places = Places(lambda: room)
    taken = Counter[str]()
    for tenant in ("a", "b", "c"):
        while places.take(tenant):
            taken[tenant] += 1
    assert taken["a"] == (room - KEPT_PLACES) // 2
    assert taken["c"] > KEPT_PLACES
    assert sum(places.take("op", is_operator=True) for _ in range(room)) == room
    for _ in range(taken["a"]):
        places.leave("a")
    assert not places.take("b")  # operators have them


def test_a_list_counts_as_its_jobs_and_what_it_exceeds_is_made_up_for() -> None:
    submissions = Submissions()
    assert submissions.wait_s("a", 100.0, 1e9) == (0, 0)
    submissions.charge("a", 3000, 10)
    jobs, stored = submissions.wait_s("a", 100.0, 1e9)
    assert 19 < jobs <= 20.01
    assert stored == 0
    assert submissions.wait_s("b", 100.0, 1e9) == (0, 0)
    submissions.charge("b", 1, int(2e9))
    assert submissions.wait_s("b", 100.0, 1e9)[1] > 86_000
    bucket = Bucket(1.0, 10.0, 10.0, 0.0)
    assert [bucket.take(0.0) for _ in range(11)][9:] == [0.0, 1.0]


def test_bodies_that_are_being_received_hold_a_bounded_amount_of_memory() -> None:
    bodies = BodyBytes()
    assert bodies.take("a", MOST_BODY_BYTES_EACH)
    assert not bodies.take("a", 1)
    assert all(bodies.take(other, MOST_BODY_BYTES_EACH) for other in ("b", "c", "d"))
    assert not bodies.take("e", 1)
    assert bodies.take("a", -1)
    assert bodies.take("e", 1)


def test_arrays_are_counted_before_they_are_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JobDocument, "indices", None)
    with pytest.raises(InvalidRequest, match="at most 10,000 jobs"):
        routes._submission(json.dumps([{**DOCUMENT, "array": "0-9999"}] * 100).encode(), "key")
    large = {**DOCUMENT, "array": "0-9999", "env": {"A": "x" * 4000, "B": "x" * 4000}}
    with pytest.raises(InvalidRequest, match="64 MiB"):
        routes._submission(json.dumps(large).encode(), "key")
    found, stored_bytes = routes._submission(json.dumps({**DOCUMENT, "array": "0-99"}).encode(), "key")
    assert found.jobs[0].count == 100
    assert stored_bytes == pytest.approx(100 * len(json.dumps(DOCUMENT)), rel=1.0)


@given(st.recursive(st.integers() | st.text('ab"é'), lambda one: st.lists(one) | st.dictionaries(st.text(), one)))
def test_a_list_has_the_digest_of_its_whole_text(data: object) -> None:
    assert routes._digest(data) == hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


@pytest.fixture
def few(tmp_path: Path) -> Iterator[LiveService]:
    """A service with few descriptors."""
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(tmp_path)
    service.start()
    assert service.process is not None
    _, hard = resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))
    yield service
    service.kill()


def opened(service: LiveService, text: str, count: int) -> list[socket.socket]:
    """Open connections that each send a part of a request, or one."""
    parts, found = urlsplit(service.url), list[socket.socket]()
    for _ in range(count):
        one = socket.create_connection((parts.hostname, parts.port), timeout=90)
        one.sendall(text.replace("HOST", parts.netloc).encode())
        found.append(one)
    return found


@pytest.mark.parametrize(
    "text",
    ["POST /login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1000\r\n\r\n",
     "GET /v1/events HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer TOKEN\r\n\r\n",
     "POST /v1/whatif HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 1000\r\n\r\n",
     "GET /openapi.json HTTP/1.1\r\nHost: HOST\r\n\r\n" * 40],
    ids=["bodies of strangers", "streams of a viewer", "bodies of a viewer", "answers that are not taken"],
)  # fmt: skip
def test_connections_that_are_left_half_done_or_kept_shut_no_other_out(few: LiveService, text: str) -> None:
    viewer, other = few.client("vera", "flood", "viewer"), few.client("ann", "vision")
    held = opened(few, text.replace("TOKEN", viewer.address.token), DESCRIPTORS)
    for _ in range(5):
        assert other.get("/v1/cluster")["policy"] == "las"
        assert Client(Address(few.url)).text("/healthz")[0] == "ok\n"
    assert Client(Address(f"unix:{few.folder / 'state' / 'service.sock'}")).get("/v1/jobs")["jobs"] == []
    for one in held:
        one.close()


def test_a_request_that_arrived_while_the_loop_was_busy_does_not_count_as_one_that_waits_for_its_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uvicorn = pytest.importorskip("uvicorn", reason="needs the extra service")
    from uvicorn.server import ServerState

    from eunomia.service.http import connections

    monkeypatch.setattr(connections, "most_connections", lambda: 8)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            await asyncio.Event().wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    async def run() -> bytes:
        config = uvicorn.Config(app, log_config=None)
        config.load()
        loop, state = asyncio.get_running_loop(), ServerState()
        server = await loop.create_server(
            lambda: connections.DeadlineProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        address = server.sockets[0].getsockname()

        def begun(text: str) -> socket.socket:
            one = socket.create_connection(address, 60)
            one.sendall(f"GET {text}".encode())
            return one

        held = [begun("/slow HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(4)]
        while len(state.tasks) < len(held):
            await asyncio.sleep(0.01)
        asked = begun("/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")  # the loop does nothing meanwhile
        held += [begun("/half HTTP/1.1\r\n") for _ in range(3)]
        answer = await asyncio.to_thread(asked.recv, 4096)
        for one in (asked, *held):
            one.close()
        for task in [*state.tasks]:
            task.cancel()
        server.close()
        await asyncio.sleep(0.1)
        return answer

    assert asyncio.run(run()).startswith(b"HTTP/1.1 200")


def test_streams_beyond_a_tenants_places_are_refused_and_end_when_others_close(few: LiveService) -> None:
    viewer = few.client("vera", "flood", "viewer")
    streams = []
    code = 200
    while code == 200:
        one = viewer._connect()
        one.request("GET", "/v1/events", headers=viewer._headers())
        streams.append(one)
        code = one.getresponse().status
    assert code == 429
    assert KEPT_PLACES < len(streams) < DESCRIPTORS
    with pytest.raises(ServiceRefusal, match="too many requests"):
        viewer.get("/v1/jobs")
    for one in streams:
        one.close()
    found = 429
    while found == 429:  # the service may have seen some of them close already
        try:
            found = len(viewer.get("/v1/jobs")["jobs"])
        except ServiceRefusal as error:
            found = error.status
    assert found == 0
