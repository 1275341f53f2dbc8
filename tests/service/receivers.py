"""A server that takes mail and one that takes requests, on this machine; both can be made to refuse or to hang."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Taken:
    """What a receiver has taken, and how it answers the next ones."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.answers: list[int] = []  # statuses of the next answers; then 200
        self.asked = 0
        self.port = 0
        self.hangs = threading.Event()  # set: it answers nothing until it is cleared
        self.goes_on = threading.Event()

    def answer(self) -> int:
        """Return the status of an answer."""
        self.asked += 1
        if self.hangs.is_set():
            self.goes_on.wait(60)
        return self.answers.pop(0) if self.answers else 200


@contextmanager
def webhook() -> Iterator[Taken]:
    """A receiver of POST requests; messages are pairs of headers and body."""
    taken = Taken()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = taken.answer()
            if status == 200:
                taken.messages.append((dict(self.headers), body))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    with _running(ThreadingHTTPServer(("127.0.0.1", 0), Handler), taken):
        yield taken


@contextmanager
def mail_server() -> Iterator[Taken]:
    """A receiver of mail by SMTP; messages are pairs of address and text."""
    taken = Taken()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 test")
            address, text = "", list[str]()
            while raw := self.rfile.readline():
                word = raw.decode().rstrip("\r\n")
                verb = word[:4].upper()
                if verb == "RCPT":
                    address = word.partition("<")[2].partition(">")[0]
                    status = taken.answer()
                    self._say("250 ok" if status == 200 else f"{status} not now")
                elif verb == "DATA":
                    self._say("354 go on")
                    while (part := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                        text.append(part)
                    taken.messages.append((address, "\n".join(text)))
                    self._say("250 taken")
                elif verb == "QUIT":
                    self._say("221 bye")
                    return
                else:
                    self._say("250 test")

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    with _running(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler), taken):
        yield taken


@contextmanager
def _running(server: socketserver.TCPServer, taken: Taken) -> Iterator[None]:
    server.daemon_threads = True  # type: ignore[attr-defined]
    taken.port = int(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        taken.goes_on.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


def events_in(messages: list[Any]) -> list[dict[str, Any]]:
    """Return the events of requests."""
    return [event for _, body in messages for event in json.loads(body)["events"]]
