"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from eunomia.inputs.disk_errors import DISK
from eunomia.inputs.problems import refused


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write into; it takes the place of `path` in one step, or is removed when something fails.

    Raises OSError with the name of `path`.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with draft.open("wb") as file:
            yield file
        draft.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        if draft.exists():
            draft.unlink()


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path`, making its folder; a reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)


def write_output(path: Path, content: bytes | Callable[[BinaryIO], object], *, column: str | None = None) -> None:
    """Write a file that a user named, with the option `column`; `content` may be a function that writes it.

    Raises InvalidInput for a place that cannot be written to, OSError with the name of the file for a full disk.
    """
    try:
        with replacing(path) as file:
            file.write(content) if isinstance(content, bytes) else content(file)
    except OSError as error:
        if error.errno in DISK:
            raise
        rule = f"the file cannot be written here ({error.strerror})"
        fix = "name a file in a folder that exists and may be written to"
        raise refused(str(path), column, None, rule, fix) from error


def check_place(path: Path, *, force: bool, endings: Collection[str], column: str | None = None) -> None:
    """Raise InvalidInput when no file can be written to `path`: its ending, its folder, or a file in the way."""
    rule = None
    if not path.name.endswith(tuple(endings)):
        rule, fix = f"the name of the new file must end in {', '.join(endings)}", "choose one of these endings"
    elif not path.parent.is_dir():
        rule, fix = "there is no such folder", "make it, or name another one"
    elif path.is_dir() or (path.exists() and not force):
        rule, fix = "it exists", "give another name" + ", or --force" * path.is_file()
    if rule is not None:
        raise refused(str(path), column, None, rule, fix)
