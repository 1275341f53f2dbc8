"""The routes of terminals and notebooks: for who has submitted the job, and for no other role."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from socket import socket
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from eunomia.backends.processes.accounts import account_of
from eunomia.backends.processes.folder import JobFolder
from eunomia.backends.processes.interactive_session import MOST_FRAME
from eunomia.backends.processes.session_socket import connect_session
from eunomia.service.http.api import Refused, Service, read_body, source_of, whole_number
from eunomia.service.http.session_streams import NoRoom, Stream
from eunomia.service.http.visible_jobs import visible
from eunomia.service.interactive import IDLE, refuse_session
from eunomia.service.job_row import JobRow
from eunomia.service.messages import Attach, Principal

MOST_SIDE = 65_535  # rows or columns
MOST_KNOWN = 10_000
STREAM = "X-Eunomia-Stream"  # header with the id to which input goes


async def attach(service: Service, request: Request, who: Principal) -> Response:
    """Stream what a terminal shows, or what a notebook server answers on one connection; see `send_input`."""
    row = await service.threads.run(_own, service, request, who)
    query, me = request.query_params, (who.user, who.tenant)
    rows, columns = (
        whole_number(query.get(name), name, most, MOST_SIDE) for name, most in (("rows", 24), ("columns", 80))
    )
    size = rows.to_bytes(2, "big") + columns.to_bytes(2, "big")
    first = size if row.spec["interactive"] == "shell" else query.get("open", "")[:40].encode()
    if not service.sessions.take(me):
        raise Refused(
            429, f"user {who.user!r} has too many open terminals and notebooks", retry_s=1, code="too_many_requests"
        )
    try:
        connection = await service.threads.run(_connected, service, row)
        try:
            await _note(service, request, who, row)  # before `begin` lets them in
            stream = await service.sessions.begin(row.id, me, connection, first)
        except BaseException:
            connection.close()
            raise
    except BaseException:
        service.sessions.leave(me)
        raise
    return SessionResponse(service, stream)


class SessionResponse(StreamingResponse):
    """Frames of a stream, which ends with the answer, also where its client is gone before the first frame."""

    def __init__(self, service: Service, stream: Stream) -> None:
        frames, headers = _frames(service, stream), {STREAM: stream.id}
        super().__init__(frames, media_type="application/octet-stream", headers=headers)
        self._sessions, self._stream = service.sessions, stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._sessions.end(self._stream)
            self._sessions.leave(self._stream.who)


async def send_input(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Take frames for a stream, from byte `at` of its input on; the body has at most 64 KiB."""
    stream = service.sessions.find(request.path_params["stream"], request.path_params["id"], (who.user, who.tenant))
    if stream is None:
        raise Refused(404, "there is no such stream", code="no_such_stream")
    at = whole_number(request.query_params.get("at"), "at", 0, 2**62)
    data = await read_body(request, MOST_FRAME)
    try:
        await stream.send(at, data)
    except NoRoom:
        raise Refused(503, "the program does not read its input", retry_s=1, code="no_room") from None
    except ValueError as error:
        raise Refused(409, str(error), code="gap") from None
    except OSError:
        raise Refused(410, "the stream has ended", code="gone") from None
    return {"taken": stream.taken}


def _own(service: Service, request: Request, who: Principal) -> JobRow:
    """Return the interactive job of the path that the caller has submitted and that runs. Raises Refused."""
    row = visible(service, request, who)
    if (refusal := refuse_session(row, who)) is not None:
        body = refusal.body
        raise Refused(refusal.status, body["title"], refusal.problems, code=body["code"])
    return row


async def _note(service: Service, request: Request, who: Principal, row: JobRow) -> None:
    """Write into the audit log that a user attaches: at a terminal each time, at a notebook the first time."""
    known, one = service.sessions.known, ((who.user, who.tenant), row.id, row.epoch)
    if row.spec["interactive"] == "shell" or one not in known:
        await service.ask(Attach(row.id), who, source_of(request))
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[one] = None


def _connected(service: Service, row: JobRow) -> socket:
    """Return a connection with the process of a job. Raises Refused where there is none, or another user's."""
    account = account_of(row.owner, service.site.service.account)
    folder = JobFolder.of(service.jobs, row.id, row.epoch, "", account).own
    try:
        return connect_session(folder, os.geteuid() if account is None else account.uid)
    except PermissionError:
        raise Refused(409, "what listens in the job's folder is not its process", code="not_its_process") from None
    except OSError as error:
        title = f"the job's process does not answer yet ({error.strerror or error})"
        raise Refused(409, title, code="not_ready", retry_s=1) from None


async def _frames(service: Service, stream: Stream) -> AsyncIterator[bytes]:
    def notice() -> str:
        row = service.writer.controller.rows.get(stream.job_id)
        return row.reason if row is not None and row.reason.startswith(IDLE) else ""

    try:
        async for one in stream.frames(notice):
            yield one
    except (asyncio.IncompleteReadError, OSError):
        return
