"""Submissions of more jobs than a turn takes: whole or not at all, in order, and others have their turns between."""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import ANN, BOB, OPERATOR, SITE, Bench, LiveService, until

from eunomia.backends.reports import GangEnded, Launched
from eunomia.service import submitted_jobs
from eunomia.service.client import Address, Client, Unreachable
from eunomia.service.controller import Controller
from eunomia.service.job_document import parse_job
from eunomia.service.messages import (
    AT_ONCE,
    LongSubmission,
    Principal,
    Reply,
    Request,
    Submit,
    ids_in,
)
from eunomia.service.site import load_site
from eunomia.service.site_change import apply_site
from eunomia.service.writer import Writer

KEY = "key-of-a-list"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns that take two jobs."""
    monkeypatch.setattr(submitted_jobs, "AT_ONCE", 2)


def listed(*documents: dict[str, Any], key: str = KEY, who: Principal = ANN) -> Request:
    jobs = tuple(parse_job({"command": ["train"], "duration_s": 60.0, **one}) for one in documents)
    return Request(Submit(jobs, key, repr(documents), several=True), who)


def named(count: int) -> list[dict[str, Any]]:
    return [{"name": f"job-{number}"} for number in range(count)]


def names(bench: Bench) -> list[str]:
    return [
        name for (name,) in bench.store._db.execute("SELECT json_extract(body, '$.name') FROM jobs ORDER BY number")
    ]


def drive(writer: Writer) -> int:
    """Do what waits for the writer; return the turns that it took."""
    turns = 0
    while writer.waiting:
        writer.handle(writer._collect()[0])
        turns += 1
    return turns


def test_others_pass_between_the_parts_of_a_list_and_its_tenant_stays_in_order(bench: Bench) -> None:
    order, writer = list[str](), bench.writer

    def ask(who: Principal, request: Request, called: str) -> Future[Reply]:
        answer = writer.ask(replace(request, who=who))
        answer.add_done_callback(lambda _: order.append(called))
        return answer

    count = 3 * AT_ONCE
    whole = ask(ANN, listed(*named(count)), "list")
    after = ask(ANN, listed({}, key="key-after-it"), "later of the same tenant")
    ask(BOB, listed({}, key="key-of-bob"), "other")
    turns = drive(writer)
    assert order == ["other", "list", "later of the same tenant"]
    ids = whole.result().body["ids"]
    assert len(ids) == len(set(ids)) == count and turns >= 6
    numbers = [int(one.partition("-")[0]) for one in (*ids, *after.result().body["ids"])]
    assert numbers == sorted(numbers)
    assert [name for name in names(bench) if name.startswith("job-")] == [one["name"] for one in named(count)]
    largest = max(len(lines) for (lines,) in bench.store._db.execute("SELECT lines FROM moments"))
    assert largest < 600 * AT_ONCE  # no moment has more than a part


def test_an_array_and_documents_of_several_jobs_are_entered_once_each_and_in_order(bench: Bench, small: None) -> None:
    (reply,) = bench.do(listed({"array": "3-5", "name": "a"}, {"name": "b"}, {"array": "0-3", "name": "c"}))
    assert reply is not None
    rows = [bench.controller.rows[one] for one in reply.body["ids"]]
    assert [(row.name, row.array_index) for row in rows] == [
        ("a", 3), ("a", 4), ("a", 5), ("b", None), ("c", 0), ("c", 1), ("c", 2), ("c", 3)
    ]  # fmt: skip
    assert [row.number for row in rows] == list(range(1, 9))
    (again,) = bench.do(listed({"array": "3-5", "name": "a"}, {"name": "b"}, {"array": "0-3", "name": "c"}))
    assert again is not None and (again.status, again.body["ids"]) == (200, reply.body["ids"])


def test_a_key_that_an_operators_single_job_used_meanwhile_refuses_the_list_and_ends_nothing(
    bench: Bench, small: None
) -> None:
    writer = bench.writer
    whole = writer.ask(listed(*named(7), who=OPERATOR))
    writer.handle(writer._collect()[0])
    single = writer.ask(listed({}, who=OPERATOR))  # urgent: it comes before the next part
    drive(writer)
    assert (single.result().status, whole.result().status) == (201, 409)
    assert names(bench) == [bench.controller.rows[one].name for one in single.result().body["ids"]]
    assert bench.store.unfinished() == []


def test_a_list_with_one_bad_job_changes_nothing_and_all_problems_are_named(bench: Bench, small: None) -> None:
    bench.do()
    before = bench.store.last_seq()
    documents = named(7)
    documents[1] |= {"accelerators": 99}
    documents[6] |= {"types": ["none"]}
    (reply,) = bench.do(listed(*documents))
    assert reply is not None and reply.status == 422
    assert [one.field for one in reply.problems] == ["[1].accelerators", "[6].types"]
    for table in ("jobs", "keys", "lists", "news", "audit"):
        assert not bench.store._db.execute(f"SELECT * FROM {table}").fetchall(), table
    assert bench.store.last_seq() == before


class Crash(BaseException):
    """The service dies here."""


def run_until_crash(bench: Bench, request: Request, at: int, *, after: bool) -> Reply | None:
    """Take a list, and die before or after the commit of that number; return its reply if it came."""
    store, commit, count = bench.store, bench.store.commit, 0

    def dying(turn: Any, clock: Any) -> None:
        nonlocal count
        count += 1
        if count == at and not after:
            raise Crash
        commit(turn, clock)
        if count == at:
            raise Crash

    bench.store.commit = dying  # type: ignore[method-assign]
    try:
        return bench.do(request)[0]
    except Crash:
        bench.restart()
        return None
    finally:
        store.commit = commit  # type: ignore[method-assign]


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_commit_leaves_nothing_or_in_the_end_everything(tmp_path: Path, small: None, after: bool) -> None:
    documents, crashes = named(7), 0
    for at in range(1, 20):
        (folder := tmp_path / str(at)).mkdir()
        bench = Bench(folder)
        bench.do()
        reply = run_until_crash(bench, listed(*documents), at, after=after)
        drive(bench.writer)
        stored = names(bench)
        assert stored == ([] if at == 1 and not after else [one["name"] for one in documents])
        assert bench.store.unfinished() == []
        assert sorted(bench.controller.scheduler.state.row_of) == sorted(bench.controller.rows)
        (again,) = bench.do(listed(*documents))
        assert again is not None and again.status == (200 if stored else 201)
        assert [bench.controller.rows[one].name for one in again.body["ids"]] == [one["name"] for one in documents]
        bench.controller.check()
        bench.restart()
        assert len(bench.controller.rows) == 7
        bench.store.close()
        if reply is not None:
            assert again.body == reply.body
            break
        crashes += 1
    assert crashes >= 4


def test_a_job_whose_predecessor_fails_before_it_is_entered_is_cancelled_with_it(bench: Bench, small: None) -> None:
    first = bench.submit(duration_s=10).body["id"]
    (long,) = bench.writer.turn([listed(*named(3), {"after": [first]})]).replies
    while isinstance(long, LongSubmission) and not long.entered:
        (long,) = bench.writer.turn([long]).replies
    bench.do(Launched(first, 1), GangEnded(first, 1, "failed", "exit code 1"))
    assert isinstance(long, LongSubmission)
    (reply,) = bench.do(long)
    assert reply is not None
    follower = bench.store.job(reply.body["ids"][3])
    assert follower is not None and follower.state == "cancelled" and first in follower.reason
    bench.controller.check()
    bench.restart()


def test_what_was_accepted_and_fits_no_more_after_a_change_of_the_site_is_set_aside_by_name(
    bench: Bench, small: None
) -> None:
    (long,) = bench.writer.turn([listed(*named(3), {"accelerators": 2}, {"name": "last"})]).replies
    while isinstance(long, LongSubmission) and not long.entered:
        (long,) = bench.writer.turn([long]).replies
    bench.path.write_text(SITE.replace("cpu = 2", "cpu = 1"))
    apply_site(bench.writer, load_site(bench.path), OPERATOR, "test")
    assert isinstance(long, LongSubmission)
    (reply,) = bench.do(long)
    assert reply is not None
    states = [bench.state(one) for one in reply.body["ids"]]
    assert states[3] == "quarantined" and "quarantined" not in states[:3] + states[4:]
    row = bench.store.job(reply.body["ids"][3])
    assert row is not None and "at most 1" in row.reason


def test_a_job_that_cannot_be_entered_is_set_aside_and_all_others_of_its_list_go_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitted_jobs, "AT_ONCE", 4)
    add: Callable[..., None] = Controller.add

    def refusing(self: Controller, row: Any) -> None:
        if row.name == "job-6":
            raise ZeroDivisionError("it is a bad number")
        add(self, row)

    monkeypatch.setattr(Controller, "add", refusing)
    (reply,) = bench.do(listed(*named(11)))
    assert reply is not None
    stored = {row.name: row for one in reply.body["ids"] if (row := bench.store.job(one)) is not None}
    assert len(stored) == 11
    assert [name for name, row in stored.items() if row.state == "quarantined"] == ["job-6"]
    assert "it is a bad number" in stored["job-6"].reason
    bench.restart()
    assert len(bench.controller.rows) == 10


def test_a_list_whose_acceptance_fails_is_refused_and_nothing_of_it_stays(
    bench: Bench, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(submitted_jobs, "_refusal", refusing)
    (reply,) = bench.do(replace(listed(*named(5)), request_id="abc"))
    assert reply is not None and (reply.status, reply.body["request"]) == (500, "abc")
    assert names(bench) == [] and bench.store.unfinished() == []


def test_the_rest_of_a_list_that_cannot_be_read_is_named_by_the_check_and_ends_no_start(
    bench: Bench, small: None
) -> None:
    run_until_crash(bench, listed(*named(5)), 2, after=True)
    for column, value in (("body", "[1"), ("role", "king"), ("body", '[{"command": ["x"]}]')):
        with bench.store.transaction() as db:
            db.execute(f"UPDATE lists SET {column} = ?", (value,))
        bench.restart()
        assert not bench.writer.waiting
        assert any(KEY in problem for problem in bench.store.problems())


def test_spans_stand_for_the_ids_between_their_ends() -> None:
    assert ids_in(["1-abcde", "7..9-k3f9a"]) == ["1-abcde", "7-k3f9a", "8-k3f9a", "9-k3f9a"]
    with pytest.raises(ValueError, match="too many"):
        ids_in(["1..99999999-k3f9a"])


@pytest.mark.slow
@pytest.mark.parametrize("hit", [2, 4, 6])
@pytest.mark.parametrize("point", ["turn.decided", "turn.committed"])
def test_a_service_that_is_killed_within_a_list_enters_the_rest_at_its_next_start(
    live: LiveService, point: str, hit: int
) -> None:
    live.start()
    token = live.operator.address.token
    live.kill(signal.SIGTERM)
    live.start(EUNOMIA_TEST_BUILD="1", EUNOMIA_FAULT_POINT=f"{point}:kill:{hit}")
    documents = [{"command": ["sleep", "600"], "name": f"job-{number}"} for number in range(3 * AT_ONCE)]
    with pytest.raises(Unreachable):
        Client(Address(live.url, token)).send("POST", "/v1/jobs", documents, {"Idempotency-Key": KEY})
    assert live.process is not None and live.process.wait(180) == -signal.SIGKILL
    assert live.process.stdout is not None
    live.process.stdout.close()
    live.start()
    client = Client(Address(live.url, token))
    if (found := sum(client.get("/v1/cluster")["jobs"].values())) > 0:
        until(lambda: sum(client.get("/v1/cluster")["jobs"].values()) == len(documents))
    ids = client.submit(documents, KEY)["ids"]
    assert len(set(ids)) == len(documents) == sum(client.get("/v1/cluster")["jobs"].values()), found


def test_a_submission_whose_caller_sent_no_key_neither_looks_for_one_nor_stores_one(bench: Bench, small: None) -> None:
    statements = list[str]()
    bench.store._db.set_trace_callback(statements.append)

    def about_keys(count: int, *, is_unkeyed: bool) -> tuple[int, int]:
        statements.clear()
        asked = listed(*named(count), key=f"key-{len(bench.controller.rows)}")
        assert isinstance(asked.action, Submit)
        (reply,) = bench.do(replace(asked, action=replace(asked.action, is_unkeyed=is_unkeyed)))
        assert reply is not None and reply.status == 201 and len(reply.body["ids"]) == count
        stored = bench.store._db.execute("SELECT count(*) FROM keys").fetchone()[0]
        return sum("keys" in one for one in statements) - 1, stored

    assert about_keys(2, is_unkeyed=True) == (0, 0)
    assert about_keys(2, is_unkeyed=False) == (2, 1)
    assert about_keys(5, is_unkeyed=True)[1] == 2  # a long list is found by it after a restart
    bench.store._db.set_trace_callback(None)


def test_a_key_is_drawn_where_the_caller_sent_none_and_known_as_such() -> None:
    pytest.importorskip("starlette")
    from eunomia.service.http.routes import _submission

    (mine, _), *others = (_submission(b'{"command": ["train"]}', key) for key in ("key-of-mine", None, None))
    assert (mine.key, mine.is_unkeyed) == ("key-of-mine", False)
    assert all(one.is_unkeyed for one, _ in others) and len({one.key for one, _ in others}) == 2


def test_keys_that_the_client_draws_are_new_and_rise_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = list[str]()
    client = Client(Address("http://127.0.0.1:1", "token"))
    monkeypatch.setattr(Client, "send", lambda self, *asked: sent.append(asked[3]["Idempotency-Key"]) or {})
    for _ in range(50):
        client.submit({"command": ["train"]})
    times = [int(key[:16], 16) for key in sent]
    assert times == sorted(times) and len(set(sent)) == 50 and {len(key) for key in sent} == {32}
