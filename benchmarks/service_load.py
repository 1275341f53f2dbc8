"""Measures the service on this machine, generator included: `python benchmarks/service_load.py [CASE ...]`.

Cases, all of them if none is named:

    submissions   durable single submissions over 64 connections with authentication, and one list of 10,000 jobs
    waiting       100,000 waiting jobs of ten tenants: pages, `why`, decisions, restarts
    active        2,048 active jobs, half of them running: decisions of three policies, each asked in its own process
    snapshots     single submissions with 100,000 waiting jobs, while snapshots are taken
    idle          a minute without work: memory and processor time
    slurm         a slurmctld on this machine and the service after it: accepted jobs lost by kill -9, submissions, a
                  listing, expected starts; Slurm has to be installed (`make test-slurm` does it), and only root can
                  start its daemons

Prints a line of JSON for each, with the machine's load average before and after: wall-clock times of a busy machine are
those of a busy machine. `goals` says which of the specification's were met.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request as UrlRequest
from urllib.request import urlopen

from eunomia.backends.reports import GangEnded, Launched, OrderTaken
from eunomia.service import replay_cost
from eunomia.service.client import Address, Client
from eunomia.service.clock import MonotonicClock
from eunomia.service.job_document import parse_job
from eunomia.service.messages import Launch, Principal, Request, Submit
from eunomia.service.recovery import recover
from eunomia.service.site import load_site
from eunomia.service.solver_process import Solver
from eunomia.service.store import open_store
from eunomia.service.writer import Writer

SITE = """\
[service]
listen = "127.0.0.1:0"
submit_per_second = 1000000
forecast_every_s = {forecast_every_s}
[cluster]
accelerators = {{ cpu = {accelerators} }}
[policy]
name = "{policy}"
"""
CONNECTIONS = 64
SUBMISSIONS = 3000
TENANTS, PER_TENANT = 10, 10_000
ACTIVE, RUNNING, ENDS = 2048, 1024, 200
IDLE_S = 60.0
IN_TURN, AT_ONCE, CLIENTS = 100, 2000, 16  # submissions one after the other; by so many clients
KILLS, KILLED = 5, 60  # kills of the controller, each at once after so many submissions
JOB = {
    "command": ["sleep", "86400"],
    "name": "load",
    "labels": {"note": "x" * 100},
    "duration_s": 86400,
    "interruptible": True,
}
BODY = json.dumps(JOB)


# ---- a service as a process ------------------------------------------------------------------------------------------


class Served:
    """`eunomia serve` in a folder of its own."""

    def __init__(
        self, policy: str = 'fifo"\nbackfill = "skip', accelerators: int = 1, forecast_every_s: int = 0
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="eunomia-load-", dir=os.environ.get("LOAD_DIR")))
        text = SITE.format(policy=policy, accelerators=accelerators, forecast_every_s=forecast_every_s)
        (self.folder / "site.toml").write_text(text)
        self.start()

    def start(self) -> float:
        """Start it; return the seconds until it was ready."""
        begun = time.perf_counter()
        with open(self.folder / "log", "a") as log:
            command = [sys.executable, "-m", "eunomia", "serve", "site.toml"]
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1]
        return time.perf_counter() - begun

    def stop(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait()

    @property
    def operator(self) -> Client:
        return Client(Address(self.url, (self.folder / "state" / "operator.token").read_text().strip()))

    def client(self, user: str, tenant: str) -> Client:
        made = self.operator.send("POST", "/v1/tokens", {"user": user, "tenant": tenant, "role": "submitter"})
        return Client(Address(self.url, made["token"]))

    def end(self) -> None:
        """Cancel what runs, and stop."""
        for job in self.operator.get("/v1/jobs", state="running,starting")["jobs"]:
            self.operator.send("DELETE", f"/v1/jobs/{job['id']}")
        self.stop()

    def processes(self) -> list[int]:
        """Return the service's process and those that it started, without jobs."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        children = [pid for task in tasks for pid in task.read_text().split()]
        mine = [int(pid) for pid in children if b"supervisor" not in Path(f"/proc/{pid}/cmdline").read_bytes()]
        return [self.process.pid, *mine]


async def submit_many(url: str, token: str, count: int, connections: int = CONNECTIONS) -> list[float]:
    """Submit over kept connections; return the seconds of each answer."""
    parts, taken, left = urlsplit(url), list[float](), iter(range(count))
    head = f"POST /v1/jobs HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
    request = f"{head}Content-Length: {len(BODY)}\r\n\r\n{BODY}".encode()

    async def one() -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        for _ in left:
            begun = time.perf_counter()
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 201"), answer
            size = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(size.split(b":")[1]))
            taken.append(time.perf_counter() - begun)
        writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))
    return taken


def p99(seconds: Iterable[float]) -> float:
    """Return the 99th percentile in ms."""
    found = sorted(seconds)
    return round(found[int(0.99 * len(found))] * 1e3, 1)


def median(seconds: Iterable[float]) -> float:
    found = sorted(seconds)
    return round(found[len(found) // 2] * 1e3, 1)


def timed(calls: Iterable[Callable[[], Any]]) -> list[float]:
    taken = []
    for call in calls:
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return taken


def cpu_s(pid: int) -> float:
    """Return the seconds of a processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return round(int(text.split("VmRSS:")[1].split()[0]) / 1024, 1)


# ---- cases -----------------------------------------------------------------------------------------------------------


def submissions() -> dict[str, Any]:
    served = Served()
    client, pid = served.operator, served.process.pid
    begun, before = time.perf_counter(), cpu_s(pid)
    taken = asyncio.run(submit_many(served.url, client.address.token, SUBMISSIONS))
    seconds = time.perf_counter() - begun
    found = {"submissions_per_s": round(SUBMISSIONS / seconds), "submission_p99_ms": p99(taken)}
    found["service_cpu_ms_per_submission"] = round((cpu_s(pid) - before) / SUBMISSIONS * 1e3, 3)
    begun, before = time.perf_counter(), cpu_s(pid)
    client.submit([JOB] * PER_TENANT)
    found |= {"list_of_10000_s": round(time.perf_counter() - begun, 2)}
    found |= {"list_of_10000_cpu_s": round(cpu_s(pid) - before, 2)}
    served.end()
    met = {"1,000 submissions/s": found["submissions_per_s"] >= 1000, "p99 100 ms": found["submission_p99_ms"] <= 100}
    return {**found, "goals": {**met, "list 1 s": found["list_of_10000_s"] <= 1}}


def waiting() -> dict[str, Any]:
    served = Served()
    clients = [served.client(f"user{n}", f"tenant{n}") for n in range(TENANTS)]
    ids = [client.submit([JOB] * PER_TENANT)["ids"] for client in clients]
    draw = random.Random(0)
    asked = [(n, draw.choice(ids[n])) for n in (draw.randrange(TENANTS) for _ in range(300))]
    pid, found = served.process.pid, dict[str, Any]()
    before = cpu_s(pid)
    whys = timed((lambda n=n, job=job: clients[n].get(f"/v1/jobs/{job}/why", played=0)) for n, job in asked)
    found |= {"why_p50_ms": median(whys), "why_p99_ms": p99(whys)}
    found["why_cpu_ms"] = round((cpu_s(pid) - before) / len(asked) * 1e3, 2)
    pages = timed((lambda n=n: clients[n].get("/v1/jobs", limit=100)) for n, _ in asked)
    states = timed((lambda n=n: clients[n].get("/v1/jobs", limit=100, state="pending")) for n, _ in asked)
    found |= {"page_p99_ms": p99(pages), "page_by_state_p99_ms": p99(states), "rss_mib": memory_mib(pid)}
    found["dashboard_first_and_median_ms"] = _dashboard(served, ids[0][-1])
    found |= _decisions_of(served)
    served.stop(signal.SIGKILL)
    found["restart_after_kill_s"] = round(served.start(), 2)
    served.stop()
    found["restart_from_snapshot_s"] = round(served.start(), 2)
    served.end()
    most = found["decision_p99_at_most_s"]
    met = {"why p99 100 ms": found["why_p99_ms"] <= 100, "page p99 100 ms": found["page_p99_ms"] <= 100}
    met |= {"dashboard 0.3 s": max(max(both) for both in found["dashboard_first_and_median_ms"].values()) <= 300}
    met |= {"decision p99 1 s": most is not None and most <= 1, "restart 5 s": found["restart_from_snapshot_s"] <= 5}
    return {"waiting": TENANTS * PER_TENANT, "tenants": TENANTS, **found, "goals": met}


def _dashboard(served: Served, job: str) -> dict[str, tuple[float, float]]:
    """Return how long each page takes for an operator, in ms: the first time, and the median of ten."""

    def read(path: str) -> None:
        cookie = {"Cookie": f"eunomia={served.operator.address.token}"}
        with urlopen(UrlRequest(served.url + path, headers=cookie)) as answer:
            answer.read()

    taken = {}
    for path in ("/", "/jobs", "/jobs?state=pending", f"/jobs/{job}", "/tenants", "/nodes", "/policy"):
        first, *others = timed([lambda path=path: read(path)] * 11)
        taken[path.replace(job, "ID")] = round(first * 1e3, 1), median(others)
    return taken


def _decisions_of(served: Served, count: int = 100) -> dict[str, Any]:
    """Cancel the running job again and again, so that the policy is asked about all others; return how long it took."""
    client = served.operator
    before, cpu = _counted(client), sum(map(cpu_s, served.processes()))
    for _ in range(count):
        while not (running := client.get("/v1/jobs", state="starting,running", limit=1)["jobs"]):
            time.sleep(0.01)
        decided = _counted(client)["+Inf"]
        client.send("DELETE", f"/v1/jobs/{running[0]['id']}")
        while _counted(client)["+Inf"] == decided:
            time.sleep(0.005)
    after = _counted(client)
    total = after["+Inf"] - before["+Inf"]
    bound = next(bound for bound in after if after[bound] - before[bound] >= 0.99 * total)
    used = sum(map(cpu_s, served.processes())) - cpu
    return {"decisions": int(total), "decision_p99_at_most_s": None if bound == "+Inf" else float(bound),
            "cpu_ms_per_decision": round(used / count * 1e3, 1)}  # fmt: skip


def _counted(client: Client) -> dict[str, float]:
    """Return how many decisions took at most so many seconds."""
    text, _ = client.text("/metrics")
    return {bound: float(count) for bound, count in re.findall(r'decision_seconds_bucket\{le="(.*)"\} (\d+)', text)}


class _Launcher:
    """A world in which every gang starts at once, and ends when it is stopped."""

    def __init__(self, writer: Writer) -> None:
        self._writer, self.running = writer, list[tuple[str, int]]()
        self.lock = threading.Lock()

    def carry_out(self, orders: Iterable[Any]) -> None:
        for order in orders:
            self._writer.put(OrderTaken(order.number))
            if isinstance(order, Launch):
                self._writer.put(Launched(order.job_id, order.epoch))
                with self.lock:
                    self.running.append((order.job_id, order.epoch))
            else:
                with self.lock:
                    if (order.job_id, order.epoch) in self.running:
                        self.running.remove((order.job_id, order.epoch))
                self._writer.put(GangEnded(order.job_id, order.epoch, "stopped"))

    def use_topology(self, topology: Any) -> None:
        """Gangs need no place here."""


def active() -> dict[str, Any]:
    found = {policy: _active(policy) for policy in ("fifo", "las", "max_min_fairness")}
    met = {f"{policy}: decision p99 100 ms": one["decision_p99_ms"] <= 100 for policy, one in found.items()}
    return {"active": ACTIVE, "running": RUNNING, **found, "goals": met}


def _active(policy: str) -> dict[str, Any]:
    """End jobs one after the other while as many come; return how long decisions took, from store to orders."""
    with _written_to(policy, RUNNING) as writer:
        return _active_in(writer)


def _active_in(writer: Writer) -> dict[str, Any]:
    world = writer.world
    assert isinstance(world, _Launcher)
    taken: list[float] = []
    add = writer.decision_times.add
    writer.decision_times.add = lambda seconds: (taken.append(seconds), add(seconds))[1]  # type: ignore[method-assign]
    draw, who = random.Random(0), [Principal(f"u{n}", f"tenant{n}", "submitter") for n in range(TENANTS)]
    document = parse_job(JOB)
    for n in range(ACTIVE):
        writer.ask(Request(Submit((document,), f"key-{n:08}", "d"), who[n % TENANTS])).result()
    while len(world.running) < RUNNING:
        time.sleep(0.05)
    time.sleep(2.0)
    taken.clear()
    before = time.process_time()
    for n in range(ENDS):
        with world.lock:
            job = world.running.pop(draw.randrange(len(world.running)))
        count = len(taken)
        writer.put(GangEnded(*job, "finished"))
        writer.ask(Request(Submit((document,), f"more-{n:08}", "d"), who[n % TENANTS])).result()
        while len(taken) == count:
            time.sleep(0.002)
    found = {"decisions": len(taken), "decision_p50_ms": median(taken), "decision_p99_ms": p99(taken)}
    found["cpu_ms_per_end_without_solver"] = round((time.process_time() - before) / ENDS * 1e3, 1)
    return found


@contextlib.contextmanager
def _written_to(policy: str, accelerators: int) -> Iterator[Writer]:
    """A writer's thread of a new store in this process, without HTTP, and a policy in a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix="eunomia-load-", dir=os.environ.get("LOAD_DIR")))
    path = folder / "site.toml"
    path.write_text(SITE.format(policy=policy, accelerators=accelerators, forecast_every_s=0))
    site = load_site(path)
    store, solver = open_store(site.place, site.state), Solver()
    controller, _ = recover(store, site, solver.runner(site))
    writer = Writer(controller, store, MonotonicClock(None))
    writer.world = _Launcher(writer)
    solver.begin(writer)
    thread = threading.Thread(target=writer.run, daemon=True)
    thread.start()
    try:
        yield writer
    finally:
        writer.stop()
        thread.join()
        solver.close()
        store.close()


def snapshots() -> dict[str, Any]:
    """Submit jobs one after the other while a snapshot is due every few moments."""
    many, one = (Principal(name, name, "submitter") for name in ("many", "one"))
    document = parse_job(JOB)
    replay_cost.MOST_MOMENTS = 1000  # half of them, as nothing else waits
    with _written_to('fifo"\nbackfill = "skip', 1) as writer:
        for n in range(TENANTS):
            writer.ask(Request(Submit((document,) * PER_TENANT, f"list-{n:08}", "d", True), many)).result()
        taken = timed(
            (lambda n=n: writer.ask(Request(Submit((document,), f"key-{n:08}", "d"), one)).result())
            for n in range(1500)
        )
        last = writer.controller.moments
        stored = writer.change(lambda writer: [seq for seq, *_ in writer.store.snapshots()]).result()
    found = {
        "moments": last,
        "snapshots_at": stored,
        "submission_p50_ms": median(taken),
        "submission_p99_ms": p99(taken),
    }
    found |= {"submission_longest_ms": [round(one * 1e3) for one in sorted(taken)[-5:]]}
    return {"waiting": TENANTS * PER_TENANT, **found, "goals": {"p99 100 ms": p99(taken) <= 100}}


def idle() -> dict[str, Any]:
    served = Served(policy="las", accelerators=4, forecast_every_s=30)
    time.sleep(10.0)
    pids = served.processes()
    before = [cpu_s(pid) for pid in pids]
    time.sleep(IDLE_S)
    used = [cpu_s(pid) - was for pid, was in zip(pids, before, strict=True)]
    memory = [memory_mib(pid) for pid in pids]
    served.stop()
    share = round(100 * sum(used) / IDLE_S, 2)
    found = {"rss_mib": memory[0], "rss_of_its_processes_mib": memory[1:], "cpu_percent": share}
    return {**found, "goals": {"150 MB": sum(memory) * 1.048576 <= 150, "0.5 % of a core": share <= 0.5}}


def slurm() -> dict[str, Any]:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.slurm.loopback import LoopbackCluster, why_not

    if reason := why_not():
        return {"skipped": reason}
    cluster = LoopbackCluster(Path(tempfile.mkdtemp(prefix="eunomia-load-", dir=os.environ.get("LOAD_DIR"))))
    try:
        killed = _lost_by_slurm(cluster)
        cluster.clear()
        theirs = {**killed, **_slurm_figures()}
    finally:
        cluster.close()
    return {"slurm": theirs, "eunomia": {**_lost_by_us(), **_our_figures()}, "waiting": IN_TURN + AT_ONCE}


def _call(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def _sbatch() -> str:
    """Submit a job, and return its id."""
    words = ("--parsable", "--gres=gpu:1", "--time=60", "--output=/dev/null", "--wrap=sleep 86400")
    return _call("sbatch", *words).strip()


def _lost_by_slurm(cluster: Any) -> dict[str, Any]:
    """Kill slurmctld at once after submissions; count accepted jobs that it does not know when it is up again."""
    lost, used_twice = list[int](), 0
    for _ in range(KILLS):
        accepted = [_sbatch() for _ in range(KILLED)]
        cluster.signal_controller(signal.SIGKILL)
        cluster.start_controller()
        kept = set(_call("squeue", "--noheader", "--format=%i").split())
        lost.append(sum(job not in kept for job in accepted))
        used_twice += _sbatch() in accepted
    return {"lost_by_kill": lost, "of": KILLED, "kills_after_which_an_id_was_used_again": used_twice}


def _lost_by_us() -> dict[str, Any]:
    """Do the same to the service."""
    served, lost, used_twice = Served(accelerators=16), list[int](), 0
    for _ in range(KILLS):
        client = served.operator
        accepted = [client.submit(JOB)["id"] for _ in range(KILLED)]
        served.stop(signal.SIGKILL)
        served.start()
        kept = {job["id"] for job in served.operator.get("/v1/jobs", limit=1000)["jobs"]}
        lost.append(sum(job not in kept for job in accepted))
        used_twice += served.operator.submit(JOB)["id"] in accepted
    served.end()
    return {"lost_by_kill": lost, "of": KILLED, "kills_after_which_an_id_was_used_again": used_twice}


def _slurm_figures() -> dict[str, float | str]:
    """Submit, list, and ask when jobs start, by Slurm's own commands, which are processes of their own each."""
    begun = time.perf_counter()
    for _ in range(IN_TURN):
        _sbatch()
    between = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(_sbatch) for _ in range(AT_ONCE)]:
            done.result()
    end = time.perf_counter()
    listed = timed([lambda: _call("squeue", "--noheader")] * 10)
    starts = timed([lambda: _call("squeue", "--noheader", "--start")] * 10)
    last = _call("squeue", "--noheader", "--format=%i", "--sort=-i").split()[0]
    one = timed([lambda: _call("squeue", "--noheader", "--start", f"--jobs={last}")] * 10)
    expected = _call("squeue", "--noheader", "--format=%S", "--states=PENDING").split()
    return {
        "version": _call("sbatch", "--version").split()[-1],
        "submissions_in_turn_per_s": round(IN_TURN / (between - begun)),
        "submissions_at_once_per_s": round(AT_ONCE / (end - between)),
        "list_of_all_ms": median(listed),
        "starts_of_all_ms": median(starts),
        "start_of_one_ms": median(one),
        "waiting_with_a_start": sum(start != "N/A" for start in expected),
    }


def _our_figures() -> dict[str, float]:
    """Do the same over HTTP with a token, every submission synced to disk before it is answered."""
    served = Served(accelerators=16)
    client = served.operator
    token = client.address.token
    in_turn = asyncio.run(submit_many(served.url, token, IN_TURN, connections=1))
    begun = time.perf_counter()
    asyncio.run(submit_many(served.url, token, AT_ONCE, connections=CLIENTS))
    end = time.perf_counter()

    def list_all() -> list[str]:
        ids, cursor = list[str](), dict[str, Any]()
        while True:
            page = client.get("/v1/jobs", limit=1000, **cursor)
            ids += [job["id"] for job in page["jobs"]]
            if page["next"] is None:
                return ids
            cursor = {"cursor": page["next"]}

    listed = timed([list_all] * 10)
    last = list_all()[0]
    one = timed([lambda: client.get(f"/v1/jobs/{last}/when")] * 10)
    served.end()
    return {
        "submissions_in_turn_per_s": round(IN_TURN / sum(in_turn)),
        "submissions_at_once_per_s": round(AT_ONCE / (end - begun)),
        "list_of_all_ms": median(listed),
        "start_of_one_ms": median(one),
        "first_start_of_one_ms": round(one[0] * 1e3, 1),
    }


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "submissions": submissions, "waiting": waiting, "active": active, "snapshots": snapshots, "idle": idle,
    "slurm": slurm,
}  # fmt: skip


def main() -> None:
    chosen = sys.argv[1:] or list(CASES)
    if wrong := [name for name in chosen if name not in CASES]:
        sys.exit(f"there is no case {wrong[0]!r}; name some of {', '.join(CASES)}")
    for name in chosen:
        before = os.getloadavg()[0]
        found = CASES[name]()
        load = {"load_average": [round(before, 1), round(os.getloadavg()[0], 1)], "processors": os.cpu_count()}
        print(json.dumps({"command": f"python benchmarks/service_load.py {name}", **load, **found}), flush=True)


if __name__ == "__main__":
    main()
