"""A copy of a published source: downloaded beside its place, verified, and moved there whole.

A download that was cut off goes on where it stopped, if the server can do that. What differs from what was published
is refused with both sums.
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
from eunomia.traces.sources.source import File, TraceSource
from eunomia.traces.sources.verifying import counted, verify

CHUNK = 1 << 20  # bytes
PATIENCE_S = 30.0  # for one answer of the server
MOST_BYTES = 1 << 32  # of a file whose size nobody published
PARTIAL, NOTHING_THERE = 206, 416  # answers to a request for the rest of a file
RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)", re.ASCII)
ELSEWHERE = "the server sends us on to what is no address of the web"
LONGEST = 200  # characters of what a server said that a message repeats
LENGTH = re.compile(r"\d{1,18}", re.ASCII)
PROVENANCE = "PROVENANCE.txt"


class NotFetched(Exception):
    """A source could not be had, or is not what was published. Its place is as it was; `problem` says why."""

    def __init__(self, problem: Problem):
        self.problem = problem
        super().__init__(str(problem))

    def as_dict(self) -> dict[str, object]:
        """Return the JSON form, that of wrong input."""
        return InvalidInput([self.problem]).as_dict()


def fetch(source: TraceSource, folder: Path, *, mirror: str | None = None, tell: Callable[[str], None] = print) -> Path:
    """Return `folder`, which now holds every file of the source, verified, and where they are from.

    Raises InvalidInput when something is in the way there, NotFetched when a file cannot be had or is another one,
    OSError with the name of the folder for a full disk; what came by then is kept for the next try.
    """
    if folder.exists():
        raise refused(str(folder), "--out", None, "it exists", "give another folder, or remove this one")
    if mirror is not None and not _is_address(mirror):
        raise refused("data", "--mirror", mirror, "must be an http or https address", "write it like https://host/path")
    draft = folder.with_name(f".{folder.name}.part")
    try:
        draft.mkdir(parents=True, exist_ok=True)
        for file in source.files:
            _have(file, source.url(file, mirror), draft, tell)
        (draft / PROVENANCE).write_text(_provenance(source, draft, mirror), encoding="utf-8")
        draft.rename(folder)
    except NotFetched:
        with suppress(OSError):
            _remove_empty(draft)
            draft.rmdir()  # unless something came, which the next try goes on with
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


def _is_address(text: str) -> bool:
    """Say whether a text is an address of the web, with a host and without what no address can hold."""
    try:
        parts = urlsplit(text)
        whole = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # a bracket that is not closed, a port that is no number
        return False
    return whole and parts.scheme in ("http", "https") and text.isascii() and text.isprintable() and " " not in text


def _public(address: str) -> str:
    """Return an address without a name and a password in it."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _have(file: File, url: str, draft: Path, tell: Callable[[str], None]) -> None:
    """Bring one file into the draft, unless an earlier try left it there."""
    whole, part = draft / file.here, draft / f"{file.here}.part"
    if whole.exists() and verify(file, whole) is None:
        return
    tell(f"{file.here}: {url}")
    have = _left(file, part)
    _download(file, url, part, have)
    problem = verify(file, part)
    if problem is not None and have:  # what an earlier try left may be of another file
        _download(file, url, part, 0)
        problem = verify(file, part)
    if problem is not None:
        part.unlink()
        raise NotFetched(problem)
    os.replace(part, whole)


def _left(file: File, part: Path) -> int:
    """Return the bytes that an earlier try left; 0 if there are as many as the file has, and they were no good."""
    have = part.stat().st_size if part.exists() else 0
    return 0 if file.size_bytes is not None and have >= file.size_bytes else have


def _download(file: File, url: str, part: Path, have: int) -> None:
    """Fetch a file, from byte `have` if the server can do that, else from its beginning."""
    try:
        with _asked(url, have) as answer:
            follows = have > 0 and _starts_at(answer, have)
            if answer.status == PARTIAL and not follows:
                if not have:
                    raise NotFetched(_unreached(url, f"the server sends a part only, {_range(answer)}"))
                return _download(file, url, part, 0)
            with part.open("ab" if follows else "wb") as out:
                _copy(answer, out, have if follows else 0, file, url)
    except HTTPError as error:
        error.close()
        if error.code == NOTHING_THERE and have:
            return _download(file, url, part, 0)
        raise NotFetched(_unreached(url, f"the server answers {error.code} {error.reason}")) from error


def _asked(url: str, have: int) -> http.client.HTTPResponse:
    """Return the beginning of the server's answer. Raises HTTPError for a refusal, NotFetched where there is none."""
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urlopen(request, timeout=PATIENCE_S)
    except HTTPError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise NotFetched(_unreached(url, str(getattr(error, "reason", error)))) from error
    except ValueError as error:
        raise NotFetched(_unreached(url, f"{ELSEWHERE} ({error})")) from error
    if not isinstance(answer, http.client.HTTPResponse):
        answer.close()
        raise NotFetched(_unreached(url, ELSEWHERE))
    return answer


def _range(answer: http.client.HTTPResponse) -> str:
    return str(answer.headers.get("Content-Range", "without saying which"))


def _starts_at(answer: http.client.HTTPResponse, have: int) -> bool:
    """Say whether an answer is the part of the file that begins at byte `have`."""
    said = RANGE.fullmatch(_range(answer))
    return answer.status == PARTIAL and said is not None and int(said[1]) == have


def _copy(answer: http.client.HTTPResponse, out: BinaryIO, have: int, file: File, url: str) -> None:
    """Write what the server sends; a connection that ends early is told, and what came is kept."""
    most = MOST_BYTES if file.size_bytes is None else file.size_bytes
    came, why = 0, ""
    while True:
        try:
            chunk = answer.read1(CHUNK)  # what is there by now: a longer read that fails would lose its beginning
        except (OSError, http.client.HTTPException) as error:
            why = f" ({error})" if isinstance(error, OSError) else " (a piece is cut short)"
            break
        if not chunk:
            break
        came += len(chunk)
        if have + came > most:
            raise NotFetched(_unreached(url, f"it sends more than {most:,} bytes"))
        out.write(chunk)
    if have + came != file.size_bytes and (why or _early(answer, came, file)):
        of = "" if file.size_bytes is None else f" of {file.size_bytes:,}"
        raise NotFetched(_unreached(url, f"the connection ended after {have + came:,}{of} bytes{why}"))


def _early(answer: http.client.HTTPResponse, came: int, file: File) -> bool:
    """Say whether more should have come than `came` bytes, where the file has not the published size."""
    said = answer.headers.get("Content-Length", "")
    measured = answer.chunked or LENGTH.fullmatch(said) is not None  # it said where it ends, and did: another file
    if not measured or answer.status == PARTIAL:
        return file.size_bytes is not None or (measured and not answer.chunked and came < int(said))
    return not answer.chunked and came < int(said)


def _unreached(url: str, reason: str) -> Problem:
    said = " ".join("".join(letter if letter.isprintable() else " " for letter in reason).split())[:LONGEST]
    fix = "check the connection and run it again, which goes on where it stopped; or name a --mirror"
    return Problem(file=url, rule=f"this could not be downloaded: {said}", fix=fix)


def _provenance(source: TraceSource, draft: Path, mirror: str | None) -> str:
    """Return what a later reader must know of the files, whoever they came from."""
    by_way_of = [] if mirror is None else [f"by way of the mirror: {_public(mirror)}"]
    lines = [
        f"{source.name}: {source.about}",
        f"paper: {source.paper}",
        f"licence: {source.licence}",
        f"from: https://github.com/{source.repository} at {source.commit}",
        *by_way_of,
        "",
    ]
    for file in source.files:
        digest, _, _ = counted(draft / file.here)
        lines.append(f"{digest}  {file.here}  {file.path}")
    return "\n".join(lines) + "\n"
