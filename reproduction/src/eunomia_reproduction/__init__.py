"""Published results measured again: each name is an experiment that writes its numbers beside the published ones.

This registry holds names; an experiment is loaded when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

from eunomia.model.registry import load_place

if TYPE_CHECKING:
    from eunomia_reproduction.table import FigureTable, Request


class Entry(NamedTuple):
    """One experiment: where its function is, one line that says what it measures, and what it takes."""

    place: str  # module:function
    about: str
    minutes: float  # of CPU time, about, with the seeds of docs/reproduce.md
    reference: str = ""  # what the folder given as --reference looks like; empty = none is needed
    least_seeds: int = 1  # for --check: with fewer the rows are chance
    any_reference: bool = False  # the folder may hold other cases: kept rows are for the claims, --check ignores them


EXPERIMENTS: dict[str, Entry] = {
    "peers": Entry(
        "eunomia_reproduction.peers:reproduce",
        "job by job beside the simulators of Tiresias, Blox, Helios, Pollux, Shockwave and ASTRAEA",
        2,
        "data/peers",
        any_reference=True,
    ),
    "astraea": Entry(
        "eunomia_reproduction.astraea:reproduce",
        "ASTRAEA against FIFO, static quotas, Tiresias and Themis on how fairly Philly's tenants are served",
        30,
        "data/traces/philly",
        least_seeds=10,
    ),
    "astraea-parity": Entry(
        "eunomia_reproduction.peers.astraea.comparison:parity",
        "run by run and job by job beside ASTRAEA's artifact",
        1,
        "data/peers/astraea",
    ),
    "estimator": Entry(
        "eunomia_reproduction.estimator:reproduce",
        "LAS with space sharing on true and on estimated throughputs of pairs",
        10,
        "data/gavel",
    ),
    "learnt-speeds": Entry(
        "eunomia_reproduction.learnt_speeds:reproduce",
        "Throughputs learnt while jobs run: what wrong ones cost each policy, and what learning regains",
        minutes=8,
        least_seeds=3,
    ),
    "estimator-window": Entry(
        "eunomia_reproduction.estimator:window",
        "the same on the published jobs, with the published estimator, which profiles every job",
        4,
        "data/gavel",
    ),
    "ignorance": Entry(
        "eunomia_reproduction.ignorance:reproduce",
        "mean JCT under wrong throughputs and unknown run times, over that under true ones, by policy",
        13,
    ),
    "prediction": Entry(
        "eunomia_reproduction.prediction:reproduce",
        "errors and intervals of estimated throughputs and run times, beside baselines",
        1,
        "data",
    ),
    "tiresias": Entry(
        "eunomia_reproduction.tiresias:reproduce",
        "Tiresias against FIFO and SRTF on mean JCT",
        5,
        least_seeds=10,
    ),
    "harmony": Entry(
        "eunomia_reproduction.harmony:reproduce",
        "trained placement of parameter-server jobs against its baselines and the best of all placements",
        1,
    ),
    "harmony-ablations": Entry(
        "eunomia_reproduction.harmony_ablations:reproduce",
        "what each part of Harmony's training is worth: models trained without it (needs the extra learning)",
        25,
        least_seeds=3,
    ),
    "bo": Entry(
        "eunomia_reproduction.bayesian:reproduce",
        "configurations found by Bayesian optimisation, random and grid search in 12 measurements",
        8,
        least_seeds=50,
    ),
    "metis": Entry(
        "eunomia_reproduction.metis:reproduce",
        "Metis against equal shares, FIFO, SRTF, Optimus and SLAQ on unseen traces of elastic jobs",
        2,
    ),
    "metis-rewards": Entry(
        "eunomia_reproduction.metis_rewards:reproduce",
        "Metis trained by two rewards, and where curves have plateaus (needs the extra learning)",
        12,
        least_seeds=3,
    ),
    "symphony": Entry(
        "eunomia_reproduction.symphony.experiment:reproduce",
        "kernels placed by Symphony against Sparrow, Graphene, Paragon and an oracle on unseen workloads",
        1,
    ),
    "symphony-decisions": Entry(
        "eunomia_reproduction.symphony.decisions:reproduce",
        "Symphony beside Graphene when decisions take time, alone and in batches, and with late counters",
        4,
    ),
    "symphony-even": Entry(
        "eunomia_reproduction.symphony.even:reproduce",
        "what knowing loads is worth to a scheduler of kernels where processors are 2 to 8 times apart",
        1,
    ),
    "symphony-samples": Entry(
        "eunomia_reproduction.symphony.samples:reproduce",
        "iterations that Symphony and its black-box twin take to 30 % loss over an oracle",
        55,
    ),
    "pairs": Entry(
        "eunomia_reproduction.pairs:reproduce",
        "jobs that share an accelerator, matched by estimates and by learned_pairs with a fifth of the pairs profiled",
        4,
        "data/gavel",
    ),
    "learned-order": Entry(
        "eunomia_reproduction.learned_order:reproduce",
        "an order learnt without durations between FIFO and SRTF on Philly, Venus and ITP",
        10,
        "data/traces",
    ),
    "deadlines": Entry(
        "eunomia_reproduction.deadlines:reproduce",
        "deadlines missed by policies that go by them, at loads with room for all",
        2,
    ),
    "philly-tables": Entry(
        "eunomia_reproduction.philly:reproduce",
        "why Philly's jobs wait, how they end and why they fail, from a synthetic workload",
        16,
    ),
    "philly-pool": Entry(
        "eunomia_reproduction.philly.pool:reproduce",
        "starts of whole gangs that a pool for first runs saves, for gangs and for every job",
        2,
    ),
    "themis-w1": Entry(
        "eunomia_reproduction.themis:w1",
        "Themis' worst ρ against its rivals' under the same leases, searches by HyperDrive",
        50,
        least_seeds=10,
    ),
    "themis-w2": Entry(
        "eunomia_reproduction.themis:w2",
        "the same with wide gangs and successive halving",
        20,
        least_seeds=10,
    ),
    "themis-sweep": Entry(
        "eunomia_reproduction.themis:sweep",
        "Themis' worst ρ by f and length of leases",
        60,
        least_seeds=10,
    ),
    "themis-more": Entry(
        "eunomia_reproduction.themis_more:more",
        "Themis with bid errors, a liar, network-bound apps and other loads, beside DRF, Quincy and Carbyne",
        15,
    ),
    "themis-simulator": Entry(
        "eunomia_reproduction.themis_simulator.experiment:reproduce",
        "Themis and its rivals in the world of the authors' simulator: the sweep of f, rivals, network, contention",
        7,
        least_seeds=10,
    ),
    "gavel-parity": Entry(
        "eunomia_reproduction.gavel.parity:reproduce",
        "run by run and round by round beside Gavel's own simulator",
        3,
        "data/gavel",
        any_reference=True,
    ),
    "gavel-fig8": Entry(
        "eunomia_reproduction.gavel.curves:fig8",
        "average JCT against load, one accelerator a job, LAS and its rivals",
        25,
        "data/gavel",
    ),
    "gavel-fig9": Entry(
        "eunomia_reproduction.gavel.curves:fig9",
        "the same with gangs",
        40,
        "data/gavel",
    ),
    "gavel-fig10": Entry(
        "eunomia_reproduction.gavel.curves:fig10",
        "the same under finish-time fairness, gangs and one accelerator a job",
        25,
        "data/gavel",
    ),
    "gavel-means": Entry(
        "eunomia_reproduction.gavel.seed_means:means",
        "figures 8 to 10 at their headline loads as the published means of three seeds, and what awareness gains",
        15,
        "data/gavel",
    ),
    "gavel-cdf": Entry(
        "eunomia_reproduction.gavel.curves:cdf",
        "the distribution of JCTs at 5.6 jobs per hour",
        1,
        "data/gavel",
    ),
    "gavel-ftf": Entry(
        "eunomia_reproduction.gavel.sharing:ftf",
        "mean JCT relative to an even split of the cluster",
        5,
        "data/gavel",
    ),
    "gavel-cost": Entry(
        "eunomia_reproduction.gavel.cost_figures:cost",
        "cost and late jobs, with and without deadlines",
        0.5,
        "data/gavel",
    ),
    "gavel-ideal": Entry(
        "eunomia_reproduction.gavel.ideal:ideal",
        "what rounds cost against shares as a fluid",
        4,
        "data/gavel",
    ),
    "gavel-hierarchy": Entry(
        "eunomia_reproduction.gavel.hierarchy:hierarchy",
        "levels of three groups of jobs over time, fair or FIFO inside, aware of types and blind to them",
        0.2,
        "data/gavel",
    ),
    "gavel-makespan": Entry(
        "eunomia_reproduction.gavel.batch:makespan",
        "makespan against the number of jobs",
        3,
        "data/gavel",
    ),
    "gavel-priorities": Entry(
        "eunomia_reproduction.gavel.batch:priorities",
        "average JCT against load of jobs of weights 5 and 1",
        20,
        "data/gavel",
    ),
}


def load(name: str) -> Callable[[Request], FigureTable]:
    """Return the function behind a name of `EXPERIMENTS`. Raises InvalidInput for another name."""
    if name not in EXPERIMENTS:
        from eunomia.inputs.problems import InvalidInput, Problem
        from eunomia.model.spelling_suggestions import nearest

        rule, fix = "there is no such experiment", nearest(name, EXPERIMENTS)
        raise InvalidInput([Problem(file="command line", column="NAME", value=name, rule=rule, fix=fix)])
    return cast("Callable[[Request], FigureTable]", load_place(EXPERIMENTS[name].place))
