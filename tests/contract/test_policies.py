"""Every policy of the registry keeps the published contract; a new one joins by being registered."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from eunomia import Answer, InvalidAnswer, Order, PolicyInfo, Rank, Rows, Shares, UndeclaredColumn, View, policies
from eunomia.testing import PolicyContract
from eunomia.testing.policy_rules import LEASE_TERMS, SEEDS, check_world
from eunomia.testing.small_worlds import NeverEnds

PLACED_PAIRS = {"placement": "sensitive", "space_sharing": True}
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "fifo": [{}, {"backfill": "skip"}, {"backfill": "easy"}, {"types": "agnostic"}],
    "srtf": [{}, {"types": "agnostic"}, {"measure": "service"}, {"ties": "last"}],
    "philly": [{}, {"defragment": 2, "relax_after": 0}, {"preempt_above": 2.0, "relax_after": 1},
               {"isolate": True, "prerun_s": 60.0, "pool": 0.1}],
    "consolidated": [{}, {"order": "remaining"}, {"order": "remaining", "preempt": True}, {"preempt": True}],
    "astraea": [{}, {"quota": "static"}, {"quota": "dynamic"}, {"selection": "themis", "block": False},
                {"selection": "job_reward", "delay_s": 1000.0},
                {"selection": "shortestremainfirst", "starvation_s": 100.0}],
    "tiresias": [{}, {"limits": 100.0, "promote": 1.0}, {"limits": "none", "placement": "anywhere"},
                 {"limits": "50,500", "placement": "consolidate"}, {"limits": "100,1000", "placement": "anywhere"},
                 {"index": "gittins", "quantum": 100.0}, {"index": "gittins", "gittins": "authors", "promote": 2.0},
                 {"index": "gittins", "history": "60,600,6000", "quantum": 100.0, "placement": "anywhere"}],
    "themis": [{}, {"f": 0.0, "indivisible": "lease"}, {"f": 1.0, "indivisible": "floor"}, {"bid_error": 0.2},
               {"ideal": "work", "empty": "infinite"}],
    "slurm_fair_share": [{}, {"algorithm": "classic", "half_life_s": 600.0}, {"backfill": "skip", "age_weight": 2.0},
                         {"backfill": "none", "recalculate_s": 60.0}],
    "drf": [{}, {"strict": True}, {"preempt": True}, {"strict": True, "preempt": True}],
    "kueue_fair_share": [{}, {"preemption": "initial"}, {"preemption": "never", "admission": "usage"}],
    "gandiva_fair": [{}, {"price": "second"}],
    "shrinking": [{}, {"inner": "srtf"}, {"inner": "las?quantum=50"}],
    "quotas": [{}, {"inner": "srtf", "reclaim": "youngest"}, {"inner": "las?quantum=50"}, {"borrowing": False},
               {"inner": "lottery"}],
    "edf": [{}, {"late": "last"}, {"types": "agnostic"}],
    "least_slack": [{}, {"quantum": 10.0, "late": "last"}, {"types": "agnostic"}],
    "quincy": [{}, {"transfer": 10.0, "look_s": 100.0}, {"theta": 0.0}, {"preempt": False}, {"fair": True},
               {"fair": True, "preempt": False}],
    "gandiva_original": [{}, {"slice_s": 20.0, "moves": 3}, {"packing": False, "grow": False, "moves": 0}],
    "carbyne": [{}, {"altruism": 0.0}, {"altruism": 0.5}],
    "allox": [{}, {"gangs": "refuse"}],
    "optimus": [{}, {"curves": "fitted"}],
    "slaq": [{}, {"curves": "fitted"}],
    "metis": [{}, {"curves": "fitted"}],
    "learned_order": [{}, {"size_weight": 1.0}],
    "las": [{"quantum": 50.0}, {"quantum": 500.0}, {"types": "agnostic"}],
    "max_min_fairness": [{}, {"types": "agnostic"}, {"space_sharing": True}, {"placement": "sensitive"},
                         {"point": "closest"}, {"point": "central"}, PLACED_PAIRS],
    "finish_time_fairness": [{}, {"types": "agnostic"}, {"space_sharing": True}, {"weighted": True},
                             {"weighted_speeds": True}, {"placement": "sensitive"}, PLACED_PAIRS],
    "makespan": [{}, {"types": "agnostic"}, {"space_sharing": True}, {"placement": "sensitive"}, PLACED_PAIRS],
    "max_throughput": [{}, {"types": "agnostic"}, {"space_sharing": True}, {"normalised": False},
                       {"priority": "arrival"},
                       {"placement": "sensitive"}, {"point": "closest"}, {"point": "central"}, PLACED_PAIRS],
    "throughput_per_cost": [{}, {"objective": "sum"}, {"objective": "raw"}, {"deadlines": True},
                            {"placement": "sensitive"},
                            {"space_sharing": True}, {"deadlines": True, "space_sharing": True},
                            {"objective": "sum", "deadlines": True, "space_sharing": True},
                            {**PLACED_PAIRS, "deadlines": True}],
    "min_cost": [{}, {"deadlines": False}, {"placement": "sensitive"}, {"space_sharing": True}, {"point": "closest"},
                 PLACED_PAIRS],
    "proportional_fairness": [{}, {"types": "agnostic"}, {"space_sharing": True}, {"placement": "sensitive"},
                              PLACED_PAIRS],
    "water_filling": [{}, {"types": "agnostic"}, {"space_sharing": True}, {"placement": "sensitive"}, PLACED_PAIRS],
    "hierarchical": [{}, {"inner": "fifo"}, {"inner": "max_throughput"}, {"space_sharing": True},
                     {"inner": "fifo", "space_sharing": True}, {"placement": "sensitive"}, PLACED_PAIRS],
    "strategy_proof": [{}, {"types": "agnostic"}],
    "fifo_packed": [{}, {"types": "agnostic"}],
    "pop": [{"parts": 1}, {"parts": 3}, {"parts": 2, "inner": "makespan"}],
}  # fmt: skip
DRAWN = "types are drawn by seed, row by row: other rows draw others"
ROW_ORDER_DECIDES = {
    "fifo": "rows stand in order of submission, and that is what fifo goes by",
    "las": "jobs of one level are served in order of submission, which is the order of rows",
    "tiresias": "jobs of a queue that began together, or not at all, are served in order of rows",
    "smallest_first": "equally wide jobs are served in order of submission, which is the order of rows",
    "consolidated": "jobs are seated in order of submission, which is the order of rows",
    "themis": "leftovers are drawn by seed, row by row, and an app takes its jobs in order of submission",
    "philly": "jobs of a virtual cluster are served in order of submission, which is the order of rows",
    "edf": "jobs without a deadline are served in order of submission, which is the order of rows",
    "least_slack": "jobs without a deadline are served in order of submission, which is the order of rows",
    "quincy": "of places that cost the same the solver takes one by the order of rows",
    "gandiva_original": "jobs that have run equally long are served in order of submission, which is the order of rows",
    "locality": "equally well placed jobs are served in order of submission, which is the order of rows",
    "harmony": "of actions with equal scores the first counts, by the order of rows",
    "fifo_packed": "rows stand in order of submission, and that is what fifo goes by",
    "optimus": "the narrowest shapes are given in order of submission, which is the order of rows",
    "slaq": "jobs that gain alike are served in order of submission, which is the order of rows",
    "metis": "the jobs of a slot are named in order of submission, which is the order of rows",
    "learned_order": "jobs of nearly equal keys are served in order of submission, which is the order of rows",
    "allox": "ties of matchings are broken by the order of rows",
    "slurm_fair_share": "jobs of equal priority are served in order of submission, which is the order of rows",
    "drf": "jobs of a tenant are served in order of submission, which is the order of rows",
    "kueue_fair_share": "jobs of a queue are served in order of submission, which is the order of rows",
    "lottery": "orders are drawn by seed, row by row: other rows draw others",
    "shrinking": "the inner policy goes by submission, which is the order of rows",
    "quotas": "the inner policy goes by submission, which is the order of rows",
    "gandiva": "pairs are drawn by seed, row by row: other rows draw others",
    "pop": "parts are drawn by seed, row by row: other rows draw others",
}
ONE_OPTIMUM = {
    "isolated",
    "proportional",
    "strategy_proof",
    "fifo_packed",
    "gandiva",
    "stride",
    "gandiva_fair",
    "drf_divisible",
    "carbyne",
}


class ManyOptima(PolicyContract):
    """Of a program with many optima the value is compared, not the point; it comes with its proof."""

    def worth(self, view: View, answer: Answer) -> Any:
        assert answer.certificate is not None
        assert answer.certificate.gap <= 1e-6
        return [answer.certificate.objective]


class Refusing(PolicyContract):
    """A policy that refuses some jobs lets the admitted ones finish."""

    @pytest.mark.parametrize("seed", SEEDS)
    def test_a_small_world_ends_with_every_job_done(self, seed: int) -> None:
        check_world(self.policy, seed, may_refuse=True)


class InnerOptima(PolicyContract):
    """A wrapper has no objective over its parts: only the use of the jobs' time is tested."""

    def worth(self, view: View, answer: Answer) -> Any:
        assert isinstance(answer, Shares)
        return [view.jobs]


def _base(policy: Any, parameters: dict[str, Any]) -> type[PolicyContract]:
    """Return what is compared when jobs are permuted: the answer itself, or its worth."""
    if policy.info.name == "pop" or parameters.get("inner", "fifo") not in ("fairness", "fifo"):
        return InnerOptima
    if policy.info.name == "astraea" or parameters.get("gangs") == "refuse":
        return Refusing
    many = policy.info.answer_type == "shares" and policy.info.name not in ONE_OPTIMUM
    return ManyOptima if many else PolicyContract


def _suite(name: str, parameters: dict[str, Any]) -> type[PolicyContract]:
    policy = policies.load(name)(**parameters)
    reason = ROW_ORDER_DECIDES.get(name, "")
    if name == "hierarchical" and "fifo" in parameters.values():
        reason = ROW_ORDER_DECIDES["fifo"]
    if parameters == {"quantum": 10.0}:
        reason = ""  # no two jobs share such a narrow level
    if parameters.get("types") == "agnostic" and policy.info.answer_type == "order":
        reason = DRAWN
    base = _base(policy, parameters)
    label = "".join(word.title() for word in [*name.split("_"), *(str(v) for v in parameters.values())])
    return type(f"Test{label}", (base,), {"policy": policy, "row_order_decides": reason, "__module__": __name__})


for _name in policies.POLICIES:
    for _parameters in VARIANTS.get(_name, [{}]):
        _class = _suite(_name, _parameters)
        globals()[_class.__name__] = _class


class TestTheSuiteItself:
    """The suite finds the mistakes it is there to find."""

    def test_a_policy_that_reads_what_it_does_not_declare_fails(self) -> None:
        class Peeks:
            info = PolicyInfo(
                name="peeks", answer_type="order", objective="", technique="", paper="", needs=frozenset({"weight"})
            )

            def decide(self, view: View) -> Order:
                job = np.argsort(view.remaining)
                return Order(Rows(job, np.zeros_like(job)))

        class Joined(PolicyContract):
            policy = Peeks()

        with pytest.raises(UndeclaredColumn, match=r"add 'remaining' to info\.needs"):
            Joined().test_the_same_view_gets_the_same_answer()

    def test_a_policy_that_wants_to_be_asked_at_once_again_and_again_fails(self) -> None:
        class Impatient:
            info = policies.load("las").info

            def decide(self, view: View) -> Answer:
                return replace(policies.load("las")().decide(view), again_at=view.at + 1e-9)

        class Joined(PolicyContract):
            policy = Impatient()

        with pytest.raises(NeverEnds, match=r"given up: at .* policy 'las' was asked"):
            Joined().test_a_run_ends_however_time_is_cut_and_one_cause_makes_at_most_two_asks(0, LEASE_TERMS[1])

    @pytest.mark.parametrize(
        ("policy", "claim", "message"),
        [
            ("smallest_first", {"rank": Rank("submission")}, "not that of submission"),
            ("srtf?measure=service", {"rank": Rank("remaining_time")}, "not that of remaining_time"),
            ("fifo", {"jobs_independent": True}, "skip"),
            ("las?quantum=50", {"rank": Rank("service", quantum=60.0)}, "levels of 60|another time"),
            ("smallest_first", {"rank": Rank("service", quantum=1e9)}, "not in info.needs"),
            ("tiresias?placement=consolidate", {"spread_up_to": 1.0}, "other gangs are consolidated"),
            ("las?quantum=50", {"lone_starts": True, "spread_up_to": -math.inf}, "other gangs are consolidated"),
        ],
    )
    def test_a_policy_that_ranks_by_something_else_than_it_says_fails(
        self, policy: str, claim: dict[str, Any], message: str
    ) -> None:
        honest = policies.build(policy)

        class Pretends:
            info = replace(honest.info, promises=replace(honest.info.promises, **claim))

            def decide(self, view: View) -> Answer:
                return honest.decide(view)

        class Joined(PolicyContract):
            policy = Pretends()

        with pytest.raises(AssertionError, match=message):
            Joined().test_what_it_promises_of_its_order_holds()

    def test_a_policy_whose_levels_are_not_all_that_it_ranks_by_fails(self) -> None:
        las = policies.load("las")(quantum=50.0)

        class Weighs:
            info = replace(las.info, needs=las.info.needs | {"weight"})

            def decide(self, view: View) -> Answer:
                heavy = replace(view, columns={**view.columns, "service": view.service / view.weight})
                return las.decide(heavy)

        class Joined(PolicyContract):
            policy = Weighs()

        with pytest.raises(AssertionError, match="levels of 50"):
            Joined().test_what_it_promises_of_its_order_holds()

    def test_an_answer_that_gives_a_job_more_than_its_time_fails(self) -> None:
        class Greedy:
            info = policies.load("max_min_fairness").info

            def decide(self, view: View) -> Shares:
                return Shares(np.ones((view.jobs, len(view.types))))

        class Joined(PolicyContract):
            policy = Greedy()

        with pytest.raises(InvalidAnswer, match=r"of its time|cannot run|too small"):
            Joined().test_an_answer_fits_the_view(0)

    def test_a_parameter_that_is_accepted_out_of_range_is_named_with_its_value(self) -> None:
        @dataclass(frozen=True)
        class Lenient:
            quantum: float = 1.0
            info: ClassVar[PolicyInfo] = policies.load("las").info

        class Joined(PolicyContract):
            policy = Lenient()

        with pytest.raises(AssertionError, match=r"Lenient\(quantum=.*\) is accepted"):
            Joined().test_parameters_out_of_range_are_refused_by_name()
