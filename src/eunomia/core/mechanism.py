"""The protocol of a mechanism: how time is cut into leases, rounds or shares of a fluid.

The policy says what is right; the mechanism says when to ask it, which seats may be given anew, and until when. The
scheduler calls at every moment, in this order:

    receive                         events are written into the state
    order                           if an answer came: its candidates get an order
    settle                          likewise: seats are given by that order
    opens → asks → settle           until nothing more may be decided at this instant, or the policy has to be asked
    set_timer                       when the mechanism wants to be called again

A mechanism has two parts: a frozen configuration (`MechanismConfig`), and what `bind` makes of it for one scheduler
(`Mechanism`). `eunomia.mechanisms` holds those that there are, a registry line each.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, cast

from eunomia.core.answer_rows import PendingAsk
from eunomia.core.asking import Asks
from eunomia.core.event_handlers import apply_event
from eunomia.core.invariants import check
from eunomia.core.scheduler_state import SchedulerState
from eunomia.core.view_builder import build_view
from eunomia.model.answers import Answer
from eunomia.model.arrays import Ints
from eunomia.model.decisions import Decision, SetTimer
from eunomia.model.events import Moment
from eunomia.model.policy import AnswerType, PolicyInfo
from eunomia.model.rank import UNKNOWN
from eunomia.model.registry import load_place
from eunomia.model.wait_reason import Reason
from eunomia.placement.selection import SKIP


class Core(NamedTuple):
    """What a mechanism works on: the state of one scheduler, what was asked of its policy, and the run's seed."""

    state: SchedulerState
    asks: Asks
    seed: int


class ImpliedRule(NamedTuple):
    """When the policy's promises imply its answer; see `core.placement_pass.implied_start`."""

    alone: bool  # only where a single job waits
    recall: bool  # seats may be taken back at any moment
    # Where they do not, `core.ranked_pass` answers in place of the policy, if it ranks by something known.
    by: int = UNKNOWN
    quantum: float = math.inf
    misfit: int = SKIP  # what follows a gang that does not fit, a constant of `placement.selection`
    moves: bool = False  # running jobs may move to a faster type, so that the promises imply nothing
    # A start stands for an ask, and a gang is consolidated if a larger part of its model is one tensor; None: neither.
    spread_up_to: float | None = None


class Mechanism(ABC):
    """How time is cut for one scheduler."""

    def __init__(self, core: Core) -> None:
        self.sched, self.asked = core.state, core.asks
        self.state, self.ledger, self.belief = core.state.state, core.state.ledger, core.state.belief
        self.info = core.asks.info
        self._timer = math.inf

    @property
    def timer(self) -> float:
        """When it wants to be called without an event; inf = not."""
        return self._timer

    @timer.setter
    def timer(self, at: float) -> None:
        self._timer = at

    # ---- what happened ---------------------------------------------------------------------------------------

    def receive(self, moment: Moment, decisions: list[Decision]) -> None:
        """Apply events to the state, and add the decisions that follow whatever the policy says.

        Raises `UnknownEvent` for an event that the mechanism cannot account for.
        """
        for event in moment.events:
            decisions += apply_event(event, moment.at, self.sched)

    # ---- what is decided -------------------------------------------------------------------------------------

    @abstractmethod
    def opens(self, at: float, decisions: list[Decision]) -> bool:
        """Return whether seats may be reassigned now; if not, events are only recorded."""

    @abstractmethod
    def asks(self, at: float, decisions: list[Decision]) -> bool:
        """Return whether the policy must be asked; a mechanism that knows the only possible answer applies it."""

    @abstractmethod
    def order(self, answer: Answer, question: PendingAsk, at: float) -> None:
        """Order the candidates of an answer. Raises InvalidAnswer for an answer that cannot be applied."""

    @abstractmethod
    def settle(self, at: float, decisions: list[Decision]) -> bool:
        """Start, renew and stop gangs by the last answer; return whether more may be decided at this instant."""

    @abstractmethod
    def set_timer(self, at: float, decisions: list[Decision]) -> None:
        """Add a timer for the next call without an event, if it has changed."""

    def _wake_at(self, when: float, at: float, decisions: list[Decision]) -> None:
        """Order a timer for that time, inf = none, unless it is set already."""
        if when != self._timer and (when < math.inf or self._timer > at):
            decisions.append(SetTimer(when))
        self._timer = when

    def implied_rule(self, *, ranked: bool) -> ImpliedRule | None:
        """Return how events are followed from now on whose answer is implied; None = only by its methods.

        `ranked`: an answer is implied, too, by what the policy ranks by.
        """
        return None

    # ---- what a policy sees ----------------------------------------------------------------------------------

    def shown(self) -> Ints:
        """Return the jobs that the policy is asked about, in row order."""
        return self.state.active.copy()

    def columns(self, at: float, rows: Ints) -> dict[str, Any]:
        """Return what the policy needs to see of these jobs."""
        return build_view(self.info.needs, at, rows, self.state, self.ledger, self.belief, self.asked.last_at)

    def named(self) -> Sequence[PendingAsk] | None:
        """Return all that it keeps by rows of jobs between moments; None = more than that, so that every row stays."""
        return None

    # ---- what explanations and checks read -------------------------------------------------------------------

    @property
    def candidates(self) -> PendingAsk | None:
        """The candidates of the last answer, the highest priority first."""
        return None

    @property
    def free(self) -> Ints:
        """Accelerators of each type that no job uses, (type,)."""
        return self.state.floor.free

    def wait_reason(self, row: int, at: float) -> Reason | None:
        """Return the reason if a job waits for the way time is cut and not for other jobs; else None."""
        return None

    def spent_share(self, row: int) -> Sequence[tuple[int, float]]:
        """Return type and share of a job that has received all that it is owed by now; else nothing."""
        return ()

    def check(self) -> None:
        """Raise `BrokenInvariant` unless the state is consistent."""
        check(self.state)


class MechanismConfig:
    """What a mechanism can be set to: base of frozen dataclasses. `bind` makes the mechanism of one scheduler.

    The class attributes say what the mechanism can do; only the registry reads its name.
    """

    __slots__ = ()
    name: ClassVar[str]
    mechanism: ClassVar[str]  # where the mechanism is, `module:class`: it is made from this configuration and a `Core`
    answers: ClassVar[frozenset[AnswerType]] = frozenset({"shares", "order", "grants"})  # that it accepts
    # Parts of a scenario that it cannot account for, by the codes of `setup.mechanism`, and why.
    unsupported: ClassVar[frozenset[str]] = frozenset()
    because: ClassVar[str] = ""
    no_such_key: ClassVar[str] = ""  # what is added to the refusal of an unknown key
    not_settable: ClassVar[frozenset[str]] = frozenset()  # fields that a scenario cannot say
    divides_time: ClassVar[bool] = False  # no gang holds seats: the world must divide time at will

    @property
    def lease_s(self) -> float:
        """Seconds that a lease given now lasts at most; inf = until the job ends."""
        return math.inf

    @property
    def aligned(self) -> bool:
        """Whether all leases end together."""
        return False

    @property
    def recall(self) -> bool:
        """Whether a gang may be stopped before its lease ends."""
        return False

    @property
    def pairs(self) -> bool:
        """Whether it looks up throughputs of pairs though the policy may not."""
        return False

    def bind(self, core: Core) -> Mechanism:
        """Return the mechanism of one scheduler, which has just begun."""
        return cast(Mechanism, load_place(self.mechanism)(self, core))

    @classmethod
    def for_policy(cls, info: PolicyInfo) -> dict[str, Any]:
        """Return the settings that depend on the policy."""
        return {}

    @classmethod
    def of(cls, said: Mapping[str, Any], jobs: int) -> Self:
        """Return the configuration of a run of so many jobs. Raises ValueError for a wrong value."""
        return cls(**said)

    @classmethod
    def wrong(cls, said: Mapping[str, Any], types: Sequence[str]) -> list[tuple[str, str, str, str]]:
        """Return what is wrong with these settings on a cluster of these types: key, rule, fix and value of each."""
        return []

    def notes(self, types: Sequence[str]) -> tuple[str, ...]:
        """Return what a user should know of these settings on a cluster of these types."""
        return ()
