"""A worker process of a sweep, which simulates one run at a time.

Tasks and answers are JSON objects (see `child_process`); one with `notice` may precede an answer when kernels are
compiled. What policies print goes to stderr.
"""

from __future__ import annotations

import json
import logging
import signal
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eunomia.child_process import connect
from eunomia.inputs.disk_errors import DISK
from eunomia.inputs.problems import InvalidInput
from eunomia.kernels.dispatch import LOG
from eunomia.records.policy_call import policy_problem

TRACEBACK_LINES = 12  # kept
Work = Callable[[dict[str, Any]], None]  # runs a task and writes its results


def simulate_task(task: dict[str, Any]) -> None:
    """Simulate and write one run."""
    from eunomia.runs.simulation import simulate
    from eunomia.scenario import scenario_from_dict
    from eunomia.sweeps.store import Store

    scenario = scenario_from_dict(task["scenario"], Path(task["base"]), task["name"])
    result = simulate(scenario)
    Store(Path(task["out"])).write(task, result)


class _Notices(logging.Handler):
    """Forwards log messages about compiling to the sweep."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        self._send(json.dumps({"notice": record.getMessage()}).encode())


def main(work: Work = simulate_task) -> None:
    """Run tasks until the sweep ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the sweep handles Ctrl-C and then kills its workers
    tasks, send = connect()
    LOG.addHandler(_Notices(send))
    for task in tasks:
        send(json.dumps(attempt(json.loads(task), work)).encode())


def attempt(task: dict[str, Any], work: Work = simulate_task) -> dict[str, Any]:
    """Run one task; return {}, or the error if it failed. A policy may raise any exception.

    Wrong input, a refused answer of a policy, or an exception of it has its `problem`.
    The error of a full disk has an `errno` and, if known, the file, as no other run could be written either.
    """
    try:
        work(task)
    except (Exception, SystemExit) as error:
        trace = "".join(traceback.format_exception(error)).splitlines()[-TRACEBACK_LINES:]
        why: dict[str, Any] = {"error": f"{type(error).__name__}: {error}", "traceback": trace}
        refused = error.problems[0] if isinstance(error, InvalidInput) else policy_problem(error)
        if refused is not None:
            why["problem"] = asdict(refused)
        if isinstance(error, OSError) and error.errno in DISK:
            file = error.filename
            return {**why, "errno": error.errno, "file": file if isinstance(file, str) else None}
        return why
    return {}


if __name__ == "__main__":
    main()
