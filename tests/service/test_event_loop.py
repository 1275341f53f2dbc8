"""What the event loop does itself: it neither reads the store nor waits for the writer, and ends what has no token."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from tests.service.bench import Bench, LiveService, until
from tests.service.test_api import SLEEP, status

from eunomia.service.client import Address, Client
from eunomia.service.credentials import JobTokens, TokenRegistry, new_token, write_tokens
from eunomia.service.forecasts import Forecasts
from eunomia.service.http.api import Service, application
from eunomia.service.http.budgets import Places
from eunomia.service.http.dashboard import page_routes
from eunomia.service.http.event_feed import EventFeed
from eunomia.service.http.open_reads import OpenReads
from eunomia.service.http.routes import ROUTES
from eunomia.service.notice_sender import NoticeSender
from eunomia.service.store.base import Connection
from eunomia.service.store.reader import Reader


class InTheLoop(AssertionError):
    """The loop did itself what may take long."""


def demand_a_thread(what: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InTheLoop(f"{what} in the event loop")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the loop read nothing from the store; the threads that read are listed."""
    found, connection = list[str](), Reader._db.fget  # type: ignore[attr-defined]

    def watched(self: Reader) -> Connection:
        demand_a_thread("the store is read")
        found.append(threading.current_thread().name)
        return connection(self)  # type: ignore[no-any-return]

    monkeypatch.setattr(Reader, "_db", property(watched))
    return found


class WatchedLock:
    """A lock for which the loop may not wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        demand_a_thread("the writer is waited for")
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


async def asked(app: Any, path: str, token: str) -> tuple[int, bytes]:
    """Send a GET to the application itself; return status and body."""
    parts, body, found = urlsplit(path), bytearray(), dict[str, Any]()
    head = [
        (b"host", b"localhost"),
        (b"authorization", f"Bearer {token}".encode()),
        (b"cookie", f"eunomia={token}".encode()),
    ]
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "method": "GET",
        "scheme": "http", "path": parts.path, "raw_path": parts.path.encode(), "query_string": parts.query.encode(),
        "headers": head, "client": ("127.0.0.1", 1), "server": ("localhost", 1), "state": {},
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        found.update({key: message[key] for key in ("status",) if key in message})
        body.extend(message.get("body", b""))

    await asyncio.create_task(app(scope, receive, send))
    return int(found["status"]), bytes(body)


def served(bench: Bench) -> tuple[Service, str]:
    """Return the service of a bench in the running loop, and an operator's token."""
    reader, writer = Reader(bench.site.place), bench.writer
    token, text = new_token("op", "operators", "operator", 0.0)
    with bench.store.transaction() as db:
        write_tokens(db, [token])
    writer.lock = WatchedLock()  # type: ignore[assignment]
    return Service(
        writer=writer, reader=reader, tokens=TokenRegistry(bench.store.tokens()), ready=True,
        job_tokens=JobTokens.of(bench.site.state),
        jobs=bench.site.state / "jobs", hosts=frozenset({"localhost"}), origins=frozenset(),
        forecasts=Forecasts(bench.path, writer, 0.0), feed=EventFeed(reader, writer.origin),
        places=Places(lambda: 1000), overruns=lambda: 0, renewals=lambda: 0,
        notices=NoticeSender(bench.site.notify, bench.site.path.parent, bench.site.place, writer),
    ), text  # fmt: skip


def test_no_route_and_no_page_reads_the_store_or_waits_for_the_writer_in_the_event_loop(
    bench: Bench, reads: list[str]
) -> None:
    job = bench.submit(duration_s=10, accelerators=2).body["id"]
    waiting = bench.submit(duration_s=10).body["id"]

    async def run() -> None:
        service, token = served(bench)
        pages = page_routes(service)
        app = application(service, ROUTES, pages)
        paths = [route.path for route in ROUTES if route.method == "GET"]
        paths += [route.path for route in pages if "GET" in (route.methods or ())]
        for path in sorted(set(paths) - {"/v1/events", "/v1/jobs/{id}/session"}):  # which have no end: read in threads
            for each in {path.replace("{id}", one) for one in (job, waiting)}:
                code, body = await asyncio.wait_for(asked(app, f"{each}?played=0", token), 120)
                assert code == 200, (each, code, body[:300])
        service.forecasts.close()
        service.feed.close()

    asyncio.run(run())
    assert len(reads) > 20 and all(name.startswith("requests") for name in reads)


def test_the_watch_notices_a_read_in_the_loop(bench: Bench, reads: list[str]) -> None:
    async def run() -> None:
        service, _ = served(bench)
        with pytest.raises(InTheLoop, match="store"):
            service.reader.counts()
        with pytest.raises(InTheLoop, match="writer"), service.writer.lock:
            pass
        service.forecasts.close()
        service.feed.close()

    asyncio.run(run())


# ---- revoked tokens --------------------------------------------------------------------------------------------------


def test_an_answer_whose_token_ends_ends_where_it_is_and_one_not_begun_is_refused(bench: Bench) -> None:
    kept, gone = (new_token(user, "t", "viewer", 0.0)[0] for user in ("kept", "gone"))
    reads, tokens = OpenReads(), TokenRegistry([kept])

    async def run() -> dict[str, list[Any]]:
        sent: dict[str, list[Any]] = {name: [] for name in ("begun", "waits", "whole", "kept")}
        hold = asyncio.Event()

        def answering(name: str, token: str) -> Awaitable[None]:
            async def send(message: Any) -> None:
                sent[name].append(message)

            async def answer(send: Any) -> None:
                reads.add(token)
                if name != "waits":
                    await send({"type": "http.response.start"})
                    await send({"type": "http.response.body", "body": b"x", "more_body": name != "whole"})
                await hold.wait()

            async def refuse(send: Any) -> None:
                await send("refused")

            return reads.run(answer, send, refuse)

        tasks = {name: asyncio.create_task(answering(name, (kept if name == "kept" else gone).id)) for name in sent}  # type: ignore[arg-type, var-annotated]
        await asyncio.sleep(0)
        reads.end(tokens)
        await asyncio.gather(*(task for name, task in tasks.items() if name != "kept"))
        assert not tasks["kept"].done()
        hold.set()
        await tasks["kept"]
        return sent

    sent = asyncio.run(run())
    assert sent["waits"] == ["refused"]
    assert sent["begun"][-1] == {"type": "http.response.body", "body": b"", "more_body": False}
    assert len(sent["whole"]) == len(sent["kept"]) == 2


def opened(url: str, token: str, path: str) -> socket.socket:
    parts = urlsplit(url)
    found = socket.create_connection((parts.hostname or "", parts.port or 0), 60)
    found.sendall(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    return found


def test_streams_of_a_revoked_token_end_at_once_and_those_of_others_go_on(shared: LiveService) -> None:
    made = shared.operator.send("POST", "/v1/tokens", {"user": "zoe", "tenant": "vision", "role": "submitter"})
    zoe = Client(Address(shared.url, made["token"]))
    job = zoe.submit(SLEEP)["id"]
    until(lambda: zoe.get(f"/v1/jobs/{job}")["state"] in ("running", "pending"))
    mine = [opened(shared.url, made["token"], path) for path in ("/v1/events", f"/v1/jobs/{job}/log?follow=1")]
    other = opened(shared.url, shared.operator.address.token, "/v1/events")
    assert all(one.recv(4096).startswith(b"HTTP/1.1 200") for one in (*mine, other))
    shared.operator.send("DELETE", f"/v1/tokens/{made['id']}")
    assert status(zoe, "GET", "/v1/cluster") == 401
    for one in mine:
        found = b""
        while not found.endswith(b"0\r\n\r\n"):  # the end of an answer in chunks
            part = one.recv(4096)
            assert part, found
            found += part
        one.close()
    shared.operator.send("DELETE", f"/v1/jobs/{job}")
    found = b""
    while b"cancelled" not in found:
        found += other.recv(4096)
    other.close()
