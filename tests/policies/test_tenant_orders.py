"""Orders that serve tenants by shares and quotas, on numbers small enough to follow by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eunomia.model.policy import Policy
from eunomia.model.tenants import Tenant, Tenants
from eunomia.model.topology import Node
from eunomia.policies.order.borrowing_group import BorrowingGroup
from eunomia.policies.order.decayed_usage import rolled_up
from eunomia.policies.order.kueue_fair_share import KueueFairShare
from eunomia.policies.order.slurm_fair_share import SlurmFairShare, classic, fair_tree
from eunomia.policies.wrappers.quota import Quotas
from eunomia.testing.small_worlds import SmallWorld, WorldRun, line_up, one_type, play

HOUR = 3600.0


def played(
    policy: Policy,
    *jobs: tuple[str, float, float, int],
    accelerators: int = 1,
    tenants: dict[str, Tenant] | None = None,
) -> WorldRun:
    """Play jobs a, b, c … given as (tenant, submitted, seconds, accelerators)."""
    lined = line_up(*(spec[1:] for spec in jobs))
    owned = tuple(replace(job, tenant=spec[0]) for job, spec in zip(lined, jobs, strict=True))
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=accelerators),), jobs=owned, speeds=one_type())
    return play(policy, world, tenants=tenants)


def tree(**weights: float) -> Tenants:
    """Return tenants by name, `_` for a step down, with weights; those on the way that are not named weigh 1."""
    return Tenants.of((), {name.replace("_", "/"): Tenant(weight=weight) for name, weight in weights.items()})


# ---- Slurm ---------------------------------------------------------------------------------------------------------


def test_what_tenants_below_used_counts_for_those_above() -> None:
    assert rolled_up(np.array([1.0, 2, 4, 8]), tree(a=1, a_x=1, a_x_y=1, b=1)).tolist() == [7, 6, 4, 8]


def test_the_classic_factor_is_a_half_for_who_used_its_share() -> None:
    """Shares 1/4 and 3/4; usage 1/2 and 1/2: 2^(-2) and 2^(-2/3). At usage as shares both are at 1/2."""
    two = tree(a=1, b=3)
    assert classic(np.array([5.0, 5]), two) == pytest.approx([2**-2.0, 2 ** (-2 / 3)])
    assert classic(np.array([1.0, 3]), two) == pytest.approx([1 / 2, 1 / 2])
    assert classic(np.array([0.0, 0]), two) == pytest.approx([1, 1])
    assert classic(np.array([1.0, 3]), two, dampening=2.0) == pytest.approx([2**-0.5, 2**-0.5])


def test_the_classic_factor_lets_siblings_pay_for_each_other() -> None:
    """a has half, a/x and a/y half of that each; a/x used all of it. E[y] = 0 + (1 - 0) / 2, S[y] = 1/4: 2^(-2)."""
    factor = classic(np.array([8.0, 8, 0, 0]), tree(a=1, a_x=1, a_y=1, b=1))
    assert factor == pytest.approx([2**-2.0, 2**-4.0, 2**-2.0, 1])


def test_fair_tree_puts_all_of_a_better_account_before_all_of_a_worse_one() -> None:
    """L: a 1/2 / (1/4) = 2, b 2/3. Under a: x 1/2 / 1, y unused; under b: x 1/2 / (1/3), y 1/2 / (2/3)."""
    tenants = tree(a=1, a_x=1, a_y=1, b=1, b_x=1, b_y=1)
    usage = rolled_up(np.array([0.0, 4, 0, 0, 4, 8]), tenants)
    rank = np.argsort(-fair_tree(usage, tenants))
    assert [tenants.names[u] for u in rank] == ["a", "a/y", "a/x", "b", "b/x", "b/y"]


def test_fair_tree_merges_the_users_of_equal_accounts() -> None:
    tenants = tree(a=1, a_x=1, a_y=1, b=1, b_x=1, b_y=1)
    usage = rolled_up(np.array([0.0, 4, 8, 0, 8, 4]), tenants)
    factor = dict(zip(tenants.names, fair_tree(usage, tenants), strict=True))
    assert factor["a/x"] == factor["b/y"] > factor["a/y"] == factor["b/x"]


def test_the_fair_tree_factor_is_rank_over_tenants_the_first_at_1() -> None:
    three = tree(a=1, b=1, c=1)
    assert fair_tree(np.array([1.0, 2, 3]), three) == pytest.approx([1, 2 / 3, 1 / 3])
    assert fair_tree(np.array([2.0, 1, 2]), three) == pytest.approx([2 / 3, 1, 2 / 3])
    assert fair_tree(np.zeros(3), three) == pytest.approx([1, 1, 1])


@pytest.mark.parametrize("algorithm", ["fair_tree", "classic"])
def test_who_used_less_goes_first_when_an_accelerator_comes_free(algorithm: str) -> None:
    """a's first job has used 1000 s when it ends; of the two that wait, b's came later and is served first."""
    jobs = (("a", 0.0, 1000.0, 1), ("a", 1.0, 10.0, 1), ("b", 2.0, 10.0, 1))
    ends = played(SlurmFairShare(algorithm=algorithm), *jobs).finished  # type: ignore[arg-type]
    assert ends == {"a": 1000, "c": 1010, "b": 1020}


def test_age_lets_a_job_rise_above_a_better_share() -> None:
    """b waits since 1, so has risen by 999 / 1000 · 2 when c comes; its tenant's factor is less by at most 1."""
    jobs = (("a", 0.0, 1000.0, 1), ("a", 1.0, 10.0, 1), ("b", 999.0, 10.0, 1))
    policy = SlurmFairShare(age_weight=2.0, max_age_s=1000.0)
    assert played(policy, *jobs).finished == {"a": 1000, "b": 1010, "c": 1020}


def test_after_a_long_pause_usage_is_forgotten() -> None:
    """a used 1000 s ten hours ago, b 500 s just now: a comes first with a short memory, b with a long one."""
    past = (("a", 0.0, 1000.0, 1), ("b", 9.8 * HOUR, 500.0, 1))
    now = (("b", 9.85 * HOUR, 50.0, 1), ("a", 9.9 * HOUR, 50.0, 1))
    short, long = (played(SlurmFairShare(half_life_s=h), *past, *now).finished for h in (HOUR, np.inf))
    assert short["d"] < short["c"]
    assert long["c"] < long["d"]


@pytest.mark.parametrize("half_life_s", [7 * 24 * HOUR, np.inf])
def test_usage_older_than_a_week_counts_with_what_is_left_of_it(half_life_s: float) -> None:
    """a used 192 accelerator-hours until ten days ago, of which 71 are left after 10 / 7 half-lives; b 32 just now."""
    end = 18 * 24 * HOUR
    past = (("a", 0.0, 192 * HOUR, 1), ("b", end - 32 * HOUR, 32 * HOUR, 1))
    now = (("a", end - 20, 100.0, 1), ("b", end - 10, 100.0, 1))
    assert played(SlurmFairShare(half_life_s=half_life_s), *past, *now).finished["d"] == end + 100
    kueue = KueueFairShare(admission="usage", half_life_s=half_life_s)
    local = [(f"team/{tenant}", *job) for tenant, *job in (*past, *now)]
    assert played(kueue, *local).finished["d"] == end + 100


# ---- Kueue ---------------------------------------------------------------------------------------------------------

HALVES = {"a": Tenant(quota=4), "b": Tenant(quota=4)}


def cohort(used: list[tuple[int, int]], *, quota: list[float], weight: list[float]) -> BorrowingGroup:
    """Return queues whose jobs that run are (queue, accelerators), the last one last started; one type of 12."""
    queue, size = (np.array([one[i] for one in used]) for i in (0, 1))
    return BorrowingGroup(
        quota=np.array(quota),
        weight=np.array(weight),
        borrows=np.ones(len(quota), dtype=bool),
        declared=np.ones(len(quota), dtype=bool),
        used=np.bincount(queue, size * (np.arange(len(used)) < len(used) - 1), minlength=len(quota)).astype(float),
        free=np.array([12.0 - size[:-1].sum()]),
        queue=queue,
        size=size,
        on_type=np.array([0] * (len(used) - 1) + [-1]),
        lendable=12.0,
        newest=list(range(len(used) - 1))[::-1],
    )


def test_a_queue_s_share_is_what_it_borrows_by_weight() -> None:
    """a uses 8 of its 4 of 12, with weight 2: 4 / 12 / 2; b is within its quota."""
    group = cohort([(0, 8), (1, 2), (1, 1)], quota=[4, 8], weight=[2, 1])
    assert group.share(0) == pytest.approx(1 / 6)
    assert group.share(1) == 0
    assert group.share(1, 7) == pytest.approx(1 / 12)


def test_final_stops_the_newest_while_shares_do_not_cross_initial_one_job_more() -> None:
    """Quotas 2; a runs 2 + 4 + 4, b 2, all of 12. b's job of 4 would borrow 4; a borrows 8, and without 4 only 4.

    So under `final` the newer job of 4 stops. A job of 6 would make b borrow 6: that lets only the job of 2 stop, which
    is not enough. Where a has one job of 8, b's 6 is more than the 0 that a would borrow then, but less than its 8 now.
    """
    four = cohort([(0, 2), (0, 4), (0, 4), (1, 2), (1, 4)], quota=[2, 2], weight=[1, 1])
    assert four.victims(4, 0, final=True, initial=False) == [2]
    six = cohort([(0, 2), (0, 4), (0, 4), (1, 2), (1, 6)], quota=[2, 2], weight=[1, 1])
    assert six.victims(4, 0, final=True, initial=False) == []
    assert six.victims(4, 0, final=True, initial=True) == []
    wide = cohort([(0, 2), (0, 8), (1, 2), (1, 6)], quota=[2, 2], weight=[1, 1])
    assert wide.victims(3, 0, final=True, initial=False) == []
    assert wide.victims(3, 0, final=False, initial=True) == [1]
    assert wide.victims(3, 0, final=True, initial=True) == []  # the job of 2 stops first: then a borrows no more than b


def test_initial_as_the_only_rule_stops_as_many_jobs_of_a_queue_as_are_needed() -> None:
    """a owns all 4 and is idle, b owns nothing and runs four jobs of 1: a's job of 3 borrows nothing and starts."""
    jobs = (*(("b", 0.0, 100.0, 1),) * 4, ("a", 10.0, 20.0, 3))
    tenants = {"a": Tenant(quota=4), "b": Tenant(quota=0)}
    for rule in ("both", "final", "initial"):
        policy = KueueFairShare(preemption=rule)  # type: ignore[arg-type]
        assert played(policy, *jobs, accelerators=4, tenants=tenants).finished["e"] == 30
    assert played(KueueFairShare(preemption="never"), *jobs, accelerators=4, tenants=tenants).finished["e"] == 120


def test_as_a_second_rule_initial_stops_one_job_of_each_queue() -> None:
    """Quotas 1. a and b run 3 + 3 each, so borrow 5; c's job of 5 would borrow 4, more than the 2 that a stop leaves.

    `final` passes all over, and `initial` takes one of each. Of a's 4 + 4 + 4 `final` allows one stop for b's job of 7,
    which leaves 8, and `initial` a second one.
    """
    group = cohort([(0, 3), (0, 3), (1, 3), (1, 3), (2, 5)], quota=[1, 1, 1], weight=[1, 1, 1])
    assert group.victims(4, 0, final=True, initial=False) == []
    assert group.victims(4, 0, final=True, initial=True) == [3, 1]
    assert group.victims(4, 0, final=False, initial=True) == [3, 1]
    one = cohort([(0, 4), (0, 4), (0, 4), (1, 7)], quota=[0, 0], weight=[1, 1])
    assert one.victims(3, 0, final=True, initial=False) == []
    assert one.victims(3, 0, final=True, initial=True) == [2, 1]


def test_of_queues_that_borrow_equally_the_one_whose_next_candidate_started_last_gives_way() -> None:
    """a and b borrow 4 each of 12 over quotas of 2; the last started job is b's, or a's."""
    for last, first in ((1, 0), (0, 1)):
        group = cohort([(first, 6), (last, 6), (2, 2)], quota=[2, 2, 2], weight=[1, 1, 1])
        assert group.victims(2, 0, final=True, initial=True) == [1]
    thirds = cohort([(1, 9), (0, 3), (2, 1)], quota=[2, 6, 3], weight=[1, 3, 1])  # 1 / 12 and 3 / 12 / 3
    assert thirds.victims(2, 0, final=True, initial=True) == [1]


def test_a_job_that_need_not_stop_keeps_running() -> None:
    """b wants 4 of its quota of 6; a's newest of 1 stops first, then its 4: the 1 need not have."""
    group = cohort([(0, 6), (0, 4), (0, 1), (1, 1), (1, 4)], quota=[6, 6], weight=[1, 1])
    assert group.victims(4, 0, final=True, initial=True) == [1]
    assert group.used.tolist() == [11, 1]


def test_idle_quota_is_borrowed_and_taken_back() -> None:
    """a's three jobs of 2 use 6 of 8, 2 of them borrowed. At 50 b wants its 4: the job that a began last stops."""
    jobs = (("a", 0.0, 100.0, 2), ("a", 1.0, 100.0, 2), ("a", 2.0, 100.0, 2), ("b", 50.0, 20.0, 4))
    ends = played(KueueFairShare(), *jobs, accelerators=8, tenants=HALVES).finished
    assert ends == {"a": 100, "b": 101, "d": 70, "c": 122}
    kept = played(KueueFairShare(preemption="never"), *jobs, accelerators=8, tenants=HALVES).finished
    assert kept == {"a": 100, "b": 101, "c": 102, "d": 120}


def test_who_may_not_borrow_stays_within_its_quota_and_wider_jobs_are_refused() -> None:
    alone = {"a": Tenant(quota=4, borrows=False), "b": Tenant(quota=4)}
    jobs = (("a", 0.0, 100.0, 2),) * 3 + (("a", 0.0, 100.0, 5),)
    story = played(KueueFairShare(), *jobs, accelerators=8, tenants=alone)
    assert story.finished == {"a": 100, "b": 100, "c": 200}
    assert story.counts == {"finished": 3, "rejected": 1}


def test_what_is_idle_goes_to_who_would_borrow_least() -> None:
    """Quotas of 4 of 12, 4 more to borrow. a borrows 2 of them; the next 2 go to b, whose job came later."""
    jobs = (("a", 0.0, 100.0, 6), ("b", 0.0, 100.0, 4), ("c", 0.0, 10.0, 2), ("a", 1.0, 30.0, 2), ("b", 2.0, 30.0, 2))
    ends = played(KueueFairShare(), *jobs, accelerators=12, tenants={**HALVES, "c": Tenant(quota=2)}).finished
    assert (ends["e"], ends["d"]) == (40, 70)


def test_within_a_queue_its_tenant_with_less_usage_comes_first() -> None:
    """lab/x ran for 100; of the two that wait, the one of lab/y came later."""
    jobs = (("lab/x", 0.0, 100.0, 1), ("lab/x", 1.0, 10.0, 1), ("lab/y", 2.0, 10.0, 1))
    assert played(KueueFairShare(admission="usage"), *jobs).finished == {"a": 100, "c": 110, "b": 120}
    assert played(KueueFairShare(), *jobs).finished == {"a": 100, "b": 110, "c": 120}


# ---- static quotas around another policy ---------------------------------------------------------------------------


def test_an_owner_gets_its_quota_from_who_borrows() -> None:
    """Of 4, a runs 2 of its own and d, borrowed. At 150 one is free and b wants its 2: d stops, for 50 seconds."""
    halves = {"a": Tenant(quota=2), "b": Tenant(quota=2)}
    jobs = (("a", 0.0, 300.0, 1), ("a", 0.0, 300.0, 1), ("b", 0.0, 100.0, 1), ("a", 1.0, 300.0, 1))
    ends = played(Quotas(), *jobs, ("b", 150.0, 50.0, 2), accelerators=4, tenants=halves).finished
    assert ends == {"a": 300, "b": 300, "c": 100, "d": 351, "e": 200}


def test_newest_and_youngest_differ_where_an_early_job_started_late() -> None:
    """c, 2 wide, is passed over until 100, while d, which came later, starts at 1: c is the newest, d the youngest."""
    third = {"a": Tenant(quota=1), "b": Tenant(quota=3)}
    jobs = (("a", 0.0, 500.0, 1), ("b", 0.0, 100.0, 2), ("a", 0.5, 300.0, 2), ("a", 1.0, 400.0, 1))
    owner = ("b", 150.0, 20.0, 1)
    ends = {
        reclaim: played(Quotas(reclaim=reclaim), *jobs, owner, accelerators=4, tenants=third).finished
        for reclaim in ("newest", "youngest")
    }
    assert ends["newest"]["d"] == 401
    assert ends["newest"]["c"] == 420
    assert ends["youngest"]["c"] == 400
    assert ends["youngest"]["d"] == 421
    assert {end["e"] for end in ends.values()} == {170}


def test_without_borrowing_idle_quota_stays_idle() -> None:
    halves = {"a": Tenant(quota=2), "b": Tenant(quota=2)}
    jobs = (("a", 0.0, 100.0, 2), ("a", 0.0, 100.0, 2), ("a", 0.0, 100.0, 3))
    story = played(Quotas(borrowing=False), *jobs, accelerators=4, tenants=halves)
    assert story.finished == {"a": 100, "b": 200}
    assert story.counts == {"finished": 2, "rejected": 1}


def test_inside_a_quota_the_inner_policy_decides() -> None:
    """One accelerator each; of a's two waiting jobs srtf takes the shorter, though it came later."""
    halves = {"a": Tenant(quota=1, borrows=False), "b": Tenant(quota=1, borrows=False)}
    jobs = (("a", 0.0, 100.0, 1), ("b", 0.0, 500.0, 1), ("a", 1.0, 90.0, 1), ("a", 2.0, 10.0, 1))
    ends = played(Quotas(inner="srtf"), *jobs, accelerators=2, tenants=halves).finished
    assert ends == {"d": 12, "c": 101, "a": 200, "b": 500}


def test_an_inner_policy_through_another_door_is_refused() -> None:
    with pytest.raises(ValueError, match="inner is 'makespan', which answers with shares; take one that answers order"):
        Quotas(inner="makespan")


def test_a_gang_wider_than_its_part_by_weight_runs_when_its_tenant_has_nothing_else() -> None:
    """Parts of 2 of 4; b's gang of 3 waits for b's own job, and for a's to leave enough."""
    jobs = (("a", 0.0, 100.0, 1), ("b", 0.0, 50.0, 1), ("b", 1.0, 100.0, 3))
    ends = played(Quotas(borrowing=False), *jobs, accelerators=4).finished
    assert ends == {"a": 100, "b": 50, "c": 150}
