"""The route that rotates the operator's token."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request

from eunomia.service.credentials import TokenRegistry
from eunomia.service.http.api import Refused, Service, source_of
from eunomia.service.messages import Principal
from eunomia.service.operator_token import Rotation, rotate
from eunomia.service.store import StoreProblem
from eunomia.service.store.disk_room import DiskFull


async def rotate_token(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Put a new token of the operator into its file, then revoke the old one, whose children are the new one's."""
    entry = (who.user, who.role, source_of(request))
    present = list[TokenRegistry]()

    def change(writer: Any) -> Rotation:
        try:
            return rotate(writer.store, entry)
        except OSError as error:
            raise DiskFull.of(writer.store.folder, f"the file cannot be written ({error})", "make room") from error
        finally:
            present.append(TokenRegistry(writer.store.tokens()))  # also of one that was cut off

    try:
        found = await asyncio.wrap_future(service.writer.change(change, who))
    except DiskFull:
        raise
    except StoreProblem as error:
        raise Refused(409, str(error), code="conflict") from None
    finally:
        for tokens in present:
            service.tokens = tokens
            service.reads.end(tokens)
    return {"id": found.id, "revoked": list(found.revoked), "file": str(found.path)}
