"""A run of the simulated cluster, from the first arrival to the last end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia_reproduction.themis_simulator.auction import TOO_LARGE, by_program, by_states, limits
from eunomia_reproduction.themis_simulator.bids import DRAWN, Bidding, bids_of, worst_off
from eunomia_reproduction.themis_simulator.iterations import advance, take_up
from eunomia_reproduction.themis_simulator.rivals import give_singly
from eunomia_reproduction.themis_simulator.world import Cluster, Jobs, Run, lease_to, new_run

FEWEST, MOST = -1e-8, 1e-8  # added to each bid: of equal sums the one with fewest winners, or with most
DONE, PROGRAM = 0, 1


class Played(NamedTuple):
    """What became of the jobs of a run."""

    ended: Floats  # (job,) minutes
    used: Floats  # (job,) accelerator-minutes
    leases: int  # of one accelerator each, that were given


class Auctions(NamedTuple):
    """How Themis chooses, and what the code leaves to its solver: which of the many answers of one sum is taken."""

    part: float  # of the jobs that want more may bid: 1 - f of the paper
    order: int = DRAWN  # which of two jobs with equal bids wins, see `bids.worst_off`
    tie: float = FEWEST  # FEWEST or MOST winners


def play(cluster: Cluster, jobs: Jobs, rule: Auctions | int, lease: float, seed: int = 0) -> Played:
    """Run all jobs under Themis' auctions, or under a rival of `rivals`; `lease` in minutes, `seed` for equal bids."""
    run = new_run(cluster, jobs, seed)
    if isinstance(rule, int):
        _play_rival(cluster, jobs, run, rule, lease)
        return Played(run.ended, run.used, int(run.leases[0]))
    repeats = np.zeros(1, dtype=np.int64)
    while True:
        status, bidding, classes, within = _play_auctions(cluster, jobs, run, repeats, rule, lease)
        if status == DONE:
            return Played(run.ended, run.used, int(run.leases[0]))
        award(cluster, run, bidding, by_program(bidding, classes, within), lease)


@kernel()
def _play_rival(cluster: Cluster, jobs: Jobs, run: Run, rival: int, lease: float) -> None:
    while True:
        events = advance(cluster, jobs, run)
        if events < 0:
            return
        for _ in range(events):
            if not give_singly(cluster, jobs, run, rival, lease):
                break
            take_up(cluster, jobs, run)


@kernel()
def _play_auctions(
    cluster: Cluster, jobs: Jobs, run: Run, repeats: Ints, rule: Auctions, lease: float
) -> tuple[int, Bidding, Ints, Ints]:
    """Run until all jobs have ended, or the general solver has to settle an auction.

    repeats (1,): auctions that are still due at this moment.
    """
    while True:
        if repeats[0] == 0:
            take_up(cluster, jobs, run)
            repeats[0] = advance(cluster, jobs, run)
            if repeats[0] == 0:
                continue
            if repeats[0] < 0:
                empty = np.empty(0, dtype=np.int64)
                return DONE, Bidding(empty, empty, empty, np.empty(0), empty), empty, empty.reshape((0, 4))
        bidders = worst_off(jobs, run, rule.part, rule.order)
        if len(bidders) == 0 or run.holder.min() >= 0:
            take_up(cluster, jobs, run)
            repeats[0] = repeats[0] - 1 if run.holder.min() < 0 else 0
            run.excluded[:] = False
            continue
        bidding = bids_of(cluster, jobs, run, bidders, rule.tie)
        if len(bidding.job) == 0:
            run.excluded[bidders] = True
            continue
        classes, within = limits(cluster, bidding)
        rows = by_states(bidding, classes, within)
        if rows[0] == TOO_LARGE:
            return PROGRAM, bidding, classes, within
        award(cluster, run, bidding, rows, lease)


@kernel()
def award(cluster: Cluster, run: Run, bidding: Bidding, rows: Ints, lease: float) -> None:
    """Lease what they won to the jobs of the winning rows: those with bids for the smallest units choose first."""
    order = np.argsort(bidding.unit[rows], kind="mergesort")
    for k in order:
        row = rows[k]
        job, missing = bidding.job[row], bidding.size[row]
        for one in range(len(run.holder)):
            if missing == 0:
                break
            if run.holder[one] < 0 and (cluster.unit[one] == bidding.unit[row]).any():
                lease_to(run, job, one, lease)
                missing -= 1
