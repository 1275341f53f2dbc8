"""Files that hold tables: read whole, unpacked, and within bounds."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

from eunomia.inputs.problems import Problems

GZIP_MAGIC = b"\x1f\x8b"
LIMIT_BYTES = 1 << 29  # unpacked: far above any table, far below the memory of a machine


def read_bytes(path: Path, problems: Problems) -> bytes | None:
    """Return the contents of a file, unpacked if it is gzip; None, with the problem noted, if that fails."""
    try:
        packed = path.read_bytes()
    except OSError as error:
        problems.add(f"the file cannot be read ({error.strerror})", "give the path of a file that exists")
        return None
    if not packed.startswith(GZIP_MAGIC):
        return packed
    return _unpacked(packed, problems)


def _unpacked(packed: bytes, problems: Problems) -> bytes | None:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            contents = stream.read(LIMIT_BYTES + 1)
    except (EOFError, OSError, zlib.error) as error:
        problems.add(f"the gzip file is truncated or damaged ({error})", "copy or download it again")
        return None
    if len(contents) > LIMIT_BYTES:
        problems.add(f"the gzip file unpacks to more than {LIMIT_BYTES} bytes", "give a table of throughputs")
        return None
    return contents


def text_of(contents: bytes, problems: Problems) -> str | None:
    """Return the contents as text; None, with the problem noted, if they are not UTF-8."""
    try:
        return contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = contents.count(b"\n", 0, error.start) + 1
        problems.add("the file is not UTF-8 text", "save it as UTF-8", row=row)
        return None
