"""The operator's token: rotated whole or not at all, and never a dead one in its file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra service")
from tests.service.bench import Bench, LiveService

from eunomia.service.client import Address, Client, ServiceRefusal, Unreachable
from eunomia.service.credentials import TokenRegistry, new_token, write_tokens
from eunomia.service.fault_points import InjectedFault
from eunomia.service.operator_token import FACT, TOKEN_FILE, ensure_operator_token, rotate
from eunomia.service.store import ServiceStore, StoreProblem

WHO = ("operator", "operator", "unix socket")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ServiceStore]:
    bench = Bench(tmp_path)
    yield bench.store
    bench.store.close()


def in_file(store: ServiceStore) -> str:
    """Return the id of the token in the file, which must work."""
    path = store.folder / TOKEN_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    found = TokenRegistry(store.tokens()).principal(path.read_text().strip())
    assert found is not None and found[0].is_operator
    return found[1]


def holding(store: ServiceStore) -> set[str]:
    """Return the ids of tokens that hold."""
    tokens = TokenRegistry(store.tokens())
    return {one.id for one in tokens.by_id.values() if tokens.holds(one)}


def audit(store: ServiceStore) -> list[Any]:
    return list(store._db.execute("SELECT source, action, object FROM audit ORDER BY seq").fetchall())


def made_by(store: ServiceStore, parent: str | None) -> str:
    """Return the id of a new token that this one has made."""
    token, _ = new_token("kim", "vision", "viewer", 0.0, None, parent)
    with store.transaction() as db:
        write_tokens(db, [token])
    return token.id


def test_a_rotation_revokes_what_was_in_the_file_and_hands_its_children_on(store: ServiceStore) -> None:
    assert ensure_operator_token(store).made == "first"
    old = in_file(store)
    child = made_by(store, old)
    grandchild = made_by(store, child)
    found = rotate(store, WHO)
    assert (found.id, found.revoked) == (in_file(store), (old,))
    assert holding(store) == {found.id, child, grandchild}
    assert {one.id: one.parent for one in store.tokens()}[child] == found.id
    assert audit(store)[-1] == ("unix socket", "rotate token", found.id)
    assert ensure_operator_token(store).made == ""
    assert in_file(store) == found.id


@pytest.mark.parametrize("point", ["token.stored", "token.written"])
def test_a_rotation_that_is_cut_off_leaves_a_token_that_works_and_the_next_start_finishes_it(
    store: ServiceStore, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_operator_token(store)
    first = in_file(store)
    child = made_by(store, first)
    monkeypatch.setenv("EUNOMIA_TEST_BUILD", "1")
    monkeypatch.setenv("EUNOMIA_FAULT_POINT", f"{point}:raise")
    monkeypatch.setattr("eunomia.service.fault_points._hits", Counter())
    with pytest.raises(InjectedFault):
        rotate(store, WHO)
    left = in_file(store)
    assert (left == first) == (point == "token.stored")
    ensure_operator_token(store)
    assert in_file(store) == left
    assert holding(store) == {left, child}
    assert store.meta(FACT) == left


def test_a_dead_token_in_the_file_is_replaced_at_the_start_and_what_was_revoked_stays_so(store: ServiceStore) -> None:
    ensure_operator_token(store)
    old = in_file(store)
    child, other = made_by(store, old), made_by(store, None)
    (token,) = [one for one in store.tokens() if one.id == old]
    with store.transaction() as db:
        write_tokens(db, [replace(token, revoked=1.0)])
    found = ensure_operator_token(store)
    assert "revoked" in found.made and str(found.path) in found.said
    assert holding(store) == {in_file(store), other}, child
    (store.folder / TOKEN_FILE).write_text("eun_x.y\n")
    assert ensure_operator_token(store).made
    assert holding(store) == {in_file(store), other}


def test_a_lost_file_is_made_anew_at_the_start_and_a_rotation_ends_the_lost_token(store: ServiceStore) -> None:
    ensure_operator_token(store)
    lost = in_file(store)
    (store.folder / TOKEN_FILE).unlink()
    assert rotate(store, WHO).revoked == (lost,)
    second = in_file(store)
    (store.folder / TOKEN_FILE).unlink()
    assert ensure_operator_token(store).made == "missing"
    assert holding(store) == {second, in_file(store)}  # whoever took the file away goes on


def test_what_is_no_plain_file_is_left_alone(store: ServiceStore) -> None:
    ensure_operator_token(store)
    path, before = store.folder / TOKEN_FILE, holding(store)
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")
    for use in (lambda: ensure_operator_token(store), lambda: rotate(store, WHO)):
        with pytest.raises(StoreProblem, match="no plain file"):
            use()
    assert path.is_symlink()
    assert holding(store) == before


# ---- the service -----------------------------------------------------------------------------------------------------


def rotated(live: LiveService, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "eunomia", "token", "rotate", "--json", *words],
        cwd=live.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_the_command_rotates_at_once_also_where_the_token_is_lost(tmp_path: Path) -> None:
    live = LiveService(tmp_path)
    live.start()
    try:
        path = tmp_path / "state" / TOKEN_FILE
        old, kim = live.operator, live.client("kim", "vision")
        path.unlink()
        found = rotated(live)
        assert Path(found["file"]).read_text() == path.read_text()
        with pytest.raises(ServiceRefusal) as refused:
            old.get("/v1/cluster")
        assert refused.value.status == 401
        assert live.operator.get("/v1/cluster")["policy"] == "las"
        assert kim.get("/v1/cluster")["policy"] == "las"
        (entry,) = live.operator.get("/v1/audit", action="rotate token")["entries"]
        assert (entry["object"], entry["source"]) == (found["id"], "unix socket")
        live.operator.send("DELETE", f"/v1/tokens/{found['id']}")
        live.kill(signal.SIGTERM)
        live.start()
        assert "there is a new one in" in (tmp_path / "log").read_text()
        assert live.operator.get("/v1/cluster")["policy"] == "las"
    finally:
        live.kill()


@pytest.mark.slow
@pytest.mark.parametrize("point", ["token.stored", "token.written", "after"])
def test_a_kill_at_each_step_leaves_a_file_whose_token_works(tmp_path: Path, point: str) -> None:
    live = LiveService(tmp_path)
    live.start()
    live.kill()
    live.start(**({} if point == "after" else {"EUNOMIA_TEST_BUILD": "1", "EUNOMIA_FAULT_POINT": f"{point}:kill"}))
    old = live.operator
    if point != "after":
        with pytest.raises(Unreachable):
            old.send("POST", "/v1/tokens/rotate")
        assert live.process is not None
        live.process.wait(180)
    else:
        old.send("POST", "/v1/tokens/rotate")
    live.kill()
    live.start()
    try:
        assert live.operator.get("/v1/cluster")["policy"] == "las"
        works = [one for one in live.operator.get("/v1/tokens")["tokens"] if one["holds"]]
        assert len(works) == 1
        if point != "token.stored":
            with pytest.raises(ServiceRefusal):
                Client(Address(live.url, old.address.token)).get("/v1/cluster")
    finally:
        live.kill()
