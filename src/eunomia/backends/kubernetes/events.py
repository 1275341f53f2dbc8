"""Events of Kubernetes on Jobs: why one waits, and what was decided about it. `kubectl describe job` shows them.

They are hints for people: one that cannot be written is logged and left out. There is one object for each Job and
reason, whose text and count change, as the server keeps all objects for an hour.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from lightkube import Client
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Event
from lightkube.types import PatchType

from eunomia.backends.engines.engine import EngineAway, EngineRefused
from eunomia.backends.kubernetes.answers import answers

COMPONENT = "eunomia"
REPEATED_S = 1_800.0  # after which the same text is written again: servers forget events after an hour
MOST_TEXT = 1_000  # characters; servers take 1,024
MISSING = 404
_log = logging.getLogger(__name__)


class JobEvents:
    """Writes Events on Jobs of the client's namespace."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._clock = client, clock
        self._said: dict[str, dict[str, tuple[str, float, int]]] = {}  # by uid, by reason: text, when, how often
        self._is_failing = False

    def say(self, job: Any, reason: str, text: str) -> None:
        """Write why or what, unless the same was written of the Job lately."""
        said, now, text = self._said.setdefault(str(job.metadata.uid), {}), self._clock(), text[:MOST_TEXT]
        before, at, count = said.get(reason, ("", -REPEATED_S, 0))
        if text == before and now < at + REPEATED_S:
            return
        said[reason] = text, now, count + 1
        try:
            with answers():
                self._write(job, reason, text, count + 1)
            self._is_failing = False
        except (EngineAway, EngineRefused) as error:
            if not self._is_failing:
                _log.warning("no Events are written: %s", error)
            self._is_failing = True

    def forget(self, uid: str) -> None:
        """Forget a Job that is over."""
        self._said.pop(uid, None)

    def _write(self, job: Any, reason: str, text: str, count: int) -> None:
        meta = job.metadata
        name = f"{meta.name[:200]}.{sha256(f'{meta.uid}/{reason}'.encode()).hexdigest()[:16]}"
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if count > 1:
            change = {"message": text, "lastTimestamp": at, "count": count}
            try:
                self._client.patch(Event, name, change, patch_type=PatchType.MERGE)
                return
            except ApiError as error:
                if error.status.code != MISSING:
                    raise
        try:
            self._client.create(Event.from_dict(event(name, job, reason, text, at)))
        except ApiError as error:
            if error.status.reason != "AlreadyExists":  # by an earlier process
                raise
            change = {"message": text, "lastTimestamp": at}
            self._client.patch(Event, name, change, patch_type=PatchType.MERGE)


def event(name: str, job: Any, reason: str, text: str, at: str) -> dict[str, Any]:
    """Return an Event on a Job."""
    meta = job.metadata
    about = {"apiVersion": "batch/v1", "kind": "Job", "name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
    return {
        "metadata": {"name": name, "namespace": meta.namespace},
        "involvedObject": about,
        "reason": reason,
        "message": text,
        "type": "Normal",
        "source": {"component": COMPONENT},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
