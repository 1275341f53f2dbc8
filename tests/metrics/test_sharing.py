"""What tenants were owed and got, worked out by hand: two tenants, two accelerators, one each by weight."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from eunomia.core.entitlements import ActiveJobs, Entitlements
from eunomia.metrics import Figures, Metrics
from eunomia.metrics.entitlement import OwnedShares, deserved_service, weight_intervals
from eunomia.metrics.fairness import jain
from eunomia.metrics.sharing import hours_of, sharing_of
from eunomia.metrics.step_functions import Steps
from eunomia.model.decisions import Decision, Refuse, Start
from eunomia.model.events import Event, JobCancelled, JobFinished, JobSubmitted, JobUpdated, Moment, NodeLost
from eunomia.model.job import Job
from eunomia.model.speeds import Speeds
from eunomia.model.tenants import Tenant, Tenants
from eunomia.model.topology import Node, Topology
from eunomia.runs.compare import Case, cases, compare, prices_of_fairness, write_tenants
from eunomia.runs.simulation import Result
from eunomia.scenario import scenario_from_dict
from eunomia.testing.small_worlds import DrawnRates, one_type

TWO = (Node(type="gpu", accelerators=2),)
Story = tuple[float, Sequence[Event], Sequence[Decision]]


def job(name: str, tenant: str, steps: float, size: int = 1, **more: float) -> JobSubmitted:
    return JobSubmitted(Job(job_id=name, tenant=tenant, total_steps=steps, scale_factor=size, **more))


def sit(name: str, *seats: int) -> Start:
    return Start(name, 1, seats, math.inf)


def figures_of(
    *story: Story,
    nodes: tuple[Node, ...] = TWO,
    speeds: Speeds | None = None,
    tenants: Mapping[str, Tenant] | None = None,
) -> Figures:
    metrics = Metrics(Topology.of(nodes), speeds or one_type(), {}, tenants=tenants)
    for at, events, decisions in story:
        metrics.observe(Moment(at, tuple(events)), decisions)
    return metrics.figures()


# u asks for one accelerator and v for two; v has both 0–7200, then u has one 7200–10800.
V_FIRST: tuple[Story, ...] = (
    (0, [job("a", "u", 3600), job("b", "v", 7200, 2)], [sit("b", 0, 1)]),
    (7200, [JobFinished("b", 1)], [sit("a", 0)]),
    (10800, [JobFinished("a", 1)], []),
)


def table(figures: Figures) -> dict[str, list[float]]:
    return {name: column.tolist() for name, column in figures.tenants.items()}


def test_what_tenants_were_owed_and_got() -> None:
    """u was owed 1 for 10800 s and had 1 for 3600; v was owed 1 of the 2 it asked for in 7200 s, and had both."""
    figures = figures_of(*V_FIRST)
    found = table(figures)
    assert found["tenant"] == ["u", "v"]
    assert found["quota"] == [1, 1]
    assert found["deserved_gpu_s"] == [10800, 7200]
    assert found["received_gpu_s"] == [3600, 14400]
    assert found["ltgf"] == pytest.approx([1 / 3, 2])
    assert found["total_wait_mean_s"] == [7200, 0]
    assert found["jct_mean_s"] == [10800, 7200]
    assert found["sharing_loss_jobs"] == [1, 0]
    assert found["sharing_benefit_jobs"] == [0, 1]
    assert found["dominant_share"] == pytest.approx([3600 / 21600, 14400 / 21600])
    assert figures.summary["max_min_ratio"] == pytest.approx(6)
    assert figures.summary["sharing_loss_jobs"] == figures.summary["sharing_benefit_jobs"] == 1


def test_a_type_that_is_out_of_service_all_the_time_takes_no_part_in_the_dominant_share() -> None:
    """u has one of the two accelerators in service for 100 s; the only one of the other type is away from the start."""
    nodes = (*TWO, Node(type="late", accelerators=1))
    speeds = DrawnRates(types=("gpu", "late"), by_kind={"": (1.0, 1.0)})
    found = table(figures_of((0, [NodeLost(1), job("a", "u", 100)], [sit("a", 0)]), (100, [JobFinished("a", 1)], []),
                             nodes=nodes, speeds=speeds))  # fmt: skip
    assert found["dominant_share"] == [0.5]


def test_envy_is_what_a_tenant_would_gain_from_the_accelerators_of_the_other() -> None:
    """In the first two hours v held 2 and u, which asked for 1, nothing: with v's it had done 7200 s, and with its own
    3600, of 10800 that it asked for. v would not be u.
    """
    assert table(figures_of(*V_FIRST))["envy_max"] == pytest.approx([(7200 - 3600) / 10800, 0])


def test_envy_scales_what_a_heavier_tenant_holds_by_the_weights() -> None:
    """v weighs twice as much and holds two of three in the first hour, which is one for u, whose gang of two waits and
    then runs for 900 s: 3600 of the 9000 that it asked for, against the 1800 it had.
    """
    nodes, tenants = (Node(type="gpu", accelerators=3),), {"u": Tenant(1.0), "v": Tenant(2.0)}
    story = (
        (0, [job("a", "u", 900, 2), job("b", "v", 3600, 2)], [sit("b", 0, 1)]),
        (3600, [JobFinished("b", 1)], [sit("a", 0, 1)]),
        (4500, [JobFinished("a", 1)], []),
    )
    found = table(figures_of(*story, nodes=nodes, tenants=tenants))
    assert found["quota"] == [1, 2]
    assert found["envy_max"] == pytest.approx([(3600 - 1800) / 9000, 0])


def test_a_faster_type_is_envied_by_what_it_is_worth_to_ones_own_jobs() -> None:
    """Both hold one accelerator for an hour; for u's job v's fast one does as much as two of its own."""
    speeds = DrawnRates(types=("fast", "slow"), by_kind={"": (2.0, 1.0)})
    nodes = (Node(type="fast", accelerators=1), Node(type="slow", accelerators=1))
    story = (
        (0, [job("a", "u", 3600), job("b", "v", 7200)], [sit("b", 0), sit("a", 1)]),
        (3600, [JobFinished("a", 1), JobFinished("b", 1)], []),
    )
    assert table(figures_of(*story, nodes=nodes, speeds=speeds))["envy_max"] == pytest.approx([0.5, 0])


def test_payments_between_tenants() -> None:
    """v used one accelerator more than its own for two hours. u wanted it: u paid for v."""
    sharing = figures_of(*V_FIRST).sharing
    assert sharing.paid.tolist() == [[0, 7200], [0, 0]]
    assert sharing.lent.tolist() == [[0, 0], [0, 0]]


def test_accelerators_that_their_owner_did_not_ask_for_are_lent_without_payment() -> None:
    """u comes an hour after v has begun on both: its own one was lent in the first hour, and wanted in the second.

    Without quotas u owns nothing before it comes, and then pays all the same.
    """
    story = (
        (0, [job("b", "v", 7200, 2)], [sit("b", 0, 1)]),
        (3600, [job("a", "u", 3600, submitted=3600.0)], []),
        (7200, [JobFinished("b", 1)], [sit("a", 0)]),
        (10800, [JobFinished("a", 1)], []),
    )
    figures = figures_of(*story, tenants={"u": Tenant(quota=1), "v": Tenant(quota=1)})
    assert figures.sharing.names == ("u", "v")
    assert figures.sharing.lent.tolist() == [[0, 3600], [0, 0]]
    assert figures.sharing.paid.tolist() == [[0, 3600], [0, 0]]
    assert table(figures)["deserved_gpu_s"] == [3600 + 3600, 3600 + 3600]
    figures = figures_of(*story, tenants={"u": Tenant(), "v": Tenant()})
    assert figures.sharing.lent.tolist() == [[0, 0], [0, 0]]
    assert figures.sharing.paid.tolist() == [[0, 3600], [0, 0]]
    assert table(figures)["deserved_gpu_s"] == [3600 + 3600, 7200 + 3600]


def test_deserved_shares_are_fractions_of_an_accelerator_among_tenants_with_demand() -> None:
    """Nine equal tenants on eight accelerators deserve 8 / 9 each while all have a job, and a tenth none. After 900 s
    eight jobs end and the ninth starts: of the eight accelerators it deserves the one that it asks for.
    """
    names = [f"t{n}" for n in range(9)]
    figures = figures_of(
        (0, [job(name, name, 900) for name in names], [sit(name, n) for n, name in enumerate(names[:8])]),
        (900, [JobFinished(name, 1) for name in names[:8]], [sit("t8", 0)]),
        (1800, [JobFinished("t8", 1)], []),
        nodes=(Node(type="gpu", accelerators=8),),
        tenants={"idle": Tenant()},
    )
    found = dict(zip(table(figures)["tenant"], table(figures)["deserved_gpu_s"], strict=True))
    assert found == pytest.approx({**dict.fromkeys(names, 800), "t8": 800 + 900, "idle": 0})
    assert figures.jobs["ltgf"].tolist() == pytest.approx([9 / 8] * 8 + [900 / 1700])
    assert table(figures)["quota"] == pytest.approx([0.8] * 10)


def test_long_term_fairness_over_time_looks_back_a_day_and_has_gaps_where_nothing_was_asked_for() -> None:
    sharing = figures_of(*V_FIRST).sharing
    assert sharing.at_s.tolist() == [3600, 7200, 10800]
    assert sharing.ltgf.tolist() == [pytest.approx([0, 0, 1 / 3]), pytest.approx([2, 2, 2])]
    late = figures_of(
        (0, [job("a", "u", 3600)], [sit("a", 0)]),
        (3600, [JobFinished("a", 1)], []),
        (200_000, [job("b", "u", 100, submitted=200_000.0)], [sit("b", 0)]),
        (200_100, [JobFinished("b", 1)], []),
    ).sharing
    assert late.ltgf[0, 0] == pytest.approx(1)
    assert np.isnan(late.ltgf[0, 30])
    assert late.ltgf[0, -1] == pytest.approx(1)


@pytest.mark.parametrize("days", [1e6, 1e12, 1e24])
@pytest.mark.parametrize("tenants", [1, 30])
def test_of_very_long_runs_many_hours_are_taken_together_and_every_accelerator_second_is_counted(
    days: float, tenants: int
) -> None:
    end, names = days * 86_400.0, [f"u{n:02}" for n in range(tenants)]
    comes = [job(f"j{name}", name, end) for name in names]
    sits = [sit(f"j{name}", n) for n, name in enumerate(names)]
    ends = [JobFinished(f"j{name}", 1) for name in names]
    seats = (Node(type="gpu", accelerators=tenants),)
    collector = Metrics(Topology.of(seats), one_type(), {})
    for at, events, decisions in ((0.0, comes, sits), (end, ends, [])):
        collector.observe(Moment(at, tuple(events)), decisions)
    tree = Tenants.of(names, {})
    whole = (np.zeros(1), np.array([1.0 * tenants]))
    one = [(np.array([0.0, end]), np.array([1.0, 0.0]))] * tenants
    hours = hours_of(collector, tree, one, OwnedShares(tree, whole, one))
    bins = len(hours.edges) - 2  # the last may be shorter
    assert bins * tenants <= 2_000_000 and bins * tenants**2 <= 50_000_000
    assert bins >= min(days * 24, 50_000_000 / tenants**2, 2_000_000 / tenants) / 2
    assert (hours.edges[0], hours.edges[-1]) == (0.0, end) and (np.diff(hours.edges) > 0).all()
    for kept in (hours.asked, hours.deserved, hours.entitled, hours.held[:, :, 0]):
        assert kept.sum(axis=0) == pytest.approx(np.full(tenants, end))
    assert sharing_of(tree.names, hours, np.zeros(tenants, dtype=np.int64)).ltgf == pytest.approx(1.0)


def test_of_ordinary_runs_every_hour_stands_alone() -> None:
    """Three years of 40 tenants, and ten of 20: whole hours from the first submission, and the end."""
    for years, tenants in ((3, 40), (10, 20), (200, 1)):
        end = years * 8766 * 3600.0 + 1800.0
        collector = collected(Job(job_id="a", total_steps=1.0, submitted=5400.0), end, tenants)
        assert hours_of(*collector).edges.tolist() == [5400.0, *(3600.0 * n for n in range(2, years * 8766 + 1)), end]


def collected(one: Job, end: float, tenants: int) -> tuple[Metrics, Tenants, list[Steps], OwnedShares]:
    """Return what `hours_of` is given of a run with one job, in which no tenant asks for anything."""
    collector = Metrics(Topology.of(TWO), one_type(), {})
    collector.observe(Moment(one.submitted, (JobSubmitted(one),)), [sit(one.job_id, 0)])
    collector.observe(Moment(end, (JobFinished(one.job_id, 1),)), [])
    names = ["-", *(f"u{n}" for n in range(1, tenants))]
    tree, nothing = Tenants.of(names, {}), [(np.zeros(1), np.zeros(1))] * tenants
    return collector, tree, nothing, OwnedShares(tree, (np.zeros(1), np.ones(1)), nothing)


def test_the_definitions_of_finish_time_fairness_stand_side_by_side() -> None:
    """a waits two of its three hours while two jobs are there, then is alone. On an nth of two accelerators a has its
    one all the time, 3600 s in 10800: ρ = 3. b, a gang of two, has half of the time: 7200 · ½ of 7200: ρ = ½.
    ASTRAEA's: 10800 / (3600 · ⅓ + 7200) and 7200 / (7200 · 2).
    """
    jobs = figures_of(*V_FIRST).jobs
    assert jobs["rho_isolated"].tolist() == pytest.approx([3, 1 / 2])
    assert jobs["ltgf"].tolist() == pytest.approx([1 / 3, 2])
    assert jobs["rho_astraea"].tolist() == pytest.approx([10800 / 8400, 1 / 2])
    assert jobs["slowdown"].tolist() == pytest.approx([3, 1])
    assert jobs["wait_other_s"].tolist() == [7200, 0]
    assert np.isnan(jobs["wait_fair_share_s"]).all()


def test_jobs_of_a_tenant_deserve_by_their_weights_and_never_more_than_they_ask_for() -> None:
    """One tenant, two accelerators, weights 1 and 3: ½ and, of 1½, the 1 it asks for. From 50 on the first weighs 3."""
    figures = figures_of(
        (0, [job("a", "", 100), job("b", "", 100, weight=3.0)], [sit("a", 0), sit("b", 1)]),
        (50, [JobUpdated("a", weight=3.0)], []),
        (100, [JobFinished("a", 1), JobFinished("b", 1)], []),
    )
    assert figures.jobs["ltgf"].tolist() == pytest.approx([100 / (25 + 50), 1])
    assert table(figures)["tenant"] == ["-"]


def test_a_lost_machine_makes_everybody_deserve_less() -> None:
    nodes = (Node(type="gpu", accelerators=1),) * 2
    figures = figures_of(
        (0, [job("a", "u", 100), job("b", "u", 100)], [sit("a", 0)]),
        (50, [NodeLost(1)], []),
        (100, [JobFinished("a", 1)], [sit("b", 0)]),
        (200, [JobFinished("b", 1)], []),
        nodes=nodes,
    )
    assert table(figures)["deserved_gpu_s"] == [2 * 50 + 150]
    assert figures.jobs["ltgf"].tolist() == pytest.approx([100 / (50 + 25), 100 / (50 + 25 + 100)])


U_ABOVE_V: tuple[Story, ...] = (
    (0, [job("a", "u", 200, 4), job("b", "u/v", 100, 2)], [sit("b", 0, 1)]),
    (100, [JobFinished("b", 1)], [sit("a", 0, 1, 2, 3)]),
    (150, [JobFinished("a", 1)], []),
)


def test_a_tenants_own_jobs_are_owed_what_those_of_its_children_leave() -> None:
    """Of u's 4 its child v owns 3. v asks for 2 in 0–100; u's job asks for 4 and is owed 2, then 4 for 50 s. v did not
    ask for 1 · 100 + 3 · 50 of its own, and all of that was owed to u's job: v had nothing to lend.
    """
    tenants = {"u": Tenant(quota=4.0), "u/v": Tenant(quota=3.0)}
    figures = figures_of(*U_ABOVE_V, nodes=(Node(type="gpu", accelerators=4),), tenants=tenants)
    found = table(figures)
    assert found["tenant"] == ["u", "u/v"]
    assert found["quota"] == [4, 3]
    assert found["deserved_gpu_s"] == [2 * 100 + 4 * 50, 2 * 100]
    assert figures.jobs["ltgf"].tolist() == pytest.approx([200 / 400, 1])
    assert figures.sharing.entitled.tolist() == pytest.approx([400, 200])
    assert figures.sharing.lent.tolist() == [[0, 0], [0, 0]]


def test_a_parent_lends_what_belongs_to_no_child_and_no_job_asked_for() -> None:
    """Of u's 4 its child v owns 1, and w has no quota: in 100 s w uses all, 1 of v's and 3 of which u asked for one."""
    tenants = {"u": Tenant(quota=4.0), "u/v": Tenant(quota=1.0), "w": Tenant()}
    story = (
        (0, [job("a", "u", 100, 1), job("c", "w", 100, 4)], [sit("c", 0, 1, 2, 3)]),
        (100, [JobFinished("c", 1), JobCancelled("a")], []),
    )
    figures = figures_of(*story, nodes=(Node(type="gpu", accelerators=4),), tenants=tenants)
    assert figures.sharing.names == ("u", "u/v", "w")
    assert figures.sharing.lent[:, 2].tolist() == pytest.approx([200, 100, 0])
    assert figures.sharing.paid[:, 2].tolist() == pytest.approx([100, 0, 0])


def test_jobs_that_were_refused_waited_for_nothing_and_are_counted() -> None:
    """Of u's two jobs one waits 50 s and one is refused: u's jobs waited 50 s, and not 25."""
    figures = figures_of(
        (0, [job("a", "u", 50), job("x", "u", 50, 2), job("b", "v", 50)], [Refuse("x", "too wide"), sit("b", 0)]),
        (50, [JobFinished("b", 1)], [sit("a", 0)]),
        (100, [JobFinished("a", 1)], []),
    )
    assert table(figures)["total_wait_mean_s"] == [50, 0]
    assert table(figures)["sharing_loss_jobs"][0] == 1  # a's; nothing was owed to x in no time
    assert figures.sharing.refused.tolist() == [1, 0]


def test_where_all_jobs_of_a_tenant_were_refused_no_wait_is_known() -> None:
    figures = figures_of(
        (0, [job("x", "u", 50, 2), job("b", "v", 50)], [Refuse("x", "too wide"), sit("b", 0)]),
        (50, [JobFinished("b", 1)], []),
    )
    assert math.isnan(table(figures)["total_wait_mean_s"][0])
    assert figures.sharing.refused.tolist() == [1, 0]


@pytest.mark.parametrize(
    "said",
    [{"u": Tenant(2.0), "v": Tenant()}, {"u": Tenant(quota=6.0), "u/v": Tenant(quota=4.0)}],
    ids=["beside", "within"],
)
@pytest.mark.parametrize("seed", range(5))
def test_jobs_deserve_what_the_core_counts_as_it_goes(seed: int, said: dict[str, Tenant]) -> None:
    """The sums made afterwards are those that policies are shown."""
    rng = np.random.default_rng(seed)
    count, tree = 12, Tenants.of((), said)
    begin = np.sort(rng.integers(0, 50, count)).astype(float)
    end = begin + rng.integers(0, 50, count)
    size, owner = rng.integers(1, 5, count), rng.integers(0, 2, count)
    weight = rng.choice([0.3, 1.0, 2.5], count)
    jobs = [Job(job_id=str(m), total_steps=1, submitted=begin[m], weight=float(weight[m])) for m in range(count)]
    claims = Entitlements()
    for one in jobs:
        claims.submit(one)
    for since, at in zip(range(100), range(1, 101), strict=True):
        there = np.flatnonzero((begin <= since) & (end > since))
        present = ActiveJobs(there, owner[there], size[there], size[there], weight[there])
        claims.advance(float(at), present, tree, 7.0)
    present_at = (begin[:, None] <= np.arange(100)) & (end[:, None] > np.arange(100))
    asked = [(np.arange(100.0), (size[:, None] * present_at)[owner == u].sum(axis=0) * 1.0) for u in range(2)]
    owned = OwnedShares(tree, (np.zeros(1), np.array([7.0])), asked)
    found = deserved_service(weight_intervals(jobs, end, []), size.astype(float), owner, owned)
    assert found == pytest.approx(claims.deserved[:count])


REFUSING = """\
job_id,submitted_s,scale_factor,job_type,duration_s,tenant
r1,0,8,,3600,wide
r2,10,8,,3600,wide
r3,20,2,,3600,slim
r4,30,2,,3600,slim
"""


def test_a_run_that_refuses_jobs_is_the_best_of_none_and_has_no_price(tmp_path: Path) -> None:
    """astraea refuses the two gangs of 8 whose tenant owns 4: it is done sooner, and with a fifth of the work."""
    (tmp_path / "jobs.csv").write_text(REFUSING)
    scenario = scenario_from_dict(
        {
            "cluster": {"accelerators": {"gpu": 16}},
            "workload": {"trace": "jobs.csv"},
            "throughputs": {"source": "uniform"},
            "tenants": {"wide": {"quota": 4}, "slim": {"quota": 12}},
        },
        tmp_path,
    )
    runs = list(compare(cases(scenario, ["fifo", "astraea"], [], []), tmp_path))
    assert [result.summary["jobs_rejected"] for _, result in runs] == [0, 2]
    fifo, astraea = prices(runs)
    assert set(fifo.values()) == {1.0}
    assert set(astraea.values()) == {None}
    assert runs[1][1].figures.sharing.refused.tolist() == [2, 0]


def prices(runs: list[tuple[Case, Result]]) -> list[dict[str, float | None]]:
    """Return the prices of fairness of runs that differ in nothing but the policy."""
    results = [result for _, result in runs]
    service_s = [float(result.jobs["attained_service_s"].sum()) for result in results]
    return prices_of_fairness([0] * len(runs), [result.summary for result in results], service_s)


def test_jains_index() -> None:
    assert jain(np.array([2.0, 2.0])) == 1
    assert jain(np.array([1.0, 0.0, 0.0, 0.0])) == pytest.approx(1 / 4)
    assert math.isnan(jain(np.empty(0)))


def test_the_price_of_fairness_is_by_what_a_run_exceeds_the_best_of_its_load_and_seed(tmp_path: Path) -> None:
    """One accelerator, 10 s and then 1 s of work at once: fifo's mean is 10.5 s, that of srtf 6 s."""
    (tmp_path / "jobs.csv").write_text("job_id,submitted_s,scale_factor,job_type,total_steps\na,0,1,x,10\nb,0,1,x,1\n")
    scenario = scenario_from_dict(
        {
            "cluster": {"accelerators": {"gpu": 1}},
            "workload": {"trace": "jobs.csv"},
            "throughputs": {"source": "uniform"},
        },
        tmp_path,
    )
    runs = list(compare(cases(scenario, ["fifo", "srtf"], [], []), tmp_path))
    fifo, srtf = prices(runs)
    assert srtf["price_of_fairness"] == srtf["price_of_fairness_service"] == fifo["price_of_fairness_service"] == 1
    assert fifo["price_of_fairness"] == pytest.approx(10.5 / 6)
    write_tenants(tmp_path / "tenants.csv", runs)
    lines = (tmp_path / "tenants.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[:4] for line in lines[1:]] == [[name, "-", "1.0", "1.0"] for name in ("fifo", "srtf")]
