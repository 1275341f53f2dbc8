"""Jobs that users submitted to an engine itself: each becomes a job of the service, once."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from concurrent.futures import Future

from eunomia.backends.reports import EngineReport, SubmissionFound, SubmissionGone
from eunomia.service.job_document import InvalidRequest, parse_job
from eunomia.service.messages import Cancel, Principal, Reply, Request, Submit
from eunomia.service.writer import Writer

_log = logging.getLogger(__name__)


def intake(writer: Writer, engine: str) -> Callable[[EngineReport], None]:
    """Return what takes the reports of an engine's world: submissions become requests, the rest goes to the writer."""

    def take(report: EngineReport) -> None:
        match report:
            case SubmissionFound():
                try:
                    _submit(writer, engine, report)
                except (TypeError, ValueError, OverflowError, RecursionError) as error:
                    _log.warning(
                        "a submission of %r to %s stays held, as it cannot be read: %s", report.user, engine, error
                    )
            case SubmissionGone():
                _cancel(writer, engine, report)
            case _:
                writer.put(report)

    return take


def _submit(writer: Writer, engine: str, found: SubmissionFound) -> None:
    """Submit the job with its own key, so that it is accepted once however often it is reported."""
    try:
        job = parse_job(found.document)
    except InvalidRequest as error:
        _log.warning("a submission of %s to %s stays held: %s", found.user, engine, error)
        return
    digest = hashlib.sha256(json.dumps(found.document, sort_keys=True).encode()).hexdigest()
    who = Principal(found.user, found.tenant, "submitter")
    answer = writer.ask(Request(Submit((job,), found.key, digest), who, engine))

    def refused(reply: Future[Reply]) -> None:
        if reply.exception() is None and reply.result().status == 422:
            problems = "; ".join(f"{one.field}: {one.rule}" for one in reply.result().problems)
            _log.warning("a submission of %s to %s stays held: %s", found.user, engine, problems)

    answer.add_done_callback(refused)


def _cancel(writer: Writer, engine: str, gone: SubmissionGone) -> None:
    def cancel(writer: Writer) -> None:
        known = writer.store.key(gone.tenant, gone.key)
        for job_id in [] if known is None else known[1]:
            writer.ask(Request(Cancel(job_id), Principal(engine, gone.tenant, "tenant-admin"), engine))

    writer.change(cancel)
