"""Downloads a published source beside its folder, verifies it, and moves it there whole.

An interrupted download resumes where it stopped, if the server supports that. A copy that differs from the published
file is refused with both checksums.
"""

from __future__ import annotations

import http.client
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from eunomia.inputs.disk_errors import DISK
from eunomia.inputs.problems import InvalidInput, Problem, refused
from eunomia.traces.sources.source import File, TraceSource, measure_file, verify

CHUNK = 1 << 20  # bytes
TIMEOUT_S = 30.0  # of one request
MOST_BYTES = 1 << 32  # of a file without a published size
PARTIAL, OUT_OF_RANGE = 206, 416  # HTTP statuses of a request for the rest of a file
RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)", re.ASCII)
NOT_HTTP = "the server redirects to an address that is not http or https"
LONGEST = 200  # characters of a server's message that a problem repeats
LENGTH = re.compile(r"\d{1,18}", re.ASCII)
PROVENANCE = "PROVENANCE.txt"


class NotFetched(Exception):
    """A source could not be downloaded, or differs from what was published; the target folder is unchanged."""

    def __init__(self, problem: Problem):
        self.problem = problem
        super().__init__(str(problem))

    def as_dict(self) -> dict[str, object]:
        """Return the JSON form, like that of invalid input."""
        return InvalidInput([self.problem]).as_dict()


def fetch(
    source: TraceSource, folder: Path, *, mirror: str | None = None, report: Callable[[str], None] = print
) -> Path:
    """Download the source; return `folder`, which then holds every file, verified, and PROVENANCE.

    Raises InvalidInput if the folder exists or cannot be written, NotFetched if a file cannot be downloaded or differs,
    OSError with the name of the folder for a full disk; the bytes received are kept for the next call.
    """
    if folder.exists():
        raise refused(str(folder), "--out", None, "it exists", "give another folder, or remove this one")
    if mirror is not None and not _is_http_address(mirror):
        raise refused("data", "--mirror", mirror, "must be an http or https address", "write it like https://host/path")
    draft = folder.with_name(f".{folder.name}.part")
    try:
        draft.mkdir(parents=True, exist_ok=True)
        for file in source.files:
            _fetch_file(file, source.url(file, mirror), draft, report)
        (draft / PROVENANCE).write_text(_provenance(source, draft, mirror), encoding="utf-8")
        draft.rename(folder)
    except NotFetched:
        with suppress(OSError):
            _remove_empty(draft)
            draft.rmdir()  # fails if it holds bytes, which the next call resumes from
        raise
    except OSError as error:
        if error.errno in DISK:
            raise OSError(error.errno, error.strerror, str(folder)) from error
        raise refused(
            str(folder), "--out", None, f"it cannot be written ({error.strerror})", "give another folder"
        ) from error
    return folder


def _remove_empty(draft: Path) -> None:
    for part in draft.glob("*.part"):
        if not part.stat().st_size:
            part.unlink()


def _is_http_address(text: str) -> bool:
    """Say whether a text is an http or https address with a host and legal characters only."""
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # an unclosed bracket, or an invalid port
        return False
    return has_host and parts.scheme in ("http", "https") and text.isascii() and text.isprintable() and " " not in text


def _without_credentials(address: str) -> str:
    """Return an address without its user name and password."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _fetch_file(file: File, url: str, draft: Path, report: Callable[[str], None]) -> None:
    """Download one file into the draft, unless an earlier call left it there."""
    whole, part = draft / file.copy_name, draft / f"{file.copy_name}.part"
    if whole.exists() and verify(file, whole) is None:
        return
    report(f"{file.copy_name}: {url}")
    start = _resume_offset(file, part)
    _download(file, url, part, start)
    problem = verify(file, part)
    if problem is not None and start:  # the bytes of an earlier call may be of another file
        _download(file, url, part, 0)
        problem = verify(file, part)
    if problem is not None:
        part.unlink()
        raise NotFetched(problem)
    os.replace(part, whole)


def _resume_offset(file: File, part: Path) -> int:
    """Return the bytes that an earlier call left; 0 if they are as many as the file has, since they were invalid."""
    have = part.stat().st_size if part.exists() else 0
    return 0 if file.size_bytes is not None and have >= file.size_bytes else have


def _download(file: File, url: str, part: Path, start: int) -> None:
    """Download a file from byte `start`, or from its beginning if the server cannot resume."""
    try:
        with _request(url, start) as answer:
            resumes = start > 0 and _starts_at(answer, start)
            if answer.status == PARTIAL and not resumes:
                if not start:
                    raise NotFetched(_download_problem(url, f"the server sends a part only, {_range(answer)}"))
                return _download(file, url, part, 0)
            with part.open("ab" if resumes else "wb") as out:
                _copy(answer, out, start if resumes else 0, file, url)
    except HTTPError as error:
        error.close()
        if error.code == OUT_OF_RANGE and start:
            return _download(file, url, part, 0)
        raise NotFetched(_download_problem(url, f"the server answers {error.code} {error.reason}")) from error


def _request(url: str, start: int) -> http.client.HTTPResponse:
    """Return the open response from byte `start`. Raises HTTPError for an error status, NotFetched for no response."""
    request = Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        answer = urlopen(request, timeout=TIMEOUT_S)
    except HTTPError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise NotFetched(_download_problem(url, str(getattr(error, "reason", error)))) from error
    except ValueError as error:
        raise NotFetched(_download_problem(url, f"{NOT_HTTP} ({error})")) from error
    if not isinstance(answer, http.client.HTTPResponse):
        answer.close()
        raise NotFetched(_download_problem(url, NOT_HTTP))
    return answer


def _range(answer: http.client.HTTPResponse) -> str:
    return str(answer.headers.get("Content-Range", "without saying which"))


def _starts_at(answer: http.client.HTTPResponse, start: int) -> bool:
    """Say whether a response is the part of the file from byte `start`."""
    match = RANGE.fullmatch(_range(answer))
    return answer.status == PARTIAL and match is not None and int(match[1]) == start


def _copy(answer: http.client.HTTPResponse, out: BinaryIO, start: int, file: File, url: str) -> None:
    """Write the body of a response; raise NotFetched if it ends early, and keep the bytes received."""
    most = MOST_BYTES if file.size_bytes is None else file.size_bytes
    received, reason = 0, ""
    while True:
        try:
            chunk = answer.read1(CHUNK)  # the bytes available: a longer read that fails would lose its beginning
        except (OSError, http.client.HTTPException) as error:
            reason = f" ({error})" if isinstance(error, OSError) else " (a piece is cut short)"
            break
        if not chunk:
            break
        received += len(chunk)
        if start + received > most:
            raise NotFetched(_download_problem(url, f"it sends more than {most:,} bytes"))
        out.write(chunk)
    if start + received != file.size_bytes and (reason or _ends_early(answer, received, file)):
        of = "" if file.size_bytes is None else f" of {file.size_bytes:,}"
        raise NotFetched(_download_problem(url, f"the connection ended after {start + received:,}{of} bytes{reason}"))


def _ends_early(answer: http.client.HTTPResponse, received: int, file: File) -> bool:
    """Say whether a response lacks bytes after `received`, given that the file has not the published size."""
    length = answer.headers.get("Content-Length", "")
    measured = answer.chunked or LENGTH.fullmatch(length) is not None  # complete by its own length: another file
    if not measured or answer.status == PARTIAL:
        return file.size_bytes is not None or (measured and not answer.chunked and received < int(length))
    return not answer.chunked and received < int(length)


def _download_problem(url: str, reason: str) -> Problem:
    shown = " ".join("".join(letter if letter.isprintable() else " " for letter in reason).split())[:LONGEST]
    fix = "check the connection and run it again, which resumes where it stopped; or name a --mirror"
    return Problem(file=url, rule=f"this could not be downloaded: {shown}", fix=fix)


def _provenance(source: TraceSource, draft: Path, mirror: str | None) -> str:
    """Return the text of PROVENANCE: source, paper, licence, address and checksums."""
    via = [] if mirror is None else [f"by way of the mirror: {_without_credentials(mirror)}"]
    lines = [
        f"{source.name}: {source.about}",
        f"paper: {source.paper}",
        f"licence: {source.licence}",
        f"from: https://github.com/{source.repository} at {source.commit}",
        *via,
        "",
    ]
    for file in source.files:
        digest, _, _ = measure_file(draft / file.copy_name)
        lines.append(f"{digest}  {file.copy_name}  {file.path}")
    return "\n".join(lines) + "\n"
