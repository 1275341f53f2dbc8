"""The debug lane: short jobs that start at once on part of a cluster whose other jobs can be preempted."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Order
from eunomia.model.arrays import Ints
from eunomia.model.policy import RECALLABLE, Policy, PolicyInfo
from eunomia.model.promises import Promises
from eunomia.model.view import View
from eunomia.policies.wrappers.inner import ask
from eunomia.policies.wrappers.quota import select_rows


class DebugLane:
    """Another policy's order, debug jobs first as long as they hold at most a share of the accelerators.

    Jobs beyond that share keep the place that the inner policy gives them. With an inner policy without preemption,
    running jobs precede waiting ones, and the last started is the first to make room.
    """

    info: ClassVar[PolicyInfo]  # of an instance: that of the inner policy, with preemption

    def __init__(self, inner: Policy, share: float) -> None:
        """Raise ValueError for an inner policy that does not answer with an order."""
        if inner.info.answer_type != "order":
            raise ValueError(f"{inner.info.name} answers with {inner.info.answer_type}; a debug lane needs an order")
        self.inner, self.share = inner, share
        terms = inner.info.mechanism
        self._is_preemptive = terms.recall or not math.isinf(terms.length_s)
        info = replace(
            inner.info,
            needs=inner.info.needs | {"debug", "scale_factor", "capacity", "on_type", "started"},
            mechanism=replace(terms, recall=True) if self._is_preemptive else RECALLABLE,
            promises=Promises(),
        )
        object.__setattr__(self, "info", info)

    def decide(self, view: View) -> Order:
        """Return the inner policy's rows, those of debug jobs within the share first."""
        answer = ask(self.inner, view, Order)
        first = np.unique(answer.rows.job, return_index=True)[1]
        line = answer.rows.job[np.sort(first)]
        lane = self._lane(view, line)
        runs = view.on_type >= 0
        if not self._is_preemptive:
            held = line[runs[line]]
            line = np.concatenate((held[np.argsort(view.started[held], kind="stable")], line[~runs[line]]))
        stays = np.zeros_like(runs) if self._is_preemptive else runs
        order = np.concatenate((lane, line[~np.isin(line, lane)]))
        return replace(answer, rows=select_rows(answer.rows, order, view.on_type, stays))

    def _lane(self, view: View, line: Ints) -> Ints:
        """Return the debug jobs that fit into the share, in order of submission; one of any size fits alone."""
        left, chosen = max(self.share * float(view.capacity.sum()), 1.0), list[int]()
        for m in np.sort(line[view.debug[line]]).tolist():
            if view.scale_factor[m] <= left or not chosen:
                left -= float(view.scale_factor[m])
                chosen.append(m)
        return np.array(chosen, dtype=np.int64)
