"""Units for systemd: for root and for one user, as `site init --unit` writes them and the documentation shows them."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.service.service_manager import notify_ready, unit_text

FOLDER = Path(__file__).parents[2] / "docs" / "operations"
SHOWN = {
    "root": ("eunomia.service", "/srv/eunomia"),
    "user": ("eunomia-user.service", "%h/eunomia"),
}
ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
NEWER = "Unknown key 'DelegateSubgroup'"  # before systemd 254


@pytest.mark.parametrize("kind", SHOWN)
def test_the_units_of_the_documentation_are_those_that_are_written(kind: str) -> None:
    name, folder = SHOWN[kind]
    text = unit_text(kind, Path(folder, "site.toml"), f"{folder}/.venv/bin/eunomia").replace("%%h", "%h")
    assert (FOLDER / name).read_text() == text


@needs_systemd
@pytest.mark.parametrize("kind", SHOWN)
def test_systemd_finds_nothing_wrong_with_a_written_unit(tmp_path: Path, kind: str) -> None:
    done = CliRunner().invoke(
        app, ["site", "init", str(tmp_path / "site.toml"), "--accelerators", "cpu=1", "--unit", kind]
    )
    assert done.exit_code == 0, done.output
    unit, runtime = tmp_path / "eunomia.service", {"XDG_RUNTIME_DIR": str(tmp_path)}
    words = [str(ANALYZE), *["--user"] * (kind == "user"), "verify", str(unit)]
    said = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **runtime}, check=False)
    wrong = [line for line in said.stderr.splitlines() if "eunomia.service" in line and NEWER not in line]
    assert (said.returncode, wrong) == (0, [])


@needs_systemd
def test_the_unit_for_root_gives_up_what_jobs_do_not_need_and_keeps_what_they_do() -> None:
    words = [str(ANALYZE), "security", "--offline=true", "--no-pager", str(FOLDER / "eunomia.service")]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    exposure = re.search(r"Overall exposure level for eunomia.service: ([\d.]+)", said)
    assert exposure is not None
    assert float(exposure[1]) < 9.2  # one that forbids nothing has 9.6; jobs inherit what is forbidden
    text = (FOLDER / "eunomia.service").read_text()
    for kept in ("ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "ProtectControlGroups", "User="):
        assert not re.search(rf"^{kept}", text, re.MULTILINE), kept


@pytest.mark.parametrize("kind", SHOWN)
def test_a_restart_leaves_jobs_alone_and_a_wrong_site_is_refused_first(kind: str) -> None:
    text = (FOLDER / SHOWN[kind][0]).read_text()
    assert "KillMode=process" in text
    assert "Delegate=yes\nDelegateSubgroup=service" in text
    assert "Type=notify\n" in text
    assert re.search(r"ExecStartPre=\S+/eunomia serve \S+ --check", text)


def test_a_unit_for_a_site_that_exists_leaves_the_site_as_it_is(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text("# mine\n")
    done = CliRunner().invoke(app, ["site", "init", str(site), "--unit", "root"])
    assert done.exit_code == 0, done.output
    assert site.read_text() == "# mine\n"
    assert f"serve {site}" in (tmp_path / "eunomia.service").read_text()
    again = CliRunner().invoke(app, ["site", "init", str(site), "--unit", "root"])
    assert again.exit_code == 2
    wrong = CliRunner().invoke(app, ["site", "init", str(tmp_path / "new.toml"), "--unit", "rot"])
    assert wrong.exit_code == 2
    assert not (tmp_path / "new.toml").exists()


@pytest.mark.parametrize("is_abstract", [False, True])
def test_systemd_gets_the_message_that_the_service_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_abstract: bool
) -> None:
    name = f"eunomia-test-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}" if is_abstract else name)
        manager.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}" if is_abstract else name)
        notify_ready()
        assert manager.recv(100) == b"READY=1"
