"""What the world of an engine keeps of each gang, and how often it asks."""

from __future__ import annotations

from dataclasses import dataclass

from eunomia.backends.engines.engine import GangRequest, Mark
from eunomia.backends.orders import Launch
from eunomia.backends.processes.folder import JobFolder


@dataclass(frozen=True, kw_only=True)
class EngineTimes:
    """How often an engine is asked, in s."""

    poll_s: float = 1.0  # list of gangs, and progress files
    nodes_s: float = 5.0  # list of nodes
    lost_start_s: float = 10.0  # after which a start without an answer, whose mark is not listed, is tried again
    vanished_s: float = 60.0  # after which a gang without any trace is lost


@dataclass(slots=True, eq=False)
class GangState:
    """What is known of a gang that was ordered and has not ended."""

    order: Launch
    mark: Mark
    folder: JobFolder
    grace_s: float
    request: GangRequest | None = None  # once its files are written
    number: str = ""  # of the engine; "" = not known to have been started
    tried_at: float | None = None  # when a start was last tried
    may_exist: bool = False  # a start may have taken effect
    launched: bool = False
    is_submission: bool = False  # a user's own script, without a supervisor
    refused: str = ""  # why the engine did not place a user's job
    refused_at: float = 0.0
    unknown: bool = False
    missed: int = 0  # lists in a row without it
    missing_since: float | None = None
    stop_grace_s: float | None = None
    stop_at: float | None = None  # when it was called back
    killed: bool = False
    steps: float | None = None
    over_polls: int = 0  # lists in a row in which it was over
    state: str = ""  # in the engine's words
