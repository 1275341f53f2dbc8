"""Mail and webhooks say what has become of jobs: once, signed, also after kills, and nothing waits for a receiver."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import ANN, BOB, OPERATOR, SITE, Bench, LiveService, until
from tests.service.receivers import Taken, events_in, mail_server, webhook
from typer.testing import CliRunner

from eunomia.backends.reports import GangEnded, Launched
from eunomia.cli.app import app
from eunomia.inputs.problems import InvalidInput
from eunomia.service import notice_sender
from eunomia.service.messages import Cancel, Request
from eunomia.service.notice_sender import NoticeSender, NotTaken, StoredNotice, signature
from eunomia.service.notices import Notice
from eunomia.service.site import load_site
from eunomia.service.store.backup import back_up, put_back
from eunomia.service.store.disk_room import DiskFull
from eunomia.service.store.reader import Reader

HOOKS = """
[notify]
url = "https://queue.example.org"
[notify.mail]
host = "127.0.0.1"
port = 25
tls = "none"
sender = "queue@example.org"
domain = "example.org"
[notify.webhooks.lab]
url = "http://127.0.0.1:9/hook"
[notify.webhooks.all]
url = "http://127.0.0.1:9/all"
events = ["failed"]
tenants = ["speech"]
"""


def stored(bench: Bench) -> list[tuple[str, str, str, str]]:
    rows = bench.store._db.execute("SELECT target, address, event, job FROM notices ORDER BY seq").fetchall()
    return [tuple(row) for row in rows]


@pytest.mark.parametrize(
    ("notify", "outcome", "expected"),
    [
        (["mail"], "finished", [("mail", "ann@example.org", "ended")]),
        (["mail"], "failed", [("mail", "ann@example.org", "ended")]),
        (["mail@failed"], "finished", []),
        (["mail@failed"], "failed", [("mail", "ann@example.org", "failed")]),
        (["webhook:lab@started"], "finished", [("webhook:lab", "", "started")]),
        (["webhook:lab", "mail"], "finished", [("webhook:lab", "", "ended"), ("mail", "ann@example.org", "ended")]),
        ([], "failed", []),
    ],
)  # fmt: skip
def test_a_notice_is_stored_with_the_change_that_it_is_about(
    tmp_path: Path, notify: list[str], outcome: str, expected: list[tuple[str, str, str]]
) -> None:
    bench = Bench(tmp_path, SITE + HOOKS)
    job = bench.submit(ANN, notify=notify).body["id"]
    bench.do(Launched(job, 1))
    bench.do(Launched(job, 1), GangEnded(job, 1, outcome, "exit code 3"))
    assert stored(bench) == [(*one, job) for one in expected]
    bench.restart()
    assert stored(bench) == [(*one, job) for one in expected], "a start stores none anew"


def test_an_attempt_that_is_repeated_and_a_stop_are_no_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE + HOOKS)
    job = bench.submit(ANN, notify=["mail"], retries=1).body["id"]
    bench.do(Launched(job, 1), GangEnded(job, 1, "failed", "x"))
    assert stored(bench) == []
    bench.do(Request(Cancel(job), ANN))
    assert [event for _, _, event, _ in stored(bench)] == ["ended"]


def test_a_webhook_of_the_site_has_the_events_of_its_tenants_jobs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE + HOOKS)
    jobs = [bench.submit(who).body["id"] for who in (ANN, BOB)]
    bench.do(*(Launched(job, 1) for job in jobs))
    bench.do(*(GangEnded(job, 1, "failed", "exit code 1") for job in jobs))
    assert stored(bench) == [("webhook:all", "", "failed", jobs[1])]


@pytest.mark.parametrize(
    "word", ["mail@sometime", "webhook:other", "webhook:", "http://evil.example.org", "mail:x@y.z", "mail\nBcc: x"]
)
def test_a_user_can_name_nothing_but_targets_of_the_site(tmp_path: Path, word: str) -> None:
    bench = Bench(tmp_path, SITE + HOOKS)
    try:
        fields = {one.field for one in bench.submit(ANN, notify=[word]).problems}
    except ValueError as error:  # refused before the service sees it
        fields = {one.field for one in error.problems}  # type: ignore[attr-defined]
    assert fields and all(one.startswith("notify") for one in fields)


def test_a_site_without_the_tables_says_what_to_ask_for(tmp_path: Path) -> None:
    (problem,) = Bench(tmp_path, SITE).submit(ANN, notify=["mail"]).problems
    assert (problem.field, problem.fix) == ("notify", "leave it out, or ask the operator for a table [notify]")


@pytest.mark.parametrize(
    ("old", "new", "column", "rule"),
    [
        ('domain = "example.org"', "", "notify.mail.domain", "no user has an address"),
        ('tls = "none"', 'tls = "none"\nuser = "queue"', "notify.mail.user", "logs in without a password"),
        ('tls = "none"', 'tls = "none"\npassword_file = "no"', "notify.mail.password_file", "cannot be read"),
        ('tls = "none"', 'tls = "none"\npassword_file = "open"', "notify.mail.password_file", "may be read by others"),
        ("http://127.0.0.1:9/hook", "http://example.org/x", "notify.webhooks.lab.url", "is no https address"),
        ("http://127.0.0.1:9/hook", "https://a:b@example.org/", "notify.webhooks.lab.url", "holds a password"),
        ("http://127.0.0.1:9/hook", "file:///etc/passwd", "notify.webhooks.lab.url", "is no https address"),
        ('events = ["failed"]', 'events = ["lost"]', "notify.webhooks.all.events.0", "'started', 'ended' or 'failed'"),
        ('sender = "queue@example.org"', 'sender = "queue"', "notify.mail.sender", "pattern"),
        ("digest_s", "digest_s", "", ""),
    ],
)
def test_what_is_wrong_in_the_tables_is_named_with_its_place(
    tmp_path: Path, old: str, new: str, column: str, rule: str
) -> None:
    (tmp_path / "open").write_text("secret")
    (tmp_path / "open").chmod(0o644)
    path = tmp_path / "site.toml"
    path.write_text(SITE + HOOKS.replace(old, new))
    if not column:
        load_site(path)
        return
    with pytest.raises(InvalidInput) as found:
        load_site(path)
    (problem,) = found.value.problems
    assert problem.column == column and rule in problem.rule and problem.row


def test_a_backup_has_no_notices_so_that_a_restored_store_says_nothing_of_then(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE + HOOKS)
    job = bench.submit(ANN, notify=["mail"]).body["id"]
    bench.do(Launched(job, 1), GangEnded(job, 1, "finished"))
    assert len(stored(bench)) == 1
    back_up(bench.site.state, tmp_path / "backup.db")
    with sqlite3.connect(tmp_path / "backup.db") as db:
        assert db.execute("SELECT count(*) FROM notices").fetchone() == (0,)
    db.close()


def sender_of(bench: Bench) -> NoticeSender:
    return NoticeSender(bench.site.notify, bench.path.parent, bench.site.place, bench.writer)


def test_notices_of_one_address_that_are_not_taken_or_are_many_hold_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notice_sender, "A_MAIL", 2)
    bench = Bench(tmp_path, SITE + HOOKS)
    jobs = [bench.submit(who, notify=["mail"]).body["id"] for who in (ANN, ANN, ANN, BOB)]
    bench.do(*(Request(Cancel(job), OPERATOR) for job in jobs))
    bench.clock.at += 100
    sender, tried, reader = sender_of(bench), list[tuple[str, int]](), Reader(bench.site.place)

    def send(target: str, address: str, due: list[Any]) -> str:
        tried.append((address, len(due)))
        if address.startswith("ann"):
            raise NotTaken("no such mailbox")
        return "taken"

    monkeypatch.setattr(sender, "_send", send)
    monkeypatch.setattr(sender, "_settle", lambda done: None)
    sender._look("mail", reader, Counter(), {})
    reader.close()
    assert tried == [("ann@example.org", 2), ("bob@example.org", 1)]


def test_what_was_sent_is_not_sent_again_while_the_disk_has_no_room_to_note_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notice_sender, "FIRST_S", 0.0)
    bench = Bench(tmp_path, SITE + HOOKS)
    sender, changes = sender_of(bench), list[Any]()

    def change(one: Any) -> Future[None]:
        changes.append(one)
        answer = Future[None]()
        if len(changes) < 3:
            answer.set_exception(DiskFull.of(tmp_path, "the disk is full", "make room"))
        else:
            answer.set_result(one(bench.writer))
        return answer

    monkeypatch.setattr(bench.writer, "change", change)
    job = bench.submit(ANN, notify=["webhook:lab"]).body["id"]
    bench.do(Request(Cancel(job), ANN))
    sender._settle([StoredNotice(1, 0.0, Notice("webhook:lab", "", "ended", job, "{}"))])
    assert len(changes) == 3 and stored(bench) == []


def test_after_a_restore_no_id_of_a_notice_is_used_for_another(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE + HOOKS)
    back_up(bench.site.state, tmp_path / "backup.db")
    one = StoredNotice(1, 0.0, Notice("webhook:lab", "", "ended", "1-a", "{}"))
    before = sender_of(bench)._id(one)
    bench.restart()
    assert sender_of(bench)._id(one) == before
    bench.store.close()
    put_back(tmp_path / "backup.db", bench.site.state)
    bench.restart()
    restored = sender_of(bench)._id(one)
    bench.restart()
    assert sender_of(bench)._id(one) == restored != before


def test_the_documented_check_of_a_signature_takes_ours_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(import hashlib.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102
    body, is_ours = b'{"events": []}', names["is_ours"]
    header = signature("s3cret", 1_000_000, body)
    assert is_ours("s3cret", header, body, now=1_000_100)
    assert not is_ours("other", header, body, now=1_000_100)
    assert not is_ours("s3cret", header, body + b" ", now=1_000_100)
    assert not is_ours("s3cret", header, body, now=1_000_901), "an old request that was recorded is not taken"


# ---- with real receivers ---------------------------------------------------------------------------------------------


@pytest.fixture
def receivers() -> Iterator[tuple[Taken, Taken, Taken]]:
    with mail_server() as mail, webhook() as lab, webhook() as slack:
        yield mail, lab, slack


def site_text(folder: Path, receivers: tuple[Taken, Taken, Taken]) -> str:
    mail, lab, slack = receivers
    (folder / "secret").write_text("s3cret\n")
    (folder / "secret").chmod(0o600)
    return (
        SITE
        + f"""
[notify]
url = "https://queue.example.org"
[notify.mail]
host = "127.0.0.1"
port = {mail.port}
tls = "none"
sender = "queue@example.org"
addresses = {{ ann = "ann@example.org" }}
digest_s = 3
[notify.webhooks.lab]
url = "http://127.0.0.1:{lab.port}/hook?x=1"
secret_file = "secret"
[notify.webhooks.chat]
url = "http://127.0.0.1:{slack.port}/"
body = "slack"
"""
    )


def test_an_array_is_one_mail_and_requests_are_signed_and_texts_are_escaped(
    tmp_path: Path, receivers: tuple[Taken, Taken, Taken]
) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    mail, lab, chat = receivers
    chat.answers = [500, 302]
    service = LiveService(tmp_path, site_text(tmp_path, receivers))
    service.start()
    ann = service.client("ann", "vision")
    try:
        fails = "import os; raise SystemExit(os.environ['EUNOMIA_ARRAY_INDEX'] == '2')"
        job = {"command": ["python", "-c", fails], "name": "sweep", "array": "0-3", "notify": ["mail", "webhook:lab"]}
        ids = ann.submit(job)["ids"]
        one = ann.submit({"command": ["true"], "name": "alone", "notify": ["webhook:chat"]})["id"]
        until(lambda: len(events_in(lab.messages)) == 4)
        until(lambda: mail.messages and chat.messages)
        headers, body = lab.messages[0]
        at, _, made = headers["X-Eunomia-Signature"].partition(",v1=")
        expected = hmac.new(b"s3cret", at.removeprefix("t=").encode() + b"." + body, hashlib.sha256).hexdigest()
        assert made == expected
        events = events_in(lab.messages)
        assert {event["job"]["id"] for event in events} == set(ids) and len({event["id"] for event in events}) == 4
        assert "command" not in events[0]["job"]
        until(lambda: sum(text.count("sweep (") for _, text in mail.messages) >= 4)
        address, text = mail.messages[0]
        assert address == "ann@example.org" and "To: ann@example.org" in text
        content = message_from_string(text).get_payload(decode=True)
        assert b"https://queue.example.org/jobs/" in content
        said = json.loads(chat.messages[0][1])["text"]
        assert said.startswith(f"alone ({one}) succeeded") and chat.asked == 3
        metrics = service.operator.text("/metrics")[0]
        assert "eunomia_notices_tried_again_total 2.0" in metrics
        until(lambda: "eunomia_notices_sent_total 9.0" in service.operator.text("/metrics")[0])
    finally:
        service.kill()
        service.stop_jobs()


def test_a_receiver_that_hangs_holds_up_neither_the_service_nor_the_others(
    tmp_path: Path, receivers: tuple[Taken, Taken, Taken], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    mail, lab, _ = receivers
    mail.hangs.set()
    service = LiveService(tmp_path, site_text(tmp_path, receivers))
    service.start()
    ann = service.client("ann", "vision")
    try:
        ann.submit({"command": ["true"], "notify": ["mail", "webhook:lab"]})
        until(lambda: mail.asked and lab.messages)
        again = ann.submit({"command": ["true"], "notify": ["webhook:lab"]})["id"]
        until(lambda: ann.get(f"/v1/jobs/{again}")["state"] == "succeeded" and len(events_in(lab.messages)) == 2)
        monkeypatch.setenv("EUNOMIA_STATE", str(tmp_path / "state"))
        for name in ("EUNOMIA_URL", "EUNOMIA_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        said = CliRunner().invoke(app, ["notify", "test", "webhook:lab"])
        assert (said.exit_code, said.stdout) == (0, "webhook:lab: it answered 200\n")
        said = CliRunner().invoke(app, ["notify", "test", "webhook:other"])
        assert said.exit_code and "name one of mail, webhook:lab, webhook:chat" in " ".join(said.output.split())
        assert service.kill(15) == 0, "it ends though a mail is on its way"
    finally:
        mail.goes_on.set()
        service.stop_jobs()


@pytest.mark.parametrize("point", ["turn.committed:kill:6", "notices.taken:kill:1"])
def test_after_a_kill_a_notice_is_sent_with_its_id_and_none_is_lost(
    tmp_path: Path, receivers: tuple[Taken, Taken, Taken], point: str
) -> None:
    """Killed after commits, and between the receiver's answer and its removal: then it comes twice, with one id."""
    pytest.importorskip("uvicorn", reason="needs the extra service")
    _, lab, _ = receivers
    service = LiveService(tmp_path, site_text(tmp_path, receivers))
    service.start(EUNOMIA_TEST_BUILD="1", EUNOMIA_FAULT_POINT=point)
    jobs = list[str]()
    try:
        ann = service.client("ann", "vision")
        jobs.append(ann.submit({"command": ["true"], "notify": ["webhook:lab"]}, "key-of-the-job")["id"])
    except OSError:
        pass
    try:
        assert service.process is not None and service.process.stdout is not None
        service.process.wait(120)
        service.process.stdout.close()
        service.start()
        ann = service.client("ann", "vision")
        jobs.append(ann.submit({"command": ["true"], "notify": ["webhook:lab"]}, "key-of-the-job")["id"])
        twice = 2 if point.startswith("notices") else 1
        until(lambda: len(events_in(lab.messages)) == twice)
        assert {one["job"]["id"] for one in events_in(lab.messages)} == set(jobs) and len(set(jobs)) == 1
        assert len({one["id"] for one in events_in(lab.messages)}) == 1
        service.kill()
        service.start()
        until(lambda: _waiting(tmp_path) == 0)
        assert len(events_in(lab.messages)) == twice
    finally:
        service.kill()
        service.stop_jobs()


def _waiting(folder: Path) -> int:
    db = sqlite3.connect(f"file:{folder / 'state' / 'store.db'}?mode=ro", uri=True)
    try:
        return int(db.execute("SELECT count(*) FROM notices").fetchone()[0])
    finally:
        db.close()


def test_the_secret_is_in_no_answer_and_no_log(tmp_path: Path, receivers: tuple[Taken, Taken, Taken]) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(tmp_path, site_text(tmp_path, receivers))
    service.start()
    try:
        service.operator.send("POST", "/v1/notify/test", {"target": "webhook:lab"})
        shown = json.dumps(service.operator.send("PUT", "/v1/site?dry_run=true", {}))
        assert "s3cret" not in shown + (tmp_path / "log").read_text() and os.listdir(tmp_path / "state")
    finally:
        service.kill()
