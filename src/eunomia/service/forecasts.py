"""Forecasts as the service gives them: asked of a process of their own, one at a time, with a time limit."""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from eunomia.child_process import ChildProcess
from eunomia.service.store.disk_room import DiskFull
from eunomia.service.writer import Writer

LIMIT_S = 60.0  # for one answer, wall-clock
MOST_WAITING = 32  # questions
MEMORY_GIB = 4.0
NICENESS = 10  # of the process, so that decisions go first
_log = logging.getLogger(__name__)


class NoForecast(Exception):
    """A question without an answer; `found` has its `error` and `code`: invalid, site_changed, busy or failed."""

    def __init__(self, found: dict[str, Any]) -> None:
        super().__init__(found["error"])
        self.found = found


class Forecasts:
    """Asks the forecast process of one site, and records what it says of waiting jobs."""

    def __init__(self, site: Path, writer: Writer, every_s: float) -> None:
        self._process = ChildProcess("eunomia.service.forecast_process", str(site.resolve()), memory_gib=MEMORY_GIB,
                                     niceness=NICENESS)  # fmt: skip
        self._writer, self._every_s = writer, every_s
        self._lock = asyncio.Lock()
        # Who asks may give up while the process computes on: then the next question waits here, in no thread of others.
        self._thread = ThreadPoolExecutor(1, "forecasts")
        self._waiting = self._noted = 0
        self._closed = False

    async def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer. Raises NoForecast."""
        if self._waiting >= MOST_WAITING:
            raise NoForecast({"error": "too many forecasts are being asked for; try again", "code": "busy"})
        self._waiting += 1
        try:
            async with self._lock:
                asked = {**question, "now": self._writer.clock.now()}
                found = await asyncio.get_running_loop().run_in_executor(self._thread, self._ask, asked)
        finally:
            self._waiting -= 1
        if "error" in found:
            raise NoForecast(found)
        return found

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        for is_last in (False, True):
            try:
                found: dict[str, Any] = json.loads(self._process.ask(json.dumps(question).encode(), LIMIT_S))
            except TimeoutError:
                text = f"it took more than {LIMIT_S:g} s; ask again when the machine has less to do"
                return {"error": text, "code": "failed"}
            except OSError as error:
                _log.warning("the forecast process failed: %s", error)
                found = {"error": "the forecast process failed; the service's log says why", "code": "failed"}
            if is_last or self._closed or found.get("code") not in ("site_changed", "failed"):
                return found
            self._process.stop()  # another one reads the site again
        raise AssertionError

    def _has_waiting(self) -> bool:
        with self._writer.lock:
            return any(self._writer.controller.waiting.values())

    def close(self) -> None:
        """End the process for good."""
        self._closed = True
        self._process.stop()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def note_regularly(self) -> None:
        """Record forecasts of waiting jobs every so many seconds, if something has changed since."""
        while self._every_s > 0:
            await asyncio.sleep(self._every_s)
            await self.note()

    async def note(self) -> None:
        """Record what is said now of the start and finish of waiting jobs."""
        moments = self._writer.controller.moments
        if moments == self._noted or not await asyncio.to_thread(self._has_waiting):
            return
        try:
            found = await self.ask({"ask": "note"})
        except NoForecast as error:
            _log.warning("no forecasts are recorded: %s", error)
            return
        self._noted = moments
        if found["new"] or found["moved"]:
            try:
                await asyncio.wrap_future(self._writer.change(lambda writer: _store(writer, found)))
            except DiskFull as error:
                _log.warning("no forecasts are recorded: %s", error)


def _store(writer: Writer, found: dict[str, Any]) -> None:
    with writer.store.transaction() as db:
        new = [(number, job, tenant, json.dumps(said), said["raw"][0][1]) for number, job, tenant, said in found["new"]]
        db.executemany("INSERT INTO forecasts VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", new)
        later = [(latest, number) for number, latest in found["moved"]]
        db.executemany("UPDATE forecasts SET latest = ? WHERE number = ?", later)
