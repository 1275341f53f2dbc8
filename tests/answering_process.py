"""A process that answers messages: it echoes them, sends one twice, writes lines, or ends."""

from __future__ import annotations

import os
import sys

from eunomia.child_process import connect


def main() -> None:
    messages, send = connect()
    sys.stdout.write("what it prints is no answer\n")
    sys.stdout.flush()
    for message in messages:
        if message == b"die":
            sys.stderr.write("it is over\n")
            sys.stderr.flush()
            os._exit(3)
        if message == b"kill":
            os.kill(os.getpid(), 9)
        if message == b"twice":
            send(message)
        send(os.environ.get("NOTED", "").encode() if message == b"noted" else message)


if __name__ == "__main__":
    main()
