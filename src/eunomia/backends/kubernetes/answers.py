"""What the answers of an API server mean for what was asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import msgspec
from lightkube.core.decoders import decode_list
from lightkube.core.exceptions import ApiError
from lightkube.models.meta_v1 import Status
from lightkube.resources.batch_v1 import Job
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import Event, Node, Pod

from eunomia.backends.engines.engine import EngineAway, EngineRefused

BUSY = (408, 429, 500, 502, 503, 504)  # answers after which the same question may be asked again
CHANGED = (409, 410)


def build_types(*kinds: type) -> None:
    """Build what reads these kinds: msgspec does it at the first use, and crashes when two threads do it at once."""
    for kind in kinds:
        decode_list(b'{"items": []}', kind)


build_types(Event, Job, Lease, Node, Pod, Pod.Binding, Status)


@contextmanager
def answers() -> Iterator[None]:
    """Raise EngineAway for a server that does not answer, is busy or was not asked well, EngineRefused if it refuses.

    A conflict and a list that has expired (409, 410) say that what was read has changed since: it is read again.
    """
    try:
        yield
    except ApiError as error:
        if error.status.code in (*BUSY, *CHANGED):
            raise EngineAway(f"Kubernetes: {error.status.message}") from error
        raise EngineRefused(f"{error.status.message}") from error
    except httpx2.HTTPError as error:
        raise EngineAway(f"Kubernetes: {error or type(error).__name__}") from error
    except msgspec.ValidationError:  # an answer of an API server, but not as its schema says
        raise
    except msgspec.DecodeError as error:
        raise EngineAway(f"Kubernetes: what answers is no API server: {error}") from error
    except KeyError as error:
        if error.args != ("Content-Type",):  # which the client takes for granted, also of a proxy's error
            raise
        raise EngineAway("Kubernetes: what answers is no API server") from error
