"""Every policy of the registry keeps the published contract; a new one joins by being registered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eunomia.contract import PolicyContract
from eunomia.model.answers import Answer, Shares
from eunomia.model.view import View
from eunomia.policies import POLICIES, load

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "fifo": [{}, {"backfill": "skip"}, {"backfill": "easy"}, {"types": "agnostic"}],
    "srtf": [{}, {"types": "agnostic"}, {"measure": "service"}, {"ties": "last"}],
    "consolidated": [{}, {"order": "remaining"}, {"order": "remaining", "preempt": True}, {"preempt": True}],
    "las": [{"quantum": 10.0}, {"quantum": 500.0}, {"types": "agnostic"}],
    "max_min_fairness": [{}, {"types": "agnostic"}, {"space_sharing": True}, {"placement": "sensitive"},
                         {"point": "closest"}, {"point": "central"}],
    "finish_time_fairness": [{}, {"types": "agnostic"}, {"space_sharing": True}, {"weighted": True},
                             {"placement": "sensitive"}],
    "makespan": [{}, {"types": "agnostic"}, {"space_sharing": True}, {"placement": "sensitive"}],
    "max_throughput": [{}, {"types": "agnostic"}, {"space_sharing": True}, {"normalised": False},
                       {"placement": "sensitive"}, {"point": "closest"}, {"point": "central"}],
    "throughput_per_cost": [{}, {"objective": "sum"}, {"deadlines": True}, {"space_sharing": True},
                            {"deadlines": True, "space_sharing": True},
                            {"objective": "sum", "deadlines": True, "space_sharing": True}],
    "min_cost": [{}, {"deadlines": False}, {"space_sharing": True}, {"point": "closest"}],
    "proportional_fairness": [{}, {"types": "agnostic"}, {"space_sharing": True}, {"placement": "sensitive"}],
    "water_filling": [{}, {"types": "agnostic"}, {"space_sharing": True}, {"placement": "sensitive"}],
    "hierarchical": [{}, {"inner": "fifo"}, {"inner": "max_throughput"}, {"space_sharing": True},
                     {"inner": "fifo", "space_sharing": True}, {"placement": "sensitive"}],
    "strategy_proof": [{}, {"types": "agnostic"}],
    "fifo_packed": [{}, {"types": "agnostic"}],
    "pop": [{"parts": 1}, {"parts": 3}, {"parts": 2, "inner": "makespan"}],
}  # fmt: skip
DRAWN = "types are drawn by seed, row by row: other rows draw others"
ROW_ORDER_DECIDES = {
    "fifo": "rows stand in order of submission, and that is what fifo goes by",
    "las": "jobs of one level are served in order of submission, which is the order of rows",
    "smallest_first": "equally wide jobs are served in order of submission, which is the order of rows",
    "consolidated": "jobs are seated in order of submission, which is the order of rows",
    "locality": "equally well placed jobs are served in order of submission, which is the order of rows",
    "fifo_packed": "rows stand in order of submission, and that is what fifo goes by",
    "allox": "equally good matchings are told apart by the order of rows",
    "gandiva": "pairs are drawn by seed, row by row: other rows draw others",
    "pop": "parts are drawn by seed, row by row: other rows draw others",
}
ONE_OPTIMUM = {"isolated", "proportional", "strategy_proof", "fifo_packed", "gandiva"}


class ManyOptima(PolicyContract):
    """Of a program with many optima the value is compared, not the point; it comes with its proof."""

    def worth(self, view: View, answer: Answer) -> Any:
        assert answer.certificate is not None
        assert answer.certificate.gap <= 1e-6
        return [answer.certificate.objective]


class InnerOptima(PolicyContract):
    """What the inner policy of a wrapper is worth, part by part, is not told: that the jobs' time is handed out is."""

    def worth(self, view: View, answer: Answer) -> Any:
        assert isinstance(answer, Shares)
        return [view.jobs]


def _base(policy: Any, parameters: dict[str, Any]) -> type[PolicyContract]:
    """Return what is compared when jobs are permuted: the answer itself, or its worth."""
    if policy.info.name == "pop" or parameters.get("inner", "fifo") not in ("fairness", "fifo"):
        return InnerOptima
    many = policy.info.door == "shares" and policy.info.name not in ONE_OPTIMUM
    return ManyOptima if many else PolicyContract


def _suite(name: str, parameters: dict[str, Any]) -> type[PolicyContract]:
    policy = load(name)(**parameters)
    reason = ROW_ORDER_DECIDES.get(name, "")
    if name == "hierarchical" and "fifo" in parameters.values():
        reason = ROW_ORDER_DECIDES["fifo"]
    if parameters == {"quantum": 10.0}:
        reason = ""  # no two jobs share such a narrow level
    if parameters.get("types") == "agnostic" and policy.info.door == "order":
        reason = DRAWN
    base = _base(policy, parameters)
    label = "".join(word.title() for word in [*name.split("_"), *(str(v) for v in parameters.values())])
    return type(f"Test{label}", (base,), {"policy": policy, "row_order_decides": reason, "__module__": __name__})


for _name in POLICIES:
    for _parameters in VARIANTS.get(_name, [{}]):
        _class = _suite(_name, _parameters)
        globals()[_class.__name__] = _class


class TestTheSuiteItself:
    """The suite finds the mistakes it is there to find."""

    def test_a_policy_that_reads_what_it_does_not_declare_fails(self) -> None:
        from eunomia.model.answers import Order, Rows
        from eunomia.model.policy import PolicyInfo
        from eunomia.model.view import UndeclaredColumn

        class Peeks:
            info = PolicyInfo(
                name="peeks", door="order", objective="", technique="", paper="", needs=frozenset({"weight"})
            )

            def decide(self, view: View) -> Order:
                job = np.argsort(view.remaining)
                return Order(Rows(job, np.zeros_like(job)))

        class Joined(PolicyContract):
            policy = Peeks()

        with pytest.raises(UndeclaredColumn, match=r"add 'remaining' to info\.needs"):
            Joined().test_the_same_view_gets_the_same_answer(0)

    def test_an_answer_that_gives_a_job_more_than_its_time_fails(self) -> None:
        class Greedy:
            info = load("max_min_fairness").info

            def decide(self, view: View) -> Shares:
                return Shares(np.ones((view.jobs, len(view.types))))

        class Joined(PolicyContract):
            policy = Greedy()

        with pytest.raises(AssertionError, match=r"more|cannot run"):
            Joined().test_an_answer_fits_the_view(0)
