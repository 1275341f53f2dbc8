"""The route of a job's output."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from eunomia.backends.processes.folder import folder_name
from eunomia.service.http.api import Refused, Service, read_time, whole_number
from eunomia.service.http.event_feed import KEEP_ALIVE_S, as_event
from eunomia.service.http.visible_jobs import owned
from eunomia.service.job_document import FieldProblem
from eunomia.service.job_log import JobLog, LogChunk
from eunomia.service.messages import Principal

STREAMS = {"output": "log", "errors": "errors"}  # file in the job's folder


async def log(service: Service, request: Request, who: Principal) -> Response:
    """Return the output of a job, or its standard error where that is apart (`stream=errors`), from a byte on.

    `tail` begins so many lines before the end, `since` where it was at a time, `from` at a byte of all that was ever
    written; the latest of these counts. With `follow` as server-sent events until the job is over.
    """
    row = await service.threads.run(owned, service, request, who)
    stream = request.query_params.get("stream") or "output"
    if stream not in STREAMS:
        rule = f"is one of {', '.join(STREAMS)}"
        raise Refused(400, "a parameter cannot be used", (FieldProblem("stream", stream[:40], rule, "leave it out"),))
    output = job_log(service, row.id, stream)
    start = await service.threads.run(_log_start, output, request.query_params)
    if request.query_params.get("follow") in ("1", "true"):
        return StreamingResponse(_follow(service, row.id, output, start), media_type="text/event-stream")
    found = await service.threads.run(_log_chunk, output, start)
    headers = {"X-Next-Offset": str(found.end), "X-Size": str(found.size), "X-First-Offset": str(found.first)}
    return PlainTextResponse(found.text(), headers=headers)


def job_log(service: Service, job_id: str, stream: str = "output") -> JobLog:
    """Return the output of a job, whose id the service made."""
    return JobLog(service.jobs / folder_name(job_id) / STREAMS[stream])


def end_of_log(service: Service, job_id: str, most: int) -> str:
    """Return the last lines of a job's output, of at most so many bytes. Raises Refused."""
    with _plain_files():
        return job_log(service, job_id).read_end(most).text()


def _log_start(output: JobLog, query: Mapping[str, str]) -> int:
    start = whole_number(query.get("from"), "from", 0, 2**62)
    lines, since = whole_number(query.get("tail"), "tail", 0, 2**31), read_time(query.get("since"), 0.0, "since")
    if since is not None:
        start = max(start, output.start_of_time(since))
    with _plain_files():
        return max(start, output.start_of_lines(lines)) if lines else start


def _log_chunk(output: JobLog, start: int) -> LogChunk:
    with _plain_files():
        return output.read(start)


@contextmanager
def _plain_files() -> Iterator[None]:
    """Refuse a request about a log that is no plain file."""
    try:
        yield
    except OSError:
        raise Refused(409, "the log is no plain file") from None


async def _follow(service: Service, job_id: str, output: JobLog, start: int) -> AsyncIterator[str]:
    quiet_s, at = 0.0, -1
    while not service.feed.closing:
        row = await service.threads.run(service.reader.job, job_id)
        found = await service.threads.run(_log_chunk, output, start)
        if found.data:
            gone = found.start - start if at >= 0 else 0  # two parts were filled since
            note = f"\n[{gone} bytes of output are no longer kept]\n" if gone > 0 else ""
            start = at = found.end
            quiet_s = 0.0
            yield as_event(start, "log", {"text": note + found.text()})
        elif row is None or not row.is_live:
            yield as_event(start, "end", {"state": "" if row is None else row.state})
            return
        else:
            await asyncio.sleep(0.25)
            quiet_s += 0.25
            if quiet_s >= KEEP_ALIVE_S:
                quiet_s = 0.0
                yield ": waiting\n\n"
