"""Limits of users, groups and tenants: the tables of a site, and the waiting jobs that they hold back.

A job over a limit is held (cause `limit`) and is no job for the policy until it is let in: it reserves nothing and
stops nothing. It counts from when it is let in until its processes have ended, so that several that start at one moment
cannot pass a limit together. Those of a user are let in by the order of submission; one that fits goes before one that
does not, and one whose accelerators are free before one whose are not, which then waits outside again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from eunomia.backends.processes.accounts import groups_of
from eunomia.inputs.bounds import MOST_S
from eunomia.model.events import JobPaused
from eunomia.scenario.schema_models import Finite, Section
from eunomia.service.job_document import array_parts
from eunomia.service.job_row import WAITING, JobRow
from eunomia.service.own_order import priority_of

if TYPE_CHECKING:
    from eunomia.service.controller import Controller

PART = 250  # jobs that a turn lets in
LIMIT = "limit"  # the cause among the holds of a row
Kind = tuple[tuple[str, ...], int]  # accelerator types and size of a job: those alike can start alike
Number = Annotated[int, Field(ge=0, le=10**9)]


class LimitsOf(Section):
    """Limits of one user, group or tenant; a key that is left out limits nothing."""

    running_jobs: Number | None = Field(default=None, description="jobs at once")
    accelerators: Number | None = Field(default=None, description="accelerators at once")
    accelerators_per_job: Annotated[int, Field(ge=1, le=10**9)] | None = Field(
        default=None, description="accelerators of one job"
    )
    longest_s: Annotated[Finite, Field(ge=1, le=MOST_S)] | None = Field(
        default=None, description="longest time of a job on its seats, also of one that gives no max_run_s"
    )


class LimitsSection(Section):
    """`[limits]`: of each user by name, of members of a group, of all others, and of tenants as a whole."""

    default: LimitsOf = LimitsOf()
    users: dict[str, LimitsOf] = Field(default_factory=dict)
    groups: dict[str, LimitsOf] = Field(default_factory=dict)
    tenants: dict[str, LimitsOf] = Field(default_factory=dict)

    def of_user(self, user: str) -> LimitsOf:
        """Return the limits of a user, key by key: own ones, else the best of its groups, else those for all."""
        groups = [self.groups[name] for name in groups_of(user) if name in self.groups] if self.groups else []
        found = dict[str, Any]()
        for key in LimitsOf.model_fields:
            own = getattr(self.users.get(user), key, None)
            of_groups = [value for one in groups if (value := getattr(one, key)) is not None]
            found[key] = own if own is not None else max(of_groups, default=getattr(self.default, key))
        return LimitsOf(**found)

    def described(self) -> str:
        """Return which users, groups and tenants have limits; "" for none."""
        named = {"user": self.users, "group": self.groups, "tenant": self.tenants}
        found = ["each user"] * bool(self.default.model_fields_set)
        return ", ".join(found + [f"{kind} {name}" for kind, names in named.items() for name in names])

    def of_tenant(self, tenant: str) -> LimitsOf:
        """Return the limits of all jobs of a tenant together."""
        return self.tenants.get(tenant, LimitsOf())


@dataclass(eq=False, slots=True)
class Holder:
    """Who has a limit: a user, a tenant or an array, with what counts now and which jobs wait for it."""

    key: tuple[str, str]
    name: str
    most_jobs: int | None
    most_accelerators: int | None
    jobs: int = 0
    accelerators: int = 0
    let_in: dict[str, int] = field(default_factory=dict)  # jobs that count and wait for accelerators, with their sizes
    # heaps of held ones: −priority (0 for a tenant, whose users do not order each other's jobs), number, id
    waiting: dict[Kind, list[tuple[int, int, str]]] = field(default_factory=dict)

    def has_room(self, size: int) -> bool:
        """Say whether one job more of so many accelerators is within the limits."""
        fits = self.most_jobs is None or self.jobs < self.most_jobs
        return fits and (self.most_accelerators is None or self.accelerators + size <= self.most_accelerators)

    @property
    def is_of_user(self) -> bool:
        """Whether it is a user, or an array of one."""
        return self.key[0] != "tenant"

    @property
    def is_over(self) -> bool:
        """Whether more counts than the limits allow, as after a change of them."""
        jobs, accelerators = self.most_jobs, self.most_accelerators
        return (jobs is not None and self.jobs > jobs) or (
            accelerators is not None and self.accelerators > accelerators
        )

    def rank(self, row: JobRow) -> int:
        """Return what comes before the order of submission: the lower first."""
        return -priority_of(row) if self.is_of_user else 0

    def words(self, size: int) -> str:
        """Return which limit a job of so many accelerators waits for."""
        if self.most_jobs is not None and self.jobs >= self.most_jobs:
            most = "1 job" if self.most_jobs == 1 else f"{self.most_jobs:,} jobs"
            return f"{self.name} may have {most} at once, and has {self.jobs:,}"
        return (
            f"{self.name} may have {self.most_accelerators:,} accelerators at once, has {self.accelerators:,}, "
            f"and it needs {size:,}"
        )


class LimitBook:
    """What counts against the limits of a site, and the jobs that wait for them."""

    def __init__(self, section: LimitsSection) -> None:
        self.section = section
        self._is_empty = not section.described()
        self._of_users: dict[str, LimitsOf] = {}
        self._holders: dict[tuple[str, str], Holder] = {}
        self._counted: dict[str, tuple[int, bool, tuple[Holder, ...]]] = {}  # size, whether it waits, holders
        self._changed: dict[Holder, None] = {}  # some of them have more room, or less
        self._left = PART  # jobs that this turn may still let in
        self._unlimited: list[JobRow] = []  # held, though no limit is in their way any more

    # ---- who has which limits ------------------------------------------------------------------------------------

    def of_user(self, name: str) -> LimitsOf:
        """Return the limits of a user, as its groups were when it was asked first."""
        if name not in self._of_users:
            self._of_users[name] = self.section.of_user(name)
        return self._of_users[name]

    def holders(self, row: JobRow) -> tuple[Holder, ...]:
        """Return those whose limits a job counts against."""
        found = [self.user(row.owner), self.tenant(row.tenant)]
        array = row.spec.get("array")
        if row.array_group and array is not None and (most := array_parts(array)[2]) is not None:
            found.append(self._holder(_array_key(row), "its array", most, None))
        return tuple(one for one in found if one is not None)

    def user(self, name: str) -> Holder | None:
        """Return a user that has limits of what runs at once; None for one that has none."""
        return self._limited(("user", name), f"user {name}")

    def tenant(self, name: str) -> Holder | None:
        """Return a tenant that has limits of what runs at once; None for one that has none."""
        return self._limited(("tenant", name), f"tenant {name}") if self.section.tenants else None

    def _limited(self, key: tuple[str, str], name: str) -> Holder | None:
        if key not in self._holders:
            limits = self.of_user(key[1]) if key[0] == "user" else self.section.of_tenant(key[1])
            self._holder(key, name, limits.running_jobs, limits.accelerators)
        holder = self._holders[key]
        return None if holder.most_jobs is None and holder.most_accelerators is None else holder

    def _holder(self, key: tuple[str, str], name: str, jobs: int | None, accelerators: int | None) -> Holder:
        return self._holders.setdefault(key, Holder(key, name, jobs, accelerators))

    # ---- what counts ---------------------------------------------------------------------------------------------

    def note(self, row: JobRow) -> None:
        """Take in what has become of a job."""
        if self._is_empty and not row.array_group:
            return
        if row.array_group and not row.is_live and (array := self._holders.get(_array_key(row))) is not None:
            self._changed[array] = None  # it may be the last of it
        has_gang = row.ended_epoch < row.epoch
        counts = row.is_live and (not row.holds or has_gang)
        known = self._counted.get(row.id)
        if known is None and not counts:
            return
        size = (len(row.seats) or size_of(row)) if counts else 0
        now = (size, counts and not has_gang and row.state in WAITING, self.holders(row) if known is None else known[2])
        if now == known:
            return
        if counts:
            self._counted[row.id] = now
        else:
            del self._counted[row.id]
        for holder in now[2]:
            holder.jobs += counts - (known is not None)
            holder.accelerators += size - (0 if known is None else known[0])
            if now[1]:
                holder.let_in[row.id] = size
            else:
                holder.let_in.pop(row.id, None)
            self._changed[holder] = None

    def in_its_way(self, row: JobRow) -> Holder | None:
        """Return whose limit is in the way of a job that does not count yet."""
        if row.id in self._counted or (self._is_empty and not row.array_group):
            return None
        size = size_of(row)
        return next((one for one in self.holders(row) if not one.has_room(size)), None)

    def queue(self, row: JobRow) -> None:
        """Let a held job wait for the limit that is in its way."""
        holder = self.in_its_way(row)
        if holder is None:
            self._unlimited.append(row)
            return
        kind = tuple(row.spec.get("types", ())), size_of(row)
        heapq.heappush(holder.waiting.setdefault(kind, []), (holder.rank(row), row.number, row.id))
        self._changed[holder] = None

    @property
    def goes_on(self) -> bool:
        """Whether a further turn has to let in jobs, without a reason of its own."""
        return self._left <= 0 and bool(self._changed or self._unlimited)

    def begin_turn(self) -> None:
        """Let a turn let in as many jobs as one may."""
        self._left = PART

    # ---- who is let in -------------------------------------------------------------------------------------------

    def let_in(self, controller: Controller) -> bool:
        """Let in the jobs that are within their limits now, and hold what is above them; return whether any were."""
        acted = False
        unlimited, self._unlimited = self._unlimited[: self._left], self._unlimited[self._left :]
        self._left -= len(unlimited)
        for row in unlimited:
            if row.holds == [LIMIT] and self.in_its_way(row) is not None:
                self.queue(row)
            elif row.holds == [LIMIT]:
                controller.unhold(row, LIMIT)
                acted = True
        changed, self._changed = list(self._changed), {}
        for holder in changed:
            while holder.is_over and self._hold_last(controller, holder, list(holder.let_in)):
                acted = True
            acted |= self._fill(controller, holder)
            is_done = not holder.jobs and not holder.waiting
            if is_done and holder.key[0] == "array" and self._holders.get(holder.key) is holder:
                del self._holders[holder.key]
        return acted

    def exchange(self, controller: Controller) -> bool:
        """Let in jobs whose accelerators are free before those that wait for busy ones; return whether any were."""
        acted = False
        if self._left <= 0:
            return acted
        for holder in [one for one in self._holders.values() if one.waiting and one.let_in]:
            for kind in [kind for kind in holder.waiting if can_start(controller, kind)]:
                waits = [job_id for job_id in holder.let_in if not can_start(controller, kind_of(controller, job_id))]
                head = self._head(controller, holder, kind)
                if (
                    not waits
                    or head is None
                    or not all(one.has_room(kind[1]) for one in self.holders(head) if one is not holder)
                ):
                    continue
                while not holder.has_room(kind[1]) and waits:
                    acted |= self._hold_last(controller, holder, waits)
                acted |= self._fill(controller, holder, first=kind)
        return acted

    def _fill(self, controller: Controller, holder: Holder, first: Kind | None = None) -> bool:
        """Let in jobs that wait for a limit as far as there is room; those of a kind before the others."""
        acted = False
        while holder.waiting:
            if self._left <= 0:
                self._changed[holder] = None
                return acted
            heads = [
                (kind != first, holder.rank(row), not can_start(controller, kind), row.number, row)
                for kind in list(holder.waiting)
                if (row := self._head(controller, holder, kind)) is not None and holder.has_room(kind[1])
            ]
            if not heads:
                return acted
            row = min(heads, key=lambda one: one[:4])[4]
            kind = tuple(row.spec.get("types", ())), size_of(row)
            heapq.heappop(holder.waiting[kind])
            if self.in_its_way(row) is not None:
                self.queue(row)  # for another limit
                row.reason = self.reason(row)
                controller.changed(row, "")
                continue
            controller.unhold(row, LIMIT)
            self._left -= 1
            acted = True
        return acted

    def _head(self, controller: Controller, holder: Holder, kind: Kind) -> JobRow | None:
        """Return the first job of a kind that waits for a limit and for nothing else."""
        heap = holder.waiting[kind]
        while heap:
            rank, _, job_id = heap[0]
            row = controller.rows.get(job_id)
            is_held = row is not None and row.holds == [LIMIT] and row.id not in self._counted
            if row is not None and is_held and rank == holder.rank(row):
                return row
            heapq.heappop(heap)
        del holder.waiting[kind]
        return None

    def _hold_last(self, controller: Controller, holder: Holder, job_ids: list[str]) -> bool:
        """Hold the last of these jobs, which were let in and wait; return False if there is none."""
        rows = [controller.rows[one] for one in job_ids if one in holder.let_in]
        if not rows:
            return False
        row = max(rows, key=lambda one: (holder.rank(one), one.number))
        if row.id in job_ids:
            job_ids.remove(row.id)
        controller.emit(row.id, JobPaused(row.id))
        controller.hold(row, LIMIT)
        self.note(row)
        row.reason = f"{holder.name} is at its limit"
        controller.changed(row, "")
        self.queue(row)
        return True

    # ---- what is said --------------------------------------------------------------------------------------------

    def reason(self, row: JobRow) -> str:
        """Return which limit holds a job back."""
        holder = self.in_its_way(row)
        return "it is about to be let in" if holder is None else holder.words(size_of(row))

    def shown(self, users: Sequence[str], tenants: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the limits of users and tenants, with what counts now."""
        for kind, names in (("user", users), ("tenant", tenants)):
            for name in names:
                limits = self.of_user(name) if kind == "user" else self.section.of_tenant(name)
                holder = self.user(name) if kind == "user" else self.tenant(name)
                used = {} if holder is None else {"running_jobs": holder.jobs, "accelerators": holder.accelerators}
                for key, most in limits.model_dump(exclude_none=True).items():
                    yield {"kind": kind, "name": name, "limit": key, "most": most, "used": used.get(key)}

    def names(self) -> tuple[list[str], list[str]]:
        """Return the users and tenants that a limit is given for, or that jobs count for."""
        known = [key for key, one in self._holders.items() if one.jobs or one.waiting]
        users = {*self.section.users, *(name for kind, name in known if kind == "user")}
        return sorted(users), sorted(self.section.tenants)


def _array_key(row: JobRow) -> tuple[str, str]:
    """Return the key of a job's array: submissions of two tenants may have the same Idempotency-Key."""
    return "array", f"{row.tenant} {row.array_group}"


def size_of(row: JobRow) -> int:
    """Return how many accelerators a waiting job counts for."""
    return int(row.spec.get("accelerators", 1))


def kind_of(controller: Controller, job_id: str) -> Kind:
    """Return types and size of a live job."""
    row = controller.rows[job_id]
    return tuple(row.spec.get("types", ())), size_of(row)


def can_start(controller: Controller, kind: Kind) -> bool:
    """Say whether so many accelerators of a type are free now."""
    types, size = kind
    names, free = controller.site.setup.topology.types, controller.scheduler.state.floor.free
    return any(free[j] >= size for j, name in enumerate(names) if not types or name in types)
