"""Copies what a gang writes into its log, which has a longest length. Standard library only: supervisors use it."""

from __future__ import annotations

import _thread
import math
import os
import select
import time

from eunomia.backends.processes.log_parts import LogWriter

CHUNK = 65_536  # bytes
CHUNKS = 16  # of one log before the other has its turn
STACK = 262_144  # bytes; of the thread


class LogCopier:
    """A thread that reads the gang's output from pipes, so that a slow disk or a chatty gang delays nothing else.

    The log is the open file 2 of this process. There are never more than two parts of a log, of at most `limit` bytes,
    and what its pipe holds; a gang that writes faster than the disk waits at the pipe. What the disk does not take, as
    it is full, is left out, and the log says how much. With `errors`, a path, standard error has a log of its own, the
    open file `errors_file`.
    """

    def __init__(self, path: str, limit: int, errors: str = "", errors_file: int = 2) -> None:
        now = time.time()
        self._logs = [_CopiedLog(LogWriter(path, 2, limit, now))]
        if errors:
            self._logs.append(_CopiedLog(LogWriter(errors, errors_file, limit, now)))
        self._stop_read, self._stop_write = os.pipe()
        self._done = _thread.allocate_lock()
        self._done.acquire()

    @property
    def write_ends(self) -> tuple[int, int]:
        """Return where the gang writes its standard output and its standard error."""
        return self._logs[0].write_end, self._logs[-1].write_end

    def start(self) -> None:
        """Begin to copy; the processes of the gang have the other ends by now."""
        for log in self._logs:
            os.close(log.write_end)
        _thread.stack_size(STACK)
        _thread.start_new_thread(self._run, ())

    def finish(self, longest_s: float) -> None:
        """Copy what the pipes still hold. A disk that does not answer so long is not waited for."""
        os.close(self._stop_write)
        self._done.acquire(timeout=longest_s)

    def _run(self) -> None:
        poll, stops = select.poll(), False
        open_logs = {log.read_end: log for log in self._logs}
        for end in (*open_logs, self._stop_read):
            poll.register(end, select.POLLIN)
        while not stops:
            ready = {end for end, _ in poll.poll()}
            stops = self._stop_read in ready
            for end in [end for end in open_logs if stops or end in ready]:
                if not open_logs[end].copy(math.inf if stops else CHUNKS):
                    poll.unregister(end)
                    del open_logs[end]
        self._done.release()


class _CopiedLog:
    """A pipe and the log that what comes from it is written to."""

    def __init__(self, writer: LogWriter) -> None:
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.read_end, False)
        self._writer = writer
        self._missing = 0  # bytes

    def copy(self, chunks: float) -> bool:
        """Copy what is there, so many chunks at most; return whether more may come."""
        try:
            while chunks > 0:
                if not (data := os.read(self.read_end, CHUNK)):
                    return False
                self._take(data)
                chunks -= 1
        except BlockingIOError:
            pass
        return True

    def _take(self, data: bytes) -> None:
        try:
            if self._missing:
                said = f"\n[{self._missing} bytes of output are missing: the disk was full]\n"
                self._writer.write(said.encode(), time.time())
                self._missing = 0
            self._writer.write(data, time.time())
        except OSError:
            self._missing += len(data)
