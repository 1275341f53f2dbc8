"""The audit log as a route and a command show it: filters, pages, parts in files, and what is not as it was written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from tests.service.bench import SITE, Bench, LiveService, until
from tests.service.test_audit_parts import days, files
from tests.service.test_event_loop import asked, served
from tests.service.test_removal import removal
from tests.service.test_stores import site_on
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.service import audit_entries
from eunomia.service.audit_entries import AuditQuery, FoundEntries, find_entries
from eunomia.service.http.api import application
from eunomia.service.http.routes import ROUTES
from eunomia.service.store.audit_log import DAY_S, KEY_FILE
from eunomia.service.store.reader import Reader


@pytest.fixture(params=["sqlite", "postgres"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A service on either store, with three entries of its audit log a day, for ten days; it keeps a week."""
    found = Bench(tmp_path, site_on(request, "audit_days = 7"))
    days(found, 10)
    yield found
    found.store.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path, SITE.replace("[service]", "[service]\naudit_days = 7"))
    days(found, 10)
    yield found
    found.store.close()


def sweep(bench: Bench) -> None:
    """Close the days that are over, and take away those that are older than a week."""
    one = removal(bench)
    one.sweep()
    one.reader.close()


def found(bench: Bench, **query: Any) -> FoundEntries:
    reader = Reader(bench.site.place)
    try:
        return find_entries(reader, bench.site.state, bench.writer.origin, AuditQuery(**query))
    finally:
        reader.close()


def numbers(one: FoundEntries) -> list[int]:
    return [entry["number"] for entry in one.entries]


def test_entries_are_shown_the_newest_first_from_the_store_and_from_files_and_all_are_verified(stored: Bench) -> None:
    before = numbers(found(stored, limit=1000))
    assert before == sorted(before, reverse=True) and len(before) == 30
    sweep(stored)
    assert len(files(stored)) == 3
    after = found(stored, limit=1000)
    assert numbers(after) == before and after.has_key and not after.problems and not after.taken_away
    assert all(one["verified"] for one in after.entries)
    assert {one["number"] for one in after.entries if one["file"]} == set(before[-9:])


def test_pages_are_all_entries_and_a_search_that_reads_much_goes_on_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(bench)
    every = numbers(found(bench, limit=1000))
    for most in (1, 20_000):
        monkeypatch.setattr(audit_entries, "MOST_READ", most)
        pages, before = list[int](), 2**62
        while True:
            page = found(bench, limit=4, before=before)
            pages += numbers(page)
            if page.next is None:
                break
            before = int(page.next)
        assert pages == every


def test_each_filter_leaves_what_it_says(bench: Bench) -> None:
    sweep(bench)
    job = bench.submit().body["id"]
    assert [one["object"] for one in found(bench, object=job).entries] == [job]
    assert numbers(found(bench, user="none-such")) == [] == numbers(found(bench, action="cancel"))
    assert len(numbers(found(bench, user="ann", action="submit", limit=1000))) == 31
    assert len(numbers(found(bench, begin=8 * DAY_S, end=9 * DAY_S, limit=1000))) == 3
    assert len(numbers(found(bench, begin=0.0, end=2 * DAY_S, limit=1000))) == 6  # of files
    assert numbers(found(bench, source="10.0.0.1")) == []
    newest = numbers(found(bench, limit=1))[0]
    assert numbers(found(bench, after=newest - 2)) == [newest - 1, newest]
    assert found(bench, after=newest).next == str(newest)


def test_a_file_that_is_gone_is_said_and_a_changed_one_is_not_shown(bench: Bench) -> None:
    sweep(bench)
    first, second, _ = files(bench)
    first.rename(first.with_suffix(".elsewhere"))
    second.write_bytes(second.read_bytes()[:-9])
    one = found(bench, limit=1000)
    assert len(one.entries) == 24
    assert [away["first"] for away in one.taken_away] == [4, 1] and one.taken_away[1]["file"] == first.name
    assert any(second.name in text for text in one.problems) and len(one.problems) == 1
    assert found(bench, begin=9 * DAY_S).taken_away == []  # not of the span that was asked for


@pytest.mark.parametrize("number", [30, 20])  # in no part, and in one
def test_an_entry_that_was_changed_is_shown_as_such(bench: Bench, number: int) -> None:
    sweep(bench)
    with bench.store.transaction() as db:
        db.execute('UPDATE audit SET "user" = ? WHERE seq = ?', ("eve", number))
    one = found(bench, limit=1000)
    assert any(str(number) in text for text in one.problems)
    wrong = [entry["number"] for entry in one.entries if not entry["verified"]]
    assert number in wrong and min(wrong) == number
    assert [entry["user"] for entry in one.entries if entry["number"] == number] == ["eve"]


def test_an_entry_that_was_taken_out_and_a_forged_part_are_named(bench: Bench) -> None:
    sweep(bench)
    with bench.store.transaction() as db:
        db.execute("DELETE FROM audit WHERE seq = 27")
        db.execute("UPDATE audit_parts SET begun = begun + 1 WHERE last = 24")
    one = found(bench, limit=1000)
    assert any("between 25 and 27" in text for text in one.problems)
    assert any("22 to 24" in text for text in one.problems)
    assert {entry["number"] for entry in one.entries if not entry["verified"]} == {22, 23, 24}


def test_without_the_key_signatures_are_said_not_to_be_checked(bench: Bench) -> None:
    sweep(bench)
    (bench.site.state / KEY_FILE).unlink()
    one = found(bench, limit=1000)
    assert not one.has_key and len(one.entries) == 30 and not one.problems


def test_the_route_takes_times_and_refuses_what_is_none(bench: Bench) -> None:
    async def run() -> list[tuple[int, Any]]:
        service, token = served(bench)
        whole = application(service, ROUTES)
        answers = [
            await asyncio.wait_for(asked(whole, f"/v1/audit{query}", token), 120)
            for query in ("?limit=5", "?from=2020-01-01&to=2020-01-02", "?from=soon", "?limit=0", "?cursor=x")
        ]
        service.forecasts.close()
        service.feed.close()
        service.reader.close()
        return [(code, json.loads(body)) for code, body in answers]

    first, none, *wrong = asyncio.run(run())
    assert (
        first[0] == 200 and len(first[1]["entries"]) == 5 and first[1]["next"] == str(first[1]["entries"][-1]["number"])
    )
    assert none[1]["entries"] == []
    assert [(code, body["problems"][0]["field"]) for code, body in wrong] == [
        (400, "from"), (400, "limit"), (400, "cursor")
    ]  # fmt: skip


# ---- the commands ----------------------------------------------------------------------------------------------------


def run(service: LiveService, *words: str) -> Any:
    token = str(service.folder / "state" / "operator.token")
    return CliRunner().invoke(app, [*words, "--url", service.url, "--token-file", token])


def test_the_commands_show_what_was_done_and_no_text_of_others_reaches_the_terminal(
    shared: LiveService, tmp_path: Path
) -> None:
    hostile = shared.client("bad\x1b[31mname\u202e", "evil")
    job = hostile.submit({"command": ["true"]})["id"]
    until(lambda: shared.operator.get(f"/v1/jobs/{job}")["state"] == "succeeded")
    plain = run(shared, "audit", "--object", job)
    assert plain.exit_code == 0, plain.output
    assert "submit" in plain.stdout and "\x1b" not in plain.stdout and "\u202e" not in plain.stdout
    as_json = json.loads(run(shared, "audit", "--object", job, "--json").stdout)
    assert [one["action"] for one in as_json["entries"]] == ["submit"] and as_json["problems"] == []
    assert run(shared, "audit", "--object", job, "--csv").stdout.splitlines()[0].startswith("number,at,user")
    assert run(shared, "audit", "--from", "soon").exit_code == 2

    table = run(shared, "usage", "--by", "user,type,day")
    assert table.exit_code == 0 and "\x1b" not in table.stdout and "energy: not shown" in table.stdout
    rows = json.loads(run(shared, "usage", "--json").stdout)
    mine = [one for one in rows["usage"] if one["tenant"] == "evil"]
    assert [one["succeeded"] for one in mine] == [1] and mine[0]["accelerator_hours"] > 0
    place = tmp_path / "used.parquet"
    assert run(shared, "usage", "--parquet", str(place)).exit_code == 0
    import pyarrow.parquet as pq

    assert pq.read_table(place).column_names[:5] == ["begins_at", "ends_at", "tenant", "user", "type"]
    assert run(shared, "usage", "--month", "2026-13").exit_code == 2
    assert run(shared, "usage", "--month", "2026-10", "--from", "2026-10-01").exit_code == 2
    assert run(shared, "usage", "--parquet", str(place)).exit_code == 2  # it is there
