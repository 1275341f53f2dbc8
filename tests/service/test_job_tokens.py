"""The token that a job itself gets: for one start of one job, its progress and nothing else."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from tests.service.bench import ANN, Bench, LiveService, until
from tests.service.test_api import BODIES, MATRIX, status

from eunomia.backends.reports import GangEnded, Launched
from eunomia.service.client import Address, Client, ServiceRefusal
from eunomia.service.credentials import JobTokens
from eunomia.service.messages import Hold, Principal, Reply, Request, SaveProgress
from eunomia.service.store import StoreProblem

OWN_ROUTE = "/v1/jobs/{id}/progress"
WAITS = "import time; time.sleep(600)"
REPORTS = """
import json, os, urllib.request
url = os.environ["EUNOMIA_URL"] + "/v1/jobs/" + os.environ["EUNOMIA_JOB_ID"] + "/progress"
token = open(os.environ["EUNOMIA_JOB_TOKEN_FILE"]).read().strip()
body = json.dumps({"steps": 7}).encode()
asked = urllib.request.Request(url, body, {"Authorization": "Bearer " + token})
print(urllib.request.urlopen(asked).read().decode(), flush=True)
import time; time.sleep(600)
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    pytest.importorskip("uvicorn")
    service = LiveService(tmp_path_factory.mktemp("service"))
    service.start()
    yield service
    service.kill()
    service.stop_jobs()


def start(service: LiveService, user: str, tenant: str, command: str = WAITS) -> tuple[str, Client]:
    """Return a running job, and a client with the token that it was given."""
    maker = service.client(user, tenant)
    job = maker.submit({"command": ["python", "-c", command], "total_steps": 100})["id"]
    until(lambda: maker.get(f"/v1/jobs/{job}")["state"] == "running")
    return job, Client(Address(service.url, (service.folder / "state" / "jobs" / job / "token-1").read_text().strip()))


def test_a_jobs_token_opens_its_own_progress_and_no_other_route(served: LiveService) -> None:
    mine, token = start(served, "ann", "vision")
    others, _ = start(served, "bob", "speech")
    for method, path in MATRIX:
        for job in (mine, others, "1-absent"):
            body = {"steps": 5} if path == OWN_ROUTE else BODIES.get(path) if method != "GET" else None
            found = status(token, method, re.sub(r"\{[\w:]+\}", job, path), body)
            is_open = path in ("/healthz", "/readyz", "/openapi.json")
            expected = 200 if is_open else 403 if path != OWN_ROUTE else 200 if job == mine else 404
            assert found == expected, (method, path, job)
    for page in ("/", "/jobs", f"/jobs/{mine}", "/policy"):
        assert status(token, "GET", page) == 303  # the login page
        assert status(Client(Address(served.url)), "GET", page, Cookie=f"eunomia={token.address.token}") == 303
    assert status(Client(Address(served.url)), "POST", f"/v1/jobs/{mine}/progress", {"steps": 6}) == 401
    assert served.operator.get(f"/v1/jobs/{mine}")["steps"] == 5
    for job in (mine, others):
        served.operator.send("DELETE", f"/v1/jobs/{job}")


def test_a_job_reads_its_token_and_reports_to_the_address_it_was_given(served: LiveService) -> None:
    job, token = start(served, "ann", "vision", REPORTS)
    until(lambda: served.operator.get(f"/v1/jobs/{job}")["steps"] == 7)
    log = served.folder / "state" / "jobs" / job / "log"
    until(lambda: log.read_text().endswith("}\n"))  # it prints what it was answered
    assert json.loads(log.read_text().splitlines()[-1]) == {"id": job, "epoch": 1, "steps": 7.0, "stop": False}
    kept = served.folder / "state" / "jobs" / job / "token-1"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o400
    for path in (f"/v1/jobs/{job}", "/v1/tokens", "/v1/decisions"):
        assert token.address.token not in served.operator.text(path)[0]
    assert token.address.token not in (served.folder / "log").read_text()
    assert token.address.token.encode() not in b"".join(
        one.read_bytes() for one in (served.folder / "state").glob("store.db*")
    )
    for wrong in ({}, {"steps": -1}, {"steps": "7"}, {"steps": True}, {"steps": 8, "epoch": 1}, [8]):
        with pytest.raises(ServiceRefusal) as refused:
            token.send("POST", f"/v1/jobs/{job}/progress", wrong)
        assert (refused.value.status, refused.value.problems[0]["field"]) == (422, "steps")
    assert {status(token, "POST", f"/v1/jobs/{job}/progress", {"steps": 9}) for _ in range(15)} == {200, 429}
    served.operator.send("DELETE", f"/v1/jobs/{job}")


def report(bench: Bench, job: str, epoch: int, steps: float) -> Reply:
    who = Principal(job, "", "job", epoch)
    (reply,) = bench.do(Request(SaveProgress(job, epoch, steps), who))
    assert reply is not None
    return reply


def test_progress_of_an_earlier_start_is_refused_and_none_goes_back(bench: Bench) -> None:
    job = bench.submit(total_steps=100, retries=1).body["id"]
    bench.do(Launched(job, 1))
    assert report(bench, job, 1, 40.0).body == {"id": job, "epoch": 1, "steps": 40.0, "stop": False}
    back = report(bench, job, 1, 39.0)
    assert (back.status, back.body["code"], back.problems[0].field) == (409, "goes_back", "steps")
    assert report(bench, job, 1, 1e9).body["steps"] == 100.0
    assert report(bench, job, 2, 50.0).body["code"] == "stale_epoch"  # a start that is not there yet
    bench.do(Request(Hold(job), ANN))
    assert report(bench, job, 1, 100.0).body["stop"]  # it is called back, and may still save
    bench.do(GangEnded(job, 1, "stopped"))
    late = report(bench, job, 1, 100.0)
    assert (late.status, late.body["code"]) == (409, "stale_epoch")
    assert bench.controller.stale_reports == 2
    assert report(bench, "1-zzzzz", 1, 5.0).status == 409
    logged = bench.store._db.execute("SELECT count(*) FROM audit WHERE action = 'saveprogress'").fetchone()[0]
    assert logged == 0
    assert bench.controller.rows[job].steps == 100.0


def test_a_token_is_of_one_start_and_of_one_state_folder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    tokens = JobTokens.of(tmp_path / "a")
    text = tokens.token("7-k3f9a", 2)
    assert tokens.principal(text) == Principal("7-k3f9a", "", "job", 2)
    assert JobTokens.of(tmp_path / "a").principal(text) == Principal("7-k3f9a", "", "job", 2)  # after a restart
    assert JobTokens.of(tmp_path / "b").principal(text) is None
    for wrong in (text.replace(".2.", ".3."), text.replace("7-", "8-"), text[:-1], text + "0", "", "eunj_", "eunj_a.1",
                  text.removeprefix("eunj_"), text.replace(".2.", ".٢."), "eun_" + text, text.upper()):  # fmt: skip
        assert tokens.principal(wrong) is None, wrong


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    JobTokens.of(tmp_path)
    key = tmp_path / "job.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    key.chmod(0o644)
    with pytest.raises(StoreProblem, match=r"other users may read it"):
        JobTokens.of(tmp_path)
    key.unlink()
    os.symlink(tmp_path / "elsewhere", key)
    with pytest.raises(StoreProblem):
        JobTokens.of(tmp_path)
    assert not (tmp_path / "elsewhere").exists()
