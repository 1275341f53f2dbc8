"""The client of the service: standard library only, over HTTP or the unix socket of the state folder."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import socket
import ssl
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

SETTINGS = Path("~/.config/eunomia/client.toml")
TIMEOUT_S = 90.0  # longer than the service takes to say that it has no answer

X509_NOT_YET, X509_EXPIRED, X509_OTHER_NAME, X509_OTHER_ADDRESS = 9, 10, 62, 64  # of OpenSSL's x509_vfy.h


class Unreachable(ConnectionError):
    """The service does not answer, or it is not known where it is."""


class ServiceRefusal(ValueError):
    """The service answered with a problem document."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status, self.problem = status, dict(problem)
        super().__init__(str(problem.get("title", f"status {status}")))

    @property
    def problems(self) -> list[dict[str, Any]]:
        """What is wrong, field by field."""
        found: list[dict[str, Any]] = self.problem.get("problems", [])
        return found


@dataclass(frozen=True, slots=True)
class Address:
    """Where the service is, and the token for it; no token on its own machine's socket."""

    url: str  # http://host:port, https://host:port or unix:/path
    token: str = ""
    ca: str = ""  # PEM file of the authorities that are trusted; without, those of this machine

    @property
    def is_here(self) -> bool:
        """Whether the service is on this machine."""
        return self.url.startswith("unix:") or urlsplit(self.url).hostname in ("127.0.0.1", "localhost", "::1")


def find_service(url: str | None = None, token_file: Path | None = None, ca: Path | None = None) -> Address:
    """Return the address from options, environment, settings, or a state folder. Raises Unreachable without any."""
    settings = _settings()
    found = url or os.environ.get("EUNOMIA_URL") or ""
    token = token_file.read_text().strip() if token_file is not None else os.environ.get("EUNOMIA_TOKEN", "")
    if not found:
        for folder in (os.environ.get("EUNOMIA_STATE"), "state"):
            path = Path(folder) / "service.sock" if folder else None
            if path is not None and path.is_socket():
                return Address(f"unix:{path}", token)
        found = settings.get("url", "")
    if not found:
        raise Unreachable(
            "it is not known where the service is: give --url, set EUNOMIA_URL and EUNOMIA_TOKEN, "
            "set EUNOMIA_STATE to its state folder, or type eunomia login URL"
        )
    kept = settings if found == settings.get("url") else {}
    trusted = str(ca or os.environ.get("EUNOMIA_CA") or kept.get("ca", ""))
    return Address(found.rstrip("/"), token or kept.get("token", ""), trusted)


def _settings() -> dict[str, str]:
    path = SETTINGS.expanduser()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {key: value for key, value in data.items() if isinstance(value, str)}


def write_settings(address: Address) -> Path:
    """Remember where the service is, readable by this user only."""
    path = SETTINGS.expanduser()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        kept = {"url": address.url, "token": address.token} | ({"ca": address.ca} if address.ca else {})
        file.write("".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in kept.items()))
    os.replace(draft, path)
    return path


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """One service. Raises ServiceRefusal for what it refuses, Unreachable if it does not answer."""

    def __init__(self, address: Address) -> None:
        self.address = address

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """Return the JSON of a page."""
        given = {key: value for key, value in query.items() if value not in (None, "")}
        found: dict[str, Any] = self._json("GET", path + (f"?{urlencode(given)}" if given else ""))
        return found

    def text(self, path: str, **query: Any) -> tuple[str, dict[str, str]]:
        """Return the text and the headers of a page."""
        response, raw = self._answer("GET", f"{path}?{urlencode(query)}", None, {})
        return raw.decode(errors="replace"), {key.lower(): value for key, value in response.getheaders()}

    def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Send JSON and return the answer."""
        found: dict[str, Any] = self._json(method, path, body, headers)
        return found

    def submit(self, jobs: Any, key: str | None = None) -> dict[str, Any]:
        """Submit a job or a list; a repetition with the same key gives the same ids, so it is safe to try again."""
        drawn = f"{time.time_ns():016x}{secrets.token_hex(8)}"  # in order of time, as random keys scatter over an index
        headers = {"Idempotency-Key": key or drawn}
        try:
            return self.send("POST", "/v1/jobs", jobs, headers)
        except Unreachable:
            return self.send("POST", "/v1/jobs", jobs, headers)

    def events(self, path: str, after: int | None = None) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """Yield number, kind and data of server-sent events until the stream ends."""
        connection = self._connect()
        ends = contextlib.ExitStack()
        headers = self._headers() | ({} if after is None else {"Last-Event-ID": str(after)})
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            if response.status >= 300:
                raise _refusal(response.status, response.read())
            ends.callback(response.close)
            event: dict[str, str] = {}
            while line := response.readline():
                text = line.decode().rstrip("\n")
                if not text and "data" in event:
                    yield int(event.get("id", "0")), event.get("event", ""), json.loads(event["data"])
                    event = {}
                elif text and not text.startswith(":"):
                    key, _, value = text.partition(": ")
                    event[key] = value
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        finally:
            ends.close()
            connection.close()

    def open_stream(self, path: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Return an answer that is read as it comes, with its connection, which the caller closes."""
        connection = self._connect()
        try:
            connection.request("GET", path, headers=self._headers())
            response = connection.getresponse()
            if response.status >= 300:
                raise _refusal(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._unreachable(error) from error
        except BaseException:
            connection.close()
            raise
        return connection, response

    def connect(self) -> http.client.HTTPConnection:
        """Return a new connection with the service, which is made when it is first used."""
        return self._connect()

    def post_bytes(self, connection: http.client.HTTPConnection, path: str, body: bytes) -> int:
        """Send bytes over a connection that is kept open; return the status. Raises OSError, HTTPException."""
        connection.request("POST", path, body, self._headers())
        response = connection.getresponse()
        response.read()
        return response.status

    def job_path(self, job_id: str) -> str:
        """Return the path of a job."""
        return f"/v1/jobs/{quote(job_id, safe='')}"

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.address.token}"} if self.address.token else {}

    def _connect(self) -> http.client.HTTPConnection:
        url = self.address.url
        if url.startswith("unix:"):
            return _UnixConnection(url.removeprefix("unix:"))
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme == "https":
            return http.client.HTTPSConnection(parts.netloc, timeout=TIMEOUT_S, context=self._trust())
        return http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_S)

    def _trust(self) -> ssl.SSLContext:
        """Return which certificates are trusted. Raises InvalidInput for a file that holds none."""
        ca = self.address.ca
        try:
            return ssl.create_default_context(cafile=ca or None)
        except OSError as error:  # ssl.SSLError is one
            from eunomia.inputs.problems import refused

            rule = "the file holds no certificate in PEM" if isinstance(error, ssl.SSLError) else f"{error.strerror}"
            fix = "give the file of the service's authority, which begins with -----BEGIN CERTIFICATE-----"
            raise refused(ca, "--ca", None, rule, fix) from error

    def _unreachable(self, error: Exception) -> Unreachable:
        """Return what to say of a connection that failed."""
        url = self.address.url
        if not isinstance(error, ssl.SSLCertVerificationError):
            return Unreachable(f"the service at {url} does not answer ({error or type(error).__name__})")
        why = error.verify_message
        if error.verify_code in (X509_EXPIRED, X509_NOT_YET):
            return Unreachable(f"the certificate of {url} is not valid today ({why}); its operator renews it")
        if error.verify_code in (X509_OTHER_NAME, X509_OTHER_ADDRESS):
            return Unreachable(f"the certificate of {url} is of another name ({why.rstrip('.')}); use that name as URL")
        given = f"{self.address.ca} holds another one" if self.address.ca else "this machine does not know it"
        return Unreachable(
            f"the certificate of {url} is not trusted ({why}), as it comes from an authority of its own and {given}: "
            f"get the authority's certificate from the operator, and type: eunomia login {url} --ca FILE "
            "(or --ca FILE with any command, or EUNOMIA_CA=FILE)"
        )

    def _answer(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = self._connect()
        try:
            try:
                connection.request(method, path, body, {**self._headers(), **headers, "Connection": "close"})
            except (BrokenPipeError, ConnectionResetError):  # answered before all was read, as refusals are
                if connection.sock is None:
                    raise
            response = connection.getresponse()
            raw = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        finally:
            connection.close()
        if response.status >= 300:
            raise _refusal(response.status, raw)
        return response, raw

    def _json(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        raw = None if body is None else json.dumps(body, allow_nan=False).encode()
        kind = {} if raw is None else {"Content-Type": "application/json"}
        _, answer = self._answer(method, path, raw, {**kind, **(headers or {})})
        return json.loads(answer)


def _refusal(status: int, raw: bytes) -> ServiceRefusal:
    try:
        problem = json.loads(raw)
    except ValueError:
        problem = {"title": f"status {status}"}
    return ServiceRefusal(status, problem if isinstance(problem, dict) else {"title": str(problem)})
