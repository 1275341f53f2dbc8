"""What comes of an auction: who may have what is left, and the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from eunomia.model.answers import Grants, Rows
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.certificate import Certificate
from eunomia.model.view import View
from eunomia.policies.grants.themis.seating import Given, Seats
from eunomia.policies.grants.themis.seen import HOLDS, Seen
from eunomia.solvers.auction.partial import Partial

_NONE = np.empty(0, dtype=np.int64)
SITS, LOST, AHEAD, KEPT = range(-1, 3)  # codes of `Reasons`; who sits waits for nothing


class Reasons(Mapping[int, str]):
    """Why each job waits: a few texts for many jobs, looked up when somebody asks."""

    def __init__(self, code: Ints, texts: tuple[str, ...]):
        self._code, self._texts = code, texts

    def __getitem__(self, job: int) -> str:
        if not 0 <= job < len(self._code) or self._code[job] < 0:
            raise KeyError(job)
        return self._texts[int(self._code[job])]

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self._code >= 0).tolist())

    def __len__(self) -> int:
        return int((self._code >= 0).sum())


def left_to(seen: Seen, bidders: Ints, rng: np.random.Generator) -> Ints:
    """Return who may have what is left: jobs of apps that did not bid, drawn, then bidders' jobs, worst first."""
    rank = np.full(len(seen.elapsed), -1)
    rank[bidders] = np.arange(len(bidders))
    of = rank[seen.view.app]
    outside, inside = np.flatnonzero(seen.wants & (of < 0)), np.flatnonzero(seen.wants & (of >= 0))
    return np.concatenate((rng.permutation(outside), inside[np.argsort(of[inside], kind="stable")]))


def nothing(view: View) -> Grants:
    """Return the answer where no seat is on offer."""
    told = Reasons(np.where(view.on_type < 0, 0, -1), ("all seats are leased to others",))
    return Grants(Rows(_NONE, _NONE), _NONE, _NONE, np.empty(0), why=told)


def prolonged(view: View, ended: Bools, due: float) -> Grants:
    """Return the answer where an auction was held just now: leases that have ended go on until the next, `due`."""
    device = np.flatnonzero(view.holder >= 0)
    device = device[ended[view.holder[device]]]
    job, row = np.unique(view.holder[device], return_inverse=True)
    told = Reasons(np.where(view.on_type < 0, 0, -1), ("the next auction is about to be held",))
    until = np.full(len(job), due)
    return Grants(Rows(job, view.on_type[job]), row.reshape(-1), device, until, again_at=due, why=told)


def granted(given: list[Given], at: float, lease_s: float) -> tuple[Rows, Ints, Ints, Floats]:
    """Return rows, the row of each seat, seats and ends. Leases are cut short by the part forfeited of `lease_s`."""
    part = np.array([one.part for one in given])
    size = [len(one.devices) for one in given]
    job, type = (np.array([one[k] for one in given], dtype=np.int64) for k in (0, 1))
    return (
        Rows(job, type),
        np.repeat(np.arange(len(given)), size),
        np.concatenate([_NONE, *(one.devices for one in given)]),
        np.where(part < 1, at + part * lease_s, np.nan),
    )


def grants(seats: Seats, bidders: Ints, kept_for: Bools, lease_s: float, proof: Partial | None) -> Grants:
    """Return the seats given as an answer."""
    view = seats.seen.view
    rows, row, device, until = granted(seats.given, view.at, lease_s)
    sits = np.zeros(view.jobs, dtype=bool)
    sits[rows.job] = True
    certificate = None
    if proof is not None:
        told = "proportionally fair among the bidders"
        certificate = Certificate(objective=proof.objective, bound=proof.bound, scale=1.0, point=told)
    return Grants(
        rows,
        row,
        device,
        until,
        stop=np.flatnonzero(seats.seen.ended & ~sits),
        why=_why(seats.seen, bidders, kept_for),
        memory=remembered(view.at, _held_until(seats.seen, rows.job)),
        certificate=certificate,
    )


def remembered(at: float, held_until: Floats) -> dict[str, Array]:
    """Return what the next auction has to know: when this one was held, and until when each job's app held seats."""
    return {"auctioned": np.array(at), "held_until": held_until}


def _held_until(seen: Seen, given: Ints) -> Floats:
    """Return until when the app of each job held seats, (job,), where these jobs are given some now."""
    app, last = seen.view.app, seen.view.at - seen.idle
    last[app[seen.held]] = HOLDS
    last[app[given]] = HOLDS
    return np.asarray(last[app])


def _why(seen: Seen, bidders: Ints, kept_for: Bools) -> Reasons:
    """Return why each job waits that wants seats and was given none."""
    n = len(bidders)
    bid = np.zeros(len(seen.elapsed), dtype=bool)
    bid[bidders] = True
    code = np.where(seen.wants, np.where(bid[seen.view.app], LOST, AHEAD), SITS)
    code[kept_for] = KEPT
    worse = "1 app is worse off and bids" if n == 1 else f"{n} apps are worse off and bid"
    if n == 0:
        worse = "apps that had held nothing for longer were served"
    return Reasons(
        code,
        (
            f"its app was among the {n} worst-off, bid, and won no seats for it",
            f"{worse} first; nothing that it could use was left",
            "seats are kept for it until they are enough",
        ),
    )
