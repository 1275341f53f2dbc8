"""The HTTP API of a running service: who may do what, what it refuses, and that its description is true."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.service.bench import LiveService, until

from eunomia.service.client import Address, Client, ServiceRefusal
from eunomia.service.credentials import MOST_MAKERS, MOST_TOKENS

SLEEP = {"command": ["python", "-c", "import time; time.sleep(600)"]}
DONE = {"command": ["python", "-c", "print('done')"]}
# Every route, by what each role gets for a thing of its own tenant, of another tenant, and for one that is not there:
# viewer, submitter, tenant-admin, operator. The `submitter` owns the thing.
OWN, FOREIGN, ABSENT = 0, 1, 2
MATRIX: dict[tuple[str, str], tuple[tuple[int, ...], ...]] = {
    ("POST", "/v1/jobs"): ((403, 201, 201, 201),),
    ("GET", "/v1/jobs"): ((200,) * 4,),
    ("GET", "/v1/jobs/{id}"): ((200,) * 4, (404, 404, 404, 200), (404,) * 4),
    ("DELETE", "/v1/jobs/{id}"): ((403, 200, 200, 200), (403, 404, 404, 200), (403, 404, 404, 404)),
    ("PATCH", "/v1/jobs/{id}"): ((403, 200, 200, 200), (403, 404, 404, 200), (403, 404, 404, 404)),
    ("POST", "/v1/jobs/{id}/resubmit"): ((403, 201, 201, 201), (403, 404, 404, 201), (403, 404, 404, 404)),
    ("POST", "/v1/jobs/{id}/hold"): ((403, 200, 200, 200), (403, 404, 404, 200), (403, 404, 404, 404)),
    ("POST", "/v1/jobs/{id}/release"): ((403, 409, 409, 409), (403, 404, 404, 409), (403, 404, 404, 404)),
    ("GET", "/v1/jobs/{id}/log"): ((403, 200, 200, 200), (404, 404, 404, 200), (404,) * 4),
    ("GET", "/v1/jobs/{id}/session"): ((403, 409, 403, 403), (403, 404, 404, 403), (403, 404, 404, 404)),
    ("POST", "/v1/jobs/{id}/session/{stream}"): ((403, 404, 404, 404),) * 3,
    ("GET", "/v1/jobs/{id}/why"): ((200,) * 4, (404, 404, 404, 200), (404,) * 4),
    ("GET", "/v1/jobs/{id}/when"): ((200,) * 4, (404, 404, 404, 200), (404,) * 4),
    ("POST", "/v1/jobs/{id}/progress"): ((403,) * 4, (403,) * 4, (403,) * 4),  # for jobs alone: test_job_tokens.py
    ("POST", "/v1/whatif"): ((200,) * 4,),
    ("GET", "/v1/forecasts"): ((200,) * 4,),
    ("GET", "/v1/cluster"): ((200,) * 4,),
    ("GET", "/v1/nodes"): ((200,) * 4,),
    ("PUT", "/v1/nodes/{name}"): ((403, 403, 403, 200), (403, 403, 403, 404)),
    ("POST", "/v1/maintenance"): ((403, 403, 403, 201),),
    ("GET", "/v1/maintenance"): ((200,) * 4,),
    ("DELETE", "/v1/maintenance/{id}"): ((403, 403, 403, 404),),
    ("GET", "/v1/limits"): ((200,) * 4,),
    ("GET", "/v1/tenants"): ((200,) * 4,),
    ("GET", "/v1/summary"): ((200,) * 4,),
    ("GET", "/v1/usage"): ((200,) * 4,),
    ("GET", "/v1/audit"): ((403, 403, 403, 200),),
    ("GET", "/v1/throughputs"): ((200,) * 4,),
    ("PUT", "/v1/tenants/{tenant:path}"): ((403, 403, 403, 200),),
    ("GET", "/v1/policy"): ((200,) * 4,),
    ("PUT", "/v1/policy"): ((403, 403, 403, 422),),  # its body names no policy
    ("PUT", "/v1/site"): ((403, 403, 403, 200),),
    ("GET", "/v1/decisions"): ((200,) * 4,),
    ("GET", "/v1/events"): ((200,) * 4,),
    ("POST", "/v1/tokens"): ((201,) * 4,),
    ("POST", "/v1/notify/test"): ((403, 403, 403, 422),),
    ("GET", "/v1/tokens"): ((200,) * 4,),
    ("DELETE", "/v1/tokens/{id}"): ((404, 404, 404, 404),),
    ("POST", "/v1/tokens/rotate"): ((403, 403, 403, 200),),
    ("GET", "/metrics"): ((200,) * 4,),
    ("GET", "/healthz"): ((200,) * 4,),
    ("GET", "/readyz"): ((200,) * 4,),
    ("GET", "/openapi.json"): ((200,) * 4,),
}
ROLES = ("viewer", "submitter", "tenant-admin", "operator")
BODIES: dict[str, Any] = {
    "/v1/jobs": DONE, "/v1/jobs/{id}": {"weight": 2.0}, "/v1/nodes/{name}": {"action": "resume"}, "/v1/tokens": {},
    "/v1/whatif": {"policy": "fifo"}, "/v1/notify/test": {"target": "mail"},
    "/v1/maintenance": {"nodes": ["cpu-0"], "from": "2500-01-01", "for": "2h"},
    "/v1/tenants/{tenant:path}": {"weight": 2.0}, "/v1/policy": {}, "/v1/site": {},
}  # fmt: skip


def status(client: Client, method: str, path: str, body: Any = None, **headers: str) -> int:
    """Return the status of one answer; a stream is left at once."""
    connection = client._connect()
    raw = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(method, path, raw, {**client._headers(), **headers})
        answer = connection.getresponse()
        answer.close()
        return answer.status
    finally:
        connection.close()


@pytest.fixture(scope="module")
def clients(shared: LiveService) -> dict[str, Client]:
    found = {role: shared.client(f"user-{role}", "vision", role) for role in ROLES if role != "operator"}
    operator = shared.client("op", "operators", "operator")  # one that a rotation leaves alone
    return {**found, "operator": operator, "other": shared.client("zoe", "speech")}


def test_every_route_has_a_row_in_the_matrix() -> None:
    pytest.importorskip("starlette")
    from eunomia.service.http.routes import ROUTES

    assert {
        (route.method, route.path) for route in ROUTES if route.path.startswith(("/v1", "/me", "/he", "/re", "/op"))
    } == set(MATRIX)


@pytest.mark.parametrize(("method", "path"), list(MATRIX))
def test_each_role_gets_what_the_matrix_says_and_without_a_token_nothing(
    clients: dict[str, Client], shared: LiveService, method: str, path: str
) -> None:
    bare = Client(Address(shared.url))
    is_open = path in ("/healthz", "/readyz", "/openapi.json")
    assert status(bare, method, re.sub(r"\{[\w:]+\}", "x", path), BODIES.get(path)) == (200 if is_open else 401)
    for about, codes in enumerate(MATRIX[method, path]):
        for role, code in zip(ROLES, codes, strict=True):
            thing = "x"
            if "jobs/{id}" in path and about != ABSENT:
                maker = clients["submitter"] if about == OWN else clients["other"]
                thing = maker.submit({**SLEEP, "accelerators": 2})["id"]
            if path == "/v1/nodes/{name}" and about == OWN:
                thing = "cpu-0"
            body = (
                BODIES.get(path)
                if method in ("POST", "PATCH", "PUT") and not path.endswith(("hold", "release"))
                else None
            )
            assert status(clients[role], method, re.sub(r"\{[\w:]+\}", thing, path), body) == code, (role, about)
            if thing not in ("x", "cpu-0"):
                clients["operator"].send("DELETE", f"/v1/jobs/{thing}")
    if path.endswith("/resubmit"):  # others use the service, too
        for one in clients["operator"].get("/v1/jobs", state="pending,starting,running", limit=1000)["jobs"]:
            if one["accelerators"] == 2:
                clients["operator"].send("DELETE", f"/v1/jobs/{one['id']}")
    for one in clients["operator"].get("/v1/maintenance")["maintenance"]:
        clients["operator"].send("DELETE", f"/v1/maintenance/{one['id']}")


def test_the_description_is_of_the_routes_that_there_are(clients: dict[str, Client]) -> None:
    from eunomia.service.http.routes import ROUTES

    found = clients["viewer"].get("/openapi.json")
    assert found["openapi"] == "3.1.0"
    described = {(method.upper(), path) for path, one in found["paths"].items() for method in one}
    assert described == {(route.method, route.path.replace(":path", "")) for route in ROUTES}
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(found)))
    assert names <= set(found["components"]["schemas"])
    ids = [operation["operationId"] for one in found["paths"].values() for operation in one.values()]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [(b"{", 400, "body"), (b"[" * 100_000, 400, "body"), (b'{"a": NaN}', 400, "body"), (b'{"a": 1e999}', 400, "body"),
     (b'{"command": ["a"], "command": ["b"]}', 400, "body"), (b"\xff\xfe{}", 400, "body"), (b"9" * 10_000, 400, "body"),
     ({"command": "python train.py"}, 422, "command"), ({"command": []}, 422, "command"), ({}, 422, "command"),
     ({"command": ["a"], "accelerators": "4"}, 422, "accelerators"),
     ({"command": ["a"], "accelerators": 0}, 422, "accelerators"),
     ({"command": ["a"], "gpus": 1}, 422, "gpus"), ({"command": ["a\0"]}, 422, "command"),
     ({"command": ["a"], "name": "../../x"}, 422, "name"), ({"command": ["a"], "name": "\x1b[2J"}, 422, "name"),
     ({"command": ["a"], "name": "x" * 64}, 422, "name"), ({"command": ["a"], "name": "-rf"}, 422, "name"),
     ({"command": ["a"], "env": {"A=B": "c"}}, 422, "env"), ({"command": ["a"], "env": {"EUNOMIA_X": "c"}}, 422, "env"),
     ({"command": ["a"], "cwd": "relative"}, 422, "cwd"), ({"command": ["a"], "weight": -1}, 422, "weight"),
     ({"command": ["a"], "duration_s": 0}, 422, "duration_s"),
     ({"command": ["a"], "total_steps": 1e300}, 422, "total_steps"),
     ({"command": ["a"], "array": "0-10000000"}, 422, "array"),
     ([{"command": ["a"]}, {"command": 7}], 422, "[1].command"),
     ([], 422, "body"), ({"command": ["a"], "labels": {"k": 1}}, 422, "labels.k")],
)  # fmt: skip
def test_a_wrong_submission_names_its_field_and_changes_nothing(
    clients: dict[str, Client], body: Any, code: int, field: str
) -> None:
    before = clients["operator"].get("/v1/jobs", limit=1)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = clients["submitter"]._connect()
    connection.request("POST", "/v1/jobs", raw, clients["submitter"]._headers())
    answer = connection.getresponse()
    problem = json.loads(answer.read())
    connection.close()
    assert answer.getheader("content-type") == "application/problem+json"
    assert (answer.status, problem["status"]) == (code, code)
    assert [one["field"] for one in problem["problems"]] == [field]
    assert all(one["rule"] and one["fix"] for one in problem["problems"])
    assert clients["operator"].get("/v1/jobs", limit=1) == before


def test_bodies_and_heads_that_are_too_long_are_refused(clients: dict[str, Client]) -> None:
    big = json.dumps({"command": ["a"], "labels": {str(n): "x" * 190 for n in range(50)}, "env": {"A": "x" * 4000}})
    assert status(clients["submitter"], "POST", "/v1/jobs", big.encode()) == 201
    assert status(clients["submitter"], "POST", "/v1/jobs", b"[" + b" " * (17 * 2**20) + b"]") == 413
    assert status(clients["submitter"], "POST", "/v1/jobs", DONE, **{"Content-Encoding": "gzip"}) == 415
    assert status(clients["submitter"], "POST", "/v1/jobs", DONE, **{"Idempotency-Key": "short"}) == 400
    assert status(clients["viewer"], "GET", "/v1/cluster", **{"X-Long": "x" * 2**20}) == 400


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_other_hosts_and_origins_are_refused_for_every_method(clients: dict[str, Client], method: str) -> None:
    assert status(clients["operator"], method, "/v1/cluster", Host="evil.example") == 421
    assert status(clients["operator"], method, "/v1/cluster", Origin="https://evil.example") == 403


def test_a_token_is_shown_once_revoked_at_once_and_stored_only_as_a_digest(shared: LiveService) -> None:
    made = shared.operator.send("POST", "/v1/tokens", {"user": "kim", "tenant": "vision", "role": "viewer"})
    kim = Client(Address(shared.url, made["token"]))
    assert kim.get("/v1/cluster")["policy"] == "las"
    assert made["token"].encode() not in b"".join(
        path.read_bytes() for path in (shared.folder / "state").glob("store.db*")
    )
    assert made["token"] not in json.dumps(shared.operator.get("/v1/tokens"))
    with pytest.raises(ServiceRefusal) as refused:
        kim.send("POST", "/v1/tokens", {"role": "operator"})
    assert refused.value.status == 403
    shared.operator.send("DELETE", f"/v1/tokens/{made['id']}")
    for wrong in (made["token"], made["token"][:-1], "eun_x.y", "", "Bearer"):
        assert status(Client(Address(shared.url, wrong)), "GET", "/v1/cluster") == 401


def test_a_token_ends_with_that_which_made_it_and_is_revoked_with_it(shared: LiveService) -> None:
    def made(client: Client, **asked: Any) -> dict[str, Any]:
        return client.send("POST", "/v1/tokens", asked)

    def listed() -> dict[str, dict[str, Any]]:
        return {one["id"]: one for one in shared.operator.get("/v1/tokens")["tokens"]}

    first = made(shared.operator, user="lou", tenant="vision", role="submitter", expires_days=1)
    lou = Client(Address(shared.url, first["token"]))
    second, third = made(lou), made(lou, expires_days=0.5)
    last = made(Client(Address(shared.url, second["token"])), expires_days=30)
    ends = {name: one["expires_at"] for name, one in listed().items()}
    assert ends[first["id"]] == ends[second["id"]] == ends[last["id"]] > ends[third["id"]]
    gone = shared.operator.send("DELETE", f"/v1/tokens/{second['id']}")
    assert gone["ended"] == [last["id"]]
    valid = {
        one["id"]: status(Client(Address(shared.url, one["token"])), "GET", "/v1/cluster")
        for one in (first, second, third, last)
    }
    assert valid == {first["id"]: 200, second["id"]: 401, third["id"]: 200, last["id"]: 401}
    assert not listed()[last["id"]]["holds"]
    assert not listed()[last["id"]]["revoked"]
    with pytest.raises(ServiceRefusal, match="no such choice"):
        lou.send("DELETE", f"/v1/tokens/{first['id']}?children=keep")
    shared.operator.send("DELETE", f"/v1/tokens/{first['id']}?children=keep")
    assert status(lou, "GET", "/v1/cluster") == 401
    assert status(Client(Address(shared.url, third["token"])), "GET", "/v1/cluster") == 200
    assert listed()[third["id"]]["made_by"] == listed()[first["id"]]["made_by"]


def test_a_token_comes_from_another_by_few_steps_and_a_user_has_a_bounded_number(shared: LiveService) -> None:
    made = shared.operator.send("POST", "/v1/tokens", {"user": "line", "tenant": "vision", "role": "viewer"})
    for _ in range(MOST_MAKERS - 1):
        made = Client(Address(shared.url, made["token"])).send("POST", "/v1/tokens", {})
    last = Client(Address(shared.url, made["token"]))
    with pytest.raises(ServiceRefusal, match="at most 8 steps") as refused:
        last.send("POST", "/v1/tokens", {})
    assert refused.value.status == 422
    first = shared.operator.send("POST", "/v1/tokens", {"user": "many", "tenant": "vision", "role": "viewer"})
    many = Client(Address(shared.url, first["token"]))
    for _ in range(MOST_TOKENS - 1):
        many.send("POST", "/v1/tokens", {})
    with pytest.raises(ServiceRefusal, match="at most 100 tokens") as refused:
        many.send("POST", "/v1/tokens", {})
    assert refused.value.status == 429


def test_a_refusal_that_comes_before_the_body_was_read_is_shown(tmp_path: Path) -> None:
    body = b'{"title": "that role may not do that"}'
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "sock"))
        listening.listen()

        def refuse() -> None:
            connection, _ = listening.accept()
            connection.recv(1024)
            connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            connection.close()

        refusing = threading.Thread(target=refuse)
        refusing.start()
        with pytest.raises(ServiceRefusal, match="that role may not do that"):
            Client(Address(f"unix:{tmp_path / 'sock'}")).send("PUT", "/v1/site", {"file": "x" * 2**22})
        refusing.join()


def test_files_of_the_state_are_for_its_user_only(shared: LiveService) -> None:
    state = shared.folder / "state"
    # Where root serves, jobs run under other accounts, which pass through to the folders of their jobs.
    assert stat.S_IMODE(state.stat().st_mode) == (0o711 if os.geteuid() == 0 else 0o700)
    for name in ("store.db", "operator.token", "service.sock", "lock"):
        assert stat.S_IMODE((state / name).stat().st_mode) == 0o600
    assert (state / "operator.token").read_text() not in (shared.folder / "log").read_text()


def test_on_the_unix_socket_the_user_is_the_credential(shared: LiveService) -> None:
    client = Client(Address(f"unix:{shared.folder / 'state' / 'service.sock'}"))
    assert client.get("/v1/tokens")["tokens"]


def test_values_of_environment_variables_are_not_shown_again(clients: dict[str, Client]) -> None:
    job = clients["submitter"].submit({**DONE, "env": {"API_KEY": "canary-1729"}})["id"]
    for path in (f"/v1/jobs/{job}", "/v1/jobs", f"/v1/jobs/{job}/why", "/metrics", "/v1/decisions"):
        text, _ = clients["operator"].text(path)
        assert "canary-1729" not in text


def test_pages_of_jobs_hold_each_job_once_and_filters_apply(clients: dict[str, Client]) -> None:
    ids = clients["submitter"].submit([{**DONE, "labels": {"sweep": "s1"}}] * 25)["ids"]
    found, cursor = [], None
    while True:
        page = clients["submitter"].get("/v1/jobs", label="sweep=s1", limit=10, cursor=cursor)
        found += [job["id"] for job in page["jobs"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert found == ids[::-1]
    assert clients["other"].get("/v1/jobs", label="sweep=s1")["jobs"] == []
    assert all(job["state"] == "failed" for job in clients["operator"].get("/v1/jobs", state="failed")["jobs"])


def test_events_come_once_and_without_a_gap_over_a_reconnection(clients: dict[str, Client]) -> None:
    client = clients["submitter"]
    connection = client._connect()
    connection.request("GET", "/v1/events", headers=client._headers())
    answer = connection.getresponse()
    answer.readline()
    ids = client.submit([DONE] * 5)["ids"]
    until(lambda: all(client.get(f"/v1/jobs/{job}")["state"] == "succeeded" for job in ids))
    seen: list[tuple[int, str, str]] = []
    after = 0
    while not (set(ids) <= {job for _, kind, job in seen if kind == "succeeded"}):
        for number, (seq, kind, data) in enumerate(client.events("/v1/events", after)):
            seen.append((seq, kind, data["id"]))
            after = seq
            if number == 6 or kind == "succeeded":
                break  # and connect again from there
    assert [seq for seq, _, _ in seen] == sorted({seq for seq, _, _ in seen})
    for job in ids:
        assert [kind for _, kind, one in seen if one == job] == ["submitted", "starting", "running", "succeeded"]
    others = {data for _, _, data in seen} - {job["id"] for job in client.get("/v1/jobs", limit=1000)["jobs"]}
    assert others == set()
    with pytest.raises(ServiceRefusal):
        next(client.events("/v1/events?after=x"))
    answer.close()
    connection.close()


def test_a_hundred_parallel_repetitions_make_one_job(clients: dict[str, Client]) -> None:
    answers: list[str] = []

    def submit() -> None:
        answers.append(Client(clients["submitter"].address).submit(DONE, "parallel-key")["id"])

    threads = [threading.Thread(target=submit) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 100
    assert len(set(answers)) == 1


def test_why_names_what_is_held_and_hides_the_jobs_of_others(clients: dict[str, Client]) -> None:
    running = clients["other"].submit({**SLEEP, "accelerators": 2})["id"]
    until(lambda: clients["other"].get(f"/v1/jobs/{running}")["state"] == "running")
    waiting = clients["submitter"].submit({**SLEEP, "accelerators": 2})["id"]
    found = clients["submitter"].get(f"/v1/jobs/{waiting}/why")
    assert [reason["code"] for reason in found["reasons"]] == ["no_capacity"]
    assert running not in json.dumps(found)
    assert found["reasons"][0]["text"] == "it needs 2; 0 are free on cpu; the others are held by 1 job"
    played = until(lambda: clients["submitter"].get(f"/v1/jobs/{waiting}/why")["would_run_if"])
    assert "another tenant's job ended" in played
    assert running in json.dumps(clients["operator"].get(f"/v1/jobs/{waiting}/why"))
    clients["submitter"].send("POST", f"/v1/jobs/{waiting}/hold")
    assert clients["submitter"].get(f"/v1/jobs/{waiting}/why")["reasons"][0]["code"] == "held"
    for job in (running, waiting):
        clients["operator"].send("DELETE", f"/v1/jobs/{job}")


def test_decisions_are_asked_for_by_the_time_that_answers_show(clients: dict[str, Client]) -> None:
    operator = clients["operator"]
    job = clients["submitter"].submit(DONE)["id"]
    until(lambda: operator.get(f"/v1/jobs/{job}")["state"] == "succeeded")
    newest, *_, oldest = operator.get("/v1/decisions", limit=200)["decisions"]
    assert newest["at"] > oldest["at"]
    for shown in (newest, oldest):
        found = operator.get("/v1/decisions", limit=200, at=shown["at"])["decisions"]
        assert shown in found
        assert all(one["at"] <= shown["at"] for one in found)
    assert operator.get("/v1/decisions", at="2001-01-01T00:00:00")["decisions"] == []
    for wrong in ("yesterday", "5", "2026-13-01"):
        with pytest.raises(ServiceRefusal) as refused:
            operator.get("/v1/decisions", at=wrong)
        assert (refused.value.status, refused.value.problems[0]["field"]) == (400, "at")


def test_policy_and_tenants_change_over_the_api_and_a_dry_run_changes_nothing(live: LiveService) -> None:
    live.start()
    operator = live.operator
    shown = operator.send("PUT", "/v1/policy?dry_run=true", {"name": "fifo"})
    assert any(line.startswith('policy.name: "las" → "fifo"') for line in shown["changes"])
    assert not shown["applied"]
    assert operator.get("/v1/policy")["name"] == "las"
    operator.send("PUT", "/v1/tenants/vision", {"weight": 4})
    operator.send("PUT", "/v1/policy", {"name": "fifo"})
    with pytest.raises(ServiceRefusal) as refused:
        operator.send("PUT", "/v1/policy", {"name": "fifi"})
    assert refused.value.problems[0]["field"] == "policy.name"
    with pytest.raises(ServiceRefusal):
        operator.send("PUT", "/v1/tenants/vision", {"weigth": 4})
    live.kill(signal.SIGTERM)
    live.start()
    operator = live.operator
    assert operator.get("/v1/policy")["name"] == "fifo"
    assert {one["tenant"]: one["weight"] for one in operator.get("/v1/tenants")["tenants"]} == {"vision": 4.0}
    site = live.folder / "site.toml"
    site.write_text(site.read_text().replace("quantum = 60", "quantum = 90"))
    assert live.process is not None
    live.process.send_signal(signal.SIGHUP)
    until(lambda: operator.get("/v1/policy")["parameters"] == {"quantum": 90})
    assert operator.get("/v1/tenants")["tenants"] == []


def test_half_open_connections_do_not_keep_others_out(live: LiveService) -> None:
    live.start()
    import resource

    assert live.process is not None
    resource.prlimit(live.process.pid, resource.RLIMIT_NOFILE, (256, 256))
    parts = urlsplit(live.url)

    def connect(address: str, count: int) -> list[socket.socket]:
        found = []
        for _ in range(count):
            one = socket.create_connection((parts.hostname, parts.port), timeout=60, source_address=(address, 0))
            one.sendall(b"GET /healthz HTTP/1.1\r\n")
            found.append(one)
        return found

    others = connect("127.0.0.3", 20)
    idle = connect("127.0.0.2", 160)  # more together than there may be
    for one in others:  # of another address: none was closed for the flood
        one.sendall(f"Host: {parts.netloc}\r\n\r\n".encode())
        assert one.recv(12) == b"HTTP/1.1 200"
    idle += connect("127.0.0.2", 140)
    begun = time.monotonic()
    assert live.operator.get("/v1/cluster")["policy"] == "las"
    assert time.monotonic() - begun < 60.0
    for one in idle + others:
        one.close()


@pytest.mark.slow
def test_a_connection_that_sends_no_head_is_closed_in_the_end(
    shared: LiveService, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = urlsplit(shared.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=120) as idle:
        idle.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert idle.recv(100) == b""


def test_answers_carry_the_security_headers(shared: LiveService) -> None:
    parts = urlsplit(shared.url)
    connection = http.client.HTTPConnection(parts.netloc)
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    headers = dict(answer.getheaders())
    answer.close()
    connection.close()
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers
    assert re.fullmatch("[0-9a-f]{12}", headers["x-request-id"])  # in the log too
    assert headers["referrer-policy"] == "same-origin"  # with no-referrer browsers send "Origin: null" with forms
