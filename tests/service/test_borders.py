"""What the service believes of requests: where they come from, which site they are of; and what a terminal is given."""

from __future__ import annotations

import os
import pty
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra service")
from tests.service.bench import SITE, LiveService, until
from tests.service.test_api import DONE, status

from eunomia.service.client import Address, Client
from eunomia.service.http.api import origins_of
from eunomia.service.site import load_site


def sources(service: LiveService) -> set[str]:
    db = sqlite3.connect(f"file:{service.folder / 'state' / 'store.db'}?mode=ro", uri=True)
    try:
        return {source for (source,) in db.execute("SELECT source FROM audit WHERE action = 'submit'")}
    finally:
        db.close()


def test_an_address_that_a_request_names_is_believed_only_of_a_proxy_that_the_site_names(
    shared: LiveService, tmp_path: Path
) -> None:
    behind = LiveService(tmp_path, SITE.replace("[cluster]", 'proxies = ["127.0.0.1"]\n[cluster]'))
    behind.start()
    for service, expected in ((shared, False), (behind, True)):
        assert status(service.operator, "POST", "/v1/jobs", DONE, **{"X-Forwarded-For": "198.51.100.7"}) == 201
        assert ("198.51.100.7" in sources(service)) == expected
    behind.kill(15)
    behind.stop_jobs()


def test_figures_need_a_token_unless_the_site_says_otherwise(shared: LiveService, tmp_path: Path) -> None:
    assert status(Client(Address(shared.url)), "GET", "/metrics") == 401
    assert status(shared.client("vera", "vision", "viewer"), "GET", "/metrics") == 200
    bare = LiveService(tmp_path, SITE.replace("[cluster]", "metrics_without_token = true\n[cluster]"))
    bare.start()
    assert status(Client(Address(bare.url)), "GET", "/metrics") == 200
    bare.kill(15)


def test_another_port_of_this_machine_is_another_site(shared: LiveService) -> None:
    port = shared.url.rpartition(":")[2]
    for origin, code in (
        (f"http://127.0.0.1:{port}", 201), (f"http://localhost:{port}", 201), ("http://127.0.0.1", 403),
        ("https://127.0.0.1", 403), ("http://127.0.0.1:80", 403), (f"http://127.0.0.1:{int(port) - 1}", 403),
        ("null", 403),
    ):  # fmt: skip
        assert status(shared.operator, "POST", "/v1/jobs", DONE, Origin=origin) == code, origin


def test_an_allowed_name_is_a_site_at_its_own_port_or_at_the_usual_ones(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(SITE.replace("[cluster]", 'allowed_hosts = ["lab.example", "b.example:8443"]\n[cluster]'))
    found = origins_of(load_site(path), 8642)
    assert {"lab.example:443", "lab.example:80", "lab.example:8642", "b.example:8443", "127.0.0.1:8642"} <= found
    assert not {"127.0.0.1", "127.0.0.1:80", "lab.example:8443"} & found


def test_on_a_terminal_the_output_of_a_job_controls_nothing_but_colours(shared: LiveService) -> None:
    command = ["printf", r"\033]0;owned\007\033[31mred\033[0m\033[2J a\tb\r\n\302\233"]
    job = shared.operator.submit({"command": command})["id"]
    until(lambda: shared.operator.get(f"/v1/jobs/{job}")["state"] == "succeeded")
    typed = [sys.executable, "-m", "eunomia", "logs", job, "--url", shared.url]
    environment = {**os.environ, "EUNOMIA_TOKEN": shared.operator.address.token}
    raw = subprocess.run(typed, env=environment, check=True, stdout=subprocess.PIPE).stdout
    assert b"\x1b]0;owned\x07" in raw  # in a file it is as it was
    for more in ([], ["-f"]):
        master, terminal = pty.openpty()
        with subprocess.Popen([*typed, *more], env=environment, stdout=terminal) as process:
            os.close(terminal)
            shown = b""
            try:
                while part := os.read(master, 4096):
                    shown += part
            except OSError:  # the other end is closed
                pass
        os.close(master)
        assert process.returncode == 0
        assert rb"\x1b]0;owned\x07" in shown
        assert b"\x1b[31mred\x1b[0m" in shown
        assert rb"\x1b[2J a" in shown
        assert rb"\x9b" in shown
