"""Starts the service: store, controller, local world, HTTP; and ends it so that nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eunomia.backends.process_backend import ProcessBackend
from eunomia.backends.processes.device_use import DeviceDriver, NvidiaDriver
from eunomia.backends.processes.environment import NO_DEVICE, given_devices
from eunomia.backends.processes.machine_limits import raise_open_files
from eunomia.backends.registry import BACKENDS
from eunomia.backends.world import ProcessWorld, WorldInputs
from eunomia.inputs.install_hint import install_command
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.kernels import load_compiler
from eunomia.service.clock import MonotonicClock
from eunomia.service.credentials import JobTokens, TokenRegistry
from eunomia.service.failed_starts import forget, note_end, suspects
from eunomia.service.fault_points import faultpoint
from eunomia.service.json_lines import JsonLines
from eunomia.service.messages import PolicyOverran, Principal
from eunomia.service.notice_sender import NoticeSender
from eunomia.service.operator_token import FIRST, OperatorToken, ensure_operator_token
from eunomia.service.recovery import recover
from eunomia.service.removal import JOBS_FOLDER, RegularRemoval
from eunomia.service.service_manager import notify_ready
from eunomia.service.site import Site, jobs_run, load_site
from eunomia.service.site_change import apply_site, effective_site
from eunomia.service.solver_process import MANY_JOBS, Solver
from eunomia.service.store import ServiceStore, open_store
from eunomia.service.store.disk_room import DiskFull
from eunomia.service.store.reader import Reader
from eunomia.service.submission_waits import EVERY_S, SubmissionWaits
from eunomia.service.submissions import intake
from eunomia.service.writer import Writer
from eunomia.setup.run_objects import world_options

if TYPE_CHECKING:
    from eunomia.service.http.api import Service

SOCKET = "service.sock"
SWITCH_S = 0.001  # for which the loop waits at most for a thread that computes: Python's 5 ms add up in a request
HOLD_S = 5.0  # between looks whether room on the disk can be reserved again, and which tokens have expired
OLDER_AFTER = 3, 130  # collections of the next age, which look at so many times as much and stop all threads meanwhile
COLLECT_AFTER = 20_000  # objects: with Python's 700, a list of jobs is looked through again and again while it is made
_log = logging.getLogger("eunomia.service")


@dataclass(slots=True)
class RunningService:
    """The parts of a service that runs."""

    site: Site
    store: ServiceStore
    writer: Writer
    world: ProcessWorld
    solver: Solver
    thread: threading.Thread
    token: OperatorToken
    job_tokens: JobTokens
    removal: RegularRemoval
    notices: NoticeSender


def check_extra() -> None:
    """Raise InvalidInput if the extra is not installed."""
    try:
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        rule = f"the service needs {error.name}, which is not installed"
        raise InvalidInput([Problem(file="command line", rule=rule, fix=install_command("service"))]) from None


def start(site: Site, umask: int) -> RunningService:
    """Open the store, recover, and start writer and world. Raises InvalidInput if the store cannot be used.

    `umask` is that of jobs.
    """
    store = open_store(site.place, site.state, wait=_stand_by)
    try:
        store.room.begin()
        site = effective_site(store, site)
        clock = MonotonicClock(store.clock())
        solver = Solver()
        with _without_collection():
            controller, orders = recover(store, site, solver.runner(site), suspects=suspects(site.state))
        writer = Writer(controller, store, clock)
        if len(controller.rows) >= MANY_JOBS:
            load_compiler()  # before the first decision, in which it would stop the writer
        solver.begin(writer)
        if (pending := controller.scheduler.asks.pending) is not None:
            writer.put(PolicyOverran(pending.asked, "the service was restarted before the policy had answered"))
        job_tokens = JobTokens.of(store.folder)
        world = writer.world = _world(site, writer, job_tokens, umask)
        thread = threading.Thread(target=writer.run, name="writer", daemon=True)
        removal = RegularRemoval(writer, site.place, site.state / JOBS_FOLDER)
        notices = NoticeSender(site.notify, site.path.resolve().parent, site.place, writer)
        token = ensure_operator_token(store)  # before the writer's thread has the store to itself
    except BaseException:
        store.close()
        raise
    world.carry_out(orders)
    world.start()
    thread.start()
    removal.start()
    notices.start()
    return RunningService(site, store, writer, world, solver, thread, token, job_tokens, removal, notices)


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Make many objects that stay: the collector would look at all of them again and again, then and later."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _world(site: Site, writer: Writer, job_tokens: JobTokens, umask: int) -> ProcessWorld:
    """Return the world that the site names."""
    jobs, topology, scenario = site.state / JOBS_FOLDER, site.setup.topology, site.setup.scenario

    def forked() -> None:
        faultpoint("launch.forked")

    is_local = scenario.world.backend == "local"
    if is_local and os.geteuid() == 0:
        _let_accounts_pass(site.state)
    inputs = WorldInputs(
        workdir=jobs, topology=topology, report=intake(writer, scenario.world.backend),
        options=world_options(scenario), forked=forked, lease_s=site.service.supervisor_lease_s,
        driver=_driver(site) if is_local else None, log_bytes=int(site.service.log_mib * 2**20),
        account=site.service.account, token_of=job_tokens.token, umask=umask,
    )  # fmt: skip
    backend: type[ProcessBackend] = BACKENDS.load(scenario.world.backend)
    return backend.open_world(inputs)


def _let_accounts_pass(state: Path) -> None:
    """Let other users pass through the state folder to the folders of their jobs, and read nothing else there."""
    for entry in state.iterdir():
        if entry.name != JOBS_FOLDER and not entry.is_symlink():
            entry.chmod(0o700 if entry.is_dir() else 0o600)
    state.chmod(0o711)


def _driver(site: Site) -> DeviceDriver | None:
    """Return the driver that says who uses the accelerators; None where there is none to ask."""
    if all(name == NO_DEVICE for name in site.setup.topology.types):
        return None
    try:
        return NvidiaDriver(given_devices(os.environ))
    except OSError as error:
        _log.warning("processes of others on the accelerators are not noticed: %s", error)
        return None


def serve(site: Site, *, announce: Callable[[str], None], stop_jobs: bool = False) -> int:
    """Run the service until SIGTERM or SIGINT; return the exit code. `announce` gets one line when it is ready."""
    check_extra()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    umask = os.umask(0o077)  # of the service's own files
    raise_open_files()  # each connection and each gang needs some
    gc.set_threshold(COLLECT_AFTER, *OLDER_AFTER)
    sys.setswitchinterval(SWITCH_S)
    running = start(site, umask)
    try:
        asyncio.run(_listen(running, announce))
    finally:
        running.removal.stop()
        running.notices.stop()
        running.solver.close()
        running.store.room.close()
        running.writer.stop()
        running.thread.join(60.0)
        running.world.close(stop_jobs=stop_jobs)
        running.store.close()
    if running.writer.failure is not None:
        _log.error("the service failed: %s", running.writer.failure)
        note_end(site.state, running.writer.failure, running.writer.controller.subject)
        return 1
    forget(site.state)
    return 0


async def _listen(running: RunningService, announce: Callable[[str], None]) -> None:
    import uvicorn

    from eunomia.service.forecasts import Forecasts
    from eunomia.service.http.api import Service, application, hosts_of, origins_of
    from eunomia.service.http.budgets import Places
    from eunomia.service.http.connections import ACCEPTED, BACKLOG, DeadlineProtocol, most_connections
    from eunomia.service.http.dashboard import page_routes
    from eunomia.service.http.event_feed import EventFeed
    from eunomia.service.http.routes import ROUTES

    site = running.site
    sockets = open_sockets(site)
    port = 0 if sockets[0].family == socket.AF_UNIX else int(sockets[0].getsockname()[1])
    reader = Reader(site.place)
    service = Service(
        writer=running.writer, reader=reader, tokens=TokenRegistry(running.store.tokens()),
        job_tokens=running.job_tokens,
        jobs=site.state / JOBS_FOLDER, hosts=hosts_of(site, port), origins=origins_of(site, port),
        forecasts=Forecasts(site.path, running.writer, site.service.forecast_every_s),
        feed=EventFeed(reader, running.writer.origin), places=Places(most_connections),
        overruns=lambda: running.solver.overruns, renewals=lambda: running.world.renewals, notices=running.notices,
    )  # fmt: skip
    running.writer.on_commit = service.feed.notify
    tls: dict[str, Any] = {}
    if site.service.tls_cert and site.service.tls_key:
        base = site.path.resolve().parent
        tls = {"ssl_certfile": base / site.service.tls_cert, "ssl_keyfile": base / site.service.tls_key}
    config = uvicorn.Config(
        application(service, ROUTES, page_routes(service)), http=DeadlineProtocol, ws="none", lifespan="off",
        log_config=None,
        proxy_headers=bool(site.service.proxies), forwarded_allow_ips=list(site.service.proxies),
        access_log=False, server_header=False, date_header=False, h11_max_incomplete_event_size=65_536,
        timeout_graceful_shutdown=5, backlog=ACCEPTED, **tls,
    )  # fmt: skip
    server = uvicorn.Server(config)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        service.ready = False
        service.feed.close()
        service.sessions.close()
        server.should_exit = True

    plain = [each for each in sockets if tls and each.family == socket.AF_UNIX]  # TLS is for networks
    serving = asyncio.create_task(_run_server(server, [each for each in sockets if each not in plain]))
    noting = [
        asyncio.create_task(service.feed.run()),
        asyncio.create_task(service.forecasts.note_regularly()),
        asyncio.create_task(_explain_regularly(running)),
    ]
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, lambda: running.writer.change(_reread))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if not serving.done():
        for each in plain:
            server.servers.append(await loop.create_server(partial(_protocol, server), sock=each, backlog=ACCEPTED))
        for each in sockets:
            each.listen(BACKLOG)  # the loop accepts as many at once as it was given for this
        service.ready = True
        url = running.world.url = _url(site, sockets[0], bool(tls))
        if running.token.made == FIRST:
            _welcome(url, running.token.path, site)
        elif running.token.made:
            _log.warning("%s", running.token.said)
        announce(f"listening on {url}")
        notify_ready()
    await _keep(running, service, serving, stop)
    await serving
    for task in noting:
        task.cancel()
    service.forecasts.close()
    if not running.store.leads():
        running.writer.failure = running.writer.failure or RuntimeError("another service has taken over")
        return
    with contextlib.suppress(OSError):
        (site.state / SOCKET).unlink()


async def _keep(
    running: RunningService, service: Service, serving: asyncio.Task[None], stop: Callable[[], None]
) -> None:
    """Do what is due regularly while the service runs, and stop it when it has failed."""
    hold_at, is_loaded = 0.0, False
    while not serving.done():
        await asyncio.sleep(0.2)
        running.writer.failure = running.writer.failure or running.world.failure
        if running.writer.failure is not None or not running.store.leads() or not running.thread.is_alive():
            stop()
        if not is_loaded and len(running.writer.controller.rows) >= MANY_JOBS:
            is_loaded = True
            await asyncio.to_thread(load_compiler)
        if time.monotonic() >= hold_at:
            hold_at = time.monotonic() + HOLD_S
            running.store.room.hold()
            service.reads.end(service.tokens)  # some have expired
        if running.store.room.is_waiting:
            service.replies.give_up(DiskFull.of(running.site.state, "the disk is full", "make room on it"))


async def _explain_regularly(running: RunningService) -> None:
    """Show users of an engine why the jobs wait that they submitted there."""
    if running.site.setup.scenario.world.adopt_submissions:
        waits = SubmissionWaits(running.writer, running.world)
        while True:
            await asyncio.sleep(EVERY_S)
            await asyncio.to_thread(waits.look, time.monotonic())


def _stand_by(holder: str) -> None:
    """Say that another service acts; called once."""
    sys.stderr.write(f"standing by: {holder} has the store\n")
    sys.stderr.flush()
    notify_ready()  # it is as ready as it can be


def _reread(writer: Writer) -> None:
    """Apply the site file as it is now."""
    try:
        site = load_site(writer.controller.site.path)
        change = apply_site(writer, site, Principal("SIGHUP", "-", "operator"), "signal")
    except ValueError as error:
        _log.error("the site is not changed: %s", error)
    else:
        _log.info("the site is changed: %s", "; ".join(change.lines) or "nothing differs")


def _protocol(server: Any) -> asyncio.Protocol:
    """Return the protocol of a new connection, as the server makes it for its own sockets."""
    made: asyncio.Protocol = server.config.http_protocol_class(
        config=server.config, server_state=server.server_state, app_state=server.lifespan.state
    )
    return made


async def _run_server(server: Any, sockets: list[socket.socket]) -> None:
    """Serve without uvicorn's own signal handlers."""
    with contextlib.suppress(asyncio.CancelledError):
        await server._serve(sockets)


def open_sockets(site: Site) -> list[socket.socket]:
    """Return the listening sockets: the site's address, and the unix socket in the state folder."""
    key, address, found = "listen", site.address, list[socket.socket]()
    try:
        if isinstance(address, Path):
            found.append(_unix(address, 0o666))
        else:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            # Named as TCP, so that asyncio sends each part of an answer at once, not after the other end's delayed ACK.
            tcp = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tcp.bind(address)
            found.append(tcp)
        if site.users_socket is not None:
            key, address = "socket", site.users_socket
            found.append(_unix(site.users_socket, 0o666))
        found.append(_unix(site.state / SOCKET, 0o600))
    except OSError as error:
        for each in found:
            each.close()
        shown = address if isinstance(address, Path) else site.service.listen
        rule = f"the address {shown} cannot be listened on ({error.strerror or error})"
        fix = f"stop what listens there, or give another one in [service] {key}"
        raise InvalidInput([Problem(file=str(site.path), column=f"service.{key}", rule=rule, fix=fix)]) from error
    return found


def _unix(path: Path, mode: int) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket():
            path.unlink()  # of a service that was killed; the store's lock says that none runs
        made.bind(str(path))
    except BaseException:
        made.close()
        raise
    os.chmod(path, mode)
    return made


def _url(site: Site, first: socket.socket, has_tls: bool) -> str:
    if first.family == socket.AF_UNIX:
        return f"unix:{site.address}"
    host, port = first.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if has_tls else 'http'}://{shown}:{port}"


def _welcome(url: str, token_file: Path, site: Site) -> None:
    for_all = site.users_socket or site.address
    others = "  eunomia token create --user ann --tenant lab --role submitter"
    if isinstance(for_all, Path):
        others = f"  eunomia login unix:{for_all}    (other users of this machine, once each; they need no token)"
    is_web = not url.startswith("unix:")
    lines = (
        f"the operator's token is in {token_file} (readable by you only)",
        f"the dashboard is at {url}/" if is_web else 'there is a dashboard with listen = "127.0.0.1:8642" in [service]',
        f"jobs run {jobs_run(site)}",
        "next, in another terminal on this machine:",
        f"  export EUNOMIA_STATE={site.state}",
        "  eunomia submit --gpus 1 -- python train.py",
        "  eunomia jobs",
        others,
    )
    sys.stderr.write("\n".join(lines) + "\n")
    sys.stderr.flush()
