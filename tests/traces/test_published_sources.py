"""A copy of a public source appears whole and verified, or not at all. The server here is a thread on this machine."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import FORMATS
from eunomia.traces.machine_lists import NODE_FORMATS
from eunomia.traces.sources import SOURCES, File, TraceSource, source
from eunomia.traces.sources.fetching import PROVENANCE, NotFetched, fetch

WHOLE = b"job_index,submit_s,gpus,service_s\n0,5,48,720\n1,6,8,60\n"
TABLE = b"a,b\n1,2\n"


@dataclass
class Shelf:
    """What the server has, what it was asked for, and how it misbehaves."""

    content: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)  # path, Range
    cut_after: int | None = None  # bytes, after which the connection breaks
    ranges: bool = True
    length: str | None = None  # what it says of it; None = what is true, "" = nothing
    chunked: bool = False  # each half of the file is a chunk
    range: str | None = None  # what it says of a part; None = what is true, "" = nothing
    moved: str | None = None  # where it sends everybody
    address: str = ""


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    """Give a server on a free port of this machine."""
    had = Shelf()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        close_connection = True

        def do_GET(self) -> None:
            wanted, path = self.headers.get("Range"), unquote(self.path)
            had.asked.append((path, wanted))
            if had.moved is not None:
                self.send_response(302)
                self.send_header("Location", had.moved)
                return self.end_headers()
            if path not in had.content:
                return self.send_error(404)
            whole = had.content[path]
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and had.ranges else 0
            if start >= len(whole) and start:
                return self.send_error(416)
            self.send_response(206 if start or had.range is not None else 200)
            if start and had.range is None:
                self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
            elif had.range:
                self.send_header("Content-Range", had.range)
            if had.chunked:
                self.send_header("Transfer-Encoding", "chunked")
            elif had.length != "":
                self.send_header("Content-Length", had.length or str(len(whole) - start))
            self.end_headers()
            sent = whole[start : had.cut_after]
            self.wfile.write(self.pieces(whole[start:], len(sent)) if had.chunked else sent)

        @staticmethod
        def pieces(content: bytes, most: int) -> bytes:
            """Return the content in two chunks and an end, cut off after so many bytes of content."""
            half = len(content) // 2 or 1
            coded, left = b"", most
            for piece in (*filter(None, (content[:half], content[half:])), b""):
                coded += f"{len(piece):x}\r\n".encode() + piece[:left] + b"\r\n" * (len(piece) <= left)
                left -= len(piece)
                if left < 0:
                    break
            return coded

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    had.address = f"http://127.0.0.1:{server.server_port}"
    yield had
    server.shutdown()
    thread.join()
    server.server_close()


def published(**changes: Any) -> TraceSource:
    """A source of two files: one known to the byte, one by its columns and rows."""
    files = (
        File(path="data/jobs one.csv", sha256=hashlib.sha256(WHOLE).hexdigest(), size_bytes=len(WHOLE)),
        File(path="table.csv", columns=("a", "b"), rows=1),
    )
    known = TraceSource(
        name="s", about="a", paper="p", licence="MIT", repository="owner/name", commit="c0ffee", files=files
    )
    return replace(known, **changes)


def stock(shelf: Shelf, **content: bytes) -> None:
    had = {"data/jobs one.csv": WHOLE, "table.csv": TABLE} | {key.replace("__", "."): v for key, v in content.items()}
    shelf.content = {f"/owner/name/c0ffee/{path}": raw for path, raw in had.items()}


def get(shelf: Shelf, place: Path, known: TraceSource | None = None) -> Path:
    return fetch(known or published(), place, mirror=shelf.address, report=lambda line: None)


def test_a_source_is_copied_whole_with_its_provenance(shelf: Shelf, tmp_path: Path) -> None:
    stock(shelf)
    place = get(shelf, tmp_path / "deep" / "s")
    assert sorted(file.name for file in place.iterdir()) == [PROVENANCE, "jobs one.csv", "table.csv"]
    assert (place / "jobs one.csv").read_bytes() == WHOLE
    result = (place / PROVENANCE).read_text()
    assert "https://github.com/owner/name at c0ffee" in result and "licence: MIT" in result
    assert hashlib.sha256(TABLE).hexdigest() in result
    assert [file.name for file in place.parent.iterdir()] == ["s"]


def test_another_content_is_refused_with_both_sums_and_leaves_nothing(shelf: Shelf, tmp_path: Path) -> None:
    stock(shelf)
    forged = WHOLE.replace(b"48", b"84")
    shelf.content["/owner/name/c0ffee/data/jobs one.csv"] = forged
    with pytest.raises(NotFetched) as caught:
        get(shelf, tmp_path / "s")
    assert hashlib.sha256(forged).hexdigest() in str(caught.value)
    assert hashlib.sha256(WHOLE).hexdigest() in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"a,c\n1,2\n", "these columns are missing"),
        (b"a,b\n1,2\n3,4\n", "must hold 1 rows"),
        (b"", "the file is empty"),
    ],
)
def test_without_a_checksum_columns_and_rows_must_be_as_published(
    raw: bytes, said: str, shelf: Shelf, tmp_path: Path
) -> None:
    stock(shelf, table__csv=raw)
    with pytest.raises(NotFetched, match=said):
        get(shelf, tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip"])
def test_an_archive_without_a_checksum_must_unpack(name: str, shelf: Shelf, tmp_path: Path) -> None:
    known = published(files=(File(path=name),))
    shelf.content = {f"/owner/name/c0ffee/{name}": gzip.compress(b"x" * 99)[:-9]}
    with pytest.raises(NotFetched, match="archive is damaged"):
        get(shelf, tmp_path / "s", known)


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_download_resumes(ranges: bool, shelf: Shelf, tmp_path: Path) -> None:
    stock(shelf)
    shelf.cut_after, shelf.ranges = 20, ranges
    with pytest.raises(NotFetched, match=r"could not be downloaded|connection"):
        get(shelf, tmp_path / "s")
    assert not (tmp_path / "s").exists()
    shelf.cut_after = None
    shelf.asked.clear()
    assert (get(shelf, tmp_path / "s") / "jobs one.csv").read_bytes() == WHOLE
    assert shelf.asked[0][1] == "bytes=20-"


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("cut_after", [20, 26, 30, len(WHOLE) - 1])
def test_received_bytes_are_kept_when_the_length_is_unknown(
    cut_after: int, chunked: bool, shelf: Shelf, tmp_path: Path
) -> None:
    stock(shelf)
    shelf.length, shelf.chunked, shelf.cut_after = "", chunked, cut_after
    with pytest.raises(NotFetched, match=f"connection ended after {cut_after} of {len(WHOLE)} bytes"):
        get(shelf, tmp_path / "s")
    shelf.cut_after = None
    shelf.asked.clear()
    assert (get(shelf, tmp_path / "s") / "jobs one.csv").read_bytes() == WHOLE
    assert shelf.asked[0][1] == f"bytes={cut_after}-"
    assert [file.name for file in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_shorter_file_that_came_to_its_end_is_another_file(chunked: bool, shelf: Shelf, tmp_path: Path) -> None:
    stock(shelf)
    shelf.content["/owner/name/c0ffee/data/jobs one.csv"] = WHOLE[:20]
    shelf.chunked = chunked
    with pytest.raises(NotFetched, match="SHA-256 must be"):
        get(shelf, tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def begun(shelf: Shelf, tmp_path: Path, content: bytes = WHOLE[:20]) -> None:
    """Leave what an earlier try left."""
    stock(shelf)
    (tmp_path / ".s.part").mkdir()
    (tmp_path / ".s.part" / "jobs one.csv.part").write_bytes(content)


@pytest.mark.parametrize("said", ["", f"bytes 0-{len(WHOLE) - 1}/{len(WHOLE)}", "bytes 19-30/99", "lines 20-30/50"])
def test_a_part_that_is_not_the_one_asked_for_is_not_put_behind_what_is_here(
    said: str, shelf: Shelf, tmp_path: Path
) -> None:
    """The file is asked for whole then; a server that sends a part even so is refused."""
    begun(shelf, tmp_path)
    known = published(files=published().files[:1])
    shelf.range = said
    with pytest.raises(NotFetched, match=f"sends a part only, {said}"):
        get(shelf, tmp_path / "s", known)
    assert [wanted for _, wanted in shelf.asked] == ["bytes=20-", None]
    shelf.range = None
    assert (get(shelf, tmp_path / "s", known) / "jobs one.csv").read_bytes() == WHOLE


def test_a_beginning_of_another_file_is_thrown_away_and_the_file_fetched_whole(shelf: Shelf, tmp_path: Path) -> None:
    begun(shelf, tmp_path, b"<html>log in here")
    assert (get(shelf, tmp_path / "s") / "jobs one.csv").read_bytes() == WHOLE
    assert [wanted for _, wanted in shelf.asked[:2]] == ["bytes=17-", None]


@pytest.mark.parametrize("where", ["http://[::bad/x", "file:///etc/passwd", "http://127.0.0.1:port/x", "gopher://x/"])
def test_a_server_that_redirects_to_an_address_that_is_not_http_is_reported(
    where: str, shelf: Shelf, tmp_path: Path
) -> None:
    stock(shelf)
    shelf.moved = where
    with pytest.raises(NotFetched, match="could not be downloaded"):
        get(shelf, tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_what_a_server_says_is_repeated_in_one_line_without_control_characters(shelf: Shelf, tmp_path: Path) -> None:
    stock(shelf)
    shelf.moved = f"{shelf.address}/owner/name/c0ffee/data/jobs%20one.csv"  # round and round
    with pytest.raises(NotFetched) as caught:
        get(shelf, tmp_path / "s")
    assert "infinite loop" in caught.value.problem.rule and caught.value.problem.rule.isprintable()


def test_files_that_came_whole_are_not_fetched_again(shelf: Shelf, tmp_path: Path) -> None:
    stock(shelf)
    del shelf.content["/owner/name/c0ffee/table.csv"]
    with pytest.raises(NotFetched, match="404"):
        get(shelf, tmp_path / "s")
    stock(shelf)
    shelf.asked.clear()
    get(shelf, tmp_path / "s")
    assert [path for path, _ in shelf.asked] == ["/owner/name/c0ffee/table.csv"]


@pytest.mark.parametrize("length", ["abc", "-1", "1e3", "²"])
def test_a_length_that_is_no_number_is_as_none(length: str, shelf: Shelf, tmp_path: Path) -> None:
    """What came is verified all the same."""
    stock(shelf)
    shelf.length = length
    assert (get(shelf, tmp_path / "s") / "table.csv").read_bytes() == TABLE


def test_the_provenance_names_the_mirror_without_a_password(shelf: Shelf, tmp_path: Path) -> None:
    stock(shelf)
    result = (get(shelf, tmp_path / "s") / PROVENANCE).read_text()
    assert f"\nby way of the mirror: {shelf.address}\n" in result
    secret = fetch(published(files=()), tmp_path / "t", mirror="http://ann:secret@host:81/deep")
    assert "by way of the mirror: http://host:81/deep\n" in (secret / PROVENANCE).read_text()
    direct = fetch(published(files=()), tmp_path / "u")
    assert "by way of" not in (direct / PROVENANCE).read_text()


def test_a_file_longer_than_published_is_not_read_to_its_end(shelf: Shelf, tmp_path: Path) -> None:
    stock(shelf)
    shelf.content["/owner/name/c0ffee/data/jobs one.csv"] = WHOLE * 100_000
    with pytest.raises(NotFetched, match="more than"):
        get(shelf, tmp_path / "s")


def test_a_server_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFetched, match="could not be downloaded"):
        fetch(published(), tmp_path / "s", mirror="http://127.0.0.1:9", report=lambda line: None)
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_the_way_stays(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    with pytest.raises(InvalidInput, match="it exists"):
        get(shelf, tmp_path / "s")


@pytest.mark.parametrize("mirror", ["file:///etc", "http://", "http://[half/", "http://a b/", "http://host:port/"])
def test_a_mirror_that_is_no_address_of_the_web_is_refused(tmp_path: Path, mirror: str) -> None:
    with pytest.raises(InvalidInput, match="http or https"):
        fetch(published(), tmp_path / "t", mirror=mirror)


def test_every_source_says_where_it_is_from_and_how_it_is_verified() -> None:
    assert len({one.name for one in SOURCES}) == len(SOURCES)
    for one in SOURCES:
        assert one.licence and one.paper and one.about and len(one.commit) == 40
        assert one.format in ("", *FORMATS, *NODE_FORMATS)
        assert len({file.copy_name for file in one.files}) == len(one.files)
        for file in one.files:
            assert one.url(file).startswith("https://")
            assert file.sha256 is None or len(file.sha256) == 64
        json.dumps(one.as_dict(), allow_nan=False)


def test_a_misspelt_source_is_answered_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'tiresias'"):
        source("tirezias")
