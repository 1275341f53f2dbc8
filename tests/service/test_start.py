"""What a start leaves behind in the process, and the sockets that it opens."""

from __future__ import annotations

import gc
import socket
import stat
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra service")
from eunomia.inputs.problems import InvalidInput
from eunomia.service.server import _without_collection, open_sockets
from eunomia.service.site import load_site


def test_what_a_start_makes_is_not_looked_at_again_and_the_collector_goes_on() -> None:
    before = gc.get_freeze_count()
    try:
        with _without_collection():
            assert not gc.isenabled()
            kept = [[n] for n in range(1000)]
        assert gc.isenabled()
        assert gc.get_freeze_count() >= before + len(kept)
        with pytest.raises(ZeroDivisionError), _without_collection():
            1 / 0  # noqa: B018
        assert gc.isenabled()
    finally:
        gc.unfreeze()


def test_answers_leave_at_once_whatever_the_other_end_has_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(
        '[service]\nlisten = "127.0.0.1:0"\n[cluster]\naccelerators = { cpu = 1 }\n[policy]\nname = "fifo"\n'
    )
    site = load_site(path)
    site.state.mkdir()
    listening = open_sockets(site)
    try:
        assert listening[0].proto == socket.IPPROTO_TCP  # else asyncio does not set TCP_NODELAY
    finally:
        for each in listening:
            each.close()


def test_a_socket_for_all_users_is_beside_the_address_and_no_file_is_replaced_by_one(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(
        '[service]\nlisten = "127.0.0.1:0"\nsocket = "lab.sock"\n'
        '[cluster]\naccelerators = { cpu = 1 }\n[policy]\nname = "fifo"\n'
    )
    site = load_site(path)
    site.state.mkdir()
    for _ in range(2):  # the second one finds those of the first, which was killed
        listening = open_sockets(site)
        assert [each.family for each in listening] == [socket.AF_INET, socket.AF_UNIX, socket.AF_UNIX]
        assert stat.S_IMODE((tmp_path / "lab.sock").stat().st_mode) == 0o666
        for each in listening:
            each.close()
    (tmp_path / "lab.sock").unlink()
    (tmp_path / "lab.sock").write_text("mine")
    with pytest.raises(InvalidInput, match=r"lab\.sock cannot be listened on"):
        open_sockets(site)
    assert (tmp_path / "lab.sock").read_text() == "mine"
