"""The gangs that an auction places: overdue apps, then winners, then leftovers; and the answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.answers import Grants, Rows
from eunomia.model.arrays import NO_INTS, Array, Bools, Floats, Ints
from eunomia.model.certificate import Certificate
from eunomia.model.view import View
from eunomia.model.wait_reason import Reason, WaitReasons
from eunomia.placement.grants_builder import GrantsBuilder, renewal, shapes_of
from eunomia.placement.levels import Levels
from eunomia.policies.grants.themis.agents import HOLDS, AuctionState, Gangs, best_place
from eunomia.policies.grants.themis.bidding import CandidateGangs, WonGangs
from eunomia.solvers.auction.partial import Partial, cut

_RUNS, _LOST, _BEHIND, _KEPT = range(4)  # codes of `WaitReasons`; a running job waits for nothing


def waiting_for(view: View, code: str) -> Mapping[int, Reason]:
    """Return the one reason for which all jobs wait that do not run."""
    return WaitReasons.of(view.jobs, view.on_type < 0, Reason(code))


def nothing_offered(view: View) -> Grants:
    """Return the answer where all devices are under leases that continue."""
    why = waiting_for(view, "all_leased")
    return Grants(Rows(NO_INTS, NO_INTS), NO_INTS, NO_INTS, np.empty(0), why=why)


def postponed(view: View, ended: Bools, due: float) -> Grants:
    """Return the answer shortly after an auction: leases that have ended continue until the next one, `due`."""
    return renewal(view, ended, due, again_at=due, why=waiting_for(view, "auction_due"))


def renewed(view: View, ended: Bools) -> Grants:
    """Return the answer where all whose leases have ended keep their devices for a whole lease; not a certified one."""
    return renewal(view, ended, memory=_memory(view.at, np.full(view.jobs, HOLDS)))


@dataclass(slots=True)
class Assignment:
    """What is still free, and what was given."""

    state: AuctionState
    free: Bools  # (device,)
    lease_s: float = math.nan  # that the part won is a part of; nan: leases are whole
    given: GrantsBuilder = field(default_factory=GrantsBuilder)

    def by_unit(self) -> Ints:
        """Return how many devices are free in each unit, (unit,)."""
        return self.state.by_unit(self.free)

    def place_overdue(self, patience_s: float) -> Bools:
        """Place overdue gangs; if one does not fit, keep what is offered of its type for it. Say for which, (job,).

        What is kept is never enough for the gang, so that no more than it needs is kept.
        """
        view = self.state.view
        kept_for = np.zeros(view.jobs, dtype=bool)
        for job in self.state.overdue(patience_s).tolist():
            if not self.free.any():
                break
            if not self._place_best(job):
                mine = self.free & (view.topology.type == np.argmin(self.state.gangs.time[job, 0]))
                kept_for[job] = mine.any()
                self.free &= ~mine
        return kept_for

    def place_within_apps(self, app: Ints, until: Floats) -> None:
        """Give the devices that apps still have under a lease to their waiting jobs, until that ends.

        app, until (device,) are whose they are, -1 = of no app, and when the lease ends.
        """
        state, waits = self.state, self.state.view.on_type < 0
        for a in np.unique(app[app >= 0]).tolist():
            for job in state.by_priority(np.flatnonzero(state.wants & waits & (state.view.app == a))).tolist():
                mine = self.free & (app == a)
                if not self._place_best(job, mine, until):
                    break

    def place_winners(self, gangs: CandidateGangs, awards: WonGangs) -> None:
        """Give winners their gangs, first those that keep the devices they have."""
        first = gangs.first
        for k in np.argsort(~gangs.own[awards.gang], kind="stable").tolist():
            g = int(awards.gang[k])
            entries = slice(int(first[g]), int(first[g + 1]))
            job, type, own = int(gangs.job[g]), int(gangs.type[g]), bool(gangs.own[g])
            amount, size = gangs.amount[entries], int(awards.size[k])
            if size < amount.sum():
                amount, own = cut(amount[None], np.array([size]))[0], False
            self._give(job, type, gangs.unit[entries], amount, own=own, part=float(awards.part[k]))

    def place_leftovers(self, bidders: Ints, rng: np.random.Generator) -> None:
        """Give what is left to jobs of apps that did not bid, then to bidders' jobs; both are drawn.

        A draw rewards no ρ that an app might report. Each gets its best place, first among devices that no job behind
        it holds.
        """
        state = self.state
        bid = np.zeros(len(state.elapsed), dtype=bool)
        bid[bidders] = True
        inside = bid[state.view.app]
        outside, inside = np.flatnonzero(state.wants & ~inside), np.flatnonzero(state.wants & inside)
        line = np.concatenate((rng.permutation(outside), rng.permutation(inside)))
        if len(line) == 0 or not self.free.any():
            return
        behind = np.zeros(state.view.jobs, dtype=bool)  # its lease has ended, and it is further back in the line
        behind[line] = state.ended[line]
        job, type, first, devices = _leftovers(state.levels, state.gangs, line, self.free, state.view.holder, behind)
        self.free[devices] = False
        state.wants[job] = False
        for m, j, part in zip(job.tolist(), type.tolist(), np.split(devices, first[1:-1]), strict=False):
            self.given.give(m, j, part)

    def answer(self, auctioned: float, bidders: Ints, kept_for: Bools, proof: Partial | None) -> Grants:
        """Return what was given as an answer; the last auction was at `auctioned`."""
        state, view = self.state, self.state.view
        job = np.array(self.given.jobs, dtype=np.int64)
        loses = state.ended.copy()
        loses[job] = False
        last = view.at - state.idle  # until when each app held devices
        last[view.app[state.held]] = HOLDS
        last[view.app[job]] = HOLDS
        certificate = None
        if proof is not None:
            description = "proportionally fair among the bidders"
            certificate = Certificate(objective=proof.objective, bound=proof.bound, scale=1.0, point=description)
        return self.given.build(
            shape=shapes_of(view, job, self.given.sizes()),
            stop=np.flatnonzero(loses),
            why=self._why(bidders, kept_for),
            memory=_memory(auctioned, np.asarray(last[view.app])),
            certificate=certificate,
        )

    def _give(self, job: int, type: int, unit: Ints, count: Ints, *, own: bool, part: float = 1.0) -> None:
        """Give a gang the devices that it has, or others on these units. It wants no more."""
        devices = self._devices(job, self.free, unit, count, own=own)
        self._lease(job, type, devices, self.state.view.at + part * self.lease_s if part < 1 else math.nan)

    def _lease(self, job: int, type: int, devices: Ints, until: float) -> None:
        self.free[devices] = False
        self.state.wants[job] = False
        self.given.give(job, type, devices, until)

    def _devices(self, job: int, free: Bools, unit: Ints, count: Ints, *, own: bool) -> Ints:
        state = self.state
        return _devices_on(state.levels, state.gangs, job, free, state.view.holder >= 0, own, unit, count)

    def _place_best(self, job: int, among: Bools | None = None, until: Floats | None = None) -> bool:
        """Place a gang where it ends soonest, and count that as held; say whether there was a place.

        Its devices are `among` these, (device,), and its lease ends with the first of theirs, `until` (device,).
        """
        state, free = self.state, self.free if among is None else among
        by_unit = state.by_unit(free)
        unit, count = np.empty((2, len(by_unit)), dtype=np.int64)
        n, type, time, own = best_place(state.levels, state.gangs, job, by_unit, among is None, unit, count)
        if n > 0:
            devices = self._devices(job, free, unit[:n], count[:n], own=own)
            self._lease(job, type, devices, math.nan if until is None else float(until[devices].min()))
            state.held[job], state.here[job], state.gangs.width[job] = True, time, len(devices)
        return n > 0

    def _why(self, bidders: Ints, kept_for: Bools) -> WaitReasons:
        """Return why each job waits that wants devices and was given none."""
        state = self.state
        bid = np.zeros(len(state.elapsed), dtype=bool)
        bid[bidders] = True
        code = np.where(state.wants, np.where(bid[state.view.app], _LOST, _BEHIND), _RUNS).astype(np.uint8)
        code[kept_for] = _KEPT
        count = (len(bidders),)
        reasons = (Reason("auction_lost", numbers=count), Reason("auction_behind", numbers=count), Reason("seats_kept"))
        return WaitReasons(code, reasons)


def _memory(at: float, held_until: Floats) -> dict[str, Array]:
    """Return what the next auction has to know: when this one was held, and until when each job's app held devices."""
    return {"auctioned": np.array(at), "held_until": held_until}


@kernel()
def _devices_on(
    levels: Levels, gangs: Gangs, job: int, free: Bools, taken: Bools, own: bool, unit: Ints, count: Ints
) -> Ints:
    """Return a gang's devices: its own if they are free, else so many in each unit, those not `taken` first."""
    mine = gangs.device[gangs.own[job] : gangs.own[job + 1]]
    if own and free[mine].all():
        return mine.copy()
    devices, n = np.empty(count.sum(), dtype=np.int64), 0
    for e in range(len(unit)):
        left = count[e]
        for others in (False, True):
            for device in range(levels.seat[unit[e]], levels.seat[unit[e] + 1]):
                if left > 0 and free[device] and taken[device] == others:
                    devices[n] = device
                    n, left = n + 1, left - 1
    return devices


@kernel()
def _leftovers(
    levels: Levels, gangs: Gangs, line: Ints, free: Bools, holder: Ints, behind: Bools
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the jobs that get devices, their types, where the devices of each begin, (gang + 1,), and the devices."""
    free, taken = free.copy(), np.zeros(len(holder), dtype=np.bool_)
    for device in range(len(holder)):
        taken[device] = holder[device] >= 0 and behind[holder[device]]
    left = free.sum()
    job, type, first = np.empty(left, np.int64), np.empty(left, np.int64), np.zeros(left + 1, np.int64)
    devices, stuck = np.empty(left, np.int64), np.zeros((len(line), 2), np.int64)  # kinds that found no place
    unit, count = np.empty(len(levels.node), np.int64), np.empty(len(levels.node), np.int64)
    n, kinds, least = 0, 0, gangs.least[line].min()
    for m in line:
        if left < least:
            break
        mine = gangs.device[gangs.own[m] : gangs.own[m + 1]]
        taken[mine] = False
        own = bool(len(mine) > 0 and free[mine].all())
        kind = _kind(gangs, m)
        if gangs.least[m] > left or (not own and _among(stuck, kinds, gangs.least[m], kind)):
            continue
        for tried in (0, 1):
            by_unit = np.zeros(len(levels.node), np.int64)
            for device in range(len(holder)):
                by_unit[levels.unit[device]] += free[device] and (tried == 1 or not taken[device])
            entries, j, _, at_home = best_place(levels, gangs, m, by_unit, own, unit, count)
            if entries > 0:
                break
        if entries == 0:
            stuck[kinds] = gangs.least[m], kind
            kinds += 1
            continue
        mine = _devices_on(levels, gangs, m, free, taken, at_home, unit[:entries], count[:entries])
        free[mine] = False
        devices[first[n] : first[n] + len(mine)] = mine
        job[n], type[n], first[n + 1] = m, j, first[n] + len(mine)
        left, n = left - len(mine), n + 1
    return job[:n], type[:n], first[: n + 1], devices[: first[n]]


@kernel()
def _kind(gangs: Gangs, job: int) -> int:
    """Return a number that tells on which types a gang can run."""
    kind = 0
    for j in range(gangs.time.shape[2]):
        can = False
        for s in range(gangs.time.shape[1]):
            can |= gangs.time[job, s, j] < np.inf
        kind = (2 * kind + can) % 2147483647
    return kind


@kernel()
def _among(stuck: Ints, kinds: int, size: int, kind: int) -> bool:
    found = False
    for k in range(kinds):
        found |= stuck[k, 0] == size and stuck[k, 1] == kind
    return found
