"""Forecasts as the service gives them: asked of processes of their own, one at a time of each, with a time limit."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from eunomia.child_process import ChildProcess
from eunomia.service.http.fair_threads import TENANT, FairThreads
from eunomia.service.store.disk_room import DiskFull
from eunomia.service.writer import Writer

LIMIT_S = 60.0  # for one answer, wall-clock
WAIT_S = 80.0  # with the time in the queue; a client waits a little longer
MOST_WAITING, MOST_WAITING_EACH = 32, 8  # questions for one process; of one tenant
LONG = ("whatif",)  # questions that must not delay the others
MEMORY_GIB = 4.0
NICENESS = 10  # of the process, so that decisions go first
_log = logging.getLogger(__name__)


class NoForecast(Exception):
    """A question without an answer; `found` has its `error` and `code`: invalid, site_changed, busy or failed."""

    def __init__(self, found: dict[str, Any]) -> None:
        super().__init__(found["error"])
        self.found = found


class _Lane:
    """One forecast process and the questions that wait for it, which tenants ask in turn."""

    def __init__(self, site: Path) -> None:
        self._process = ChildProcess("eunomia.service.forecast_process", str(site.resolve()), memory_gib=MEMORY_GIB,
                                     niceness=NICENESS)  # fmt: skip
        # Who asks may give up while the process computes on: then the next question waits here, in no thread of others.
        self._threads = FairThreads(1, "forecasts")
        self.waiting: Counter[str] = Counter()
        self._closed = False

    async def ask(self, question: dict[str, Any], now: Callable[[], float]) -> dict[str, Any]:
        """Return the answer to a question, or what is wrong with it."""
        return await self._threads.run(lambda: self._ask({**question, "now": now()}))

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

    def close(self) -> None:
        """End the process for good."""
        self._closed = True
        self._process.stop()
        self._threads.close()


class Forecasts:
    """Asks the forecast processes of one site, and records what they say of waiting jobs.

    What-ifs, which take long, have a process of their own, started when the first is asked.
    """

    def __init__(self, site: Path, writer: Writer, every_s: float) -> None:
        self._short, self._long = _Lane(site), _Lane(site)
        self._writer, self._every_s = writer, every_s
        self._noted = 0

    async def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer. Raises NoForecast."""
        lane, tenant = self._long if question["ask"] in LONG else self._short, TENANT.get()
        if lane.waiting.total() >= MOST_WAITING or lane.waiting[tenant] >= MOST_WAITING_EACH:
            raise NoForecast({"error": "too many forecasts are being asked for; try again", "code": "busy"})
        lane.waiting[tenant] += 1
        try:
            async with asyncio.timeout(WAIT_S):
                found = await lane.ask(question, self._writer.clock.now)
        except TimeoutError:
            rule = f"others were asked first for {WAIT_S:g} s; ask again later"
            raise NoForecast({"error": rule, "code": "busy"}) from None
        finally:
            lane.waiting[tenant] -= 1
        if "error" in found:
            raise NoForecast(found)
        return found

    def _has_waiting(self) -> bool:
        with self._writer.lock:
            return any(self._writer.controller.waiting.values())

    def close(self) -> None:
        """End the processes for good."""
        self._short.close()
        self._long.close()

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
        question, more = {"ask": "note"}, True
        while more:  # in parts, between which the writer and the forecast process do what others ask for
            try:
                found = await self.ask(question)
                if found["new"] or found["moved"]:
                    await asyncio.wrap_future(self._writer.change(partial(_store, found=found)))
            except (NoForecast, DiskFull) as error:
                _log.warning("no forecasts are recorded: %s", error)
                return
            question, more = {"ask": "next note"}, found["more"]
        self._noted = moments


def _store(writer: Writer, found: dict[str, Any]) -> None:
    with writer.store.transaction() as db:
        new = [(number, job, tenant, json.dumps(said), said["raw"][0][1]) for number, job, tenant, said in found["new"]]
        db.executemany("INSERT INTO forecasts VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", new)
        later = [(latest, number) for number, latest in found["moved"]]
        db.executemany("UPDATE forecasts SET latest = ? WHERE number = ?", later)
