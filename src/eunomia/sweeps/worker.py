"""One worker of a sweep: a process that simulates what it is told, one run at a time.

It reads a run as a line of JSON from stdin and answers with a line of JSON on stdout; a line with `notice` may come
before, when kernels are compiled. When stdin ends, because the
sweep is over or was killed, it ends at once: nobody waits for it. What policies print goes to stderr.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from eunomia.inputs.disk_errors import DISK
from eunomia.kernels import LOG

LINES = 12  # of a traceback are kept
Work = Callable[[dict[str, Any]], None]  # makes and writes what it is asked for


def simulated(asked: dict[str, Any]) -> None:
    """Simulate and write one run."""
    from eunomia.runs.simulation import simulate
    from eunomia.scenario import scenario_from_dict
    from eunomia.sweeps.store import Store

    scenario = scenario_from_dict(asked["scenario"], Path(asked["base"]), asked["name"])
    result = simulate(scenario)
    Store(Path(asked["out"])).write(asked["hash"], result, jobs=asked["keep_jobs"])


class _Notices(logging.Handler):
    """Passes what the log says of compiling on to the sweep."""

    def __init__(self, answers: TextIO) -> None:
        super().__init__()
        self._answers = answers

    def emit(self, record: logging.LogRecord) -> None:
        _write({"notice": record.getMessage()}, self._answers)


def main(work: Work = simulated) -> None:
    """Work until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the sweep, which then ends us
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    LOG.addHandler(_Notices(answers))
    asked: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    while True:
        _answer(json.loads(asked.get()), answers, work)


def _listen(asked: queue.Queue[str]) -> None:
    for line in sys.stdin:
        asked.put(line)
    os._exit(0)


def _answer(asked: dict[str, Any], answers: TextIO, work: Work) -> None:
    _write(attempt(asked, work), answers)


def _write(said: dict[str, Any], answers: TextIO) -> None:
    answers.write(json.dumps(said) + "\n")
    answers.flush()


def attempt(asked: dict[str, Any], work: Work = simulated) -> dict[str, Any]:
    """Make one run; return {} or, when it failed, why. A failing policy may raise whatever it likes.

    A disk that is full is told by its `errno` and, where it is known, the file: no other run could be written either.
    """
    try:
        work(asked)
    except (Exception, SystemExit) as error:
        trace = "".join(traceback.format_exception(error)).splitlines()[-LINES:]
        why = {"error": f"{type(error).__name__}: {error}", "traceback": trace}
        if isinstance(error, OSError) and error.errno in DISK:
            file = error.filename
            return {**why, "errno": error.errno, "file": file if isinstance(file, str) else None}
        return why
    return {}


if __name__ == "__main__":
    main()
