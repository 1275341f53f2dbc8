"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from eunomia.inputs.disk_errors import DISK
from eunomia.inputs.problems import refused


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """Give a file to write into; it takes the place of `path` in one step, or is removed when something fails.

    With `durable` it is on the disk then. Raises OSError with the name of `path`.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with draft.open("wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
        if durable:
            _sync_folder(path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        if draft.exists():
            draft.unlink()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replacing_folder(place: Path) -> Iterator[Path]:
    """Give a folder to write into, beside `place`; it takes its place, or is removed when something fails.

    A folder that is there is removed only after the new one has its name.
    """
    draft = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        draft.chmod(0o755)
        yield draft
        _replace(draft, place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _replace(draft: Path, place: Path) -> None:
    if not place.exists():
        draft.rename(place)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{place.name}.old.", dir=place.parent))
    try:
        place.rename(old / place.name)
        draft.rename(place)
    finally:
        if not place.exists():  # interrupted between the renames
            (old / place.name).rename(place)
        shutil.rmtree(old)


def write_whole(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write `content` to `path`, making its folder; a reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, durable=durable) as file:
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
