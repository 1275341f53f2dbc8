"""Connects with the process of an interactive job, in a folder where its user may have put anything. For Linux."""

from __future__ import annotations

import os
import socket
import stat
import struct
from pathlib import Path

from eunomia.backends.processes.interactive_session import SOCKET

CONNECT_S = 5.0


def connect_session(folder: Path, uid: int) -> socket.socket:
    """Return a connection with the socket in a folder, both of the user `uid`, as is who listens there.

    No link is followed. Raises OSError: PermissionError for a socket or a process of another user.
    """
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    place = os.open(folder, flags | os.O_DIRECTORY)
    try:
        entry = os.open(SOCKET, flags, dir_fd=place)
    finally:
        os.close(place)
    try:
        found = os.fstat(entry)
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != uid:
            raise PermissionError(f"{SOCKET} is no socket of the job's user")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(CONNECT_S)
            connection.connect(f"/proc/self/fd/{entry}")
            if peer_uid(connection) != uid:
                raise PermissionError("a process of another user listens there")
        except BaseException:
            connection.close()
            raise
        return connection
    finally:
        os.close(entry)


def peer_uid(connection: socket.socket) -> int:
    """Return the user of the process at the other end of a unix socket."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", found)[1])
