"""Runs the same jobs on the same cluster under several policies, loads and seeds."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from eunomia.inputs.atomic_write import replacing_folder
from eunomia.inputs.problems import InvalidInput, Problem, Together
from eunomia.records.record import Record
from eunomia.runs.as_it_was import AS_IT_WAS
from eunomia.runs.result_files import write_columns
from eunomia.runs.scenario_variants import goes_by, measured_alike, spelling, varied
from eunomia.runs.simulation import Progress, Result, simulate, tenants_table
from eunomia.scenario import Scenario, load_scenario, scenario_from_dict
from eunomia.verdict.seed_groups import finished_enough, part_done

RECORD = "record.jsonl.gz"
PRICES = ("price_of_fairness", "price_of_fairness_service")
KNOWS_DURATIONS = "knows_durations"

Numbers = Mapping[str, float | int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run of a comparison."""

    policy: str  # as the user wrote it: "fifo?backfill=skip"
    load: float
    seed: int
    scenario: Scenario

    @property
    def folder(self) -> str:
        """A folder name that is unique to this case."""
        plain = re.sub(r"[^A-Za-z0-9_.=-]+", "_", self.policy).strip("._")
        short = f"{self.load:g}"
        return f"{plain}__load={short if float(short) == self.load else self.load}__seed={self.seed}"


def as_scenario(scenario: Scenario | Path | str | Mapping[str, Any]) -> Scenario:
    """Return the scenario of a path or of a mapping with the content of one."""
    if isinstance(scenario, Mapping):
        return scenario_from_dict(scenario, Path.cwd())
    return scenario if isinstance(scenario, Scenario) else load_scenario(Path(scenario))


def cases(scenario: Scenario, policies: Sequence[str], loads: Sequence[float], seeds: Sequence[int]) -> list[Case]:
    """Return every combination; policies, loads and seeds default to the scenario's own.

    All are measured by one reading of T_id: that of the scenario, else that of the policies that go by one, `share`
    where these differ.

    Raises InvalidInput with every load and seed out of range, every unknown policy, and two policies of one folder.
    """
    loads, seeds = list(dict.fromkeys(loads or [scenario.workload.load])), list(dict.fromkeys(seeds or [scenario.seed]))
    policies = list(dict.fromkeys(policies or [spelling(scenario)]))
    given = Together()
    for load in loads:
        with given.check():
            varied(scenario, load=load)
    for seed in seeds:
        with given.check():
            varied(scenario, seed=seed)
    for policy in policies:
        with given.check():
            goes_by(varied(scenario, policy=policy))
    given.raise_if_any()
    alike = measured_alike([varied(scenario, policy=policy) for policy in policies])
    combinations = [
        Case(policy=policy, load=load, seed=seed, scenario=varied(mine, load=load, seed=seed))
        for load in loads
        for seed in seeds
        for policy, mine in zip(policies, alike, strict=True)
    ]
    for folder, times in Counter(case.folder for case in combinations).items():
        with given.check():
            if times > 1:
                rule, fix = f"{times} policies would share the folder {folder}", "give the same policy once"
                raise InvalidInput([Problem(file="command line", column="--policy", rule=rule, fix=fix)])
    given.raise_if_any()
    return combinations


def compare(
    combinations: Sequence[Case],
    folder: Path,
    *,
    record: bool = False,
    progress: Callable[[Case], Progress | None] | None = None,
    done: Mapping[str, Result] = MappingProxyType({}),
) -> Iterator[tuple[Case, Result]]:
    """Run the cases one by one; write each to its own folder, then yield it. Those in `done`, by folder, are there."""
    for case in combinations:
        if case.folder in done:
            yield case, done[case.folder]
            continue
        is_decided = case.scenario.policy.name != AS_IT_WAS
        with replacing_folder(folder / case.folder) as place:
            record_to = place / RECORD if record and is_decided else None
            result = simulate(case.scenario, record_to=record_to, progress=progress(case) if progress else None)
            result.write(place)
        if result.record is not None:
            result = replace(result, record=Record(folder / case.folder / RECORD))
        yield case, result


def as_rows(results: Sequence[tuple[Case, Result]]) -> list[dict[str, Any]]:
    """Return the JSON form: a dictionary for each run."""
    return [
        {"policy": case.policy, "load": case.load, "seed": case.seed, **result.as_dict(),
         KNOWS_DURATIONS: result.knows_durations}
        for case, result in results
    ]  # fmt: skip


def write_table(path: Path, results: Sequence[tuple[Case, Result]]) -> None:
    """Write compare.csv: policy, load, seed, the names of summary.json, `PRICES`, then whether it knows durations."""
    names = list(dict.fromkeys(name for _, result in results for name in result.summary))
    prices = prices_of_fairness(
        [(case.load, case.seed) for case, _ in results],
        [result.summary for _, result in results],
        [float(result.jobs["attained_service_s"].sum()) for _, result in results],
    )
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["policy", "load", "seed", *names, *PRICES, KNOWS_DURATIONS])
        for (case, result), price in zip(results, prices, strict=True):
            values = [*(result.summary.get(name) for name in names), *(price[name] for name in PRICES)]
            values.append(int(result.knows_durations))
            writer.writerow([case.policy, case.load, case.seed, *("" if value is None else value for value in values)])


def prices_of_fairness(
    groups: Sequence[Hashable], summaries: Sequence[Numbers], service_s: Sequence[float]
) -> list[dict[str, float | None]]:
    """Return `PRICES` of each run: its cost relative to the cheapest run of the same group; None where unknown.

    `price_of_fairness` compares mean completion times, `price_of_fairness_service` the accelerator-seconds held,
    `service_s`. A run that finished fewer jobs than others of its group is not compared, as it did less work.
    """
    prices: list[dict[str, float | None]] = [dict.fromkeys(PRICES) for _ in summaries]
    rows_by_group: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        rows_by_group.setdefault(group, []).append(row)
    for rows in rows_by_group.values():
        complete = finished_enough([part_done(summaries[row].get) for row in rows])
        compared = [row for row, is_whole in zip(rows, complete, strict=True) if is_whole]
        costs = [[summaries[row]["jct_mean_s"] for row in compared], [service_s[row] or None for row in compared]]
        for name, cost in zip(PRICES, costs, strict=True):
            least = min((each for each in cost if each is not None), default=None)
            for row, each in zip(compared, cost, strict=True):
                prices[row][name] = None if each is None or least is None else each / least
    return prices


def write_tenants(path: Path, results: Sequence[tuple[Case, Result]]) -> None:
    """Write tenants.csv: the tenants under each policy, then the load and the seed of the run."""
    rows = [len(result.figures.tenants["tenant"]) for _, result in results]
    table = tenants_table([(case.policy, result) for case, result in results])
    load = np.repeat([case.load for case, _ in results], rows)
    seed = np.repeat([case.seed for case, _ in results], rows)
    write_columns(path, {**table, "load": load, "seed": seed})
