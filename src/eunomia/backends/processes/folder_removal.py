"""Removes a job's folder in small steps, whatever the job has put there: links are never followed."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)


def folder_bytes(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Return how many files a folder has, also in folders below it, and their bytes; links count as themselves."""
    count, size, waiting = 0, 0, [os.fspath(path)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:  # gone, or not ours to read
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    count, size = count + 1, size + entry.stat(follow_symlinks=False).st_size
    return count, size


def remove_folder(parent: int, name: str) -> Iterator[None]:
    """Remove a folder in an open one, or the link or file of that name; yield after each entry that has gone.

    Of a tree of any depth at most two folders are open at once: what lies deeper is moved up first. A file system that
    is mounted in the folder is left alone. Raises OSError for what cannot be removed; nothing where there is no such
    folder.
    """
    try:
        top = _opened(parent, name)
    except FileNotFoundError:
        return
    if top is None:
        os.unlink(name, dir_fd=parent)
        return
    try:
        mount, moved = _mount(top), 0
        while entries := _some(top):
            for entry, is_folder in entries:
                if not is_folder:
                    _unlink(top, entry)
                    yield
                    continue
                below = _opened(top, entry)
                if below is None:  # it has been replaced meanwhile
                    continue
                try:
                    if _mount(below) != mount:
                        raise OSError(errno.EBUSY, "a file system is mounted there", entry)
                    while inside := _some(below):
                        for one, is_deeper in inside:
                            if is_deeper:
                                moved = _move_up(below, one, top, moved)
                            else:
                                _unlink(below, one)
                            yield
                finally:
                    os.close(below)
                os.rmdir(entry, dir_fd=top)
                yield
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def _some(folder: int, most: int = 256) -> list[tuple[str, bool]]:
    """Return names of entries of a folder, and which are folders."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            found.append((entry.name, entry.is_dir(follow_symlinks=False)))
            if len(found) == most:
                break
    return found


def _opened(parent: int, name: str) -> int | None:
    """Return a folder, open, that its owner may read and change; None for what is none."""
    try:
        place = os.open(name, getattr(os, "O_PATH", os.O_RDONLY) | _FOLDER, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            return None
        raise
    try:
        if os.fstat(place).st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{place}", 0o700)
        return os.open(".", os.O_RDONLY | _FOLDER, dir_fd=place)
    finally:
        os.close(place)


def _mount(folder: int) -> str:
    """Return what tells the mount of an open folder from others: also from one of the same file system elsewhere."""
    with contextlib.suppress(OSError), open(f"/proc/self/fdinfo/{folder}", encoding="ascii") as file:
        return next((line for line in file if line.startswith("mnt_id:")), "")
    return str(os.fstat(folder).st_dev)


def _move_up(source: int, name: str, target: int, number: int) -> int:
    """Move a folder from one folder to another under a name that is free there; return the number for the next."""
    opened = _opened(source, name)  # so that it can be moved and read
    if opened is None:
        _unlink(source, name)
        return number
    os.close(opened)
    while True:
        number += 1
        try:
            os.rename(name, f".removed-{number}", src_dir_fd=source, dst_dir_fd=target)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        else:
            return number


def _unlink(folder: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
