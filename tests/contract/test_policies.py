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
    "srtf": [{}, {"types": "agnostic"}],
    "las": [{"quantum": 10.0}, {"quantum": 500.0}, {"types": "agnostic"}],
}
DRAWN = "types are drawn by seed, row by row: other rows draw others"
ROW_ORDER_DECIDES = {
    "fifo": "rows stand in order of submission, and that is what fifo goes by",
    "las": "jobs of one level are served in order of submission, which is the order of rows",
    "locality": "equally well placed jobs are served in order of submission, which is the order of rows",
}


class ManyOptima(PolicyContract):
    """Of a program with many optima the value is compared, not the point."""

    def worth(self, view: View, answer: Answer) -> Any:
        assert isinstance(answer, Shares)
        seen = view.throughput if "agnostic" not in self.policy.info.name else (view.throughput > 0).astype(float)
        T = np.where(view.scale_factor[:, None] <= view.capacity, seen, 0.0)
        equal = T @ (view.capacity / view.capacity.sum())
        able = equal > 0
        level = (view.scale_factor / view.weight)[able] * (T * answer.x).sum(axis=1)[able] / equal[able]
        speed = (T * answer.x).sum(axis=1)[able] / T.max(axis=1)[able]
        return [level.min(), speed.sum()]


def _suite(name: str, parameters: dict[str, Any]) -> type[PolicyContract]:
    policy = load(name)(**parameters)
    reason = ROW_ORDER_DECIDES.get(name, "")
    if parameters == {"quantum": 10.0}:
        reason = ""  # no two jobs share such a narrow level
    if parameters.get("types") == "agnostic":
        reason = DRAWN
    base = ManyOptima if policy.info.door == "shares" else PolicyContract
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
