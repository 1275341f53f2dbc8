"""What the service ended with last, beside its store: a job with which it ended twice for one cause is set aside.

A report that cannot be handled sets its job aside at once, without an end; this is for what is left.
"""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path
from typing import Any

from eunomia.inputs.json_text import parse_json
from eunomia.lease import write_whole

FILE = "last-failure.json"
MOST_ENDS = 2  # with one job, for one cause
_log = logging.getLogger(__name__)


def note_end(state: Path, error: BaseException, job_id: str) -> None:
    """Write down what ended the service, and with which job; "" = with none that is known."""
    frames = traceback.extract_tb(error.__traceback__)
    cause = f"{type(error).__name__} at {Path(frames[-1].filename).name}:{frames[-1].name}" if frames else repr(error)
    before = _read(state)
    same = (before.get("cause"), before.get("job")) == (cause, job_id)
    count = int(before.get("count", 0)) + 1 if same else 1
    write_whole(state / FILE, json.dumps({"cause": cause, "job": job_id, "count": count}), mode=0o600)


def suspects(state: Path) -> dict[str, str]:
    """Return the job that is to be set aside, with why."""
    found = _read(state)
    if not found.get("job") or int(found.get("count", 0)) < MOST_ENDS:
        return {}
    return {str(found["job"]): f"the service ended {found['count']} times with it ({found['cause']})"}


def forget(state: Path) -> None:
    """Forget earlier ends, as the service has ended as it should."""
    (state / FILE).unlink(missing_ok=True)


def _read(state: Path) -> dict[str, Any]:
    try:
        return dict(parse_json((state / FILE).read_text()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        _log.warning("%s cannot be read: %s", state / FILE, error)
        return {}
