"""Measures the service on this machine, generator included: `python benchmarks/service_load.py [SUBMISSIONS]`.

Durable single submissions over 64 connections with authentication, one list of 10,000 jobs, lists and `why` with all of
them waiting, and a restart. Prints JSON. Wall-clock times: read them beside what else the machine does.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eunomia.service.client import Address, Client

SITE = """\
[service]
listen = "127.0.0.1:0"
submit_per_second = 1000000
[cluster]
accelerators = { cpu = 1 }
[policy]
name = "fifo"
backfill = "skip"
"""
CONNECTIONS = 64
BODY = json.dumps({"command": ["sleep", "86400"], "name": "load", "labels": {"note": "x" * 100}, "duration_s": 86400})


def start(folder: Path) -> tuple[subprocess.Popen[str], str, float]:
    """Start the service; return its process, address, and the seconds until it was ready."""
    begun = time.perf_counter()
    with open(folder / "log", "a") as log:
        command = [sys.executable, "-m", "eunomia", "serve", "site.toml"]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    return process, url, time.perf_counter() - begun


async def submit_many(url: str, token: str, count: int) -> list[float]:
    """Submit over kept connections; return the seconds of each answer."""
    parts, taken, left = urlsplit(url), list[float](), iter(range(count))
    head = f"POST /v1/jobs HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
    request = f"{head}Content-Length: {len(BODY)}\r\n\r\n{BODY}".encode()

    async def one() -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        for _ in left:
            begun = time.perf_counter()
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 201"), answer
            size = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(size.split(b":")[1]))
            taken.append(time.perf_counter() - begun)
        writer.close()

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    return taken


def p99(seconds: list[float]) -> float:
    return round(sorted(seconds)[int(0.99 * len(seconds))] * 1e3, 1)


def timed(call: Any, times: int = 50) -> list[float]:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return taken


def cpu_s(pid: int) -> float:
    """Return the seconds of a processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return round(int(text.split("VmRSS:")[1].split()[0]) / 1024, 1)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    folder = Path(tempfile.mkdtemp(prefix="eunomia-load-", dir=os.environ.get("LOAD_DIR")))
    (folder / "site.toml").write_text(SITE)
    process, url, _ = start(folder)
    client = Client(Address(url, (folder / "state" / "operator.token").read_text().strip()))
    found: dict[str, Any] = {"idle_rss_mib": memory_mib(process.pid)}
    begun, before = time.perf_counter(), cpu_s(process.pid)
    taken = asyncio.run(submit_many(url, client.address.token, count))
    found |= {"submissions_per_s": round(count / (time.perf_counter() - begun)), "submission_p99_ms": p99(taken)}
    found["service_cpu_ms_per_submission"] = round((cpu_s(process.pid) - before) / count * 1e3, 3)
    begun, before = time.perf_counter(), cpu_s(process.pid)
    ids = client.submit([json.loads(BODY)] * 10_000)["ids"]
    found["list_of_10000_s"] = round(time.perf_counter() - begun, 2)
    found["list_of_10000_cpu_s"] = round(cpu_s(process.pid) - before, 2)
    found["page_p99_ms"] = p99(timed(lambda: client.get("/v1/jobs", limit=100)))
    found["why_p99_ms"] = p99(timed(lambda: client.get(f"/v1/jobs/{ids[-1]}/why")))
    found |= {"waiting": count + 10_000, "rss_mib": memory_mib(process.pid)}
    process.send_signal(signal.SIGKILL)
    process.wait()
    process, url, ready_s = start(folder)
    found["restart_after_kill_s"] = round(ready_s, 2)
    process.send_signal(signal.SIGTERM)
    process.wait()
    process, url, ready_s = start(folder)
    found["restart_from_snapshot_s"] = round(ready_s, 2)
    client = Client(Address(url, client.address.token))
    client.send("DELETE", f"/v1/jobs/{client.get('/v1/jobs', state='running')['jobs'][0]['id']}")
    process.send_signal(signal.SIGTERM)
    process.wait()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
