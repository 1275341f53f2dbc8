"""The log of the service: one JSON object a line, with the id of the request that was being answered."""

from __future__ import annotations

import json
import logging
import time
from contextvars import ContextVar

REQUEST: ContextVar[str] = ContextVar("request", default="")  # also in the header X-Request-Id of the answer


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
        }
        line |= {"logger": record.name, "message": record.getMessage()}
        if request := REQUEST.get():
            line["request"] = request
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)
