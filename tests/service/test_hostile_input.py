"""Hostile input by class: each has its answer, and the store is the same to the bit afterwards."""

from __future__ import annotations

import ast
import asyncio
import base64
import hashlib
import json
import math
import pickle
import re
import socket
import sqlite3
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from starlette.requests import Request as HttpRequest
from tests.service.bench import Bench, LiveService
from tests.service.test_api import DONE, status

from eunomia.backends.processes.folder import JobFolder
from eunomia.backends.reports import GangEnded, Launched, MemoryUsed, OrderTaken, SeatsTaken, StepsSaved
from eunomia.service.client import Address, Client
from eunomia.service.http import api
from eunomia.service.store import SqliteStore, StoreProblem

SQL = "x'); DROP TABLE jobs; --"


def job(**more: Any) -> bytes:
    return json.dumps({**DONE, **more}).encode()


# class, what it is, method, path, body, headers, status
REQUESTS: list[tuple[str, str, str, str, bytes | None, dict[str, str], int]] = [
    ("H1", "no JSON", "POST", "/v1/jobs", b"{", {}, 400),
    ("H1", "a byte order mark", "POST", "/v1/jobs", b"\xef\xbb\xbf" + job(), {}, 400),
    ("H1", "UTF-16", "POST", "/v1/jobs", job().decode().encode("utf-16"), {}, 400),
    ("H1", "NUL in a word", "POST", "/v1/jobs", job(command=["a\0b"]), {}, 422),
    ("H1", "a lone surrogate", "POST", "/v1/jobs", b'{"command": ["\\ud800"]}', {}, 422),
    ("H1", "a line of 10 MiB", "POST", "/v1/jobs", job(name="x" * 10 * 2**20), {}, 413),
    ("H2", "NaN", "POST", "/v1/jobs", b'{"command": ["a"], "weight": NaN}', {}, 400),
    ("H2", "infinity", "POST", "/v1/jobs", b'{"command": ["a"], "weight": 1e999}', {}, 400),
    ("H2", "a negative number", "POST", "/v1/jobs", job(total_steps=-1), {}, 422),
    ("H2", "an unknown type", "POST", "/v1/jobs", job(types=["h900"]), {}, 422),
    ("H2", "a key twice", "POST", "/v1/jobs", b'{"command": ["a"], "command": ["b"]}', {}, 400),
    ("H3", "duration 0", "POST", "/v1/jobs", job(duration_s=0), {}, 422),
    ("H3", "too long", "POST", "/v1/jobs", job(duration_s=1e300), {}, 422),
    ("H3", "no accelerator", "POST", "/v1/jobs", job(accelerators=-1), {}, 422),
    ("H3", "more than there are", "POST", "/v1/jobs", job(accelerators=3), {}, 422),
    ("H3", "one bad line of many", "POST", "/v1/jobs", json.dumps([DONE, {**DONE, "weight": 0}]).encode(), {}, 422),
    ("H4", "deep nesting", "POST", "/v1/jobs", b"[" * 100_000, {}, 400),
    ("H4", "a long number", "POST", "/v1/jobs", b"9" * 100_000, {}, 400),
    ("H4", "many keys", "POST", "/v1/jobs", job(env={f"A{n}": "" for n in range(1001)}), {}, 422),
    ("H5", "YAML with a tag", "POST", "/v1/jobs", b"!!python/object/apply:os.system [touch canary]", {}, 400),
    *(
        ("H6", f"the name {name!r}", "POST", "/v1/jobs", job(name=name), {}, 422)
        for name in (
            "../../x",
            "/etc",
            "a/b",
            ".",
            "..",
            "",
            "x" * 256,
            "a\nb",
            "\x1b[2J",
            "\u202e",
            "%n",
            "$(touch c)",
            ";touch c",
            "-rf",
            "a\0",
        )
    ),
    ("H7", "a relative folder", "POST", "/v1/jobs", job(cwd="../.."), {}, 422),
    *(
        ("H7", f"the path {path}", "GET", path, None, {}, 404)
        for path in (
            "/v1/jobs/..%2f..%2foperator.token",
            "/v1/jobs/%252e%252e%252fstore.db/log",
            "/v1/../store.db",
            "/style.css/../../site.py",
        )
    ),
    ("H8", "a command as text", "POST", "/v1/jobs", job(command="sh -c x"), {}, 422),
    ("H8", "a variable with =", "POST", "/v1/jobs", job(env={"A=B": ""}), {}, 422),
    ("H8", "a variable with a newline", "POST", "/v1/jobs", job(env={"A\nB": ""}), {}, 422),
    ("H8", "a variable of ours", "POST", "/v1/jobs", job(env={"EUNOMIA_LEASE_FILE": "/x"}), {}, 422),
    ("H9", "SQL in a state", "GET", f"/v1/jobs?state={quote(SQL)}", None, {}, 400),
    ("H9", "SQL in a label", "GET", f"/v1/jobs?label={quote(SQL)}", None, {}, 200),
    ("H9", "SQL in a cursor", "GET", f"/v1/jobs?cursor={quote(SQL)}", None, {}, 400),
    ("H9", "SQL in an id", "GET", f"/v1/jobs/{quote(SQL)}", None, {}, 404),
    ("H10", "a long body", "POST", "/v1/jobs", b" " * (17 * 2**20), {}, 413),
    ("H10", "a compressed body", "POST", "/v1/jobs", job(), {"Content-Encoding": "gzip"}, 415),
    ("H10", "a long header", "GET", "/v1/cluster", None, {"X-Long": "x" * 2**20}, 400),
    ("H12", "a large array", "POST", "/v1/jobs", job(array="0-4000000"), {}, 422),
    ("H12", "many in a list", "POST", "/v1/jobs", json.dumps([DONE] * 10_001).encode(), {}, 422),
    ("H12", "an unknown earlier job", "POST", "/v1/jobs", job(after=["1-zzzzz"]), {}, 422),
    ("H13", "another host", "DELETE", "/v1/jobs/1-x", None, {"Host": "evil.example"}, 421),
    ("H13", "another origin", "POST", "/v1/jobs", job(), {"Origin": "https://evil.example"}, 403),
    ("H13", "a form without a token", "POST", "/jobs/1-x/cancel", b"", {"Authorization": ""}, 303),
    ("H15", "an unknown route of workers", "POST", "/v1/reports", b"{}", {}, 404),
]


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveService, Client, Client]]:
    """A service without jobs, a submitter and an operator."""
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(tmp_path_factory.mktemp("quiet"))
    service.start()
    yield service, service.client("ann", "vision"), service.operator
    service.kill()


def digest_of(service: LiveService) -> str:
    """Return a digest of all that the store holds."""
    db = sqlite3.connect(f"file:{service.folder / 'state' / 'store.db'}?mode=ro", uri=True)
    try:
        return hashlib.sha256("\n".join(db.iterdump()).encode()).hexdigest()
    finally:
        db.close()


@pytest.mark.parametrize(
    ("name", "method", "path", "body", "headers", "code"),
    [pytest.param(*row[1:], id=f"{row[0]}: {row[1]}"[:60].encode("ascii", "replace").decode()) for row in REQUESTS],
)
def test_each_class_has_its_answer_and_the_store_is_unchanged(
    quiet: tuple[LiveService, Client, Client], name: str, method: str, path: str, body: bytes | None,
    headers: dict[str, str], code: int,
) -> None:  # fmt: skip
    service, client, _ = quiet
    before = digest_of(service)
    assert status(client, method, path, body, **headers) == code, name
    assert digest_of(service) == before
    assert not (service.folder / "canary").exists()


@pytest.mark.parametrize(
    ("raw", "codes"),
    [(b"GET /v1/cluster HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n", {400, 431}),
     (b"POST /v1/jobs HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      {400, 401}),
     (b"POST /v1/jobs HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", {400}),
     (b"POST /v1/jobs HTTP/1.1\r\nHost: HOST\r\nContent-Length: -5\r\n\r\n", {400}),
     (b"GET / HTTP/9.9\r\n\r\n", {400, 421, 505}), (b"\x16\x03\x01\x00\xa5", {400})],
    ids=["10,000 headers", "two lengths", "unequal lengths", "negative length", "unknown version", "TLS"],
)  # fmt: skip
def test_heads_that_no_client_sends_are_refused_and_the_connection_ends(
    quiet: tuple[LiveService, Client, Client], raw: bytes, codes: set[int]
) -> None:
    service, _, operator = quiet
    before, parts = digest_of(service), urlsplit(service.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=90) as connection:
        connection.sendall(raw.replace(b"HOST", parts.netloc.encode()))
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65_536)
    assert answer == b"" or int(answer.split()[1]) in codes
    assert digest_of(service) == before
    assert operator.get("/v1/cluster")["policy"] == "las"


def test_reports_of_a_world_that_lies_change_nothing_that_is_decided(bench: Bench) -> None:  # H15
    job_id = bench.submit().body["id"]
    bench.do(Launched(job_id, 1))
    before = [line for line in bench.store._db.iterdump() if not line.startswith('INSERT INTO "clock"')]
    bench.do(
        GangEnded(job_id, 0, "finished"), GangEnded(job_id, 2, "finished"), GangEnded("1-zzzzz", 1, "finished"),
        StepsSaved(job_id, 7, 1e9), StepsSaved("", 1, 5.0), Launched(job_id, -1), MemoryUsed(job_id, 3, 1e9),
        OrderTaken(10**15), OrderTaken(-1), SeatsTaken(()),
    )  # fmt: skip
    after = [line for line in bench.store._db.iterdump() if not line.startswith('INSERT INTO "clock"')]
    assert after == before
    assert bench.controller.stale_reports == 7


class Canary:
    """What a pickle of it does when it is read: it makes a file in the folder of whoever reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.folder / "canary"), "w")


def test_a_pickle_on_the_wire_is_no_json_and_is_not_read(quiet: tuple[LiveService, Client, Client]) -> None:  # H14
    service, client, _ = quiet
    before = digest_of(service)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        raw = pickle.dumps(Canary(service.folder), protocol)
        for path in ("/v1/jobs", "/v1/whatif", "/v1/tokens"):
            assert status(client, "POST", path, raw, **{"Content-Type": "application/python-pickle"}) == 400
        text = base64.b64encode(raw).decode()
        assert status(Client(Address(service.url, text)), "GET", "/v1/jobs") == 401
    assert digest_of(service) == before
    assert not (service.folder / "canary").exists()


def test_a_pickle_in_what_a_job_reports_is_no_report(tmp_path: Path) -> None:  # H14
    folder = JobFolder(tmp_path, tmp_path / "checkpoint")
    folder.progress.write_bytes(pickle.dumps(Canary(tmp_path)))
    assert folder.read_progress(10.0) is None
    assert math.isnan(folder.read_loss())
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_pickle_in_place_of_a_snapshot_stops_the_start_and_is_not_read(bench: Bench, is_packed: bool) -> None:  # H14
    bench.submit()
    assert bench.writer.snapshot()
    raw = pickle.dumps(Canary(bench.path.parent))
    with bench.store.transaction() as db:
        db.execute("UPDATE snapshots SET content = ?", (zlib.compress(raw) if is_packed else raw,))
    with pytest.raises(StoreProblem, match="cannot be read"):
        bench.restart()
    assert not (bench.path.parent / "canary").exists()
    bench.store = SqliteStore.open(bench.site.state)  # for the fixture


def test_a_pickle_in_place_of_a_job_is_not_read_and_the_job_is_set_aside(bench: Bench) -> None:  # H14
    job = bench.submit().body["id"]
    with bench.store.transaction() as db:
        db.execute("UPDATE jobs SET body = ? WHERE id = ?", (pickle.dumps(Canary(bench.path.parent), 0).decode(), job))
    bench.restart()
    assert bench.state(job) == "quarantined"
    assert not (bench.path.parent / "canary").exists()


def slow_request(chunks: int) -> HttpRequest:
    """A request whose body comes a byte at a time, `chunks` of them, and then no more."""
    left = iter(range(chunks))

    async def receive() -> dict[str, Any]:
        if next(left, None) is None:
            await asyncio.Event().wait()
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b" ", "more_body": True}

    return HttpRequest({"type": "http", "method": "POST", "path": "/", "headers": []}, receive)


@pytest.mark.parametrize("chunks", [0, 3, 10**9])
def test_a_body_that_does_not_arrive_in_time_is_given_up_however_it_trickles(  # H11
    monkeypatch: pytest.MonkeyPatch, chunks: int
) -> None:
    monkeypatch.setattr(api, "BODY_S", 0.1)
    with pytest.raises(api.Refused) as refused:
        asyncio.run(api.read_body(slow_request(chunks), 2**20))
    assert refused.value.status == 408


def test_heads_and_bodies_left_half_sent_keep_no_client_out(quiet: tuple[LiveService, Client, Client]) -> None:  # H11
    service, client, operator = quiet
    before, parts = digest_of(service), urlsplit(service.url)
    head = f"POST /v1/jobs HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {client.address.token}\r\n"
    halves = [
        head[:20], head, f"{head}Content-Length: 100000\r\n\r\n{{", f"{head}Transfer-Encoding: chunked\r\n\r\n5\r\n["
    ]  # fmt: skip
    held = []
    for half in halves * 60:
        one = socket.create_connection((parts.hostname, parts.port), timeout=90)
        one.sendall(half.encode())
        held.append(one)
    assert operator.get("/v1/cluster")["policy"] == "las"
    assert client.get("/v1/jobs")["jobs"] == []
    for one in held:
        one.close()
    assert operator.get("/v1/cluster")["policy"] == "las"
    assert digest_of(service) == before


@pytest.mark.slow
def test_a_head_that_trickles_is_given_up_too(quiet: tuple[LiveService, Client, Client]) -> None:  # H11
    service, _, operator = quiet
    before, parts = digest_of(service), urlsplit(service.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=300) as one:
        one.sendall(b"GET /v1/cluster HTTP/1.1\r\nX-Slow: ")
        is_open = True
        while is_open:
            time.sleep(0.25)
            try:
                one.sendall(b"x")
            except OSError:
                is_open = False
    assert digest_of(service) == before
    assert operator.get("/v1/cluster")["policy"] == "las"


def test_no_module_reads_pickles_or_yaml_or_calls_a_shell() -> None:  # H5, H8, H14
    banned = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "torch", "yaml"}
    root = Path(__file__).parents[2] / "src" / "eunomia"
    read = [*root.glob("service/**/*.py"), *root.glob("records/*.py"), root / "lease.py"]
    read += [*root.glob("backends/processes/*.py"), *root.glob("backends/engines/*.py")]
    for path in read:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & banned, path
            if isinstance(node, ast.Call):
                assert not any(key.arg == "shell" for key in node.keywords), path
                assert not any(key.arg == "allow_pickle" for key in node.keywords), path
                assert getattr(node.func, "id", "") not in ("eval", "exec"), path
        assert not re.search(r"os\.(system|popen)\(", text), path
