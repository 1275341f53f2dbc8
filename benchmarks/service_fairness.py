"""Measures what one tenant's load does to the others of a service: `python -m benchmarks.service_fairness [CASE ...]`.

Cases, all of them if none is named:

    flood       a tenant's single submissions, quiet and while another one submits over 16 connections from a process of
                its own at nice 10: singles, lists of 200 and lists of 10,000
    listeners   /healthz, quiet and with 500 listeners and 50 open pages, while lists of 10,000 jobs arrive

Prints a line of JSON for each, with the machine's load average: quiet and loaded figures are of one run, side by side,
and `within` says whether the loaded 99th percentile is at most 3 times the quiet one and 20 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from benchmarks.service_load import JOB, Served, median, p99, timed
from eunomia.service.client import Client, ServiceRefusal, Unreachable

CONNECTIONS, ASKED, APART_S = 16, 200, 0.02
LISTENERS, TABS, LISTS = 500, 50, 3
FLOODS = {"singles": 1, "lists of 200": 200, "lists of 10,000": 10_000}


def beside(load: Callable[[], Any]) -> int:
    """Run a load in another process at nice 10, again and again in many threads; return its id."""
    child = os.fork()
    if child:
        return child
    os.nice(10)

    def submit_on(_: int) -> None:
        while True:
            with contextlib.suppress(ServiceRefusal, Unreachable):  # it may ask for more than it gets
                load()

    try:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(submit_on, range(CONNECTIONS)))
    finally:
        os._exit(0)


def measured(ask: Callable[[], Any]) -> list[float]:
    """Ask now and then; return the seconds of each."""
    found = list[float]()
    for _ in range(ASKED):
        found += timed([ask])
        time.sleep(APART_S)
    return found


def compared(quiet: list[float], loaded: list[float]) -> dict[str, Any]:
    """Return both side by side."""
    return {
        "quiet_p50_ms": median(quiet), "quiet_p99_ms": p99(quiet), "p50_ms": median(loaded), "p99_ms": p99(loaded),
        "p99_ratio": round(p99(loaded) / p99(quiet), 2), "within": p99(loaded) <= 3 * p99(quiet) + 20,
    }  # fmt: skip


def flood() -> dict[str, Any]:
    found = dict[str, Any]()
    for name, size in FLOODS.items():
        served = Served()
        mine, others = served.client("bob", "quiet"), served.client("ann", "flood")
        quiet = measured(lambda mine=mine: mine.submit(JOB))
        child = beside(lambda others=others, size=size: others.submit([JOB] * size if size > 1 else JOB))
        time.sleep(1.0)
        try:
            found[name] = compared(quiet, measured(lambda mine=mine: mine.submit(JOB)))
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)
        served.end()
    return found


async def _open(url: str, token: str, path: str, count: int) -> list[asyncio.Task[None]]:
    """Open streams, or pages that are loaded again a second and a half after each answer."""
    parts = urlsplit(url)
    head = (
        f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nCookie: eunomia={token}\r\nEunomia-After: 0\r\n\r\n".encode()
    )

    async def one() -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=2**22)
        while True:
            writer.write(head)
            answer = await reader.readuntil(b"\r\n\r\n")
            if b"event-stream" in answer:
                while await reader.read(2**16):
                    pass
                return
            size = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(size.split(b":")[1]))
            await asyncio.sleep(1.5)

    return [asyncio.create_task(one()) for _ in range(count)]


def _listen(url: str, token: str) -> None:
    async def run() -> None:
        tasks = await _open(url, token, "/v1/events", LISTENERS) + await _open(url, token, "/", TABS)
        await asyncio.gather(*tasks)

    asyncio.run(run())


def listeners() -> dict[str, Any]:
    served = Served()
    operator: Client = served.operator
    quiet = measured(lambda: operator.text("/healthz"))
    child = os.fork()
    if not child:
        os.nice(10)
        _listen(served.url, operator.address.token)
    time.sleep(5.0)
    asked, ends = list[float](), threading.Event()

    def ask() -> None:
        while not ends.is_set():
            asked.extend(timed([lambda: operator.text("/healthz")]))
            time.sleep(APART_S)

    asking = threading.Thread(target=ask)
    asking.start()
    lists = timed([lambda: operator.submit([JOB] * 10_000)] * LISTS)
    ends.set()
    asking.join()
    os.kill(child, 9)
    os.waitpid(child, 0)
    begun = time.perf_counter()
    served.stop()
    longest = round(max(asked) * 1e3, 1)
    return {**compared(quiet, asked), "longest_ms": longest, "lists_s": [round(one, 2) for one in lists],
            "stop_s": round(time.perf_counter() - begun, 2), "healthz 50 ms": p99(asked) <= 50}  # fmt: skip


CASES = {"flood": flood, "listeners": listeners}

if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        result = CASES[case]()
        print(json.dumps({"case": case, "load": round(os.getloadavg()[0], 1), **result}), flush=True)
