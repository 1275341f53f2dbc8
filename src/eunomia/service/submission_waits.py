"""Why jobs wait that users submitted to an engine: given to the engine's world, which shows it where the users look."""

from __future__ import annotations

import math

from eunomia.backends.engines.job_files import SUBMISSION
from eunomia.backends.world import ProcessWorld
from eunomia.service.job_row import WAITING
from eunomia.service.living_state import why
from eunomia.service.messages import Principal
from eunomia.service.writer import Writer

EVERY_S = 5.0  # between two looks
CALM_S = 60.0  # between two texts with one code: a queue that moves would change them all the time
MOST = 100  # jobs in one look, whose waits are worked out while the state is locked


class SubmissionWaits:
    """Tells what has changed since the last look, the jobs in turn."""

    def __init__(self, writer: Writer, world: ProcessWorld) -> None:
        self._writer, self._world = writer, world
        self._given: dict[str, tuple[str, float]] = {}  # by job: code of the wait, and when it was given
        self._last = ""  # job in the last look, from which the next goes on

    def look(self, now: float) -> None:
        """Give the waits that are new, or have another text for long."""
        found: dict[str, str] = {}
        with self._writer.lock:
            controller = self._writer.controller
            waiting = sorted(row.id for row in controller.rows.values()
                             if row.state in WAITING and SUBMISSION in row.spec.get("labels", {}))  # fmt: skip
            self._given = {job_id: self._given[job_id] for job_id in waiting if job_id in self._given}
            for job_id in self._in_turn(waiting):
                row = controller.rows[job_id]
                submitter = Principal(row.owner, row.tenant, "submitter")
                shown = why(controller, row, self._writer.origin, submitter.may_see)
                code = ",".join(reason["code"] for reason in shown["reasons"])
                before, at = self._given.get(job_id, ("", -math.inf))
                if code and (code != before or now >= at + CALM_S):
                    self._given[job_id] = code, now
                    number = row.spec["labels"][SUBMISSION]
                    found[number] = "; ".join(reason["text"] for reason in shown["reasons"])
        if found:
            self._world.explain(found)

    def _in_turn(self, waiting: list[str]) -> list[str]:
        """Return at most so many of the jobs, those after the last of the look before first."""
        later = [job_id for job_id in waiting if job_id > self._last]
        chosen = (later + waiting[: len(waiting) - len(later)])[:MOST]
        self._last = chosen[-1] if chosen else ""
        return chosen
