"""What `eunomia run` keeps however it ends, and how it resumes: nothing is lost and nothing runs twice."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.cli.live import draw_table, printable
from eunomia.inputs.problems import InvalidInput
from eunomia.model.answers import Order, Rows
from eunomia.model.arrays import NO_INTS
from eunomia.model.decisions import Ask, Start
from eunomia.model.events import AppFinished, Estimated, JobFinished, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology
from eunomia.model.view import View
from eunomia.policies.order.fifo import Fifo
from eunomia.records.policy_call import PolicyFailed
from eunomia.records.record import Record
from eunomia.records.replay import first_difference
from eunomia.runs import run_directory
from eunomia.runs.job_states import JobState, JobStates
from eunomia.runs.journal import Journal, ResumedPolicyRunner, create
from eunomia.runs.local_run import run_real
from eunomia.runs.simulation import Result
from eunomia.scenario import load_scenario

SOURCE = Path(__file__).parents[2] / "src"
LONGEST_S = 300.0
SCENARIO = """\
check = true
[cluster]
nodes = [{ type = "cpu", accelerators = SEATS }]
[workload]
trace = "jobs.csv"
[throughputs]
source = "uniform"
[policy]
name = "las"
quantum = QUANTUM
[world]
backend = "local"
"""
# Writes every step that it does into a file of its own, then saves.
STEPPER = """\
import os, sys, time
from eunomia.lease import Lease
with Lease() as lease:
    state = lease.load({"step": 0})
    for step in lease.steps(start=state["step"]):
        with open(sys.argv[1], "a") as file:
            file.write(f"{step}\\n")
        time.sleep(float(sys.argv[2]))
        state["step"] = step + 1
    lease.save(state)
"""


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Our package is importable in jobs; a test that hangs fails instead."""
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))

    def give_up(*_: object) -> None:
        raise TimeoutError("nothing came of it")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(240)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def written(folder: Path, *jobs: tuple[str, int, list[str]], seats: int = 2, quantum: float = 1000.0) -> Path:
    """Write a scenario of these jobs (id, steps, command), all of which come at once; return its path."""
    lines = ["job_id,submitted_s,scale_factor,job_type,total_steps,command"]
    for job_id, steps, command in jobs:
        quoted = json.dumps(command).replace('"', '""')
        lines.append(f'{job_id},0,1,any,{steps},"{quoted}"')
    (folder / "jobs.csv").write_text("\n".join(lines) + "\n")
    path = folder / "real.toml"
    path.write_text(SCENARIO.replace("SEATS", str(seats)).replace("QUANTUM", str(quantum)))
    return path


def steppers(folder: Path, *steps: int, pause_s: float = 0.02) -> list[tuple[str, int, list[str]]]:
    """Return jobs that write down what they do in `folder`."""
    (folder / "stepper.py").write_text(STEPPER)
    files = [str(folder / f"steps-{n}") for n in range(len(steps))]
    return [
        (f"job-{n}", total, ["python", str(folder / "stepper.py"), files[n], str(pause_s)])
        for n, total in enumerate(steps)
    ]


def steps_done(folder: Path, job: int) -> list[int]:
    path = folder / f"steps-{job}"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


class InterruptAt:
    """A watcher that is Ctrl-C at the n-th change, when that is on the disk and not yet carried out."""

    def __init__(self, n: int):
        self.left = n

    def begin(self, states: JobStates) -> None:
        """It has not changed yet."""

    def changed(self, at: float, state: JobState) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def unfinished(scenario: Path, out: Path, changes: int = 1) -> None:
    """Leave an unfinished run in a folder."""
    with pytest.raises(KeyboardInterrupt):
        run_real(load_scenario(scenario, []), out, watcher=InterruptAt(changes))


def interrupted_until_it_ends(scenario: Path, out: Path, first: int) -> tuple[Result, int]:
    """Interrupt a run at a change, resume it, interrupt it one change later than before, and so on; count that."""
    for interruptions in itertools.count():
        watcher = InterruptAt(first + interruptions)
        try:
            return run_real(load_scenario(scenario, []), out, resume=interruptions > 0, watcher=watcher), interruptions
        except KeyboardInterrupt:
            assert not (out / "summary.json").exists()
    raise AssertionError


def starts_by_epoch(log: Path) -> list[int]:
    return [int(number) for number in re.findall(r"^--- epoch (\d+)$", log.read_text(), re.MULTILINE)]


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "eunomia", "run", *map(str, words)]


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def eventually(holds: Callable[[], object]) -> None:
    end = time.monotonic() + LONGEST_S
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


# ---- the journal -----------------------------------------------------------------------------------------------

JOB = Job(job_id="a", total_steps=1)
STEPS = [
    (Moment(0.0, (JobSubmitted(JOB),)), [Start("a", 1, (0,), 5.0), Start("b", 1, (1,), 5.0)]),
    (Moment(1.5, (JobFinished("a", 1),)), []),
    (Moment(2.5, (JobFinished("b", 1),)), [Start("c", 1, (0,), 5.0)]),
]


def journal_of(path: Path, steps: int = len(STEPS)) -> bytes:
    create(path, {"seed": 0})
    with Journal(path) as journal:
        for moment, decisions in STEPS[:steps]:
            journal.observe(moment, decisions)
    return path.read_bytes()


@given(st.data())
def test_a_journal_that_was_cut_anywhere_is_completed_by_the_run_that_repeats_it(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("journal") / "record.jsonl"
    whole = journal_of(path)
    path.write_bytes(whole[: data.draw(st.integers(whole.index(b"\n") + 1, len(whole)))])
    with Journal(path) as journal:
        for moment, decisions in STEPS:
            journal.observe(moment, decisions)
    assert path.read_bytes() == whole


def test_a_journal_refuses_a_run_that_does_not_repeat_it_and_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    whole = journal_of(path)
    with Journal(path) as journal:
        journal.observe(*STEPS[0])
        with pytest.raises(InvalidInput, match=r"record\.jsonl:5: the run does not repeat"):
            journal.observe(STEPS[1][0], [Start("a", 2, (0,), 5.0)])
    assert path.read_bytes() == whole


def test_a_journal_reports_whether_it_held_the_last_step(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    journal_of(path, steps=2)
    held = []
    with Journal(path) as journal:
        for moment, decisions in STEPS:
            journal.observe(moment, decisions)
            held.append(journal.repeated)
    assert held == [True, True, False]


def test_an_answer_that_was_recorded_is_not_asked_for_again() -> None:
    class Silent(Fifo):
        def decide(self, view: View) -> Order:
            raise AssertionError("the policy was asked")

    view, answer = View(at=0.0, types=("cpu",), jobs=0, columns={}), Order(Rows(NO_INTS, NO_INTS))
    adviser = ResumedPolicyRunner(Silent(), {3: answer})
    assert adviser.answer(Ask(3, view)) is answer
    with pytest.raises(PolicyFailed, match="was asked"):
        adviser.answer(Ask(4, view))


# ---- going on --------------------------------------------------------------------------------------------------


def test_interrupted_at_each_of_its_changes_a_run_loses_nothing_and_runs_nothing_twice(tmp_path: Path) -> None:
    """It is interrupted and resumed until it ends, at the first change, at the second from there, and so on."""
    scenario, out = written(tmp_path, *steppers(tmp_path, 3, 6, 9), quantum=0.3), tmp_path / "out"
    result, interruptions = interrupted_until_it_ends(scenario, out, first=1)
    assert interruptions >= 3
    assert [steps_done(tmp_path, n) for n in range(3)] == [list(range(3)), list(range(6)), list(range(9))]
    assert set(result.jobs["status"].tolist()) == {"finished"}
    assert result.record is not None
    assert first_difference(result.record) is None
    moments = [moment for _, moment, _ in result.record.steps()]
    assert all(one.at <= other.at for one, other in pairwise(moments))
    ends = [event.job_id for moment in moments for event in moment.events if isinstance(event, JobFinished)]
    assert set(ends) == {"job-0", "job-1", "job-2"}
    for n in range(3):
        epochs = starts_by_epoch(out / "work" / f"job-{n}" / "log")
        assert epochs == sorted(set(epochs))
    assert not (out / "run").exists()


def test_run_times_are_estimated_from_the_seconds_that_real_jobs_held_seats_also_after_an_interruption(
    tmp_path: Path,
) -> None:
    scenario, out = written(tmp_path, *steppers(tmp_path, 3, 6, 9), seats=1), tmp_path / "out"
    scenario.write_text(scenario.read_text() + '[belief]\nduration = "history"\ntolerance = 0.1\n')
    result, interruptions = interrupted_until_it_ends(scenario, out, first=2)
    assert interruptions >= 2
    assert set(result.jobs["status"].tolist()) == {"finished"}
    assert result.record is not None and first_difference(result.record) is None
    estimates = [event for _, moment, _ in result.record.steps() for event in moment.events if type(event) is Estimated]
    assert len(estimates) > 3
    assert estimates[-1].run_s < estimates[0].run_s / 10  # minutes were guessed, and seconds were held
    assert any("of 3 finished jobs" in note for note in result.notes)


def test_a_job_that_ended_while_no_scheduler_was_there_is_not_run_again(tmp_path: Path) -> None:
    go, ran = tmp_path / "go", tmp_path / "ran"
    wait = f"trap '' TERM; echo ran >> {ran}; while [ ! -e {go} ]; do sleep 0.01; done"
    scenario, out = written(tmp_path, ("deaf", 1, ["sh", "-c", wait])), tmp_path / "out"
    run = subprocess.Popen(command(scenario, "--out", out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with run:
        eventually(ran.exists)
        run.kill()
    go.touch()
    eventually((out / "work/deaf/exit.json").exists)
    result = run_real(load_scenario(scenario, []), out, resume=True)
    assert result.jobs["status"].tolist() == ["finished"]
    assert ran.read_text() == "ran\n"
    assert starts_by_epoch(out / "work/deaf/log") == [1]


def test_the_clock_of_a_run_stops_while_no_process_drives_it(tmp_path: Path) -> None:
    scenario, out = written(tmp_path, *steppers(tmp_path, 1)), tmp_path / "out"
    unfinished(scenario, out)
    (out / run_directory.CLOCK).write_text('{"at": 1000.0}')
    result = run_real(load_scenario(scenario, []), out, resume=True)
    [jct_s] = result.jobs["jct_s"].tolist()
    assert 1000 <= jct_s < 1000 + LONGEST_S


def test_a_resumed_tuner_receives_the_recorded_losses(tmp_path: Path) -> None:
    scenario = written(tmp_path, *steppers(tmp_path, 8, 8, 8, 8))
    trace = (tmp_path / "jobs.csv").read_text().splitlines()
    (tmp_path / "jobs.csv").write_text("\n".join([f"{trace[0]},app", *(f"{line},search" for line in trace[1:])]) + "\n")
    losing = STEPPER.replace(
        'state["step"] = step + 1',
        'state["step"] = step + 1; state["loss"] = float(sys.argv[1][-1]); lease.save(state)',
    )
    (tmp_path / "stepper.py").write_text(losing)
    scenario.write_text(scenario.read_text() + '[apps]\ntuner = "halving"\neta = 2\n')
    out = tmp_path / "out"
    result, interruptions = interrupted_until_it_ends(scenario, out, first=3)
    assert interruptions >= 2
    status = dict(zip(result.jobs["job_id"], result.jobs["status"], strict=True))
    assert status.pop("job-0") == "finished"
    assert set(status.values()) <= {"finished", "cancelled"}
    record = Record(out)
    assert first_difference(record) is None
    assert {line["kind"] for _, line in record.lines()} == {"moment", "decision"}
    [end] = [event for _, moment, _ in record.steps() for event in moment.events if isinstance(event, AppFinished)]
    assert end.best == "job-0"


# ---- what is refused ---------------------------------------------------------------------------------------------


def test_an_unfinished_run_is_refused_with_the_command_that_resumes_it(desk, tmp_path: Path) -> None:
    scenario = written(tmp_path, *steppers(tmp_path, 1))
    unfinished(scenario, tmp_path / "out dir")
    [problem] = desk.refused("run", "real.toml", "--set", "seed=0", "--out", "out dir")["problems"]
    assert "eunomia run real.toml --set seed=0 --out 'out dir' --resume" in problem["fix"]
    assert desk.type("run", "real.toml", "--out", "out dir", "--resume") == 0
    assert "if it is interrupted, resume with: eunomia run real.toml --out 'out dir' --resume" in desk.stderr


def test_a_run_with_other_inputs_is_not_resumed(desk, tmp_path: Path) -> None:
    scenario = written(tmp_path, *steppers(tmp_path, 1))
    unfinished(scenario, tmp_path / "out")
    [problem] = desk.refused("run", "real.toml", "--set", "policy.quantum=7", "--out", "out", "--resume")["problems"]
    assert (problem["column"], problem["value"]) == ("policy.quantum", "7")
    assert "was begun with 1000.0" in problem["rule"]
    trace = tmp_path / "jobs.csv"
    trace.write_text(trace.read_text().replace("job-0", "job-1"))
    [problem] = desk.refused("run", "real.toml", "--out", "out", "--resume")["problems"]
    assert Path(problem["file"]).name == "jobs.csv"
    assert "has changed" in problem["rule"]


def test_a_folder_without_a_run_is_not_resumed(desk, tmp_path: Path) -> None:
    written(tmp_path, *steppers(tmp_path, 1))
    assert desk.refused("run", "real.toml", "--out", "new", "--resume")["problems"][0]["column"] == "--out"
    (tmp_path / "other").mkdir()
    desk.write("other/notes", "mine")
    desk.refused("run", "real.toml", "--out", "other", "--resume")
    desk.refused("run", "real.toml", "--out", "other", "--force")
    desk.refused("run", "real.toml", "--out", "new", "--force", "--resume")


def test_two_processes_never_drive_one_run(desk, tmp_path: Path) -> None:
    scenario = written(tmp_path, *steppers(tmp_path, 1))
    unfinished(scenario, tmp_path / "out")
    with run_directory.locked(tmp_path / "out", restart=False):
        for how in ("--resume", "--force"):
            [problem] = desk.refused("run", "real.toml", "--out", "out", how)["problems"]
            assert f"process {os.getpid()} is running in this folder" in problem["rule"]


def test_to_resume_a_finished_run_changes_nothing(desk, tmp_path: Path) -> None:
    written(tmp_path, *steppers(tmp_path, 1))
    assert desk.type("run", "real.toml", "--out", "out") == 0
    before = {name: Path(name).read_bytes() for name in desk.listing() if Path(name).is_file()}
    assert desk.type("run", "real.toml", "--out", "out", "--resume") == 0
    assert "is finished; nothing was changed" in desk.stdout
    assert desk.type("run", "real.toml", "--out", "out", "--resume", "--json") == 0
    assert json.loads(desk.stdout)["jobs_finished"] == 1
    assert {name: Path(name).read_bytes() for name in desk.listing() if Path(name).is_file()} == before


def test_force_starts_again_without_the_checkpoints_of_the_run_before(desk, tmp_path: Path) -> None:
    scenario = written(tmp_path, *steppers(tmp_path, 30))
    unfinished(scenario, tmp_path / "out", changes=1)
    for _ in range(2):
        (tmp_path / "steps-0").unlink(missing_ok=True)
        assert desk.type("run", "real.toml", "--out", "out", "--force") == 0
        assert steps_done(tmp_path, 0) == list(range(30))
    unfinished(scenario, tmp_path / "again")
    desk.write("again/notes", "mine")
    assert "notes" in desk.refused("run", "real.toml", "--out", "again", "--force")["problems"][0]["rule"]


def test_what_cannot_run_is_refused_before_a_folder_is_made(desk, tmp_path: Path) -> None:
    written(tmp_path, ("none", 1, []))
    desk.refused("run", "real.toml", "--out", "out")


# ---- what is shown -----------------------------------------------------------------------------------------------


def test_a_failed_job_is_named_with_its_reason_and_last_lines_and_the_exit_code_is_1(desk, tmp_path: Path) -> None:
    shout = "echo '<b>first</b>'; printf 'bad \\033[31m number\\n' >&2; exit 3"
    jobs = [("fine", 1, ["true"]), ("bad", 1, ["sh", "-c", shout])]
    written(tmp_path, *jobs)
    assert desk.type("run", "real.toml", "--out", "out") == 1
    shown = desk.stdout.splitlines()
    assert shown[0] == "job bad failed: exit code 3: bad [31m number"
    assert (
        shown[1:5]
        == ["    --- epoch 1", "    <b>first</b>", "    bad [31m number", f"  log: {tmp_path}/out/work/bad/log"]
        or shown[4] == "  log: out/work/bad/log"
    )
    assert re.search(r"^ +0\.\d s  bad  failed: exit code 3", desk.stderr, re.MULTILINE)
    page = (tmp_path / "out/report.html").read_text()
    section = page[page.index('<section id="jobs" aria-label="Jobs"') :]
    section = section[: section.index("</section>")]
    assert section.index(">bad<") < section.index(">fine<")
    assert "&lt;b&gt;first&lt;/b&gt;" in section
    assert "<b>" not in section
    assert "exit code 3: bad [31m number" in section
    assert desk.type("run", "real.toml", "--out", "other", "--json") == 1
    [failed] = json.loads(desk.stdout)["not_finished"]
    assert (failed["job_id"], failed["status"], failed["reason"]) == ("bad", "failed", "exit code 3: bad [31m number")


def test_a_run_whose_jobs_all_finish_has_exit_code_0_and_a_line_for_each_change(desk, tmp_path: Path) -> None:
    written(tmp_path, ("one", 1, ["true"]), ("two", 1, ["true"]), seats=1)
    assert desk.type("run", "real.toml", "--out", "out") == 0
    changes = re.findall(r"^ +[\d.]+ s  (\w+)  (.*)$", desk.stderr, re.MULTILINE)
    assert changes == [
        ("one", "running on cpu 0 (epoch 1)"),
        ("two", "waiting"),
        ("one", "finished"),
        ("two", "running on cpu 0 (epoch 1)"),
        ("two", "finished"),
    ]
    assert desk.type("replay", "out") == 0


def test_the_live_table_has_a_row_for_each_job_running_jobs_first() -> None:
    topology = Topology.of([Node(type="cpu", accelerators=2)])
    states = JobStates(topology, 3)
    jobs = [Job(job_id=name, total_steps=8) for name in ("done", "runs\033[1m", "waits")]
    states.observe(Moment(0.0, tuple(JobSubmitted(job) for job in jobs)), [Start("done", 1, (0,), 9.0)])
    states.observe(Moment(2.0, (JobFinished("done", 1),)), [Start("runs\033[1m", 1, (0, 1), 9.0)])
    table, below = draw_table(states).renderables
    assert list(table.columns[0].cells) != []
    assert [str(cell) for cell in table.columns[0].cells] == [printable("runs\033[1m"), "waits", "done"]
    assert [str(cell) for cell in table.columns[2].cells] == ["cpu 0, 1", "", ""]
    assert str(below) == "1 of 3 jobs ended, 2.0 s"


def test_a_run_continues_when_its_output_is_closed(tmp_path: Path) -> None:
    scenario, out = written(tmp_path, *steppers(tmp_path, 2)), tmp_path / "out"
    run = subprocess.Popen(command(scenario, "--out", out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with run:
        assert run.stderr is not None
        run.stderr.readline()
        run.stderr.close()
        assert run.wait() == 0
    assert steps_done(tmp_path, 0) == [0, 1]


# ---- whatever ends it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_a_run_with_everything_saved_though_ctrl_c_was_ignored_at_its_start(
    tmp_path: Path, number: signal.Signals
) -> None:
    scenario, out = written(tmp_path, *steppers(tmp_path, 10_000, 10_000)), tmp_path / "out"
    words = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command(scenario, "--out", out)]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with run:
        try:
            eventually(lambda: steps_done(tmp_path, 0) and steps_done(tmp_path, 1))
            run.send_signal(number)
            stdout, stderr = run.communicate(timeout=LONGEST_S)
        finally:
            run.kill()
    assert (run.returncode, stdout) == (130, "")
    assert stderr.splitlines()[-1] == f"  eunomia run {scenario} --out {out} --resume"
    for n in range(2):
        [checkpoint] = (out / f"work/job-{n}/checkpoint").iterdir()
        saved = json.loads(checkpoint.read_text().splitlines()[1])["step"]
        assert steps_done(tmp_path, n) == list(range(saved))
    assert Record(out).header["seed"] == 0


# Answers SIGTERM by writing that down, and works on: only SIGKILL ends it.
STUBBORN = """\
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: pathlib.Path(sys.argv[1] + ".asked").touch())
pathlib.Path(sys.argv[1] + ".began").write_text(str(os.getpid()) + "\\n")
while not pathlib.Path(sys.argv[1] + ".may-end").exists():
    time.sleep(0.02)
"""


@pytest.mark.parametrize("interrupts", [2, pytest.param(1000, marks=pytest.mark.slow)], ids=["second", "ever more"])
def test_further_interrupts_end_a_run_whose_jobs_do_not_stop_and_it_can_be_resumed(
    tmp_path: Path, interrupts: int
) -> None:
    """At the second Ctrl-C jobs are killed; at the third the command does not wait for that. The record is whole."""
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    mark = tmp_path / "job"
    scenario = written(tmp_path, ("one", 1, ["python", str(tmp_path / "stubborn.py"), str(mark)]), seats=1)
    out = tmp_path / "out"
    run = subprocess.Popen(command(scenario, "--out", out), stderr=subprocess.PIPE, text=True)
    with run:
        try:
            eventually(lambda: mark.with_suffix(".began").exists() and mark.with_suffix(".began").read_text()[-1:])
            job = int(mark.with_suffix(".began").read_text())
            run.send_signal(signal.SIGINT)
            eventually(mark.with_suffix(".asked").exists)
            for _ in range(1, interrupts):
                run.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    run.wait(0.1 if interrupts > 2 else LONGEST_S)
                    break
            _, stderr = run.communicate(timeout=LONGEST_S)
        finally:
            run.kill()
    assert interrupts > 2 or not is_alive(job)
    eventually(lambda: not is_alive(job))
    assert run.returncode == 130, stderr
    assert stderr.splitlines()[-1] == f"  eunomia run {scenario} --out {out} --resume"
    mark.with_suffix(".may-end").touch()
    done = subprocess.run(command(scenario, "--out", out, "--resume"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert starts_by_epoch(out / "work/one/log") == [1, 2]
    assert first_difference(Record(out)) is None


@pytest.mark.slow
def test_a_run_killed_at_20_random_moments_loses_nothing_and_runs_nothing_twice(tmp_path: Path) -> None:
    """Six jobs on two seats. Twenty windows of time are too short for all their steps, so there are twenty kills."""
    draw, window_s, pause_s = random.Random(2026), 0.8, 0.1
    steps = (10, 20, 40, 60, 80, 120)
    assert 20 * 2 * window_s / pause_s < sum(steps)
    scenario = written(tmp_path, *steppers(tmp_path, *steps, pause_s=pause_s), quantum=1.0)
    out = tmp_path / "out"
    words = command(scenario, "--out", out)
    for kill in range(20):
        run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        with run:
            assert run.stderr is not None
            if kill == 0 or draw.random() < 0.8:  # others are killed while they begin
                assert "run in" in run.stderr.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                run.wait(draw.uniform(0, window_s))
            run.kill()
        words = command(scenario, "--out", out, "--resume")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [steps_done(tmp_path, n) for n in range(6)] == [list(range(total)) for total in steps]
    record = Record(out)
    assert first_difference(record) is None
    moments = [moment for _, moment, _ in record.steps()]
    assert all(one.at <= other.at for one, other in pairwise(moments))
    ends = [event.job_id for moment in moments for event in moment.events if isinstance(event, JobFinished)]
    assert set(ends) == {f"job-{n}" for n in range(6)}
    for n in range(6):
        epochs = starts_by_epoch(out / f"work/job-{n}/log")
        assert epochs == sorted(set(epochs))
    assert json.loads((out / "summary.json").read_text())["jobs_finished"] == 6
