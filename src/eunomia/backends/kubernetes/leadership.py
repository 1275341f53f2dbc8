"""The Lease of a namespace: of several services only one binds pods there, as two would give the same room away twice.

The holder is the service's folder of jobs, which one process has at a time, so a service that was killed goes on
at once when it is started again. Whether another holder still renews is judged by this machine's clock alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from lightkube import Client
from lightkube.core.exceptions import ApiError
from lightkube.resources.coordination_v1 import Lease
from lightkube.types import PatchType

from eunomia.backends.engines.engine import EngineAway

NAME = "eunomia"
LENGTH_S = 15.0  # without a renewal, after which another may act
MISSING, CONFLICT = 404, 409


class Leadership:
    """The Lease `eunomia` of the client's namespace."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._clock = client, clock
        self._holder = ""  # this service, while it holds the Lease
        self._renewed_at = 0.0
        self._seen: tuple[str, str] | None = None  # another holder, and the version of its last renewal
        self._seen_at = 0.0

    def keep(self, holder: str) -> None:
        """Hold the Lease. Raises EngineAway while another holder renews it, or took it in this moment; ApiError."""
        now = self._clock()
        if self._holder and now < self._renewed_at + LENGTH_S / 3:
            return
        self._holder = ""
        try:
            found = self._client.get(Lease, NAME)
        except ApiError as error:
            if error.status.code != MISSING:
                raise
            self._write(None, holder)
        else:
            other = str(found.spec.holderIdentity or "") if found.spec else ""
            if other not in ("", holder):
                self._await(other, str(found.metadata.resourceVersion), now)
            self._write(str(found.metadata.resourceVersion), holder)
        self._holder, self._renewed_at, self._seen = holder, now, None

    def release(self) -> None:
        """Give the Lease back, if it is held, so that another service need not wait. Raises ApiError."""
        if self._holder:
            found = self._client.get(Lease, NAME)
            if found.spec and found.spec.holderIdentity == self._holder:
                self._write(str(found.metadata.resourceVersion), "")
            self._holder = ""

    def _await(self, other: str, version: str, now: float) -> None:
        """Raise EngineAway unless another holder has not renewed for the length of the Lease."""
        if self._seen != (other, version):
            self._seen, self._seen_at = (other, version), now
        if now < self._seen_at + LENGTH_S:
            raise EngineAway(
                f"Kubernetes: the service with the mark {other!r} acts in this namespace; see Lease {NAME!r}"
            )

    def _write(self, version: str | None, holder: str) -> None:
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: dict[str, Any] = {"holderIdentity": holder, "leaseDurationSeconds": int(LENGTH_S), "renewTime": at}
        try:
            if version is None:
                self._client.create(Lease.from_dict({"metadata": {"name": NAME}, "spec": spec}))
            else:
                change = {"metadata": {"resourceVersion": version}, "spec": spec}
                self._client.patch(Lease, NAME, change, patch_type=PatchType.MERGE)
        except ApiError as error:
            if error.status.code != CONFLICT:
                raise
            raise EngineAway("Kubernetes: another service took the Lease in this moment") from error
