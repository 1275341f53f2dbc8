"""What must not go wrong with the processes of a gang: they are killed whole, or keep their seats; real processes."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.backends.gangs_here import GangsHere, is_supervisor
from tests.unkillable import Freezer, freezer

from eunomia.backends.orders import Launch
from eunomia.backends.processes import gangs
from eunomia.backends.processes.found_gangs import running_gangs
from eunomia.backends.processes.gang_group import SUBREAPER, boot_id, control, is_running, start_time, stat_of
from eunomia.backends.processes.gangs import SUPERVISOR
from eunomia.backends.processes.group_base import GroupBase
from eunomia.backends.processes.machine_limits import raise_open_files
from eunomia.backends.processes.remains import KilledGangs
from eunomia.backends.reports import GangEnded, GangFound, LaunchDelayed, Launched, OrderTaken, SeatsTaken

PIDS = Path("/sys/fs/cgroup/pids")
STRAY = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    script = 'echo $$ > "$0.draft"; mv "$0.draft" "$0"; sleep 600'
    os.execve("/bin/sh", ["sh", "-c", script, sys.argv[1]], {})
time.sleep(600)
"""


SPOIL = """
import os, sys, time
folder, target, *names = os.path.dirname(os.environ["EUNOMIA_LEASE_FILE"]), *sys.argv[1:]
for path in (os.path.join(folder, name) for name in names):
    if os.path.lexists(path):
        os.unlink(path)
    os.symlink(target, path) if target else os.mkfifo(path)
open(os.path.join(folder, "spoilt"), "x").close()
time.sleep(600)
"""


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold in time"
        time.sleep(0.02)


@pytest.fixture
def cold() -> Iterator[Freezer]:
    """Makes processes unkillable."""
    with freezer() as found:
        yield found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GangsHere]:
    found = GangsHere(tmp_path)
    yield found
    found.end()


@pytest.fixture(params=["control groups", "none"])
def either(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[GangsHere]:
    """A world with control groups, if this machine has them, and one without."""
    if request.param == "none":
        monkeypatch.setattr(GroupBase, "find", GroupBase)
    elif not GroupBase.find().path:
        pytest.skip("needs a cgroup v2 that can be written")
    found = GangsHere(tmp_path)
    yield found
    found.end()
    control(SUBREAPER, 0)


def supervisor_of(world: GangsHere, job: str) -> int:
    return next(pid for pid in world.processes(job) if is_supervisor(pid))


def main_process(world: GangsHere, job: str) -> int:
    until(lambda: any(not is_supervisor(pid) for pid in world.processes(job)))
    return next(pid for pid in world.processes(job) if not is_supervisor(pid))


def quarantined(world: GangsHere) -> dict[int, str]:
    """Return the seats of the next report that has some out of service for a gang, with its job."""
    while not (found := world.next(SeatsTaken)).quarantined:
        pass
    return {seat: remains.job_id for seat, remains in found.quarantined}


def test_a_gang_that_cannot_be_killed_keeps_its_seats_over_restarts_until_it_is_gone(
    tmp_path: Path, world: GangsHere, cold: Freezer
) -> None:
    world.launch("a", "-c", "import time; time.sleep(600)", seats=(1, 2), checkpoint={"grace_s": 0.1})
    world.wait(Launched, "a")
    pid = main_process(world, "a")
    started = start_time(pid)
    cold.freeze(pid)
    world.halt("a")
    world.launch("b", "-c", "print('never')", seats=(2,))
    assert quarantined(world) == {1: "a", 2: "a"}
    assert world.wait(GangEnded, "b").outcome == "stopped"
    os.kill(supervisor_of(world, "a"), signal.SIGKILL)
    world.gangs.close()  # as a restart does; nothing asks for the gang afterwards
    world = GangsHere(tmp_path)
    first = world.next(SeatsTaken)
    assert {seat: remains.job_id for seat, remains in first.quarantined} == {1: "a", 2: "a"}
    assert dict(first.holders) == dict.fromkeys((1, 2), "processes of job a that cannot be killed")
    cold.thaw()
    while world.next(SeatsTaken).holders:
        pass
    assert not is_running(pid, started)
    world.launch("b", "-c", "print('now')", seats=(2,), epoch=2)
    assert world.wait(GangEnded, "b").outcome == "finished"
    world.end()


def test_a_gang_waits_for_what_a_killed_supervisor_left_on_its_seat(world: GangsHere, cold: Freezer) -> None:
    world.launch("a", "-c", "import time; time.sleep(600)", checkpoint={"grace_s": 0.1})
    world.wait(Launched, "a")
    pid = main_process(world, "a")
    started = start_time(pid)
    cold.freeze(pid)
    world.launch("b", "-c", "print('now')")  # it waits behind the lock of the seat
    until(lambda: world.processes("b"))
    os.kill(supervisor_of(world, "a"), signal.SIGKILL)  # the lock is free, and the gang is not gone
    assert quarantined(world) == {0: "a"}
    assert world.wait(GangEnded, "b").outcome == "stopped"
    assert is_running(pid, started)


def test_a_child_that_cleared_its_environment_ends_with_the_gang_of_a_killed_supervisor(
    either: GangsHere, tmp_path: Path
) -> None:
    either.launch("a", "-c", STRAY, tmp_path / "pid")
    either.wait(Launched, "a")
    until((tmp_path / "pid").exists)
    stray = int((tmp_path / "pid").read_text())
    assert stray not in either.processes("a")
    os.kill(supervisor_of(either, "a"), signal.SIGKILL)
    assert either.wait(GangEnded, "a").outcome == "lost"
    assert stat_of(stray) == [] or stat_of(stray)[0] == "Z"


def test_a_frozen_supervisor_is_continued_once_its_gang_is_to_stop(either: GangsHere) -> None:
    either.launch("a", "-c", "import time; time.sleep(600)", checkpoint={"grace_s": 0.1})
    either.wait(Launched, "a")
    main_process(either, "a")
    os.kill(supervisor_of(either, "a"), signal.SIGSTOP)
    either.halt("a")
    assert either.wait(GangEnded, "a").outcome == "stopped"
    assert either.processes("a") == []


def test_others_may_read_the_log_and_the_end_of_a_gang_where_the_umask_lets_them(either: GangsHere) -> None:
    either.launch("a", "-c", "pass")
    either.wait(GangEnded, "a")
    umask = os.umask(0o77)
    os.umask(umask)
    for name in ("log", "exit-1.json", "supervisor-1.json"):
        assert (either.folder / "jobs" / "a" / name).stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize("target", ["", "/dev/zero", "nothing"], ids=["pipe", "device", "nowhere"])
def test_a_job_with_pipes_and_links_for_files_is_stopped_and_started_again_and_delays_no_other(
    either: GangsHere, target: str
) -> None:
    drafts = [f"lease-{epoch}.json.{os.getpid()}.draft" for epoch in (1, 2)]
    files = ["lease-1.json", "job.lock", "log", "exit-1.json", "exit-1.json.draft", "supervisor-2.json.draft"]
    either.launch("a", "-c", SPOIL, target, *files, *drafts, checkpoint={"grace_s": 60})
    until((either.folder / "jobs" / "a" / "spoilt").exists)
    either.launch("b", "-c", "pass", seats=(1,))
    assert either.wait(GangEnded, "b").outcome == "finished"
    either.halt("a")
    assert either.wait(GangEnded, "a").outcome == "stopped"  # by its own supervisor, which still takes orders
    either.launch("a", "-c", "pass", epoch=2)
    assert either.wait(GangEnded, "a").outcome == "finished"
    assert either.log("a").startswith("--- epoch 2")


def test_a_job_that_writes_without_end_is_stopped_in_its_grace_and_has_two_parts_of_a_log_at_most(
    tmp_path: Path,
) -> None:
    world = GangsHere(tmp_path, log_bytes=100_000)
    world.launch("a", "-c", "import os; os.execvp('yes', ['yes'])", checkpoint={"grace_s": 0.2})
    world.wait(Launched, "a")
    log, old = (tmp_path / "jobs" / "a" / name for name in ("log", "log.1"))
    until(old.exists)
    sizes = []
    while len(sizes) < 400:
        for part in (log, old):
            with contextlib.suppress(FileNotFoundError):  # just now it is moved aside
                sizes.append(part.stat().st_size)
    assert max(sizes) <= 100_000
    world.halt("a")
    assert world.wait(GangEnded, "a").outcome == "stopped"
    assert sorted(path.name for path in (tmp_path / "jobs" / "a").glob("log*")) == ["log", "log.1", "log.parts"]
    assert old.stat().st_size == 100_000
    world.end()


def test_a_long_log_keeps_every_line_of_its_last_two_parts(tmp_path: Path) -> None:
    world = GangsHere(tmp_path, log_bytes=10_000)
    world.launch("a", "-c", "for n in range(3000): print(f'line {n:05}')")
    assert world.wait(GangEnded, "a").outcome == "finished"
    old, new = ((tmp_path / "jobs" / "a" / name).read_text() for name in ("log.1", "log"))
    lines = (old + new).splitlines()[1:]  # the first may be cut
    assert len(old) == 10_000
    assert lines == [f"line {n:05}" for n in range(3000 - len(lines), 3000)]
    world.end()


def test_a_job_that_uses_more_memory_than_it_asked_for_is_killed_with_the_reason(either: GangsHere) -> None:
    hog = "import time; held = bytearray(200 * 2**20); time.sleep(600)"
    either.launch("a", "-c", hog, memory_gib=0.1)
    ended = either.wait(GangEnded, "a")
    assert ended.outcome == "failed"
    assert ended.reason == "killed: it used more than 0.1 GiB of memory, which is its memory_gib"
    child = f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {hog!r}]); time.sleep(600)"
    either.launch("b", "-c", child, memory_gib=0.1)
    assert either.wait(GangEnded, "b").reason == ended.reason
    either.launch("c", "-c", "held = bytearray(20 * 2**20)", memory_gib=0.1, cpus=1)
    assert either.wait(GangEnded, "c").outcome == "finished"


def test_a_job_that_starts_processes_without_end_leaves_room_for_others_and_is_stopped_whole(
    world: GangsHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "pids" not in world.gangs._groups.limits:
        pytest.skip("needs a control group with the controller pids")
    monkeypatch.setattr(gangs, "tasks_for", lambda share: 20)
    bomb = (
        "import os, time\n"
        "try:\n"
        "    for n in range(200):\n"
        "        if os.fork() == 0: time.sleep(600)\n"
        "except BlockingIOError: print('at most', n, flush=True)\n"
        "time.sleep(600)\n"
    )
    world.launch("a", "-c", bomb, seats=(0,), checkpoint={"grace_s": 0.1})
    world.wait(Launched, "a")
    until(lambda: "at most 19" in world.log("a"))
    world.launch("b", "-c", "import subprocess; subprocess.run(['true'])", seats=(1,))
    assert world.wait(GangEnded, "b").outcome == "finished"
    world.halt("a")
    assert world.wait(GangEnded, "a").outcome == "stopped"
    assert world.processes("a") == []


def test_a_job_gets_no_more_processor_time_than_its_cpus(world: GangsHere, tmp_path: Path) -> None:
    if "cpu" not in world.gangs._groups.limits:
        pytest.skip("needs a control group with the controller cpu")
    path = world.gangs._group_of("a", 1)
    usage = Path(world.gangs._groups.group(path).limits.get("cpu", path)) / "cpu.stat"
    spins = (
        "import sys, time\n"
        "usage = lambda: dict(line.split() for line in open(sys.argv[1]))['nr_throttled']\n"
        "end = time.monotonic() + 600\n"
        "while usage() == '0' and time.monotonic() < end: pass\n"
        "print('throttled', usage())\n"
    )
    world.launch("a", "-c", spins, usage, cpus=0.03)
    assert world.wait(GangEnded, "a").outcome == "finished"
    assert "throttled" in world.log("a") and "throttled 0" not in world.log("a")
    assert not usage.exists()


def test_a_launch_without_open_files_left_waits_until_there_are_some(world: GangsHere) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")), hard))
    try:
        for job in "abc":
            world.launch(job, "-c", "print('now')", seats=(0,))
        assert "no open files left" in world.wait(LaunchDelayed, "a").reason
        assert "no open files left" in world.wait(LaunchDelayed, "c").reason
        world.halt("b")
        assert world.wait(GangEnded, "b") == GangEnded("b", 1, "stopped")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    ends = [world.next(GangEnded) for _ in range(2)]
    assert {(end.job_id, end.outcome) for end in ends} == {("a", "finished"), ("c", "finished")}


def test_a_gang_that_finds_no_room_holds_back_no_other_and_starts_once_there_is_some(
    small_disk: Path, world: GangsHere
) -> None:
    made = []
    with contextlib.suppress(OSError):
        while True:
            made.append(small_disk / f"file-{len(made)}")
            made[-1].touch()
    for job in "ab":
        world.launch(job, "-c", "print('now')", seats=(0,), checkpoint_dir=str(small_disk / job))
        assert "no space on its disk left" in world.wait(LaunchDelayed, job).reason
    world.launch("c", "-c", "print('now')", seats=(1,))
    assert world.wait(GangEnded, "c").outcome == "finished"
    for path in made[:4]:
        path.unlink()
    ends = [world.next(GangEnded) for _ in range(2)]
    assert {(end.job_id, end.outcome) for end in ends} == {("a", "finished"), ("b", "finished")}


def test_jobs_are_killed_before_the_service_when_memory_runs_out_and_get_its_limit_of_open_files(
    world: GangsHere,
) -> None:
    asks = "import resource; print(open('/proc/self/oom_score_adj').read().strip(), resource.getrlimit(7)[0])"
    world.launch("a", "-c", asks)
    assert world.wait(GangEnded, "a").outcome == "finished"
    assert world.log("a").splitlines()[-1] == f"500 {raise_open_files()}"


def test_what_a_restart_of_the_machine_ended_is_no_loss_of_the_job(tmp_path: Path, world: GangsHere) -> None:
    world.launch("a", "-c", "import time; time.sleep(600)")
    world.wait(Launched, "a")
    world.gangs.close()
    os.kill(supervisor_of(world, "a"), signal.SIGKILL)
    until(lambda: not world.processes("a"))
    record = tmp_path / "jobs" / "a" / "supervisor-1.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "boot": "another"}))
    after = GangsHere(tmp_path)
    after.launch("a", "-c", "never")
    assert after.wait(GangEnded, "a") == GangEnded("a", 1, "lost", "the machine was started again", by_restart=True)
    after.end()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with 512 KiB, and room for few files."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k,nr_inodes=64", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("needs root, to mount a small file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_on_a_full_disk_leases_are_renewed_stops_are_obeyed_and_no_end_is_lost(small_disk: Path) -> None:
    world = GangsHere(small_disk, log_bytes=2**20)
    until_called = (
        "import sys, time\nfrom eunomia.lease import Lease\n"
        "with Lease() as lease:\n"
        "    print('x' * 2**20, flush=True)\n"  # twice what the disk holds
        "    for _ in lease.steps(): time.sleep(0.05)\n"
    )
    world.launch("a", "-c", until_called, env={"PYTHONPATH": os.pathsep.join(sys.path)})
    world.wait(Launched, "a")
    folder = small_disk / "jobs" / "a"
    until(lambda: os.statvfs(small_disk).f_bfree == 0)
    before = (folder / "lease-1.json").read_text()
    with pytest.raises(OSError, match="No space left"):
        (folder / "more").write_text("x")
    world.gangs._renew_at = 0.0
    world.halt("a")
    until(lambda: (folder / "lease-1.json").read_text() != before)
    until(lambda: not any(not is_supervisor(pid) for pid in world.processes("a")))
    os.truncate(folder / "log", 0)
    assert world.wait(GangEnded, "a").outcome == "stopped"
    world.end()


def test_a_supervisor_that_may_start_no_process_says_so_and_not_that_the_job_failed(tmp_path: Path) -> None:
    group = PIDS / f"eunomia-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("needs the pids controller of cgroup v1, and root")
    (group / "pids.max").write_text("1")
    files = {name: str(tmp_path / name) for name in ("lease", "exit", "record", "finished")}
    (tmp_path / "lease").write_text('{"end_s": null}')
    spec = {**files, "command": ["true"], "epoch": 3, "grace_s": 1.0, "locks": []}
    command = [sys.executable, "-I", "-S", str(SUPERVISOR)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        (group / "cgroup.procs").write_text(str(process.pid))
        process.communicate(json.dumps(spec).encode() + b"\n")
    group.rmdir()
    record = json.loads((tmp_path / "exit").read_text())
    assert (record["cause"], record["epoch"]) == ("later", 3)
    assert "no processes left" in record["reason"]


def test_a_variable_that_names_no_file_of_a_start_makes_no_gang_and_ends_nothing(tmp_path: Path) -> None:
    jobs = tmp_path.resolve() / "jobs"
    names = ("lease-\u00b2.json", f"lease-{'9' * 5000}.json", "lease-1.json", "lease.json")
    sleepers = [
        subprocess.Popen(["sleep", "600"], env={"EUNOMIA_LEASE_FILE": f"{jobs}/x/{name}"}) for name in names
    ]  # fmt: skip
    try:
        assert list(running_gangs(jobs)) == []
    finally:
        for each in sleepers:
            each.kill()
            each.wait()


def test_what_a_file_says_of_seats_and_groups_is_taken_only_where_it_can_be_true(tmp_path: Path) -> None:
    path = tmp_path / "quarantine.json"
    row = {
        "job_id": "a", "epoch": 1, "seats": [0], "lease": f"{tmp_path}/a/lease-1.json",
        "group": f"{tmp_path}/eunomia-x",
        "since": 1e9, "why": "it hangs", "supervisor": None, "processes": {},
    }  # fmt: skip
    wrong = [{**row, "job_id": "b", "since": 1e300}, {**row, "job_id": "c", "processes": 7}, 5]
    path.write_text(json.dumps({"boot": boot_id(), "gangs": [row, *wrong]}))
    found = KilledGangs(path, adopts_strays=False, known_group=lambda written, folder, epoch: "")
    assert list(found) == [("a", 1)]
    entry = found.get(("a", 1))
    assert entry is not None
    assert (entry.group, entry.look()) == ("", False)
    path.unlink()
    path.symlink_to(path)
    assert len(KilledGangs(path, adopts_strays=False, known_group=lambda written, folder, epoch: "")) == 0


def test_seats_of_a_gang_that_no_order_names_are_taken_before_the_gang_is_gone_that_was_believed_to_have_them(
    tmp_path: Path, world: GangsHere
) -> None:
    world.launch("second", "-c", "import time; time.sleep(600)")
    world.wait(Launched, "second")
    world.gangs.close()
    after = GangsHere(tmp_path, orders=[Launch(1, "first", 1, (0,), {"command": ["python"]}, adopt_only=True)])
    kinds = [type(after.reports.get(timeout=120)) for _ in range(4)]
    assert kinds == [SeatsTaken, GangEnded, OrderTaken, GangFound]
    after.end()


def test_files_that_name_a_gang_take_no_seat_without_its_locks_and_a_gang_that_has_them_is_found(
    tmp_path: Path, world: GangsHere
) -> None:
    world.launch("a", "-c", "import time; time.sleep(600)", seats=(1, 2))
    world.wait(Launched, "a")
    jobs = tmp_path.resolve() / "jobs"
    forged = jobs / "b"
    forged.mkdir()
    variables = {"EUNOMIA_LEASE_FILE": f"{forged}/lease-1.json"}
    with subprocess.Popen(["sleep", "600"], env=variables) as other, contextlib.ExitStack() as ends:
        ends.callback(other.kill)
        until(Path(f"/proc/{other.pid}/environ").read_bytes)  # the kernel shows it a moment after the start
        record = {"pid": other.pid, "start": start_time(other.pid), "epoch": 1, "boot": boot_id(), "launched": True}
        (forged / "supervisor-1.json").write_text(json.dumps({**record, "job": "b", "seats": [0, 3]}))
        (forged / "job.lock").touch()
        (jobs / "seats" / "0.lock").touch()
        found = {gang.job_id: gang.doubt for gang in running_gangs(jobs)}
        assert found == {"a": "", "b": f"process {other.pid} has not locked job.lock"}
        world.gangs.close()
        after = GangsHere(tmp_path)
        after.gangs.carry_out([])
        assert after.seats_taken().keys() == {1, 2}  # first, so that they are given to no other
        assert after.next(GangFound) == GangFound("a", 1, (1, 2))
        after.end()
