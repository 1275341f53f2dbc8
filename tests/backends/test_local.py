"""What the local world promises: real processes are started, stopped and reported as ordered, and none is left."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.backends.engines.job_files import CLUSTER
from eunomia.backends.processes import gangs
from eunomia.backends.processes.backend import LocalBackend
from eunomia.backends.processes.device_use import device_named
from eunomia.backends.processes.environment import visible_devices
from eunomia.backends.processes.folder import JobFolder, folder_name
from eunomia.inputs.problems import InvalidInput
from eunomia.model.decisions import Decision, Refuse, Renew, SetTimer, Start, Stop
from eunomia.model.events import (
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
    JobSubmitted,
    Moment,
    Progressed,
    TimerFired,
)
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology
from eunomia.runs.resumed_world import ResumedWorld

ROOT = Path(__file__).parents[2]
TWO = Topology.of([Node(type="cpu", accelerators=2)])
LONGEST_TEST_S = 180
HOSTILE = ["../up", "/etc", "A", "a", ".", "..", "x" * 300]

# Reports progress 1 when ready, runs until called back, and exits with a checkpoint.
PATIENT = """
from eunomia.lease import Lease
import time
with Lease() as lease:
    state = lease.load({"step": 0})
    print("resumed at step", state["step"])
    lease.save({"step": state["step"] + 1})
    for step in lease.steps(1e9):
        time.sleep(0.005)
"""
# The same, deaf to TERM.
DEAF = """
import signal, time
from eunomia.lease import Lease
signal.signal(signal.SIGTERM, signal.SIG_IGN)
Lease().progress(1)
while True:
    time.sleep(1)
"""


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch):
    """Our package is importable in jobs; a test that hangs fails instead."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def give_up(*_):
        raise TimeoutError(f"nothing came of it in {LONGEST_TEST_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LONGEST_TEST_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def python(job_id: str, script: str, *words: str, steps: float = 10, **more) -> Job:
    return Job(job_id=job_id, total_steps=steps, command=("python", "-c", script, *words), **more)


def drive(world: LocalBackend, decide: Callable[[object, Moment], Iterable[Decision]]) -> list[Moment]:
    """Run the loop with a toy scheduler that decides event by event; return all that happened."""
    moments = []
    for moment in world.moments():
        moments.append(moment)
        for event in moment.events:
            for decision in decide(event, moment):
                world.carry_out(decision)
    return moments


def at_once(event, _moment):
    """Start whatever comes on seat 0, for as long as it needs."""
    if isinstance(event, JobSubmitted):
        yield Start(event.job.job_id, 1, (0,), math.inf)


def events(moments: list[Moment]) -> list[object]:
    return [event for moment in moments for event in moment.events]


def of(kind: type, moments: list[Moment]) -> list:
    return [event for event in events(moments) if isinstance(event, kind)]


def carriers(mark: Path) -> list[int]:
    """Return the processes whose environment names this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if f"={mark}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def is_free(folder: Path) -> bool:
    """Return whether a new run may use this folder."""
    try:
        LocalBackend([], TWO, workdir=folder).close()
    except InvalidInput:
        return False
    return True


def wait_until(holds: Callable[[], object], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


def test_a_job_that_exits_with_0_is_finished_and_its_output_is_in_its_log(tmp_path):
    job = python("job-1", "import sys; print('out'); print('err', file=sys.stderr)")
    with LocalBackend([job], TWO, workdir=tmp_path) as world:
        moments = drive(world, at_once)
    assert events(moments) == [JobSubmitted(job), JobFinished("job-1", 1)]
    assert (tmp_path / "job-1" / "log").read_text().splitlines() == ["--- epoch 1", "out", "err"]


def test_a_job_that_exits_otherwise_has_failed_and_the_reason_is_its_last_line(tmp_path):
    jobs = [
        python("raises", "raise ValueError('boom')"),
        Job(job_id="nowhere", total_steps=1, command=("no-such-program",), submitted=0.01),
        python("shot", "import os; os.kill(os.getpid(), 9)"),
        python("odd", "raise SystemExit(75)"),
    ]
    with LocalBackend(jobs, TWO, workdir=tmp_path) as world:
        moments = drive(world, at_once)
    reason = {event.job_id: event.reason for event in of(JobFailed, moments)}
    assert reason["raises"] == "exit code 1: ValueError: boom"
    assert "cannot start 'no-such-program': No such file or directory" in reason["nowhere"]
    assert reason["shot"].startswith("killed by SIGKILL")
    assert "but it was not" in reason["odd"]


def test_a_job_has_its_id_and_seats_in_its_environment_and_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("CLOUD_TOKEN", "secret")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}libraries")
    show = "import json, os, sys; json.dump(dict(os.environ), open(sys.argv[1], 'w'))"
    job = python("job-1", show, str(tmp_path / "seen"), steps=12.5, scale_factor=2)
    with LocalBackend([job], TWO, workdir=tmp_path / "run") as world:
        drive(world, lambda event, _: [Start("job-1", 3, (1, 0), math.inf)] if isinstance(event, JobSubmitted) else [])
    seen = json.loads((tmp_path / "seen").read_text())
    variables = {name: value for name, value in seen.items() if name.startswith("EUNOMIA_")}
    assert variables == {
        "EUNOMIA_JOB_ID": "job-1",
        "EUNOMIA_EPOCH": "3",
        "EUNOMIA_SCALE_FACTOR": "2",
        "EUNOMIA_SHAPE": "0",
        "EUNOMIA_ACCELERATOR_TYPE": "cpu",
        "EUNOMIA_SEATS": "0,1",
        "EUNOMIA_TOTAL_STEPS": "12.5",
        "EUNOMIA_LEASE_FILE": str(tmp_path / "run/job-1/lease-3.json"),
        "EUNOMIA_PROGRESS_FILE": str(tmp_path / "run/job-1/progress.json"),
        "EUNOMIA_CHECKPOINT_DIR": str(tmp_path / "run/job-1/checkpoint"),
    }
    assert "CLOUD_TOKEN" not in seen
    assert seen["LC_ALL"] == "C.UTF-8"
    assert seen["PYTHONPATH"].split(os.pathsep)[1] == str(Path.cwd() / "libraries")  # the job may start elsewhere
    assert seen["CUDA_VISIBLE_DEVICES"] == ""


def test_seats_are_cuda_devices_counted_without_declared_cpus():
    mixed = Topology.of([Node(type="cpu", accelerators=2), Node(type="v100", accelerators=3)])
    assert visible_devices(mixed, [1, 2, 4], {}) == ["0", "2"]
    assert visible_devices(mixed, [2, 4], {"CUDA_VISIBLE_DEVICES": "5,6,GPU-8a"}) == ["5", "GPU-8a"]


def test_a_device_is_named_by_its_index_or_the_beginning_of_its_uuid() -> None:
    uuids = ["GPU-8a11", "GPU-8b22", "GPU-90ff"]
    assert [device_named(name, uuids) for name in ("2", "GPU-8b", "GPU-90ff")] == [2, 1, 2]
    for unknown in ("3", "GPU-8", "MIG-8a11", ""):
        with pytest.raises(OSError, match="the driver has the devices GPU-8a11, GPU-8b22, GPU-90ff"):
            device_named(unknown, uuids)


def test_jobs_arrive_when_submitted_and_the_last_timer_counts(tmp_path):
    late = python("late", "", submitted=0.15)
    soon = python("soon", "", submitted=0.05)
    with LocalBackend([late, soon], TWO, workdir=tmp_path) as world:

        def decide(event, moment):
            if event == JobSubmitted(soon):
                return [Refuse("soon", "for the test"), SetTimer(100.0), SetTimer(0.1)]
            return [SetTimer(math.inf)] if event == JobSubmitted(late) else []

        moments = drive(world, decide)
    assert events(moments) == [JobSubmitted(soon), TimerFired(), JobSubmitted(late)]
    assert [moment.at for moment in moments] == [0.05, 0.1, 0.15]  # as if on time, so that rounds are exact


def test_a_stopped_job_saves_and_its_next_start_resumes_there(tmp_path):
    job = python("job-1", PATIENT)
    with LocalBackend([job], TWO, workdir=tmp_path) as world:

        def decide(event, moment):
            match event:
                case JobSubmitted():
                    yield Start("job-1", 1, (0,), math.inf)
                case Progressed(_, (steps,)):
                    yield Stop(("job-1",), (int(steps),))
                    if steps < 3:
                        yield Start("job-1", int(steps) + 1, (1,), math.inf)

        moments = drive(world, decide)
    assert [event.steps for event in of(Progressed, moments)] == [(1.0,), (2.0,), (3.0,)]
    assert of(JobFailed, moments) == of(JobFinished, moments) == []
    log = (tmp_path / "job-1" / "log").read_text().splitlines()
    assert [line for line in log if "resumed" in line] == [f"resumed at step {n}" for n in range(3)]


def test_a_start_waits_until_earlier_gangs_have_left_its_seats(tmp_path):
    """The first takes its time to leave; meanwhile a job on other seats is started and ends."""
    slow = f"""
from eunomia.lease import Lease
import pathlib, time
with Lease() as lease:
    lease.progress(1)
    for step in lease.steps(1e9): time.sleep(0.005)
    while not pathlib.Path({str(tmp_path / "elsewhere")!r}).exists(): time.sleep(0.005)
    pathlib.Path({str(tmp_path / "left")!r}).touch()
"""
    next_one = f"import pathlib; assert pathlib.Path({str(tmp_path / 'left')!r}).exists()"
    other = f"import pathlib; pathlib.Path({str(tmp_path / 'elsewhere')!r}).touch()"
    jobs = [python("first", slow), python("next", next_one), python("other", other)]
    with LocalBackend(jobs, TWO, workdir=tmp_path / "run", grace_s=60.0) as world:

        def decide(event, moment):
            match event:
                case JobSubmitted(job) if job.job_id == "first":
                    yield Start("first", 1, (0,), math.inf)
                case Progressed():
                    yield Start("next", 1, (0,), math.inf)
                    yield Stop(("first",), (1,))
                    yield Start("other", 1, (1,), math.inf)

        moments = drive(world, decide)
    assert of(JobFailed, moments) == []
    assert {event.job_id for event in of(JobFinished, moments)} == {"next", "other"}


def test_a_gang_that_will_not_leave_is_killed_after_the_grace(tmp_path):
    with LocalBackend([python("deaf", DEAF)], TWO, workdir=tmp_path, grace_s=0.2) as world:

        def decide(event, moment):
            yield from at_once(event, moment)
            if isinstance(event, Progressed):
                yield Stop(("deaf",), (1,))

        moments = drive(world, decide)
    assert of(JobFailed, moments) == []
    assert carriers(tmp_path) == []


def test_a_job_stopped_for_good_gets_no_long_grace(tmp_path):
    with LocalBackend([python("deaf", DEAF)], TWO, workdir=tmp_path, grace_s=1000) as world:

        def decide(event, moment):
            yield from at_once(event, moment)
            if isinstance(event, Progressed):
                yield Stop(("deaf",), (1,))
                yield Stop(("deaf",), (1,), save=False)

        drive(world, decide)
    assert carriers(tmp_path) == []


def test_no_process_of_the_tree_outlives_its_gang_not_even_one_that_hides(tmp_path):
    hide = f"""
import os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import time, pathlib, signal; "
            "signal.signal(signal.SIGTERM, signal.SIG_IGN); "
            "pathlib.Path({str(tmp_path / "hidden")!r}).touch(); time.sleep(1000)"])
    os._exit(0)
import time
while not os.path.exists({str(tmp_path / "hidden")!r}): time.sleep(0.005)
"""
    with LocalBackend([python("hides", hide)], TWO, workdir=tmp_path) as world:
        moments = drive(world, at_once)
        assert carriers(tmp_path) == []
    assert of(JobFinished, moments) == [JobFinished("hides", 1)]


def test_a_gang_whose_lease_lapses_is_stopped_with_a_checkpoint_and_waits_to_be_started_again(tmp_path):
    with LocalBackend([python("job-1", PATIENT)], TWO, workdir=tmp_path, grace_s=0.2) as world:

        def decide(event, moment):
            match event:
                case JobSubmitted():
                    yield Start("job-1", 1, (0,), math.inf)
                case Progressed(_, (1.0,)):
                    yield Renew(("job-1",), moment.at)
                    wait_until((tmp_path / "job-1" / "exit.json").exists)  # the scheduler is slow
                    yield Renew(("job-1", "unknown"), math.inf)
                case JobResumed():
                    yield Start("job-1", 2, (0,), math.inf)
                case Progressed(_, (2.0,)):
                    yield Stop(("job-1",), (2,))

        moments = drive(world, decide)
    assert [event.steps for event in of(Progressed, moments)] == [(1.0,), (2.0,)]
    assert of(JobFailed, moments) == []


def test_a_lease_renewed_in_time_is_not_stopped(tmp_path):
    go = tmp_path / "go"
    wait = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.005)"
    with LocalBackend([python("job-1", wait)], TWO, workdir=tmp_path, grace_s=0.1) as world:

        def decide(event, moment):
            match event:
                case JobSubmitted():
                    yield Start("job-1", 1, (0,), moment.at + 0.3)
                    yield Renew(("job-1",), math.inf)
                    yield SetTimer(moment.at + 0.8)  # long after the first end
                case TimerFired():
                    go.touch()

        moments = drive(world, decide)
    assert of(JobFinished, moments) == [JobFinished("job-1", 1)]


def test_a_lapsed_lease_that_is_not_renewed_is_no_failure_and_no_hang(tmp_path):
    with LocalBackend([python("job-1", PATIENT)], TWO, workdir=tmp_path, grace_s=0) as world:
        moments = drive(
            world,
            lambda event, moment: (
                [Start("job-1", 1, (0,), moment.at + 0.01)] if isinstance(event, JobSubmitted) else []
            ),
        )
    assert of(JobFailed, moments) == []
    assert events(moments)[-2:] == [JobPaused("job-1"), JobResumed("job-1")]


def test_a_job_that_ends_well_while_it_is_stopped_is_finished_and_not_run_again(tmp_path):
    script = f"""
import signal, sys, time
from eunomia.lease import Lease
print("ran", file=open({str(tmp_path / "ran")!r}, "a"))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
Lease().progress(9)
while True: time.sleep(0.005)
"""
    with LocalBackend([python("job-1", script)], TWO, workdir=tmp_path) as world:

        def decide(event, moment):
            yield from at_once(event, moment)
            if isinstance(event, Progressed):
                yield Stop(("job-1",), (1,))
                yield Start("job-1", 2, (0,), math.inf)

        moments = drive(world, decide)
    assert of(JobFinished, moments) == [JobFinished("job-1", 2)]
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_an_order_for_a_past_epoch_is_ignored(tmp_path):
    job = python("job-1", PATIENT)
    with LocalBackend([job], TWO, workdir=tmp_path) as world:

        def decide(event, moment):
            match event:
                case JobSubmitted():
                    yield Start("job-1", 2, (0,), math.inf)
                case Progressed():
                    yield Stop(("job-1", "gone"), (1, 1))
                    yield SetTimer(moment.at + 0.1)
                case TimerFired():
                    assert carriers(tmp_path) != []
                    yield Stop(("job-1",), (2,))

        moments = drive(world, decide)
    assert of(TimerFired, moments) == [TimerFired()]


def test_a_start_that_is_stopped_before_its_seats_are_empty_never_runs(tmp_path):
    jobs = [python("first", PATIENT), python("next", "raise SystemExit('ran')")]
    with LocalBackend(jobs, TWO, workdir=tmp_path) as world:

        def decide(event, moment):
            match event:
                case JobSubmitted(job) if job.job_id == "first":
                    yield Start("first", 1, (0,), math.inf)
                case Progressed():
                    yield Stop(("first",), (1,))
                    yield Start("next", 1, (0,), math.inf)
                    yield Stop(("next",), (1,))

        moments = drive(world, decide)
    assert of(JobFailed, moments) == []
    assert "ran" not in (tmp_path / "next" / "log").read_text()


def test_a_gang_that_is_stopped_before_its_supervisor_has_read_what_to_run_is_stopped(tmp_path):
    with LocalBackend([python("job-1", DEAF)], TWO, workdir=tmp_path, grace_s=0.1) as world:

        def decide(event, moment):
            match event:
                case JobSubmitted():
                    yield Start("job-1", 1, (0,), math.inf)
                    yield SetTimer(moment.at + 1e-3)
                case TimerFired():
                    yield Stop(("job-1",), (1,))

        assert of(JobFailed, drive(world, decide)) == []
        assert carriers(tmp_path) == []


def test_two_jobs_of_one_lease_share_its_seats(tmp_path):
    meet = """
import pathlib, sys, time
mine, other = map(pathlib.Path, sys.argv[1:])
mine.touch()
while not other.exists(): time.sleep(0.005)
"""
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    jobs = [python("one", meet, a, b), python("two", meet, b, a)]
    with LocalBackend(jobs, TWO, workdir=tmp_path / "run") as world:
        moments = drive(
            world,
            lambda event, _: [Start("one", 1, (0,), math.inf, 0, "two", 4)] if event == JobSubmitted(jobs[1]) else [],
        )
    assert {(e.job_id, e.epoch) for e in of(JobFinished, moments)} == {("one", 1), ("two", 4)}


@pytest.mark.parametrize("report", ["", "[]", '{"step": -1}', '{"step": "x"}', '{"step": NaN}', '{"step": true}'])
def test_a_progress_report_that_cannot_be_so_is_passed_over_aloud(tmp_path, caplog, report):
    script = "import os, sys; open(os.environ['EUNOMIA_PROGRESS_FILE'], 'w').write(sys.argv[1])"
    with (
        caplog.at_level(logging.WARNING),
        LocalBackend([python("liar", script, report)], TWO, workdir=tmp_path) as world,
    ):
        moments = drive(world, at_once)
    assert events(moments)[1:] == [JobFinished("liar", 1)]
    assert "progress.json" in caplog.text


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_a_progress_report_that_is_no_plain_file_is_not_opened(tmp_path, caplog, kind):
    folder = JobFolder(tmp_path, tmp_path / "checkpoint")
    (tmp_path / "secret").write_text('{"step": 4}')
    match kind:
        case "fifo":
            os.mkfifo(folder.progress)
        case "link":
            folder.progress.symlink_to(tmp_path / "secret")
        case _:
            folder.progress.mkdir()
    assert folder.read_progress(10.0) is None
    assert "not a progress report" in caplog.text


def test_progress_never_exceeds_the_steps_submitted(tmp_path):
    script = "from eunomia.lease import Lease; Lease().progress(1e12)"
    with LocalBackend([python("boaster", script, steps=10)], TWO, workdir=tmp_path) as world:
        moments = drive(world, at_once)
    assert of(Progressed, moments) == [Progressed(("boaster",), (10.0,))]


def supervisor_of(folder: Path) -> int:
    """Return the id of the only supervisor of a run."""
    [pid] = [pid for pid in carriers(folder) if b"supervisor.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return pid


def test_a_job_whose_supervisor_is_killed_has_failed_and_leaves_nothing(tmp_path):
    with LocalBackend([python("job-1", DEAF)], TWO, workdir=tmp_path) as world:

        def decide(event, moment):
            yield from at_once(event, moment)
            if isinstance(event, Progressed):
                os.kill(supervisor_of(tmp_path), signal.SIGKILL)

        moments = drive(world, decide)
        assert carriers(tmp_path) == []
    assert of(JobFailed, moments) == [JobFailed("job-1", 1, "its supervisor was killed")]


def test_a_run_that_ends_leaves_no_gang_whose_supervisor_does_not_end(tmp_path, monkeypatch):
    monkeypatch.setattr(gangs, "LATE_S", 0.1)
    with LocalBackend([python("job-1", DEAF)], TWO, workdir=tmp_path, grace_s=0.1) as world:

        def decide(event, moment):
            yield from at_once(event, moment)
            if isinstance(event, Progressed):
                os.kill(supervisor_of(tmp_path), signal.SIGSTOP)
                world.close()

        drive(world, decide)
        assert carriers(tmp_path) == []
    assert is_free(tmp_path)


RUN = """
import math, pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which is ignored in what a script runs in the background
from eunomia.backends.processes.backend import LocalBackend
from eunomia.model.decisions import Start
from eunomia.model.events import JobSubmitted, Progressed
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology
folder, *scripts = sys.argv[1:]
jobs = [Job(job_id=f"job-{n}", total_steps=9, command=("python", "-c", s)) for n, s in enumerate(scripts)]
topology = Topology.of([Node(type="cpu", accelerators=len(jobs))])
with LocalBackend(jobs, topology, workdir=pathlib.Path(folder), grace_s=0.3) as world:
    for moment in world.moments():
        for event in moment.events:
            if isinstance(event, JobSubmitted):
                world.carry_out(Start(event.job.job_id, 1, (int(event.job.job_id[4:]),), math.inf))
            if isinstance(event, Progressed):
                print(*event.job_ids, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_the_scheduler_ends_no_process_is_left(tmp_path, number):
    run = subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path), PATIENT, DEAF],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with run:
        assert run.stdout is not None
        ready: set[str] = set()
        while ready < {"job-0", "job-1"}:
            ready |= set(run.stdout.readline().split())
        assert len(carriers(tmp_path)) >= 4
        run.send_signal(number)
        run.wait()
    if number == signal.SIGINT:
        assert carriers(tmp_path) == []
    wait_until(lambda: carriers(tmp_path) == [])
    assert len(list((tmp_path / "job-0" / "checkpoint").iterdir())) == 1
    wait_until(lambda: is_free(tmp_path))  # the system closes files of the dead a little later
    with LocalBackend([python("again", "")], TWO, workdir=tmp_path) as world:
        assert of(JobFinished, drive(world, at_once)) == [JobFinished("again", 1)]


WAITS = [JobPaused("job-1"), JobResumed("job-1")]
ENDED = [
    ({"code": 0, "cause": "orphaned", "epoch": 2}, [JobFinished("job-1", 2)]),
    ({"code": 0, "cause": "asked", "epoch": 1}, [JobFinished("job-1", 2)]),  # while it was being stopped
    ({"code": 3, "cause": "exited", "epoch": 2}, [JobFailed("job-1", 2, "exit code 3: last line")]),
    ({"code": 3, "cause": "exited", "epoch": 1}, WAITS),  # epoch 2 was never launched
    ({"code": -15, "cause": "orphaned", "epoch": 2}, WAITS),
    ({"code": 75, "cause": "exited", "epoch": 2}, WAITS),
    (None, WAITS),
]


@pytest.mark.parametrize("name", ["exit.json", "exit-{epoch}.json"])
@pytest.mark.parametrize(("ended", "events_of_job"), ENDED)
def test_a_resumed_backend_first_reports_how_running_gangs_ended(tmp_path, ended, events_of_job, name):
    job = python("job-1", "")
    folder = tmp_path / "job-1"
    folder.mkdir()
    (folder / "log").write_text("first line\nlast line\n\n")
    (folder / "progress.json").write_text('{"step": 4}')
    if ended is not None:
        (folder / name.format(**ended)).write_text(json.dumps(ended))
        if ended["code"] == 0:
            (folder / "exit.json").write_text(json.dumps(ended))
    past = [Moment(1.0, (JobSubmitted(job),)), Moment(2.0, (Progressed(("job-1",), (3.0,)),))]
    with LocalBackend([job], TWO, workdir=tmp_path) as world:
        resumed = ResumedWorld(world, past, 7.5)
        moments = resumed.moments()
        assert next(moments) == past[0]
        resumed.carry_out(Start("job-1", 1, (0,), math.inf))
        assert next(moments) == past[1]
        resumed.carry_out(Stop(("job-1",), (1,)))
        resumed.carry_out(Start("job-1", 2, (1,), math.inf))
        rest = list(moments)
        assert all(moment.at >= 7.5 for moment in rest)
        assert sorted(map(str, events(rest))) == sorted(map(str, [Progressed(("job-1",), (4.0,)), *events_of_job]))
        assert not (folder / "lease-2.json").exists()  # nothing was started


def test_an_exit_record_that_a_power_cut_emptied_is_passed_over_aloud(tmp_path, caplog):
    job = python("job-1", "")
    (tmp_path / "job-1").mkdir()
    (tmp_path / "job-1" / "exit.json").touch()
    with LocalBackend([job], TWO, workdir=tmp_path) as world:
        assert world.resume(1.0, submitted={"job-1"}, finished=set(), running=[], steps={}, wake=math.inf) is None
        assert world.accept(JobPaused("job-1")), "it has not finished"
    assert "exit.json" in caplog.text


def test_a_resumed_backend_continues_with_its_clock_its_timers_and_future_jobs(tmp_path):
    early, late = python("early", ""), python("late", "", submitted=100.2)
    past = [Moment(0.0, (JobSubmitted(early),)), Moment(50.0, (JobFinished("early", 1),))]
    with LocalBackend([early, late], TWO, workdir=tmp_path) as world:
        resumed = ResumedWorld(world, past, 100.0)
        seen = []
        for moment in resumed.moments():
            seen.append(moment)
            if moment.at == 50.0:
                resumed.carry_out(SetTimer(100.1))
    assert seen == [*past, Moment(100.1, (TimerFired(),)), Moment(100.2, (JobSubmitted(late),))]


@pytest.mark.parametrize("name", ["job-1", CLUSTER])  # the second is also that of an engine's file
def test_an_outcome_of_an_earlier_run_in_the_same_folder_does_not_count(name, tmp_path):
    job = python(name, "")
    with LocalBackend([job], TWO, workdir=tmp_path) as world:
        drive(world, at_once)
    assert (tmp_path / name / "exit.json").exists()
    with LocalBackend([job], TWO, workdir=tmp_path) as world:
        moments = world.moments()
        next(moments)
        assert not (tmp_path / name / "exit.json").exists()


def test_closing_twice_and_after_the_end_is_fine(tmp_path):
    with LocalBackend([python("job-1", "")], TWO, workdir=tmp_path) as world:
        drive(world, at_once)
        world.close()
    assert list(world.moments()) == []


def test_two_runs_never_share_a_folder(tmp_path):
    with LocalBackend([], TWO, workdir=tmp_path), pytest.raises(InvalidInput, match="in use by a run"):
        LocalBackend([], TWO, workdir=tmp_path)


def test_all_jobs_that_cannot_run_are_reported_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    jobs = [Job(job_id="a", total_steps=1), python("b", ""), python("b", "a\0b"), python("\ud800", "")]
    gpus = Topology.of([Node(type="v100", accelerators=2)])
    with pytest.raises(InvalidInput) as error:
        LocalBackend(jobs, gpus, workdir=tmp_path, grace_s=math.nan)
    rules = " ".join(problem.rule for problem in error.value.problems)
    assert error.value.count == 6
    for words in ("time to save", "leaves only 1", "'a' has no command", "must differ", "job 'b': its id", "\\ud800"):
        assert words in rules


@given(st.lists(st.text(min_size=1), unique=True, max_size=8))
def test_every_job_has_a_folder_of_its_own_inside_the_run(job_ids):
    names = [folder_name(job_id) for job_id in [*job_ids, *HOSTILE]]
    assert all("/" not in name and "\0" not in name and 0 < len(name.encode()) < 100 for name in names)
    assert all(not name.startswith(".") for name in names)
    assert len({name.lower() for name in names}) == len(set(names)) == len(set(job_ids) | set(HOSTILE))


def test_the_examples_reach_the_same_result_whether_or_not_they_are_stopped(tmp_path):
    names = ("logistic", "kmeans", "bigram")
    jobs = [
        Job(job_id=name, total_steps=2, command=("python", str(ROOT / f"examples/local/{name}.py"))) for name in names
    ]

    def stop_each_once(event, moment):
        match event:
            case JobSubmitted(job):
                yield Start(job.job_id, 1, (names.index(job.job_id),), math.inf)
            case Progressed(job_ids, done):
                for job_id in [job_id for job_id, step in zip(job_ids, done, strict=True) if step == 0.5]:
                    yield Stop((job_id,), (1,))
                    yield Start(job_id, 2, (names.index(job_id),), math.inf)

    def undisturbed(event, moment):
        if isinstance(event, JobSubmitted):
            yield Start(event.job.job_id, 1, (names.index(event.job.job_id),), math.inf)

    def last_words(folder, decide):
        with LocalBackend(jobs, Topology.of([Node(type="cpu", accelerators=3)]), workdir=folder) as world:
            assert {event.job_id for event in of(JobFinished, drive(world, decide))} == set(names)
        return [(folder / name / "log").read_text().splitlines() for name in names]

    with ThreadPoolExecutor(1) as other:
        alone = other.submit(last_words, tmp_path / "alone", undisturbed)
        stopped = last_words(tmp_path / "stopped", stop_each_once)
    assert all(any(line.startswith("resumed at step ") for line in log) for log in stopped)
    assert [log[-1] for log in stopped] == [log[-1] for log in alone.result()]
