"""The dashboard, as a browser without script reads it."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import urlencode, urlsplit

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from starlette.responses import Response
from tests.service.bench import LiveService, until

from eunomia.service.http.shared_pages import SharedPages
from eunomia.service.pages import render

NAMED = {"command": ["python", "-c", "import time; time.sleep(600)", "<img src=x onerror=alert(1)>"], "accelerators": 2}


def visit(
    service: LiveService, method: str, path: str, cookie: str = "", body: str | None = None
) -> tuple[int, str, str]:
    """Return status, text, and where to go or what to keep."""
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc)
    headers = {"Cookie": cookie} if cookie else {}
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, text, answer.getheader("set-cookie") or answer.getheader("location") or ""
    finally:
        connection.close()


def test_the_pages_show_the_state_to_those_who_log_in_and_nothing_to_others(shared: LiveService) -> None:
    assert visit(shared, "GET", "/")[::2] == (303, "/login")
    assert visit(shared, "POST", "/login", body="token=eun_wrong.token")[0] == 401
    ann = shared.client("ann", "pages")
    status, _, cookie = visit(shared, "POST", "/login", body=urlencode({"token": ann.address.token}))
    assert status == 303
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    kept = cookie.partition(";")[0]
    job = ann.submit({**NAMED, "name": "shown-job", "labels": {"a": "b"}})["id"]
    foreign = shared.client("zoe", "others").submit({**NAMED, "name": "hidden-job"})["id"]
    until(lambda: ann.get(f"/v1/jobs/{job}")["state"] in ("running", "pending"))
    for path in ("/", "/jobs?label=a%3Db", f"/jobs/{job}"):
        status, text, _ = visit(shared, "GET", path, kept)
        assert status == 200
        assert "shown-job" in text
        assert "hidden-job" not in text
        assert "<img" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in visit(shared, "GET", f"/jobs/{job}", kept)[1]
    assert visit(shared, "GET", f"/jobs/{foreign}", kept)[0] == 404
    for path in ("/tenants", "/nodes", "/policy", "/style.css", "/live.js"):
        assert visit(shared, "GET", path, kept)[0] == 200
    assert visit(shared, "POST", "/nodes/cpu-0/drain", kept, "")[0] == 403
    assert visit(shared, "POST", f"/jobs/{job}/cancel", kept, "")[0] == 303
    assert ann.get(f"/v1/jobs/{job}")["state"] == "cancelled"
    shared.operator.send("DELETE", f"/v1/jobs/{foreign}")


def test_tabs_that_load_a_page_again_are_given_one_that_was_made_for_all_with_what_they_saw() -> None:
    made = list[str]()

    async def make() -> Response:
        made.append(f"page {len(made)}")
        return Response(made[-1])

    async def run() -> None:
        newest = 7

        async def number() -> int:
            return newest

        pages = SharedPages(number)
        both = await asyncio.gather(*(pages.answer("a", after, make) for after in (3, 7)))
        assert [one.body for one in both] == [b"page 0"] * 2
        assert (await pages.answer("b", 0, make)).body == b"page 1"  # of another scope
        newest = 8
        assert (await pages.answer("a", 8, make)).body == b"page 2"  # has seen more than page 0 shows
        await asyncio.wait_for(pages.answer("c", 10**17, make), 60)  # no such event: as after a restored backup

    asyncio.run(run())


def test_an_open_tab_of_another_tenant_or_role_is_not_given_the_page_of_this_one(shared: LiveService) -> None:
    ann, zoe = shared.client("ann", "tabs"), shared.client("zoe", "others")
    job = ann.submit({**NAMED, "name": "seen-in-a-tab"})["id"]
    for path in ("/jobs", f"/jobs/{job}"):
        pages = [reloaded(shared, path, one.address.token) for one in (ann, zoe, shared.operator, ann)]
        assert ["seen-in-a-tab" in page for page in pages] == [True, False, True, True]
    ann.send("DELETE", f"/v1/jobs/{job}")


def reloaded(service: LiveService, path: str, token: str) -> str:
    """Return a page as the script of an open tab loads it."""
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc)
    try:
        connection.request("GET", path, headers={"Cookie": f"eunomia={token}", "Eunomia-After": "0"})
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def test_the_pages_show_accelerators_of_others_and_the_memory_that_a_job_asked_for_and_used() -> None:
    types = {"v100": {"total": 8, "busy": 3, "free": 4, "taken": 1, "in_service": 7}}
    text = render.now_page("ann", {"types": types, "jobs": {}, "policy": "las"}, [], [], [])
    assert '<td class=n data-head="taken">1</td>' in text
    known = {"accelerator_memory_gib": 16.0, "used_memory_gib": 12.34}
    assert render.memory_text(known) == "16 GiB asked or learnt, 12.3 GiB used"
    assert render.memory_text(dict.fromkeys(known)) == ""


ONE = {"received_accelerator_s": 0.0, "deserved_accelerator_s": 3600.0, "ltgf": 0.0, "succeeded": 0,
       "rho_mean": None, "rho_max": None}  # fmt: skip
TWO = {"received_accelerator_s": 3600.0, "deserved_accelerator_s": 7200.0, "ltgf": 0.5, "succeeded": 4,
       "rho_mean": 1.25, "rho_max": 4.0}  # fmt: skip
TENANT = {"tenant": "vision", "weight": 1.0, "quota": None, "holds": 2, "received_accelerator_s": 7200.0,
          "sums": TWO, "periods": [ONE, TWO, TWO, ONE]}  # fmt: skip
HOSTILE = "<img src=x onerror=alert(1)>\"'\u202e"


def every_page(text: str) -> Iterator[str]:
    """Yield each page with `text` in place of each text that comes from outside."""
    at = dict.fromkeys(("p10", "p50", "p90", "start", "finish", "at"), "2026-11-23T04:57:16.086Z")
    job = {"id": text, "name": text, "tenant": text, "owner": text, "state": "running", "accelerators": 2, "type": text,
           "seats": [0, text], "since": at["at"], "reason": text, "spec": {"command": [text]}, "steps": 1.0, "epoch": 1,
           "accelerator_memory_gib": None, "used_memory_gib": None}  # fmt: skip
    types = {text: {"total": 8, "busy": 3, "free": 4, "taken": 1}}
    decided = [{"at": at["at"], "events": [text], "decisions": [{"is": "Start", "job_id": text}]}]
    learnt = [{"job_type": text, "scale_factor": 1, "type": text, "steps_per_s": 1.0, "origin": "measured"}]
    cluster = {"types": types, "jobs": {"running": 9}, "policy": text}
    yield render.now_page(text, cluster, [job], [job], decided, learnt)
    yield render.jobs_page(text, [job], text, {"label": text, "state": text})
    why = {"reasons": [{"text": text, "code": text}], "starts_unchanged": text, "would_run_if": [text], "speed": text,
           "preempted": at}  # fmt: skip
    forecast = {"start": at, "finish": at, "how": text, "assumes": [text]}
    yield render.job_page(text, job, why, text, [{"at": at["at"], "kind": text, "reason": text}], forecast)
    yield render.tenants_page(text, {"days": 7, "hours_of_a_period": 6, "tenants": [{**TENANT, "tenant": text}]})
    node = {"name": text, "type": text, "accelerators": 1, "free": 0, "state": "up", "reason": text, "taken": {0: text},
            "idle": [text], "jobs": [text]}  # fmt: skip
    drain = {"state": "draining", "jobs_left": 2, "until": text, "reason": text}
    node |= {"drain": drain, "drained_accelerators": {text: drain},
             "maintenance": {"id": 1, "from": text, "to": text, "reason": text}}  # fmt: skip
    yield render.nodes_page(text, [node, {**node, "state": "draining"}], True)
    policy = {
        "name": text,
        "objective": text,
        "door": text,
        "parameters": {text: text},
        "asked": 1,
        "certificate": text,
    }
    changed = [{"id": text, "tenant": text, "before": at, "after": at}]
    counts = [{"tenant": text, "sooner": 1, "later": 2, "unchanged": 3}]
    what_if = {"how": text, "until": at["at"], "new_job": at, "changed": changed, "tenants": counts}
    yield render.policy_page(text, policy, [0.1], {"start_coverage": 0.5, "jobs": 2}, what_if)
    yield render.refused_page(text, text)


def test_a_text_from_outside_adds_no_element_and_no_attribute_to_any_page() -> None:
    for tame, hostile in zip(every_page("tame"), every_page(HOSTILE), strict=True):
        shapes = []
        for text in (tame, hostile):
            reader = Tags()
            reader.feed(text)
            shapes.append(reader.found)
        assert shapes[0] == shapes[1]
        assert "\u202e" not in hostile


class Tags(HTMLParser):
    """Notes every element of a page and the names of its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


def test_the_page_of_tenants_draws_what_each_received_and_deserved_and_how_fair_it_was_over_time() -> None:
    text = render.tenants_page("ann", {"days": 7, "hours_of_a_period": 6, "tenants": [TENANT]})
    assert 'points="2,15.0 7,1.0 12,1.0 17,15.0"' in text  # deserved
    assert 'aria-label="received 0.00, deserved 1.00 accelerator-hours in the last one"' in text
    assert 'aria-label="LTGF between 0.00 and 0.50, 0.00 at the end"' in text
    assert 'aria-label="mean ρ between 1.25 and 1.25, 1.25 at the end"' in text
    assert '<polyline points="7,11.5 12,11.5"/>' in text  # ρ is known in two periods
    assert '<td data-head="worst ρ">4.00 <svg' in text
    assert "<b>last 7 days</b>" in text
    assert '<a href="/tenants?days=30">last 30 days</a>' in text
    assert "a point for each 6 hours" in text


def test_a_page_names_no_outside_address(shared: LiveService) -> None:
    for path in ("/login", "/style.css", "/live.js"):
        assert "//" not in visit(shared, "GET", path)[1]


def test_the_first_page_shows_the_jobs_submitted_first_and_how_many_more_there_are(shared: LiveService) -> None:
    ann = shared.client("ann", "crowd")
    ids = ann.submit([{**NAMED, "name": f"crowd-{n:02}"} for n in range(30)])["ids"]
    try:
        _, _, cookie = visit(shared, "POST", "/login", body=urlencode({"token": ann.address.token}))
        text = visit(shared, "GET", "/", cookie.partition(";")[0])[1]
        assert text.index("crowd-01") < text.index("crowd-02")
        assert "crowd-29" not in text
        assert '<a href="/jobs?state=pending">' in text
        assert '<a href="/" aria-current=page>Now</a>' in text
        assert 'data-head="tenant">crowd</td>' in text  # what a narrow screen shows beside the value
    finally:
        for job in ids:
            ann.send("DELETE", f"/v1/jobs/{job}")
