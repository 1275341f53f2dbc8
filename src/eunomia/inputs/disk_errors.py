"""User-facing messages for OS errors such as "disk full"."""

from __future__ import annotations

import errno

_ROOM = "make room there, or name a place on another disk, and type the command again"
_PERMIT = "check who may read and write there, or name another place"
REFUSALS = {  # errno → meaning, fix
    errno.ENOSPC: ("no space left on the device", _ROOM),
    errno.EDQUOT: ("the quota of the disk is used up", _ROOM),
    errno.EFBIG: ("file too large for this system or its limit", "raise the limit (ulimit -f), or ask for less output"),
    errno.EIO: ("the device answers with an input or output error", "check the disk, or name a place on another one"),
    errno.EROFS: ("the file system can only be read", "name a place that can be written to"),
    errno.ESTALE: ("the network file is gone", "mount its file system anew, and type the command again"),
    errno.EACCES: ("permission denied", _PERMIT),
    errno.EPERM: ("the operation is not permitted", _PERMIT),
    errno.EMFILE: ("too many files are open", "raise the limit (ulimit -n)"),
    errno.ENFILE: ("too many files are open on this machine", "close some, and type the command again"),
}
DISK = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
)  # may be raised by a write, without a file name
