"""The policy is asked in a process of its own: what takes too long, or fails, delays nothing else."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.bench import Bench, LiveService, until

from eunomia.child_process import ChildProcess
from eunomia.model.answers import Answer, Order, Rows, Shares
from eunomia.model.decisions import Ask
from eunomia.model.view import View
from eunomia.records.packed_objects import pack, unpack
from eunomia.service import living_state
from eunomia.service.messages import PolicyAnswered, PolicyOverran
from eunomia.service.policy_process import COMPILER, READY
from eunomia.service.site import load_site
from eunomia.service.solver_process import MANY_JOBS, ProcessPolicyRunner

SITE = """\
check = true
[service]
listen = "127.0.0.1:0"
supervisor_lease_s = 30
forecast_every_s = 0
solver_seconds = 1
[cluster]
accelerators = { cpu = 1 }
[policy]
name = "./slow.py:Slow"
"""
SLOW = """\
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from eunomia import Order, PolicyInfo, Rows

@dataclass(frozen=True)
class Slow:
    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="slow", answer_type="order", objective="", technique="", paper="", needs=frozenset({"submitted"})
    )

    def decide(self, view):
        print("a policy may print")
        if (Path(__file__).parent / "sleep").exists():
            time.sleep(3600)
        return Order(Rows(np.arange(view.jobs), np.zeros(view.jobs, dtype=np.int64)), "skip")
"""


class LaterRunner:
    """Keeps asks; the test answers them."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []

    def answer(self, ask: Ask) -> Answer | None:
        self.asks.append(ask)
        return None


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    (tmp_path / "slow.py").write_text(SLOW)
    found = Bench(tmp_path, SITE)
    yield found
    found.store.close()


@pytest.fixture
def later(bench: Bench) -> LaterRunner:
    found = LaterRunner()
    bench.controller.runner = found
    return found


def first_in_order(ask: Ask) -> Answer:
    jobs = ask.view.jobs
    return Order(Rows(np.arange(jobs), np.zeros(jobs, dtype=np.int64)), "skip")


def test_while_the_policy_thinks_jobs_are_accepted_and_its_answer_starts_them(bench: Bench, later: LaterRunner) -> None:
    one, two = (bench.submit().body["id"] for _ in range(2))
    assert bench.state(one) == bench.state(two) == "pending"
    (ask,) = later.asks
    bench.do(PolicyAnswered(ask.asked, first_in_order(ask)))
    assert (bench.state(one), bench.state(two)) == ("starting", "pending")


def test_an_ask_without_an_answer_is_noted_and_made_again_later(bench: Bench, later: LaterRunner) -> None:
    job = bench.submit().body["id"]
    bench.do(PolicyOverran(later.asks[0].asked, "too slow"))
    found = bench.store._db.execute("SELECT detail FROM news WHERE kind = 'solver_overrun'").fetchall()
    assert len(found) == 1 and "too slow" in found[0][0]
    assert len(later.asks) == 1
    bench.clock.at += 2.0
    bench.do()
    assert len(later.asks) == 2
    bench.do(PolicyAnswered(later.asks[0].asked, first_in_order(later.asks[0])))  # too late: it changes nothing
    assert bench.state(job) == "pending"
    bench.do(PolicyAnswered(later.asks[1].asked, first_in_order(later.asks[1])))
    assert bench.state(job) == "starting"


def test_a_restart_replays_what_was_decided_while_an_ask_is_open(bench: Bench, later: LaterRunner) -> None:
    job = bench.submit().body["id"]
    bench.do(PolicyOverran(later.asks[0].asked, "too slow"))
    bench.clock.at += 2.0
    bench.submit()
    assert len(later.asks) == 2
    bench.restart()  # the replay compares each decision with what was stored
    pending = bench.controller.scheduler.asks.pending
    assert pending is not None
    bench.do(PolicyOverran(pending.asked, "restarted"))
    bench.clock.at += 2.0
    bench.do()
    assert bench.state(job) == "starting"


def test_an_answer_that_comes_after_it_wanted_to_be_asked_again_is_taken(bench: Bench, later: LaterRunner) -> None:
    job = bench.submit().body["id"]
    bench.clock.at += 5.0
    bench.do(PolicyAnswered(later.asks[0].asked, replace(first_in_order(later.asks[0]), again_at=2.0)))
    assert bench.state(job) == "starting"


def test_a_wrong_answer_of_a_policy_from_a_file_is_an_ask_without_an_answer(bench: Bench, later: LaterRunner) -> None:
    job = bench.submit().body["id"]
    bench.do(PolicyAnswered(later.asks[0].asked, Order(Rows(np.array([7]), np.array([0])))))
    assert bench.state(job) == "pending"
    assert bench.store._db.execute("SELECT count(*) FROM news WHERE kind = 'solver_overrun'").fetchone() == (1,)


NONSENSE = {
    "rows.job has numbers of type float64": Order(Rows(np.array([0.0]), np.array([0]))),
    "a row names a type outside 0 … 0": Order(Rows(np.array([0]), np.array([1]))),
    "asked again at nan": Order(Rows(np.array([0]), np.array([0])), again_at=np.nan),
    "its card says answer_type='order'": Shares(np.array([[np.nan]])),
    "why names the job 9": Order(Rows(np.array([0]), np.array([0])), why={9: "no"}),
}


@pytest.mark.parametrize("rule", NONSENSE)
def test_after_nonsense_the_last_answer_goes_on_and_the_service_says_so_until_there_is_a_usable_one(
    tmp_path: Path, rule: str
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    bench, later = Bench(tmp_path, SITE.replace("cpu = 1", "cpu = 2")), LaterRunner()
    bench.controller.runner = later
    runs = bench.submit().body["id"]
    bench.do(PolicyAnswered(later.asks[0].asked, first_in_order(later.asks[0])))
    waits = bench.submit().body["id"]
    for _ in range(2):
        bench.do(PolicyAnswered(later.asks[-1].asked, NONSENSE[rule]))
        bench.clock.at += 2.0
        bench.do()
    assert (bench.state(runs), bench.state(waits)) == ("starting", "pending")
    assert bench.controller.refused_answers == 2
    shown = living_state.cluster(bench.controller)["policy_problem"]
    assert "'slow'" in shown and rule in shown
    ((detail,),) = bench.store._db.execute("SELECT detail FROM news WHERE kind = 'solver_overrun'").fetchall()
    assert rule in json.loads(detail)["reason"]
    bench.restart()  # the replay finds no trace of the refused answers
    assert (bench.state(runs), bench.state(waits)) == ("starting", "pending")
    pending = bench.controller.scheduler.asks.pending
    assert pending is not None
    both = Order(Rows(np.arange(2), np.zeros(2, dtype=np.int64)))
    bench.do(PolicyAnswered(pending.asked, both))
    assert bench.state(waits) == "starting"
    assert living_state.cluster(bench.controller)["policy_problem"] is None
    bench.store.close()


@pytest.mark.parametrize("wrong", ["late", "invalid"])
def test_where_a_policy_fails_that_has_a_fallback_it_answers_and_is_counted(tmp_path: Path, wrong: str) -> None:
    with_fallback = SLOW.replace('frozenset({"submitted"})', 'NEEDS, fallback="fifo"').replace(
        "@dataclass", 'NEEDS = frozenset({"throughput", "scale_factor", "capacity", "on_type"})\n\n@dataclass'
    )
    (tmp_path / "slow.py").write_text(with_fallback)
    bench, later = Bench(tmp_path, SITE.replace("cpu = 1", "cpu = 2")), LaterRunner()
    bench.controller.runner = later
    one, two = (bench.submit().body["id"] for _ in range(2))
    asked = later.asks[0].asked
    no_such_job = Order(Rows(np.array([7]), np.array([0])))
    bench.do(PolicyOverran(asked, "too slow") if wrong == "late" else PolicyAnswered(asked, no_such_job))
    assert (bench.state(one), bench.state(two)) == ("starting", "pending")
    assert bench.controller.fallbacks == 1
    ((kind, detail),) = bench.store._db.execute("SELECT kind, detail FROM news WHERE job = ''").fetchall()
    assert kind == "policy_fallback" and ("too slow" if wrong == "late" else "cannot be carried out") in detail
    bench.clock.at += 2.0
    bench.do()
    assert len(later.asks) == 2  # the policy itself is asked again
    bench.restart()  # the replay finds the fallback's answer in the log
    assert bench.state(one) == "starting"
    bench.store.close()


def test_a_view_and_an_answer_survive_the_way_to_another_process(bench: Bench, later: LaterRunner) -> None:
    bench.submit(duration_s=100.0)
    (ask,) = later.asks
    view = unpack(pack(ask.view))
    policy = bench.site.setup.policy
    one, other = policy.decide(view), unpack(pack(policy.decide(ask.view)))
    assert isinstance(one, Order) and isinstance(other, Order)
    assert one.misfit == other.misfit and np.array_equal(one.rows.job, other.rows.job)


def test_a_process_that_dies_or_takes_too_long_is_started_again(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    policy = '["./slow.py:Slow", {}, 0.0]'
    process = ChildProcess("eunomia.service.policy_process", policy, str(tmp_path), memory_gib=4.0)
    try:
        assert process.ask(b"r", 240.0) == b"r"
        running = process.start()
        with pytest.raises(TimeoutError):
            process.ask(b"a" + pack(None), 0.0)
        assert running.returncode is not None
        assert process.ask(b"r", 240.0) == b"r"
    finally:
        process.stop()


def test_the_compiler_is_loaded_before_the_time_of_a_large_ask_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy that looks for it in its own process, asked about few jobs and then about many."""
    monkeypatch.setenv("EUNOMIA_KERNELS", "auto")
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    none = "Rows(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))"
    looks = f'return Order({none}, memory={{"has": float("numba" in sys.modules)}})'
    (tmp_path / "slow.py").write_text(SLOW.split("        print(", maxsplit=1)[0] + f"        {looks}\n")
    (tmp_path / "site.toml").write_text(SITE)
    answers: queue.SimpleQueue[PolicyAnswered | PolicyOverran] = queue.SimpleQueue()
    runner = ProcessPolicyRunner(load_site(tmp_path / "site.toml"), lambda: 120.0)
    runner.report = answers.put
    runner.start()
    try:
        found = []
        for asked, jobs in enumerate((MANY_JOBS - 1, MANY_JOBS)):
            columns = {"submitted": np.zeros(jobs)}
            runner.answer(
                Ask(asked, View(at=0.0, types=("cpu",), jobs=jobs, columns=columns, seed=(0, asked), memory={}))
            )
            report = answers.get(timeout=300)
            assert isinstance(report, PolicyAnswered), report
            found.append(report.answer.memory["has"])
    finally:
        runner.close()
    assert found == [0.0, 1.0]


def test_a_runner_that_is_closed_while_the_compiler_is_loaded_starts_no_other_process(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "site.toml").write_text(SITE)
    runner = ProcessPolicyRunner(load_site(tmp_path / "site.toml"), lambda: 120.0)
    process, loading = runner._process, threading.Event()
    questions = list[bytes]()

    def ask(question: bytes, limit_s: float) -> bytes:
        questions.append(question[:1])
        if question != COMPILER:
            return ChildProcess.ask(process, question, limit_s)
        loading.set()
        while process.alive:
            time.sleep(0.01)
        raise ConnectionResetError

    process.ask = ask  # type: ignore[method-assign]
    runner.start()
    view = View(at=0.0, types=("cpu",), jobs=MANY_JOBS, columns={}, seed=(0, 0), memory={})
    runner.answer(Ask(0, view))
    assert loading.wait(300)
    runner.close()
    runner._thread.join(300)
    assert questions == [READY, COMPILER] and not process.alive


def test_a_policy_that_sleeps_delays_neither_submissions_nor_leases(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    (tmp_path / "slow.py").write_text(SLOW)
    service = LiveService(tmp_path, SITE)
    try:
        service.start()
        client = service.operator
        running = client.submit({"command": ["sleep", "600"]})["id"]
        until(lambda: client.get(f"/v1/jobs/{running}")["state"] == "running", 240.0)
        (tmp_path / "sleep").touch()
        client.send("DELETE", f"/v1/jobs/{running}")
        waiting = client.submit({"command": ["sleep", "600"]})["id"]
        begun = time.monotonic()
        until(lambda: _overruns(client) >= 1, 60.0)
        assert client.get(f"/v1/jobs/{waiting}")["state"] == "pending"
        assert time.monotonic() - begun < 60.0
        (tmp_path / "sleep").unlink()
        until(lambda: client.get(f"/v1/jobs/{waiting}")["state"] == "running", 60.0)
        client.send("DELETE", f"/v1/jobs/{waiting}")
    finally:
        if service.process is not None and service.process.poll() is None:
            service.kill(15)
        service.stop_jobs()


def _overruns(client: Any) -> int:
    text, _ = client.text("/metrics")
    (line,) = [line for line in text.splitlines() if line.startswith("eunomia_solver_overruns_total ")]
    return int(float(line.split()[1]))


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        ("eunomia.service.server, eunomia.service.http.dashboard", {"pyarrow", "numba", "matplotlib", "highspy"}),
        ("eunomia.service.policy_process", {"pyarrow", "numba", "pydantic", "eunomia.scenario"}),
    ],
)
def test_an_idle_service_holds_no_library_that_it_does_not_use(modules: str, absent: set[str]) -> None:
    if "http" in modules:
        pytest.importorskip("starlette", reason="needs the extra service")
    code = f"import sys, {modules}; print(*sorted({absent!r} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
