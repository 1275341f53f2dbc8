"""Attacks a service from another process, by users' tokens only: `python -m tests.service.attack --minutes 4`.

On each store a service gets an honest user, whose jobs write down what happened to them, and users of other tenants who
ask for as much as they can, break off, send what is no request, and run jobs that do their worst. Meanwhile /healthz is
asked every second. At the end every honest job has done each of its steps and ended once, no accelerator had two
holders, and the service ends on SIGTERM. Prints what it saw as JSON, a line for each store.

With `--against URL` it attacks a service that runs: give tokens of submitters, separated by spaces, on standard input.

A further attack is a function in `ATTACKS`: it is called again and again with a client and a generator of numbers, and
whatever is answered to it, or raised in it, is part of the attack.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.service.bench import LiveService
from tests.service.postgres_server import programs, server

from eunomia.backends.processes.lock_holders import holders, lease_of, locks
from eunomia.service.client import Address, Client, ServiceRefusal, Unreachable

SITE = """\
[service]
listen = "127.0.0.1:0"
supervisor_lease_s = 30
max_pending_per_tenant = 60
log_mib = 1
DATABASE
[cluster]
accelerators = { cpu = 4 }
[policy]
name = "las"
quantum = 5
"""
SCRIPT, WORST = (Path(__file__).with_name(name) for name in ("recorded_job.py", "worst_job.py"))
DESCRIPTORS = 1024  # of the service
HONEST_EVERY_S, STEPS, STEP_S = 2.0, 3, 0.1
ENDED_S = 60.0  # a gang has ended so long after its stop: its grace, and until a frozen supervisor is killed
ENDS_WITHIN_S = 300.0  # after the attack
TENANTS = 4  # of attackers; each has the roles submitter and viewer


# ---- what attackers do -----------------------------------------------------------------------------------------------


def send(client: Client, method: str, path: str, body: bytes = b"", *, reads: bool = True, **headers: str) -> None:
    """Send a request, whatever its bytes are."""
    connection = client._connect()
    try:
        connection.request(method, path, body, {**client._headers(), **headers})
        if reads:
            connection.getresponse().read()
    finally:
        connection.close()


def hold(client: Client, text: str, count: int, held_s: float) -> None:
    """Hold connections that have each sent this."""
    parts = urlsplit(client.address.url)
    with contextlib.ExitStack() as ends:
        for _ in range(count):
            one = ends.enter_context(socket.create_connection((parts.hostname, parts.port), timeout=5))
            filled = text.replace("HOST", parts.netloc).replace("TOKEN", client.address.token)
            one.sendall(filled.encode("utf-8", "surrogateescape"))
        time.sleep(held_s)


def submit_many(client: Client, draw: random.Random) -> None:
    count = draw.choice((1, 20, 200, 10_000))
    job = {"command": ["sleep", str(draw.random())], "labels": {"n": "x" * draw.randrange(200)}}
    client.submit([job] * count if count > 1 else job)


def submit_arrays(client: Client, draw: random.Random) -> None:
    client.submit([{"command": ["x"], "array": "0-9999", "env": {"A": "x" * 4000}}] * draw.choice((1, 3, 2000)))


def leave_requests_half_sent(client: Client, draw: random.Random) -> None:
    head = draw.choice(("POST /login", "POST /v1/jobs", "POST /v1/whatif", "GET /v1/jobs"))
    rest = draw.choice(("", "X: y", "Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n5\r\n["))
    token = draw.choice(("", "Authorization: Bearer TOKEN\r\n"))
    hold(client, f"{head} HTTP/1.1\r\nHost: HOST\r\n{token}{rest}", 300, 3.0)


def keep_streams(client: Client, draw: random.Random) -> None:
    after = draw.choice(("", "?after=0", "?after=999999999"))
    hold(client, f"GET /v1/events{after} HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer TOKEN\r\n\r\n", 400, 3.0)


def take_no_answers(client: Client, draw: random.Random) -> None:
    path = draw.choice(("/openapi.json", "/v1/jobs?limit=1000", "/v1/tenants?days=3650"))
    hold(client, f"GET {path} HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer TOKEN\r\n\r\n" * 40, 50, 3.0)


def ask_for_the_dear(client: Client, draw: random.Random) -> None:
    job = draw.choice(client.get("/v1/jobs", limit=50)["jobs"] or [{"id": "1-x"}])["id"]
    asked = f"/v1/jobs/{job}"
    path = draw.choice((f"{asked}/when?arrivals=1", f"{asked}/why", "/v1/summary?days=3650", "/v1/decisions?limit=200",
                        "/v1/tenants?days=3650", "/v1/forecasts", "/metrics", "/", "/policy"))  # fmt: skip
    send(client, "GET", path, Cookie=f"eunomia={client.address.token}")


def ask_what_if(client: Client, draw: random.Random) -> None:
    question = draw.choice(({"policy": "max_min_fairness"}, {"nodes": {"cpu": 1}}, {"job": {"accelerators": 4}}))
    send(client, "POST", "/v1/whatif", json.dumps(question).encode())


def send_what_is_no_request(client: Client, draw: random.Random) -> None:
    raw = draw.choice((b"[" * 100_000, b'{"command": ["a"], "weight": ' + b"9" * 400 + b"}", draw.randbytes(5000),
                       b'{"command": ["\\ud800"]}', b'{"command": ["a"], "weight": 5e-324}', b" " * 2**21))  # fmt: skip
    path = draw.choice(("/v1/jobs", "/v1/whatif", "/v1/tokens", "/v1/jobs/1-x", "/login"))
    send(client, draw.choice(("POST", "PATCH", "PUT", "DELETE", "BREW")), path, raw, reads=draw.random() < 0.5)


def run_the_worst(client: Client, draw: random.Random) -> None:
    """Submit jobs that ignore being asked to stop, keep a processor busy, fail, or overwrite their own files."""
    code = draw.choice((
        "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)", "while True: pass", "1/0",
        "import os; open(os.environ['EUNOMIA_PROGRESS_FILE'], 'w').write('{\"step\": ' + '[' * 10000)",
        "import os; os.symlink('/etc/passwd', os.environ['EUNOMIA_PROGRESS_FILE'])",
    ))  # fmt: skip
    limits = {"max_run_s": 2, "retries": 1, "checkpoint": {"grace_s": 1}}
    job = client.submit({"command": [sys.executable, "-c", code], **limits})["id"]
    time.sleep(draw.random())
    client.send(*draw.choice((("DELETE", f"/v1/jobs/{job}"), ("POST", f"/v1/jobs/{job}/hold"))))


def guards(client: Client, draw: random.Random, ledger: Path) -> None:
    """Put what no field may hold into one, and submit jobs that spoil the files by which they report."""
    value = draw.choice(("\0", "\ud800", 10**400, 5e-324, 1e308, float("nan"), "x" * 10**6, [], {}, None, True, -1))
    field = draw.choice((
        "command", "name", "app", "cwd", "env", "labels", "accelerators", "weight", "total_steps", "duration_s",
        "deadline_s", "max_run_s", "retries", "checkpoint", "array", "after", "types",
    ))  # fmt: skip
    with contextlib.suppress(ServiceRefusal):
        send(client, "POST", "/v1/jobs", json.dumps({"command": ["true"], field: value}).encode())
    _run(client, draw, ledger, "spoil_reports", "spoil_folder")


def gangs(client: Client, draw: random.Random, ledger: Path) -> None:
    """Submit jobs whose processes escape, multiply, write without end, use memory, stop or kill what watches them."""
    _run(client, draw, ledger, "start_without_end", "escape", "write_without_end", "use_memory", "stop_supervisor",
         "kill_supervisor")  # fmt: skip


def _run(client: Client, draw: random.Random, ledger: Path, *kinds: str) -> None:
    """Run a job that does its worst for a while. What it may use is bounded, as this machine has others."""
    limits = {"max_run_s": 4, "checkpoint": {"grace_s": 1}, "memory_gib": 0.3, "cpus": 0.5}
    command = [sys.executable, str(WORST), str(ledger), draw.choice(kinds)]
    job = client.submit({"command": command, "env": {"PYTHONPATH": os.pathsep.join(sys.path)}, **limits})["id"]
    time.sleep(4 * draw.random())
    if draw.random() < 0.3:
        client.send("DELETE", f"/v1/jobs/{job}")


ATTACKS: tuple[Callable[[Client, random.Random], None], ...] = (
    submit_many, submit_arrays, leave_requests_half_sent, keep_streams, take_no_answers, ask_for_the_dear, ask_what_if,
    send_what_is_no_request, run_the_worst,
)  # fmt: skip
HOSTILE_JOBS = (guards, gangs)  # their jobs write down, in a ledger, when an accelerator has two holders


def attack(url: str, seconds: float, tokens: list[str], ledger: Path) -> Counter[str]:
    """Attack for so long, each attack in a thread of its own; return what came of them, and how often."""
    deadline, found = time.monotonic() + seconds, Counter[str]()

    def go_on(name_of: str, what: Callable[[Client, random.Random], None], mine: list[str], seed: int) -> None:
        draw = random.Random(seed)
        while time.monotonic() < deadline:
            name = "done"
            try:
                what(Client(Address(url, draw.choice(mine))), draw)
            except ServiceRefusal as error:
                name = str(error.status)
            except (Unreachable, OSError, ValueError) as error:
                name = type(error).__name__
            found[f"{name_of}: {name}"] += 1
            time.sleep(0.01)

    others, theirs = tokens[:-2] or tokens, tokens[-2:-1] or tokens  # the places of one tenant are for hostile jobs
    attacks = [(one.__name__, one, others) for one in ATTACKS]
    attacks += [(one.__name__, partial(one, ledger=ledger), theirs) for one in HOSTILE_JOBS]
    threads = [threading.Thread(target=go_on, args=(*one, seed)) for seed, one in enumerate(attacks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


# ---- what must hold --------------------------------------------------------------------------------------------------


class Health:
    """Asks /healthz every second in a thread."""

    def __init__(self, url: str) -> None:
        self.taken, self.failed = list[float](), list[str]()
        self._url, self._ends = url, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.wait(1.0):
            begun = time.perf_counter()
            try:
                with urllib.request.urlopen(f"{self._url}/healthz", timeout=30) as answer:
                    assert answer.status == 200
            except OSError as error:
                self.failed.append(repr(error))
            self.taken.append(time.perf_counter() - begun)

    def end(self) -> None:
        """Stop asking."""
        self._ends.set()
        self._thread.join()


class Locks:
    """Looks in a thread for accelerators that a process has locked, and that the store has as free or as another's."""

    def __init__(self, client: Client, jobs: Path) -> None:
        self.astray = dict[tuple[int, int], float]()  # (seat, process) → for how long, in s, at most
        self._client, self._jobs, self._ends = client, jobs, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        since = dict[tuple[int, int], float]()
        while not self._ends.wait(1.0):
            held = locks()
            found = {(int(path.stem), pid) for path in self._jobs.glob("seats/*.lock") for pid in holders(path, held)}
            try:
                astray = {one for one in found if not self._is_known(*one)} if found else set()
            except (Unreachable, ServiceRefusal):
                continue
            since = {one: since.get(one, time.monotonic()) for one in astray}
            for one, at in since.items():
                self.astray[one] = max(self.astray.get(one, 0.0), time.monotonic() - at)

    def _is_known(self, seat: int, pid: int) -> bool:
        taken = {int(one) for node in self._client.get("/v1/nodes")["nodes"] for one in node["taken"]}
        job = Path(lease_of(pid)).parent.name
        return seat in taken or not job or seat in self._client.get(f"/v1/jobs/{job}").get("seats", ())

    def end(self) -> dict[tuple[int, int], float]:
        """Stop; return what was astray for longer than a gang may take to end."""
        self._ends.set()
        self._thread.join()
        return {one: took for one, took in self.astray.items() if took > ENDED_S}


def honest(client: Client, ledger: Path, seconds: float) -> list[str]:
    """Submit a job every few seconds for so long; return their ids. Each is sent until it is taken, with its key."""
    deadline, ids = time.monotonic() + seconds, list[str]()
    command = [sys.executable, str(SCRIPT), str(ledger), str(STEPS), str(STEP_S)]
    while time.monotonic() < deadline:
        key = f"honest-{len(ids):08}"
        for _ in itertools.count():
            try:
                ids.append(client.submit({"command": command, "total_steps": STEPS}, key)["id"])
                break
            except (Unreachable, ServiceRefusal):
                time.sleep(0.2)
        time.sleep(HONEST_EVERY_S)
    return ids


def doubles(ledger: Path) -> list[str]:
    """Return what jobs wrote down about accelerators that had two holders."""
    return [line for line in ledger.read_text().splitlines() if line.startswith("DOUBLE")]


def run(folder: Path, seconds: float, database: str = "") -> dict[str, Any]:
    """Attack a service in a folder; return what was seen. Raises AssertionError for what does not hold."""
    service = LiveService(folder, SITE.replace("DATABASE", f'database = "{database}"' if database else ""))
    service.start()
    assert service.process is not None
    try:
        return {"store": "postgresql" if database else "sqlite", **_attacked(service, folder, seconds)}
    finally:
        if service.process.poll() is None:
            service.kill()
        service.stop_jobs()


def _attacked(service: LiveService, folder: Path, seconds: float) -> dict[str, Any]:
    assert service.process is not None
    limits = ("prlimit", f"--nofile={DESCRIPTORS}:", "--pid")
    subprocess.run([*limits, str(service.process.pid)], check=True)
    ledger, ann = folder / "ledger", service.client("ann", "honest")
    ledger.touch()
    users = [(f"user{n}", f"tenant{n}", role) for n in range(TENANTS) for role in ("submitter", "viewer")]
    tokens = [service.client(*user).address.token for user in users]
    health, seats = Health(service.url), Locks(service.operator, folder / "state" / "jobs")
    command = ["nice", sys.executable, "-m", "tests.service.attack", "--against", service.url,
               "--minutes", str(seconds / 60), "--ledger", str(ledger)]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as attacker:
        assert attacker.stdin is not None and attacker.stdout is not None
        attacker.stdin.write(" ".join(tokens))
        attacker.stdin.close()
        ids = honest(ann, ledger, seconds)
        seen = json.loads(attacker.stdout.read())
    deadline = time.monotonic() + ENDS_WITHIN_S
    states, left = Counter[str](), list[str]()
    while states != Counter(succeeded=len(ids)):
        assert service.process.poll() is None, (folder / "log").read_text()[-5000:]
        assert time.monotonic() < deadline, [
            one for job in left for one in (ann.get(f"/v1/jobs/{job}"), ann.get(f"/v1/jobs/{job}/why"))
        ] + [service.operator.get("/v1/nodes")]  # fmt: skip
        time.sleep(0.5)
        state = {job: ann.get(f"/v1/jobs/{job}")["state"] for job in ids}
        states, left = Counter(state.values()), [job for job in ids if state[job] != "succeeded"]
    health.end()
    lines = ledger.read_text().splitlines()
    for job in ids:
        mine = [line.split() for line in lines if f" {job} " in line]
        assert sorted({int(words[3]) for words in mine if words[0] == "step"}) == list(range(STEPS)), mine
        ends = [int(words[3]) for words in mine if words[0] == "end"]  # one that is preempted ends with fewer steps
        assert ends.count(STEPS) == 1, mine
    assert not doubles(ledger)
    astray = seats.end()
    assert not astray, astray
    assert not health.failed, (health.failed, len(health.taken), max(health.taken), len(ids))
    code = service.kill(signal.SIGTERM)
    assert code == 0, code
    slowest = round(max(health.taken), 3)
    return {"seconds": seconds, "honest_jobs": len(ids), "health_asked": len(health.taken),
            "health_slowest_s": slowest, "attacks": seen}  # fmt: skip


@contextlib.contextmanager
def stores() -> Iterator[list[str]]:
    """Yield the addresses of the stores to try: a file, and a database where PostgreSQL is installed."""
    if (binaries := programs()) is None:
        yield [""]
        return
    with server(binaries) as place:
        yield ["", f"postgresql://tester@/postgres?host={place}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=4.0, help="for all stores together")
    parser.add_argument("--against", metavar="URL", help="be the attacker; tokens are read from standard input")
    parser.add_argument("--ledger", type=Path, metavar="FILE", help="where the attacker's jobs write, on its machine")
    given = parser.parse_args()
    if given.against:
        if not (tokens := sys.stdin.read().split()):
            parser.error("give tokens of submitters on standard input")
        with tempfile.TemporaryDirectory(prefix="eunomia-attack-") as folder:
            os.chmod(folder, 0o777)  # jobs may run under other accounts
            ledger = given.ledger or Path(folder) / "ledger"
            ledger.touch(0o666)
            found = attack(given.against, 60 * given.minutes, tokens, ledger)
            if held_twice := len(doubles(ledger)):
                found["accelerators with two holders"] = held_twice
        sys.stdout.write(json.dumps(found) + "\n")
        return
    with stores() as addresses:
        for address in addresses:
            with tempfile.TemporaryDirectory(prefix="eunomia-attack-") as folder:
                os.chmod(folder, 0o755)
                seen = run(Path(folder), 60 * given.minutes / len(addresses), address)
                sys.stdout.write(json.dumps(seen) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
