"""Opens files where a job may have put a pipe, a link or a device. Standard library only: supervisors use it."""

from __future__ import annotations

import errno
import os
import stat

SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe without another end is not waited for


def open_plain(path: str | os.PathLike[str], flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a file; one that is made gets `mode`, less the umask. Raises OSError for anything but a plain file."""
    handle = os.open(path, flags | SAFE, mode)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return handle


def open_anew(path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> int:
    """Open a file to write, and make it where there is none, or something that is not plain. Raises OSError."""
    try:
        return open_plain(path, flags | os.O_CREAT, mode)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ELOOP, errno.ENXIO):  # device or pipe, link, pipe without a reader
            raise
    os.unlink(path)
    return os.open(path, flags | os.O_CREAT | os.O_EXCL | SAFE, mode)
