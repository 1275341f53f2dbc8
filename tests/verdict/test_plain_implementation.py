"""Every figure and every sentence of a verdict is what a second, plain implementation derives from what was written.

`pytest -m nightly tests/verdict` plays 500 random worlds under every policy.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.verdict.plain_figures import PlainFigures
from tests.verdict.plain_settings import Contradicted, Setting
from tests.verdict.plain_timelines import read_history, read_rows, value
from tests.verdict.plain_verdict import Verdict
from tests.verdict.worlds import World, random_world

import eunomia
from eunomia.model.tolerance import RELATIVE
from eunomia.policies import POLICIES
from eunomia.policies import load as load_policy
from eunomia.runs.compare import prices_of_fairness
from eunomia.runs.report_input import content_of
from eunomia.runs.simulation import Result
from eunomia.verdict.findings import Findings, findings

Row = Mapping[str, float | str]
SUBSETS = 12  # verdicts on some of the policies of one world
COUNTED = "accelerator_s"  # losses: what only the backend knows is checked by their sum


def knows_durations(name: str) -> bool:
    """Whether a policy goes by durations: as its card says, or as it reserves by them (EASY backfilling)."""
    policy = load_policy(name)()
    return policy.info.oracle or getattr(policy, "backfill", "") == "easy"


def play(
    world: World, policy: str, seed: int | None, folder: Path
) -> tuple[Result, dict[str, Any], list[dict[str, str]]]:
    """Play one run and check its figures; return it with its summary and the rows of its tenants."""
    scenario = {**world.scenario, "policy": {"name": policy}, **({} if seed is None else {"seed": seed})}
    result = eunomia.simulate(scenario, record_to=folder / "record.jsonl.gz")
    result.write(folder)
    type_of = [name for name, size in world.nodes for _ in range(size)]
    run = PlainFigures(world, read_history(folder / "record.jsonl.gz", type_of))
    jobs = run.job_rows()
    tenants = run.tenant_rows(jobs)
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    written, rows = read_rows(folder / "jobs.csv"), read_rows(folder / "tenants.csv")
    where = f"{world.scenario['workload']['trace']} under {policy}, seed {seed}"
    same(f"{where}: jobs.csv", jobs, written)
    same(f"{where}: tenants.csv", tenants, rows)
    same(f"{where}: summary.json", [run.summary(jobs, tenants)], [summary])
    waits = [sum(value(row[f"wait_{cause}_s"]) for cause in causes(row)) for row in written]
    same(f"{where}: waits by cause", [{"total_wait_s": wait} for wait in waits], written)
    lost = [number for name, number in summary.items() if name.endswith(COUNTED)]
    whole = sum(run.capacity.values()) * (run.end - run.begin)
    assert math.isclose(math.fsum(lost), whole, rel_tol=1e-6, abs_tol=1e-3), f"{where}: losses"
    return result, summary, rows


def causes(row: Mapping[str, str]) -> list[str]:
    """Return the causes of waits that are known."""
    return [cause for cause in ("fair_share", "fragmentation", "other") if row[f"wait_{cause}_s"]]


def same(where: str, mine: Sequence[Row], theirs: Sequence[Mapping[str, Any]]) -> None:
    """Assert that rows are equal but for rounding."""
    for one, two in zip(mine, theirs, strict=True):
        for name, found in one.items():
            other = two[name]
            if isinstance(found, str):
                assert found == other, f"{where}: {name} is {other}, derived {found}"
                continue
            number = math.nan if other is None else value(other) if isinstance(other, str) else float(other)
            alike = math.isclose(found, number, rel_tol=1e3 * RELATIVE, abs_tol=1e3 * RELATIVE)
            assert alike or (math.isnan(found) and math.isnan(number)), f"{where}: {name} is {number}, derived {found}"


def setting_of(policy: str, runs: Mapping[int, tuple[Result, dict[str, Any], list[dict[str, str]]]]) -> Setting:
    """Return the runs of one policy for the plain verdict."""
    first = next(iter(runs.values()))[0]
    return Setting(
        label=policy, knows=knows_durations(policy), offered=first.offered_load or 0.0,
        summaries={seed: summary for seed, (_, summary, _) in runs.items()},
        tenants={seed: rows for seed, (_, _, rows) in runs.items()},
    )  # fmt: skip


def judged(results: Iterable[tuple[str, Result]], settings: Sequence[Setting]) -> Findings:
    """Return the verdict on runs, and check it."""
    found = findings(content_of(list(results), "some"))
    try:
        Verdict(settings).check(found.warnings, found.answer, found.certainty, found.more)
    except Contradicted as error:
        error.add_note(f"the verdict on {[one.label for one in settings]}: {found.sentences}")
        raise
    return found


def check_world(seed: int, policies: Sequence[str], folder: Path, seeds: Sequence[int] = ()) -> None:
    """Play a world under policies, and check all figures and the verdicts on many of their subsets."""
    world, rng = random_world(seed, folder), np.random.default_rng(seed)
    runs = {}
    for policy in policies:
        (folder / policy).mkdir()
        runs[policy] = play(world, policy, None, folder / policy)
    summaries = [summary for _, summary, _ in runs.values()]
    for price in prices_of_fairness([0] * len(runs), summaries, [1.0] * len(runs)):
        known = [one["jct_mean_s"] for one in summaries if one["jct_mean_s"] is not None]
        assert price["price_of_fairness"] is None or price["price_of_fairness"] >= 1 or len(known) < 2
    for _ in range(SUBSETS):
        some = rng.permutation(list(policies))[: rng.integers(2, 6)].tolist()
        judged([(name, runs[name][0]) for name in some], [setting_of(name, {0: runs[name]}) for name in some])
    if seeds:
        some = rng.permutation(list(policies))[:3].tolist()
        by_policy: dict[str, dict[int, Any]] = {name: {} for name in some}
        for name in some:
            for number in seeds:
                place = folder / f"{name}-{number}"
                place.mkdir()
                by_policy[name][number] = play(world, name, number, place)
        every = [(name, run[0]) for name in some for run in by_policy[name].values()]
        judged(every, [setting_of(name, by_policy[name]) for name in some])


@pytest.mark.parametrize("seed", range(8))
def test_no_figure_and_no_sentence_of_a_verdict_differs_from_a_plain_derivation(seed: int, tmp_path: Path) -> None:
    names = list(POLICIES)
    some = [names[(3 * seed + k * 7) % len(names)] for k in range(3)]
    check_world(seed, list(dict.fromkeys(["fifo", *some])), tmp_path, seeds=(0, 1, 2) if seed % 4 == 1 else ())


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1500))
def test_no_figure_and_no_sentence_differs_under_any_policy(seed: int, tmp_path: Path) -> None:
    check_world(seed, list(POLICIES), tmp_path, seeds=(0, 1, 2) if seed % 3 == 0 else ())
