"""Gandiva as published: time slicing, packing, migration and grow-shrink.

    all fit        each job runs alone, as asked
    they do not    pairs: two gangs of one size on the same accelerators, those first that keep most of their speeds;
                   a pair is kept while  T[m|n, j] / T[m, j] + T[n|m, j] / T[n, j] ≥ 1  on its type j
                   slices: a job that has run for `slice_s` gives way to one that has run less, counted from its
                   submission, when it is put level with the job that had run least
    place          a machine that holds gangs of that size and no others, the emptiest first; an empty machine;
                   any machine; several, the emptiest first
    move           up to `moves` gangs at a time that could be on fewer machines than they are
    grow           while no job waits, a gang takes free accelerators for a wider shape that is faster; it returns to
                   the shape that was asked for as soon as a job waits

T throughput (job, type), T[m|n, j] of m beside n. The paper tries pairs and looks whether they pay; here that is
believed before. Turns are taken on all machines of a type, not on each machine by itself.

Example (examples/two_jobs.json). Two jobs fit on three accelerators, so no job shares or waits. Text has run for 7560 s
and image not at all: image is first and takes its fastest type, the v100. Text gets a k80.

Reference: W. Xiao et al., "Gandiva: Introspective Cluster Scheduling for Deep Learning", OSDI 2018, sections 3 and 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.answers import Grants
from eunomia.model.arrays import Floats
from eunomia.model.policy import ENDLESS, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.grants.gandiva.affinity import SlicePlacement
from eunomia.policies.grants.gandiva.time_slicing import GangsAndPairs, Slicing, kept, packed
from eunomia.policies.pair_memory import NO_PAIR, REMEMBERED, memory_of


@dataclass(frozen=True, slots=True)
class GandivaOriginal:
    """Everybody runs at once, in turns of a slice if need be, and two share accelerators where that pays.

    `packing=false` forms no pairs, `grow=false` no wider shapes, and `moves=0` leaves gangs where they are.

    Use it when users want first results soon, whatever else runs, and stopping a job costs little beside a slice.

    The worst-off is a job near its end on a crowded cluster: it takes turns with all the others, so that everybody ends
    late. A wide gang waits for the turns of several others to end together.
    """

    slice_s: Annotated[float, Rule(above=0.0, what="a finite number of seconds above 0")] = 60.0
    packing: bool = True
    moves: Annotated[int, Rule(least=0, what="a whole number, 0 = never")] = 1
    grow: bool = True

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="gandiva_original",
        answer_type="grants",
        objective="early feedback for everybody, full accelerators",
        technique="time slicing, packing, migration and grow-shrink",
        paper="Xiao et al., Gandiva, OSDI 2018",
        taxonomy=Taxonomy(
            objectives=("utilisation", "jct"),
            heterogeneity="partial",
            placement=True,
            sharing=("temporal", "spatial"),
            elastic=True,
            preemptive=True,
        ),
        needs=frozenset(
            {
                "scale_factor",
                "throughput",
                "capacity",
                "on_type",
                "started",
                "run_time",
                "job_class",
                "packed_throughput",
            }
            | {"shapes", "shape_throughput", "topology", "holder"}
        ),
        memory_columns={"ahead": -1.0, **REMEMBERED},
        mechanism=ENDLESS,
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def decide(self, view: View) -> Grants:
        """Return devices for units that start, move, or change partner or shape, and the jobs that stop."""
        ahead = _ahead(view)
        turn = view.run_time + ahead
        pair = np.full(view.jobs, NO_PAIR)
        slicing = Slicing.of(view, GangsAndPairs.of(view, pair), turn, self.slice_s)
        if slicing.is_contended and self.packing:
            pair = packed(view, kept(view))
            slicing = Slicing.of(view, GangsAndPairs.of(view, pair), turn, self.slice_s)
        placement = SlicePlacement(view, slicing)
        placement.place()
        placement.move(self.moves)
        if self.grow:
            placement.grow()
        return placement.answer(
            again_at=slicing.again_at if slicing.is_contended else math.inf,
            memory={"ahead": ahead, **memory_of(view, pair)},
        )


def _ahead(view: View) -> Floats:
    """Return what is added to the seconds that each job ran, (job,): a new job is level with the one that ran least."""
    ahead = view.memory["ahead"].copy()
    new = ahead < 0
    ahead[new] = np.min((view.run_time + ahead)[~new], initial=np.inf) if (~new).any() else 0.0
    return ahead
