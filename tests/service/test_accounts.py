"""Where root runs the service, a job has the rights of who submitted it, and no others."""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from tests.service.bench import SITE, LiveService, until

from eunomia.backends.processes.accounts import NO_GROUP, Account, account_of
from eunomia.backends.processes.gang_group import descendants
from eunomia.inputs.problems import InvalidInput
from eunomia.service.client import Address, Client
from eunomia.service.site import load_site

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give jobs other rights")
SAYS = """\
id -un; id -u; id -Gn; grep -E 'CapEff|NoNewPrivs' /proc/self/status; echo home $HOME; pwd
cat "$EUNOMIA_LEASE_FILE" > /dev/null && echo 'reads its lease'
echo '{"step": 3}' > "$EUNOMIA_PROGRESS_FILE" && echo 'reports progress'
touch "$EUNOMIA_CHECKPOINT_DIR/saved" && echo 'saves'
cat ../../../operator.token || echo 'reads no token'
ls ../.. || echo 'lists no jobs'
rm -f ../job.lock ../exit-1.json || echo 'removes no files of the service'
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every account may pass through."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


@root_only
def test_a_job_runs_under_the_account_of_who_submitted_it(folder: Path) -> None:
    service = LiveService(folder, SITE.replace("[service]", '[service]\naccount = "daemon"'))
    service.start()
    try:
        for user in ("mail", "ann"):
            client = service.client(user, "vision")
            job = client.send("POST", "/v1/jobs", {"command": ["/bin/sh", "-c", SAYS], "total_steps": 5})["id"]
            until(lambda one=client, of=job: one.send("GET", f"/v1/jobs/{of}")["state"] == "succeeded")
            said = (folder / "state" / "jobs" / job / "log").read_text()
            account = pwd.getpwnam(user if user == "mail" else "daemon")
            assert f"{account.pw_name}\n{account.pw_uid}\n" in said
            assert "CapEff:\t0000000000000000\nNoNewPrivs:\t1\n" in said
            assert f"home {account.pw_dir}\n{folder}/state/jobs/{job}/own\n" in said
            for line in ("reads its lease", "reports progress", "saves", "reads no token", "lists no jobs"):
                assert f"{line}\n" in said
            assert stat.S_IMODE((folder / "state" / "jobs" / job / "log").stat().st_mode) == 0o600
            assert (folder / "state" / "jobs" / job / "exit-1.json").exists()
    finally:
        service.kill()
        service.stop_jobs()


@root_only
def test_a_user_of_this_machine_needs_no_token_on_the_socket_and_runs_jobs_as_themselves(folder: Path) -> None:
    service = LiveService(folder, SITE.replace("[service]", '[service]\nsocket = "lab.sock"'))
    service.start()
    try:
        address, mail = Address(f"unix:{folder}/lab.sock"), pwd.getpwnam("mail").pw_uid
        pid = os.fork()
        if pid == 0:  # the kernel tells the service who connects
            code = 1
            with contextlib.suppress(BaseException):
                os.setresuid(mail, mail, mail)
                Client(address).submit({"command": ["id", "-un"], "name": "by-mail"})
                code = 0
            os._exit(code)
        _, status = until(lambda: (found := os.waitpid(pid, os.WNOHANG))[0] and found)
        assert os.waitstatus_to_exitcode(status) == 0
        (job,) = service.operator.get("/v1/jobs")["jobs"]
        assert (job["owner"], job["tenant"]) == ("mail", "mail")
        until(lambda: service.operator.get(f"/v1/jobs/{job['id']}")["state"] == "succeeded")
        assert "mail\n" in (folder / "state" / "jobs" / job["id"] / "log").read_text()
    finally:
        service.kill()
        service.stop_jobs()


@root_only
def test_what_is_in_the_state_folder_is_read_by_root_alone(folder: Path) -> None:
    service, state = LiveService(folder), folder / "state"
    service.start()
    service.kill()
    (state / "store.db").chmod(0o644)
    (state / "backups").mkdir(mode=0o755)
    service.start()
    service.kill()
    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) & 0o077 for entry in state.iterdir()}
    assert modes.pop("jobs") == 0o011
    assert set(modes.values()) == {0}
    assert modes.keys() > {"store.db", "backups", "operator.token"}


@root_only
def test_the_supervisor_has_no_variable_that_the_job_was_given(folder: Path) -> None:
    service = LiveService(folder)
    service.start()
    try:
        asked = {"command": ["/bin/sleep", "60"], "total_steps": 5, "env": {"LD_PRELOAD": "/tmp/mine.so"}}
        job = service.client("mail", "vision").send("POST", "/v1/jobs", asked)["id"]
        until(lambda: service.operator.send("GET", f"/v1/jobs/{job}")["state"] == "running")
        assert service.process is not None
        running = [Path("/proc", str(pid)) for pid in descendants(service.process.pid)]
        names = {one: (one / "cmdline").read_bytes() for one in running}
        supervisors = [one for one, name in names.items() if b"supervisor.py" in name]  # one that forks is there twice
        assert supervisors
        assert not any(b"LD_PRELOAD" in (one / "environ").read_bytes() for one in supervisors)
    finally:
        service.kill()
        service.stop_jobs()


@root_only
def test_a_user_id_without_a_name_gets_no_rights_of_root() -> None:
    assert account_of("uid12345") == Account("uid12345", 12345, NO_GROUP, (NO_GROUP,), "/", "/bin/sh")


def test_root_and_users_without_an_account_run_as_the_service() -> None:
    assert account_of("root") is None
    assert account_of("no such user") is None


def test_an_account_that_is_not_there_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text('[service]\naccount = "not-there"\n[cluster]\naccelerators = { cpu = 1 }\n'
                    '[policy]\nname = "fifo"\n')  # fmt: skip
    with pytest.raises(InvalidInput, match="this machine has no such account") as caught:
        load_site(path)
    assert caught.value.problems[0].row == 2
