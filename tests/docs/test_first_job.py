"""The page from an empty machine to the first job is followed, command by command, as root and as two users."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra service")
from tests.engines.loopback import free_ports
from tests.service.bench import LiveService, until
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.service.client import Address, Client

PAGE = Path(__file__).parents[2] / "docs" / "first-job.md"
BLOCK = re.compile(r'^```sh title="([\w ]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
ACCOUNTS = {"ann": "mail", "ben": "daemon"}  # accounts that every machine has
STUBS = {
    "python3": "exit 0",  # makes the environment, which is this one
    "pip": "exit 0",
    "ln": "exit 0",
    "eunomia": 'exec {python} -m eunomia "$@"',
    # What `systemctl enable --now` does with the unit: its ExecStartPre, then its ExecStart, in its folder.
    "systemctl": """\
case "$*" in *enable*) ;; *) exit 0 ;; esac
unit={unit}; cd "$(sed -n 's/^WorkingDirectory=//p' $unit)"
$(sed -n 's/^ExecStartPre=//p' $unit) || exit 1
$(sed -n 's/^ExecStart=//p' $unit) > {folder}/started 2>> {folder}/log < /dev/null &
echo $! > {folder}/pid
for i in $(seq 600); do grep -q listening {folder}/started && exit 0; sleep 0.2; done; exit 1""",
}


class Machine:
    """A folder in place of the machine's own, and the page's text with its names in place of the page's."""

    def __init__(self, folder: Path, unit: str) -> None:
        self.folder, (self.port,) = folder, free_ports(1)
        for name in ("srv/.venv/bin", "etc", "run", "bin", "home"):
            (folder / name).mkdir(parents=True)
            (folder / name).chmod(0o755)
        fields = {"python": shlex.quote(sys.executable), "folder": folder, "unit": folder / unit}
        for name, text in STUBS.items():
            for place in (folder / "bin", folder / "srv" / ".venv" / "bin"):
                (place / name).write_text(f"#!/bin/bash\n{text.format(**fields)}\n")
                (place / name).chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("EUNOMIA_", "SSL_"))}
        self.env = {**kept, "HOME": str(folder / "home"), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}

    def text(self, block: str) -> str:
        here = str(self.folder)
        names = {
            "/srv/eunomia": f"{here}/srv", "/etc/systemd/system": f"{here}/etc", "gpu1.lab.org": "localhost",
            "/run/eunomia.sock": f"{here}/run/eunomia.sock", "8642": str(self.port), "v100": "cpu",
            "--user ben": f"--user {ACCOUNTS['ben']}",
        }  # fmt: skip
        for name, other in names.items():
            block = block.replace(name, other)
        return block

    def run(self, block: str) -> str:
        done = subprocess.run(
            ["bash", "-eu", "-c", self.text(block)], env=self.env, cwd=self.folder, capture_output=True, text=True,
            check=False, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def end(self) -> None:
        """End the service that the page has started, and its jobs."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            pid = int((self.folder / "pid").read_text())
            os.kill(pid, signal.SIGTERM)
            until(lambda: not Path(f"/proc/{pid}").exists())
        for state in (self.folder / "srv", self.folder / "home" / "eunomia"):
            service = LiveService.__new__(LiveService)
            service.folder = state
            service.stop_jobs()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every account may pass through."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def typed_as(account: str, machine: Machine, block: str) -> str:
    """Return what the commands of a block print to a user of that account; ids are those that `submit` has printed."""
    user, (read, write) = pwd.getpwnam(account), os.pipe()
    home = machine.folder / "home" / account
    home.mkdir()
    os.chown(home, user.pw_uid, user.pw_gid)
    pid = os.fork()
    if pid == 0:
        said, code = "", 1
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
            os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
            os.environ.update(machine.env | {"HOME": str(home)})
            os.chdir(machine.folder)
            code = 0
            for line in machine.text(block).splitlines():
                word, _, rest = line.partition(" ")
                if word == "export":
                    os.environ.update([rest.split("=", 1)])
                    continue
                job = re.search(r"^\d+-\w+$", said, re.MULTILINE)
                words = shlex.split(re.sub(r"\d-k3f9a", job[0] if job else "none", rest))
                done = CliRunner().invoke(app, words)
                said += f"{done.output}\n" + f"{done.exception!r}\n" * bool(done.exit_code)
                code = code or done.exit_code
        os.write(write, said.encode())
        os._exit(code)
    os.close(write)
    with os.fdopen(read) as file:
        said = file.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, said
    return said


def warm_up(machine: Machine) -> None:
    """Import what the commands need, as the users of the test may not read this environment."""
    "localhost".encode("idna")  # a codec that is loaded when it is first used
    url, home = f"unix:{machine.folder}/run/eunomia.sock", os.environ["HOME"]
    os.environ["HOME"] = str(machine.folder / "home")  # where `login` writes
    try:
        job = Client(Address(url)).submit({"command": ["true"], "name": "warm"})["id"]
        for words in (
            ["login", url],
            ["jobs", "--url", url],
            ["logs", "--url", url, job, "-f"],
            ["submit", "--url", url],
        ):
            CliRunner().invoke(app, words)
    finally:
        os.environ["HOME"] = home


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give jobs the accounts of their users")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_each_command_leads_from_an_empty_machine_to_the_second_users_job(folder: Path) -> None:
    machine, said = Machine(folder, "etc/eunomia.service"), {"ann": "", "ben": ""}
    try:
        for who, block in BLOCK.findall(PAGE.read_text()):
            if who == "root":
                machine.run(block)
            elif who in said:
                if who == "ann":
                    warm_up(machine)
                else:
                    for name in ("cert.pem", "ben.token"):  # given to ben
                        os.chown(folder / "srv" / name, pwd.getpwnam(ACCOUNTS[who]).pw_uid, -1)
                said[who] = typed_as(ACCOUNTS[who], machine, block)
    finally:
        machine.end()
    for who, text in said.items():
        assert f"\n{ACCOUNTS[who]}\n" in text, text


@pytest.mark.slow
def test_the_commands_for_one_user_lead_to_a_job(folder: Path) -> None:
    machine = Machine(folder, "home/.config/systemd/user/eunomia.service")
    (block,) = [text for who, text in BLOCK.findall(PAGE.read_text()) if who == "one user"]
    site = "sed -i 's/8642/0/' site.toml\nmkdir"  # another service may have that port
    try:
        assert re.search(
            r"^\d+-\w+$", machine.run(block.replace("mkdir -p ~/.config", f"{site} -p ~/.config")), re.MULTILINE
        )
    finally:
        machine.end()
