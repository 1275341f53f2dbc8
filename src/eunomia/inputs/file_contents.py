"""The bytes of an input file, unpacked; what cannot be read is an error, never a guess."""

from __future__ import annotations

import gzip
import zlib
from io import BytesIO
from pathlib import Path

from eunomia.inputs.problems import refused

MOST_BYTES = 2**31  # a gzip bomb grows a thousandfold; the largest public trace is far below this
GZIP = b"\x1f\x8b"


def contents(path: Path, name: str = "") -> bytes:
    """Return what the file holds, without its gzip wrapping if it has one; `name` is the file's in messages.

    Raises InvalidInput for a file that is missing, a folder, unreadable, too large, or broken gzip.
    """
    file_name = name or str(path)
    try:
        with path.open("rb") as file:
            packed = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        fix = "check the path; a relative one counts from the scenario's folder"
        raise refused(file_name, None, None, "there is no such file", fix) from None
    except IsADirectoryError:
        rule = "a file is needed, and this is a folder"
        raise refused(file_name, None, None, rule, "name the file inside it") from None
    except (OSError, ValueError) as error:
        rule = f"the file cannot be read ({_reason(error)})"
        raise refused(file_name, None, None, rule, "check its permissions") from error
    unpacked = _gunzipped(packed, file_name) if packed[:2] == GZIP or path.suffix == ".gz" else packed
    if len(unpacked) > MOST_BYTES:
        rule = f"a file must be at most {MOST_BYTES} bytes, unpacked"
        raise refused(file_name, None, None, rule, "split it, a trace by time")
    return unpacked


def decoded(file_name: str, raw: bytes) -> str:
    """Return the text of UTF-8 bytes, a byte order mark left out."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = raw.count(b"\n", 0, error.start) + 1
        rule = f"the text must be UTF-8, but byte {raw[error.start]:#04x} is not"
        raise refused(file_name, None, None, rule, "save the file as UTF-8", row=row) from None


def _gunzipped(packed: bytes, file_name: str) -> bytes:
    if not packed:
        return packed
    if packed[:2] != GZIP:
        rule = "a name that ends in .gz promises gzip, and this is not gzip"
        raise refused(file_name, None, None, rule, "compress the file with gzip, or drop .gz from its name")
    try:
        with gzip.open(BytesIO(packed)) as file:
            return file.read(MOST_BYTES + 1)
    except EOFError:
        raise refused(file_name, None, None, "the gzip file is cut short", "copy or download it again") from None
    except (OSError, zlib.error) as error:
        rule = f"the gzip file is damaged ({_reason(error)})"
        raise refused(file_name, None, None, rule, "copy or download it again") from None


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).rstrip(".")
