"""Certificates of one's own: made as the operators' page says, trusted by --ca, and else refused with what to type."""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn", reason="needs the extra service")
from tests.service.bench import SITE, LiveService

from eunomia.inputs.problems import InvalidInput
from eunomia.service.client import Address, Client, Unreachable, find_service, write_settings

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
BLOCKS = dict(re.findall(r'^```sh title="(\w+)"\n(.*?)^```$', PAGE.read_text(), re.MULTILINE | re.DOTALL))
TLS = 'tls_cert = "cert.pem"\ntls_key = "key.pem"\n'


@dataclass(frozen=True)
class Lab:
    """A service with a certificate that was made by the page, and what users type."""

    folder: Path
    address: Address

    def typed(self, block: str, **variables: str) -> subprocess.CompletedProcess[str]:
        port = str(urlsplit(self.address.url).port)
        text = block.replace("gpu1.lab.org", "localhost").replace("8642", port)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("EUNOMIA_", "SSL_"))}
        home, path = self.folder / "home", f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-eu", "-c", text], cwd=self.folder, capture_output=True, text=True, check=False,
            env={**kept, "HOME": str(home), "PATH": path, **variables},
        )  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("lab")
    for name in ("home", "bin"):
        (folder / name).mkdir()
    (folder / "bin" / "eunomia").write_text(f'#!/bin/sh\nexec {sys.executable} -m eunomia "$@"\n')
    (folder / "bin" / "eunomia").chmod(0o755)
    made = Lab(folder, Address("https://localhost:0"))
    for part in ("authority", "machine"):
        done = made.typed(BLOCKS[part])
        assert done.returncode == 0, done.stderr
    live = LiveService(folder, SITE.replace("[cluster]", f"{TLS}[cluster]"))
    live.start()
    try:
        token = (folder / "state" / "operator.token").read_text()
        (folder / "my.token").write_text(token)
        (folder / "state" / "operator.token").rename(folder / "operator.token")
        url = live.url.replace("127.0.0.1", "localhost")
        yield Lab(folder, Address(url, token.strip(), str(folder / "ca.pem")))
    finally:
        live.kill()


@pytest.mark.slow
def test_the_commands_of_the_page_lead_to_a_service_that_is_trusted(lab: Lab) -> None:
    done = lab.typed(BLOCKS["user"].replace("eunomia cluster", "cd home\nEUNOMIA_STATE=/none eunomia cluster"))
    assert done.returncode == 0, done.stderr
    assert "las" in done.stdout
    kept = tomllib.loads((lab.folder / "home/.config/eunomia/client.toml").read_text())
    assert (kept["url"], kept["ca"]) == (lab.address.url, str(lab.folder / "ca.pem"))
    option = f"cd home\neunomia cluster --url {lab.address.url} --token-file ../my.token"
    assert lab.typed(f"{option} --ca ../ca.pem").returncode == 0
    assert lab.typed(option, EUNOMIA_CA="../ca.pem").returncode == 0


@pytest.mark.slow
def test_the_certificates_of_the_page_hold_under_the_strict_rules_of_newer_pythons(lab: Lab) -> None:
    context = ssl.create_default_context(cafile=lab.address.ca)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    import http.client

    connection = http.client.HTTPSConnection(urlsplit(lab.address.url).netloc, context=context)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.slow
def test_a_certificate_that_is_not_trusted_is_refused_with_what_to_type(lab: Lab) -> None:
    text = r"is not trusted \(.*\).* and {}: .*, and type: eunomia login https://localhost:\d+ --ca FILE"
    with pytest.raises(Unreachable, match=text.format("this machine does not know it")):
        Client(replace(lab.address, ca="")).get("/v1/cluster")
    other = lab.typed(BLOCKS["authority"].replace("ca.pem", "other.pem").replace("ca-key", "other-key"))
    assert other.returncode == 0, other.stderr
    with pytest.raises(Unreachable, match=text.format(r"\S+other.pem holds another one")):
        next(Client(replace(lab.address, ca=str(lab.folder / "other.pem"))).events("/v1/events"))
    name = lab.address.url.replace("localhost", "127.0.0.1")
    with pytest.raises(Unreachable, match=r"is of another name .*; use that name as URL"):
        Client(replace(lab.address, url=name)).get("/v1/cluster")


@pytest.mark.parametrize("content", [None, b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nx\n"])
def test_a_file_of_no_certificate_is_refused_by_name(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "mine.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"mine\.pem") as refused:
        Client(Address("https://localhost:1", "", str(path))).get("/v1/cluster")
    (problem,) = refused.value.problems
    assert (problem.file, problem.column) == (str(path), "--ca")
    assert ("No such file" in problem.rule) == (content is None)


def test_the_file_is_taken_from_option_environment_or_what_login_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("EUNOMIA_URL", "EUNOMIA_TOKEN", "EUNOMIA_STATE", "EUNOMIA_CA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    kept = Address("https://gpu1:8642", "eun_a.b", "/home/zoë/ca.pem")
    assert write_settings(kept).stat().st_mode & 0o777 == 0o600
    assert find_service() == kept
    assert find_service("https://gpu2:8642").ca == ""
    monkeypatch.setenv("EUNOMIA_CA", "env.pem")
    assert find_service().ca == find_service("https://gpu2:8642").ca == "env.pem"
    assert find_service(ca=Path("given.pem")).ca == "given.pem"
