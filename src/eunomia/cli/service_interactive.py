"""Commands of interactive jobs: `shell`, `notebook`, `attach`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eunomia.cli.errors import FAILED
from eunomia.cli.options import argument, option
from eunomia.cli.service_jobs import JobArgument, _span, shell_variables
from eunomia.cli.service_session import UNREACHABLE, ServiceSession, client_command, printed

if TYPE_CHECKING:
    from eunomia.service.client import Client

LOOK_S, PLACE_S, WHEN_S = 0.5, 5.0, 60.0  # between looks at the state, the place in the queue, and the forecast
OVER = ("succeeded", "failed", "cancelled", "rejected", "quarantined")
TERMINAL = ("TERM", "COLORTERM", "LANG", "LC_ALL", "LC_CTYPE")  # what programs at a terminal go by

GpusOption = Annotated[int, option("N", "Accelerators.")]
TypeOption = Annotated[str, option("A,B", "Accelerator types, any of which will do.", "--type")]
TimeOption = Annotated[
    str | None, option("TIME", "Longest time, such as 2h or 1:30:00; left out, what the site allows.", "--time")
]
NameOption = Annotated[str | None, option("NAME", "Name for display.")]
CpusOption = Annotated[float, option("N", "CPUs; 0 = no limit.")]
MemoryOption = Annotated[float, option("GIB", "Memory in GiB; 0 = no limit.")]
DetachOption = Annotated[str, option("KEY", "Key that detaches: ^A to ^_, or none.")]
ForwardOption = Annotated[int, option("PORT", "Port of this machine for the browser; 0 = any that is free.")]


@client_command
def shell(
    session: ServiceSession,
    command: Annotated[list[str] | None, argument("-- COMMAND…", "What runs in it; left out: your shell.")] = None,
    gpus: GpusOption = 1,
    type_: TypeOption = "",
    time_: TimeOption = None,
    name: NameOption = None,
    cpus: CpusOption = 0.0,
    memory_gib: MemoryOption = 0.0,
    detach_key: DetachOption = "^\\",
) -> None:
    """Open a terminal on accelerators.

    It counts as a job and ends with the shell, with its time, or when it has been idle for long. Ctrl-\\ detaches and
    leaves it running. For example: eunomia shell --gpus 1 --time 2h
    """
    key = _key(detach_key)
    job_id = _submitted(session, "shell", command or ["$SHELL"], gpus, type_, time_, name, cpus, memory_gib)
    _use_terminal(session, job_id, key)


@client_command
def notebook(
    session: ServiceSession,
    arguments: Annotated[list[str] | None, argument("-- ARGUMENT…", "Further arguments of jupyter lab.")] = None,
    gpus: GpusOption = 1,
    type_: TypeOption = "",
    time_: TimeOption = None,
    name: NameOption = None,
    cpus: CpusOption = 0.0,
    memory_gib: MemoryOption = 0.0,
    forward: ForwardOption = 8888,
) -> None:
    """Run JupyterLab on accelerators, for a browser of this machine.

    Ctrl-C ends the forwarding and leaves it running. For example: eunomia notebook --gpus 1 --time 4h
    """
    listener = _listener(forward)
    words = ["jupyter", "lab", *(arguments or [])]
    job_id = _submitted(session, "notebook", words, gpus, type_, time_, name, cpus, memory_gib)
    _forward(session, job_id, listener)


@client_command
def attach(
    session: ServiceSession,
    job_id: JobArgument,
    detach_key: DetachOption = "^\\",
    forward: ForwardOption = 8888,
) -> None:
    """Go back to a terminal or a notebook.

    For example: eunomia attach 17-k3f9a
    """
    key = _key(detach_key)
    if session.client.get(session.client.job_path(job_id))["spec"].get("interactive") == "notebook":
        listener = _listener(forward)
        _wait_until_it_runs(session.client, job_id)
        _forward(session, job_id, listener)
    else:
        _use_terminal(session, job_id, key)


def _submitted(
    session: ServiceSession, kind: str, command: list[str], gpus: int, types: str, time_: str | None,
    name: str | None, cpus: float, memory_gib: float,
) -> str:  # fmt: skip
    """Submit an interactive job and wait until it runs; return its id. Ctrl-C cancels it."""
    client = session.client
    screen = {name: os.environ[name] for name in TERMINAL if os.environ.get(name)}
    given = {
        "name": name, "types": [one for one in types.split(",") if one], "max_run_s": _span(time_, "--time"),
        "cpus": cpus, "memory_gib": memory_gib,
        "env": shell_variables(client) | screen, "cwd": str(Path.cwd()) if client.address.is_here else None,
    }  # fmt: skip
    job: dict[str, Any] = {"command": command, "accelerators": gpus, "interactive": kind}
    job_id = str(client.submit(job | {key: value for key, value in given.items() if value})["id"])
    try:
        _wait_until_it_runs(client, job_id)
    except KeyboardInterrupt:
        client.send("DELETE", client.job_path(job_id))
        _say(f"job {job_id} is cancelled")
        raise typer.Exit(130) from None
    return job_id


def _wait_until_it_runs(client: Client, job_id: str) -> None:
    """Say where a job is in the queue, and when it is believed to start, until it runs."""
    said, place_at, when_at, when = "", 0.0, 0.0, ""
    while True:
        found, now = client.get(client.job_path(job_id)), time.monotonic()
        if found["state"] in OVER:
            _say(f"job {job_id} is {found['state']}: {printed(found['reason'] or 'it ended')}")
            raise typer.Exit(FAILED)
        if found["state"] == "running":
            _say(f"job {job_id} runs on {found['type']} {','.join(map(str, found['seats']))}")
            return
        if found["state"] != "starting" and now >= place_at:
            place_at = now + PLACE_S
            if said and now >= when_at:  # a forecast may take long: first where it is
                when, when_at = _when(client, job_id), now + WHEN_S
            text = f"job {job_id} waits{_place(client, job_id)}{when}; Ctrl-C cancels it"
            if text != said:
                _say(text)
                said = text
        time.sleep(LOOK_S)


def _place(client: Client, job_id: str) -> str:
    found = client.get(f"{client.job_path(job_id)}/why", played=0)
    first = f": {printed(found['reasons'][0]['text'])}" if found["reasons"] else ""
    return f", {found['ahead']} before it{first}" if found.get("ahead") else first


def _when(client: Client, job_id: str) -> str:
    """Return when a job is believed to start; "" where there is no forecast now."""
    from eunomia.service.client import ServiceRefusal

    try:
        start = (client.get(f"{client.job_path(job_id)}/when").get("start") or {}).get("p50")
    except ServiceRefusal:
        return ""
    return f", starts about {start}" if start else ""


def _use_terminal(session: ServiceSession, job_id: str, key: bytes) -> None:
    """Join this terminal with that of a job, and exit with the code of its command."""
    from eunomia.cli.terminal import use_terminal
    from eunomia.service.session_client import wait_until_ready

    client = session.client
    rows, columns = _size()
    with _may_be_over(client, job_id):
        stream = wait_until_ready(client, job_id, rows=rows, columns=columns)
    end = use_terminal(stream, key)
    code = end.code
    if end.how == "detached":
        _say(f"detached; it goes on: eunomia attach {job_id}, or eunomia cancel {job_id}")
        code = 0
    elif end.how == "lost":
        code = _after_loss(client, job_id, end.said)
    if session.as_json:
        print(json.dumps({"id": job_id, "ended": end.how, "exit_code": code}))
    raise typer.Exit(code)


@contextlib.contextmanager
def _may_be_over(client: Client, job_id: str) -> Iterator[None]:
    """Say how a job has ended where it is found so, in place of the refusal."""
    from eunomia.service.client import ServiceRefusal

    try:
        yield
    except ServiceRefusal as error:
        if not str(error.problem.get("type", "")).endswith((":over", ":not_running")):
            raise
        raise typer.Exit(_after_loss(client, job_id, "")) from None


def _after_loss(client: Client, job_id: str, said: str) -> int:
    """Say what has become of a job whose stream has ended; return the exit code."""
    from eunomia.service.client import Unreachable

    with contextlib.suppress(Unreachable):
        for _ in range(10):  # while it is being stopped
            found = client.get(client.job_path(job_id))
            if found["state"] in OVER:
                _say(f"job {job_id} is {found['state']}: {printed(found['reason'] or 'it ended')}")
                return FAILED
            if found["state"] == "running" and said:
                break
            time.sleep(LOOK_S)
    _say(f"{printed(said) or 'the connection was lost'}; it goes on: eunomia attach {job_id}")
    return UNREACHABLE


def _forward(session: ServiceSession, job_id: str, listener: Any) -> None:
    """Let a browser of this machine reach the notebook server of a job until Ctrl-C, or until the job is over."""
    from eunomia.cli.terminal import forward_connections
    from eunomia.service.session_client import notebook_facts

    client = session.client
    with _may_be_over(client, job_id):
        token = json.loads(notebook_facts(client, job_id))["token"]
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/lab?token={token}"
    session.show({"id": job_id, "url": url}, lambda: print(url))
    sys.stdout.flush()
    _say("open this address in a browser of this machine; it is for you alone. Ctrl-C leaves the notebook running")
    try:
        forward_connections(client, job_id, listener, lambda: _is_over(client, job_id))
    except KeyboardInterrupt:
        _say(f"it goes on: eunomia attach {job_id}, or eunomia cancel {job_id}")
        raise typer.Exit(0) from None
    raise typer.Exit(_after_loss(client, job_id, ""))


def _is_over(client: Client, job_id: str) -> bool:
    from eunomia.service.client import Unreachable

    try:
        return client.get(client.job_path(job_id))["state"] in OVER
    except Unreachable:  # it is being started again, perhaps
        return False


def _listener(port: int) -> Any:
    """Return what listens on a port of this machine. Raises InvalidInput where it is in use."""
    import socket

    from eunomia.inputs.problems import refused

    if not 0 <= port <= 65_535:
        raise refused("command line", "--forward", str(port), "is no port", "give one of 1024 to 65535, or 0")
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
    except OSError as error:
        found.close()
        rule = f"cannot be listened on ({error.strerror})"
        raise refused("command line", "--forward", str(port), rule, "give another one, or 0 for any") from None
    found.listen(64)
    return found


def _key(text: str) -> bytes:
    """Return the key that detaches; b"" = none. Raises InvalidInput."""
    from eunomia.inputs.problems import refused

    if text == "none":
        return b""
    if len(text) == 2 and text[0] == "^" and "A" <= text[1].upper() <= "_":
        return bytes([ord(text[1].upper()) - 64])
    raise refused("command line", "--detach-key", text, "must be ^A to ^_, or none", "leave it out for ^\\ (Ctrl-\\)")


def _size() -> tuple[int, int]:
    try:
        found = os.get_terminal_size(sys.stdin.fileno())
        return max(found.lines, 1), max(found.columns, 1)
    except (OSError, ValueError):
        return 24, 80


def _say(text: str) -> None:
    """Write a line for who waits; the output of the command is what the job writes."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
