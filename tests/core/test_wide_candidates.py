"""The types carry more than the policies of today use: pairs, other shapes, leases that end by themselves."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from eunomia.model.answers import ANYWHERE, ONE_MACHINE, Answer, Grants, Order, Rows, Shares
from eunomia.model.decisions import Renew, Stop
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.policy import RECALLABLE, ROUNDS, LeaseTerms, PolicyInfo
from eunomia.model.topology import Node
from eunomia.model.view import View
from eunomia.runs.result_files import write_columns
from eunomia.testing.small_worlds import DrawnRates, SmallWorld, WorldRun, line_up, one_type, play


def card(name: str, door: str, *needs: str, terms: LeaseTerms = RECALLABLE, **more: object) -> PolicyInfo:
    return PolicyInfo(
        name=name,
        answer_type=door,  # type: ignore[arg-type]
        objective="",
        technique="",
        paper="",
        needs=frozenset(needs),
        mechanism=terms,
        **more,  # type: ignore[arg-type]
    )


# ---- two jobs on one accelerator


@dataclass(frozen=True)
class PairUp:
    """Puts the two oldest jobs on one accelerator; the next two, if any, stand behind."""

    info: ClassVar[PolicyInfo] = card("pair up", "order", "scale_factor", "packed_throughput", "job_class")

    def decide(self, view: View) -> Order:
        lead, mate = np.arange(0, view.jobs - 1, 2), np.arange(1, view.jobs, 2)
        alone = np.arange(view.jobs - view.jobs % 2, view.jobs)
        fast = view.packed_throughput[view.job_class[lead], view.job_class[mate], 0] > 0
        assert fast.all()
        job = np.concatenate((lead, alone))
        partner = np.concatenate((mate, np.full(len(alone), -1)))
        return Order(Rows(job, np.zeros_like(job), partner=partner))


@dataclass(frozen=True)
class PairUpForGood(PairUp):
    """The same, and no job is moved."""

    info: ClassVar[PolicyInfo] = card(
        "pair up", "order", "scale_factor", "packed_throughput", "job_class", terms=LeaseTerms()
    )


def one_accelerator(*jobs: tuple[float, float], shared: float = 0.5) -> SmallWorld:
    speeds = DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, shared=shared)
    return SmallWorld(nodes=(Node(type="gpu", accelerators=1),), jobs=line_up(*jobs), speeds=speeds)


def test_two_share_an_accelerator_and_the_survivor_speeds_up() -> None:
    """At half speed each: a (30 steps) ends at 60; b (100) has 30 by then and 70 more at full speed: 130."""
    played = play(PairUpForGood(), one_accelerator((0, 30), (0, 100)))
    assert played.finished == {"a": 60, "b": 130}
    assert len(played.starts) == 1  # one lease for both; the survivor keeps its seats
    assert played.figures.summary["preemptions"] == 0
    assert played.figures.summary["utilization"] == pytest.approx(1.0)


def test_a_start_names_both_and_gives_each_its_epoch() -> None:
    (_, start), *_ = play(PairUp(), one_accelerator((0, 30), (0, 100))).starts
    assert (start.job_id, start.epoch, start.partner_id, start.partner_epoch) == ("a", 1, "b", 1)


def test_a_survivor_whose_start_still_costs_time_goes_on_alone_after_it() -> None:
    """Both start at 0 and pay 10 s; a ends at 10 + 2 / 0.5 = 14; b has 2 of 20 steps and needs 18 more: 32."""
    played = play(PairUpForGood(), one_accelerator((0, 2), (0, 20)), overheads=Overheads(start_s=10))
    assert played.finished == {"a": 14, "b": 32}


def test_pairs_change_partners_and_every_invariant_holds() -> None:
    world = one_accelerator(*((3.0 * i, 10.0 + 7 * (i % 4)) for i in range(9)))
    played = play(PairUp(), world, overheads=Overheads(checkpoint_s=1, restore_s=1))
    assert played.counts == {"finished": 9}


@dataclass(frozen=True)
class PairedShares:
    """Every pair of neighbours gets an equal part of the time."""

    info: ClassVar[PolicyInfo] = card("paired shares", "shares", "scale_factor", terms=ROUNDS)

    def decide(self, view: View) -> Shares:
        job = np.arange(view.jobs)
        partner = np.where(job + 1 < view.jobs, job + 1, -1)
        return Shares(np.full(view.jobs, 1 / view.jobs), rows=Rows(job, np.zeros_like(job), partner=partner))


def test_shares_of_pairs_are_carried_out_in_rounds() -> None:
    assert play(PairedShares(), one_accelerator((0, 500), (0, 900), (100, 700))).counts == {"finished": 3}


# ---- a job in several shapes


@dataclass(frozen=True)
class AsWideAsFits:
    """Serves by arrival, each job in the widest of its shapes that the cluster has room for, the narrower after it."""

    info: ClassVar[PolicyInfo] = card("as wide as fits", "order", "shapes", "shape_throughput")

    def decide(self, view: View) -> Order:
        width = view.shapes.shape[1]
        widest_first = np.argsort(-view.shapes, axis=1, kind="stable")
        job = np.repeat(np.arange(view.jobs), width)
        shape = widest_first.ravel()
        real = (view.shapes[job, shape] > 0) & (view.shape_throughput[job, shape, 0] > 0)
        return Order(Rows(job[real], np.zeros(real.sum(), dtype=np.int64), shape=shape[real]))


def elastic(name: str, at: float, steps: float, *sizes: int, sequence: int = 0) -> Job:
    return Job(
        job_id=name, total_steps=steps, submitted=at, scale_factor=sizes[0], other_shapes=sizes[1:], sequence=sequence
    )


def test_an_elastic_job_grows_when_seats_come_free_and_starts_a_new_epoch() -> None:
    """Four accelerators, a step a second on each. a (2, rigid) has 10 s; b runs on the 2 that are left (20 of 60
    steps by 10), then on 4: 10 more seconds.
    """
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=4),),
        jobs=(elastic("a", 0, 20, 2), elastic("b", 0, 60, 1, 2, 4, sequence=1)),
        speeds=DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, scaling=1.0),
    )
    played = play(AsWideAsFits(), world)
    assert played.finished == {"a": 10, "b": 20}
    assert [(at, s.job_id, s.epoch, len(s.seats), s.shape) for at, s in played.starts] == [
        (0, "a", 1, 2, 0),
        (0, "b", 1, 2, 1),
        (10, "b", 2, 4, 2),
    ]
    assert played.figures.jobs["attained_service_s"].tolist() == [20, 60]


def test_an_elastic_job_shrinks_to_a_smaller_shape_and_never_to_a_part_of_one() -> None:
    """b has 4 until a comes at 5, is served first, and leaves 2."""

    @dataclass(frozen=True)
    class YoungestFirst(AsWideAsFits):
        def decide(self, view: View) -> Order:
            rows = AsWideAsFits().decide(view).rows
            back = np.argsort(-rows.job, kind="stable")
            assert rows.shape is not None
            return Order(Rows(rows.job[back], rows.type[back], shape=rows.shape[back]))

    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=4),),
        jobs=(elastic("b", 0, 60, 1, 2, 4), elastic("a", 5, 20, 2, sequence=1)),
        speeds=DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, scaling=1.0),
    )
    played = play(YoungestFirst(), world)
    assert [(at, s.job_id, len(s.seats)) for at, s in played.starts] == [
        (0, "b", 4),
        (5, "a", 2),
        (5, "b", 2),
        (15, "b", 4),
    ]
    assert played.finished == {"a": 15, "b": 20}  # 20 + 20 + 4 · 5 = 60


def test_what_a_machine_is_too_full_for_is_left_to_the_next_in_line() -> None:
    """Two machines of 2 with one free each: a gang of 2 within one machine waits, b of 1 does not."""

    @dataclass(frozen=True)
    class Near:
        info: ClassVar[PolicyInfo] = card("near", "order", "scale_factor", terms=LeaseTerms())

        def decide(self, view: View) -> Order:
            job = np.arange(view.jobs)
            within = np.where(view.scale_factor == 2, ONE_MACHINE, -1)
            return Order(Rows(job, np.zeros_like(job), within=within))

    nodes = (Node(type="gpu", accelerators=2),) * 2
    jobs = line_up((0, 10), (1, 30), (2, 40), (11, 5, 2), (12, 5))
    played = play(Near(), SmallWorld(nodes=nodes, jobs=jobs, speeds=one_type()))
    # a and b fill the first machine, c sits on the second. At 11 a has gone: one free on each; d waits for a whole
    # machine, which is the first when b goes at 31. e takes the hole that fits it at 12.
    assert played.finished == {"a": 10, "b": 31, "c": 42, "d": 36, "e": 17}


@pytest.mark.parametrize(("within", "begin"), [(ONE_MACHINE, 31), (ANYWHERE, 11)])
def test_a_pair_waits_for_one_machine_only_if_it_asks_for_one(within: int, begin: float) -> None:
    """Two machines of 2 with one free each from 10 on; b leaves the first at 31. Both of the pair run at half speed."""

    @dataclass(frozen=True)
    class NearPair:
        info: ClassVar[PolicyInfo] = card("near pair", "order", "scale_factor", terms=LeaseTerms())

        def decide(self, view: View) -> Order:
            wide = np.flatnonzero(view.scale_factor == 2)
            job = np.append(np.flatnonzero(view.scale_factor == 1), wide[:1])
            partner = np.where(view.scale_factor[job] == 2, wide[-1] if len(wide) > 1 else -1, -1)
            return Order(Rows(job, np.zeros_like(job), partner=partner, within=np.where(partner >= 0, within, -1)))

    speeds = DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, shared=0.5)
    jobs = line_up((0, 10), (1, 30), (2, 40), (11, 5, 2), (11, 5, 2))
    played = play(NearPair(), SmallWorld(nodes=(Node(type="gpu", accelerators=2),) * 2, jobs=jobs, speeds=speeds))
    assert played.finished == {"a": 10, "b": 31, "c": 42, "d": begin + 10, "e": begin + 10}


# ---- leases that end by themselves


@dataclass(frozen=True)
class Auction:
    """Seats go to who has received least, each for its own time; the winner knows when its lease ends."""

    lease_s: float = 20.0
    info: ClassVar[PolicyInfo] = card(
        "auction",
        "grants",
        "service",
        "holder",
        "on_type",
        memory_columns={"until": -1.0},
        terms=LeaseTerms(length_s=1000.0),
    )

    def decide(self, view: View) -> Answer:
        until = view.memory["until"].copy()
        keeps = (view.on_type >= 0) & (until > view.at)
        open_seats = np.flatnonzero((view.holder == -1) | ((view.holder >= 0) & ~keeps[np.maximum(view.holder, 0)]))
        bidders = np.flatnonzero(~keeps)
        winners = bidders[np.argsort(view.service[bidders], kind="stable")][: len(open_seats)]
        until[winners] = view.at + self.lease_s
        rows = Rows(winners, np.zeros_like(winners))
        return Grants(
            rows, np.arange(len(winners)), open_seats[: len(winners)], until[winners], memory={"until": until}
        )


def test_a_lease_ends_by_itself_and_the_seat_changes_hands() -> None:
    """One seat, 20 s each by turns: a 0–20, b 20–40, a 40–50 and is done, b 50–70 and renews until 75."""
    played = play(Auction(), one_accelerator((0, 30), (0, 45)))
    assert [(at, s.job_id, s.until) for at, s in played.starts] == [
        (0, "a", 20),
        (20, "b", 40),
        (40, "a", 60),
        (50, "b", 70),
    ]
    assert played.finished == {"a": 50, "b": 75}


def test_a_winner_that_wins_again_keeps_its_seats_at_no_cost() -> None:
    """Alone, it renews at 20 and 40; only the start costs."""
    played = play(Auction(), one_accelerator((0, 45)), overheads=Overheads(start_s=5, checkpoint_s=3, restore_s=3))
    assert [d for _, d in played.decisions if isinstance(d, Renew)] == [Renew(("a",), 40.0), Renew(("a",), 60.0)]
    assert not [d for _, d in played.decisions if isinstance(d, Stop)]
    assert played.finished == {"a": 50}


def test_many_leases_that_end_apart_serve_everybody() -> None:
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=3),),
        jobs=line_up(*((7.0 * i, 30.0 + 11 * (i % 5)) for i in range(15))),
        speeds=one_type(),
    )
    assert play(Auction(), world).counts == {"finished": 15}


def test_a_lease_of_its_own_ends_even_where_the_mechanism_sets_no_end() -> None:
    played = play(Auction(), one_accelerator((0, 30), (0, 45)), terms=LeaseTerms())
    assert played.finished == {"a": 50, "b": 75}


# ---- all the way to jobs.csv

GROWING = SmallWorld(
    nodes=(Node(type="gpu", accelerators=4),),
    jobs=(elastic("a", 0, 20, 2), elastic("b", 0, 60, 1, 2, 4, sequence=1)),
    speeds=DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, scaling=1.0),
)


@pytest.mark.parametrize(
    ("played", "rows"),
    [  # finished, accelerator-seconds, preemptions, seconds held; worked by hand in the tests above
        (play(PairUpForGood(), one_accelerator((0, 30), (0, 100))), {"a": (60, 60, 0, 60), "b": (130, 130, 0, 130)}),
        (play(AsWideAsFits(), GROWING), {"a": (10, 20, 0, 10), "b": (20, 60, 1, 20)}),
        (play(Auction(), one_accelerator((0, 30), (0, 45))), {"a": (50, 30, 1, 30), "b": (75, 45, 1, 45)}),
    ],
    ids=["a pair", "an elastic job", "an auction"],
)
def test_what_they_received_stands_in_jobs_csv(
    played: WorldRun, rows: dict[str, tuple[float, ...]], tmp_path: Path
) -> None:
    write_columns(tmp_path / "jobs.csv", played.figures.jobs)
    with (tmp_path / "jobs.csv").open(encoding="utf-8") as file:
        reported = {row["job_id"]: row for row in csv.DictReader(file)}
    names = ("finished_s", "attained_service_s", "preemptions", "received_gpu_s")
    assert {job: tuple(float(row[name]) for name in names) for job, row in reported.items()} == rows
    assert {row["status"] for row in reported.values()} == {"finished"}
