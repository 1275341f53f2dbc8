"""A copy of a published source: downloaded beside its place, verified, and moved there whole.

A download that was cut off goes on where it stopped. What differs from what was published is refused with both sums.
"""

from __future__ import annotations

import http.client
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from eunomia.model.problems import InvalidInput, Problem
from eunomia.traces.options import refused
from eunomia.traces.sources.source import File, Source
from eunomia.traces.sources.verifying import counted, verify

CHUNK = 1 << 20  # bytes
PATIENCE_S = 30.0  # for one answer of the server
MOST_BYTES = 1 << 32  # of a file whose size nobody published
PROVENANCE = "PROVENANCE.txt"


class NotFetched(Exception):
    """A source could not be had, or is not what was published. Its place is as it was; `problem` says why."""

    def __init__(self, problem: Problem):
        self.problem = problem
        super().__init__(str(problem))

    def as_dict(self) -> dict[str, object]:
        """Return the JSON form, that of wrong input."""
        return InvalidInput([self.problem]).as_dict()


def fetch(source: Source, folder: Path, *, mirror: str | None = None, tell: Callable[[str], None] = print) -> Path:
    """Return `folder`, which now holds every file of the source, verified, and where they are from.

    Raises InvalidInput when something is in the way there, NotFetched when a file cannot be had or is another one.
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
            draft.rmdir()  # unless something came, which the next try goes on with
        raise
    except OSError as error:
        raise refused(
            str(folder), "--out", None, f"it cannot be written ({error.strerror})", "give another folder"
        ) from error
    return folder


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
    _download(file, url, part)
    problem = verify(file, part)
    if problem is not None:
        part.unlink()
        raise NotFetched(problem)
    os.replace(part, whole)


def _download(file: File, url: str, part: Path) -> None:
    """Fetch a file, from where an earlier try stopped if the server can do that."""
    have = part.stat().st_size if part.exists() else 0
    if file.size_bytes is not None and have >= file.size_bytes:
        have = 0  # whole, and still not verified: begin again
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urlopen(request, timeout=PATIENCE_S) as answer, part.open("ab" if answer.status == 206 else "wb") as out:
            _copy(answer, out, have if answer.status == 206 else 0, file, url)
    except HTTPError as error:
        if error.code == 416 and have:  # nothing after what is here already: begin again
            part.unlink()
            return _download(file, url, part)
        raise NotFetched(_unreached(url, f"the server answers {error.code} {error.reason}")) from error
    except (URLError, TimeoutError, http.client.HTTPException, ConnectionError) as error:
        raise NotFetched(_unreached(url, str(getattr(error, "reason", error)))) from error


def _copy(answer: http.client.HTTPResponse, out: BinaryIO, have: int, file: File, url: str) -> None:
    """Write what the server sends; a connection that ends early is told, and keeps what came."""
    most = MOST_BYTES if file.size_bytes is None else file.size_bytes
    announced = answer.headers.get("Content-Length", "")
    came = 0
    while chunk := answer.read(CHUNK):
        came += len(chunk)
        if have + came > most:
            raise NotFetched(_unreached(url, f"it sends more than {most:,} bytes"))
        out.write(chunk)
    if announced.isascii() and announced.isdigit() and came < int(announced):
        raise NotFetched(_unreached(url, f"the connection ended after {have + came:,} bytes"))


def _unreached(url: str, reason: str) -> Problem:
    mend = "check the connection and run it again, which goes on where it stopped; or name a --mirror"
    return Problem(file=url, rule=f"this could not be downloaded: {reason}", mend=mend)


def _provenance(source: Source, draft: Path, mirror: str | None) -> str:
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
