"""What may stand between a service and the API server: it answers in its place, or drops answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2

READS, WRITES = frozenset({"GET"}), frozenset({"POST", "PATCH"})


def status(code: int, reason: str) -> httpx2.Response:
    """Return an error as API servers write it."""
    body = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": f"{reason} of the tests",
            "reason": reason, "code": code}  # fmt: skip
    return httpx2.Response(code, json=body, headers={"Content-Type": "application/json"})


ANSWERS: dict[str, Callable[[], httpx2.Response]] = {
    "busy": lambda: httpx2.Response(
        429, text="Too many requests, please try again later.", headers={"Retry-After": "1"}
    ),
    "expired": lambda: status(410, "Expired"),
    "server error": lambda: status(500, "InternalError"),
    "no type": lambda: httpx2.Response(503, content=b"no backend"),
    "page": lambda: httpx2.Response(200, html="<h1>log in</h1>"),
    "conflict": lambda: status(409, "Conflict"),
}


class FaultyTransport(httpx2.BaseTransport):
    """Passes requests on, but for those of the methods `of` while there is a `fault`: one of ANSWERS, or

    dropped: the connection ends before the answer; lost: the server has answered, and the answer does not arrive.
    """

    def __init__(self) -> None:
        self._server = httpx2.HTTPTransport(verify=False)
        self.fault, self.of = "", READS | WRITES
        self.lists = 0  # of our Jobs, that were answered by the server

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        fault = self.fault if request.method in self.of else ""
        if fault == "dropped":
            raise httpx2.ReadError("the connection was reset")
        if fault and fault != "lost":
            return ANSWERS[fault]()
        answer = self._server.handle_request(request)
        if fault == "lost":
            answer.read()
            raise httpx2.ReadTimeout("no answer in time")
        self.lists += request.method == "GET" and request.url.path.endswith("/jobs")
        return answer

    def close(self) -> None:
        self._server.close()


class Suspending(httpx2.BaseTransport):
    """Gives an old server `spec.suspend` of Jobs: it is kept as an annotation, and as a parallelism of 0."""

    NOTE = "tests/suspended"

    def __init__(self) -> None:
        self._server = httpx2.HTTPTransport(verify=False)
        self.suspended: list[bool] = []  # what was asked for, in order

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        is_job = "/jobs" in request.url.path
        if is_job and request.method in WRITES:
            request = self._without(request)
        answer = self._server.handle_request(request)
        answer.read()
        if not is_job or answer.status_code >= 300:
            return answer
        body = answer.json()
        for job in body.get("items", [body]):
            self._show(job)
        return httpx2.Response(answer.status_code, json=body, headers={"Content-Type": "application/json"})

    def _without(self, request: httpx2.Request) -> httpx2.Request:
        body: dict[str, Any] = json.loads(request.read())
        spec = body.get("spec", {})
        if "suspend" in spec:
            wanted = bool(spec.pop("suspend"))
            if "dryRun" not in request.url.params:
                self.suspended.append(wanted)
            body.setdefault("metadata", {}).setdefault("annotations", {})[self.NOTE] = "yes" if wanted else None
            spec["parallelism"] = 0 if wanted else 1
        headers = {key: value for key, value in request.headers.items() if key.lower() != "content-length"}
        return httpx2.Request(request.method, request.url, headers=headers, content=json.dumps(body).encode(),
                              extensions=request.extensions)  # fmt: skip

    def _show(self, job: dict[str, Any]) -> None:
        notes = job.get("metadata", {}).get("annotations") or {}
        if notes.get(self.NOTE) == "yes":
            job["spec"] |= {"suspend": True, "parallelism": 1}

    def close(self) -> None:
        self._server.close()
