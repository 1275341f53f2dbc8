"""What comes of an auction: who may have what is left, and the answer."""

from __future__ import annotations

import numpy as np

from eunomia.model.answers import Grants, Rows
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.certificate import Certificate
from eunomia.policies.grants.themis.auctioning import Seats
from eunomia.policies.grants.themis.seen import Seen
from eunomia.solvers.auction.partial import Partial

_NONE = np.empty(0, dtype=np.int64)


def left_to(seen: Seen, bidders: Ints, rng: np.random.Generator) -> list[int]:
    """Return who may have what is left: jobs of apps that did not bid, drawn, then bidders' jobs, worst first."""
    rank = np.full(len(seen.elapsed), -1)
    rank[bidders] = np.arange(len(bidders))
    of = rank[seen.view.app]
    outside, inside = np.flatnonzero(seen.wants & (of < 0)), np.flatnonzero(seen.wants & (of >= 0))
    return [*rng.permutation(outside).tolist(), *inside[np.argsort(of[inside], kind="stable")].tolist()]


def grants(seats: Seats, bidders: Ints, kept_for: Bools, lease_s: float, proof: Partial | None) -> Grants:
    """Return the seats given as an answer. Leases are cut short by the part forfeited if they last `lease_s`."""
    view, given = seats.seen.view, seats.given
    job = np.array([gang.job for gang, _, _ in given], dtype=np.int64)
    part = np.array([part for _, _, part in given])
    size = np.array([len(devices) for _, devices, _ in given], dtype=np.int64)
    until: Floats = np.where(part < 1, view.at + part * lease_s, np.nan)
    sits = np.zeros(view.jobs, dtype=bool)
    sits[job] = True
    certificate = None
    if proof is not None:
        told = "proportionally fair among the bidders"
        certificate = Certificate(objective=proof.objective, bound=proof.bound, scale=1.0, point=told)
    return Grants(
        Rows(job, np.array([gang.type for gang, _, _ in given], dtype=np.int64)),
        np.repeat(np.arange(len(given)), size),
        np.concatenate([_NONE, *(devices for _, devices, _ in given)]),
        until,
        stop=np.flatnonzero(seats.seen.ended & ~sits),
        why=_why(seats.seen, sits, bidders, kept_for),
        memory={"kept_for": kept_for.astype(float)},
        certificate=certificate,
    )


def _why(seen: Seen, sits: Bools, bidders: Ints, kept_for: Bools) -> dict[int, str]:
    """Return why each job waits that wants seats."""
    n = len(bidders)
    lost = f"its app was among the {n} worst-off, bid, and won no seats for it"
    worse = "1 app is worse off and bids" if n == 1 else f"{n} apps are worse off and bid"
    ahead = f"{worse} first; nothing that it could use was left"
    bid = np.isin(seen.view.app, bidders)
    told = {int(m): lost if bid[m] else ahead for m in np.flatnonzero(seen.wants & ~sits)}
    return told | {int(m): "seats are kept for it until they are enough" for m in np.flatnonzero(kept_for)}
