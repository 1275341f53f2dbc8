"""The same jobs on the same cluster under several policies, loads and seeds."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.metrics.statistics import one_run
from eunomia.report.seed_groups import finished_enough, part_done
from eunomia.runs.result_files import write_columns
from eunomia.runs.scenario_variants import spelling, varied
from eunomia.runs.simulation import Progress, Result, simulate, tenants_table
from eunomia.scenario import Scenario
from eunomia.setup.policy_lookup import find_policy

PRICES = ("price_of_fairness", "price_of_fairness_service")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run of a comparison."""

    policy: str  # as the user wrote it: "fifo?backfill=skip"
    load: float
    seed: int
    scenario: Scenario

    @property
    def folder(self) -> str:
        """A folder name that tells this case from all others."""
        plain = re.sub(r"[^A-Za-z0-9_.=-]+", "_", self.policy).strip("._")
        short = f"{self.load:g}"
        return f"{plain}__load={short if float(short) == self.load else self.load}__seed={self.seed}"


def cases(scenario: Scenario, policies: Sequence[str], loads: Sequence[float], seeds: Sequence[int]) -> list[Case]:
    """Return every combination; policies, loads and seeds left out are the scenario's own. Checks each policy."""
    own = spelling(scenario)
    found = [
        Case(
            policy=policy,
            load=load,
            seed=seed,
            scenario=varied(scenario, policy=policy, load=load, seed=seed),
        )
        for load in dict.fromkeys(loads or [scenario.workload.load])
        for seed in dict.fromkeys(seeds or [scenario.seed])
        for policy in dict.fromkeys(policies or [own])
    ]
    _refuse_wrong(found)
    return found


def _refuse_wrong(found: Sequence[Case]) -> None:
    """Raise InvalidInput with every policy that is not known: it is told before the first run, not after it."""
    problems: list[Problem] = []
    for case in {case.policy: case for case in found}.values():
        asked = case.scenario.policy
        try:
            find_policy(asked.name, asked.parameters, case.scenario.base, case.scenario.where)
        except InvalidInput as error:
            problems += error.problems
    for folder, times in Counter(case.folder for case in found).items():
        if times > 1:
            rule, fix = f"{times} policies would share the folder {folder}", "give the same policy once"
            problems.append(Problem(file="command line", column="--policy", rule=rule, fix=fix))
    if problems:
        raise InvalidInput(problems)


def compare(
    found: Sequence[Case],
    folder: Path,
    *,
    record: bool = False,
    progress: Callable[[Case], Progress | None] | None = None,
) -> Iterator[tuple[Case, Result]]:
    """Run the cases one by one; each writes a folder of its own and is yielded when it is done."""
    for case in found:
        place = folder / case.folder
        place.mkdir()
        record_to = place / "record.jsonl.gz" if record else None
        result = simulate(case.scenario, record_to=record_to, progress=progress(case) if progress else None)
        result.write(place)
        yield case, result


def drawless(results: Sequence[tuple[Case, Result]]) -> tuple[str, ...]:
    """Return a note where several seeds gave every policy and load the very same numbers: they are no replications."""
    found: dict[tuple[str, float], dict[str, dict[int, float]]] = {}
    for case, result in results:
        values = found.setdefault((case.policy, case.load), defaultdict(dict))
        for name, value in result.summary.items():
            values[name][case.seed] = math.nan if value is None else float(value)
    alike = all(one_run(_numbers(values)) for values in found.values())
    return ("the seeds draw nothing here: each policy's runs are one run, shown several times",) if alike else ()


def _numbers(values: Mapping[str, Mapping[int, float]]) -> dict[str, Mapping[int, float]]:
    """Return the quantities that some seed gave a number."""
    return {name: by_seed for name, by_seed in values.items() if not all(map(math.isnan, by_seed.values()))}


def write_table(path: Path, results: Sequence[tuple[Case, Result]]) -> None:
    """Write compare.csv: policy, load, seed, the names of summary.json, then what fairness costs."""
    names = list(dict.fromkeys(name for _, result in results for name in result.summary))
    prices = prices_of_fairness(results)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["policy", "load", "seed", *names, *PRICES])
        for (case, result), paid in zip(results, prices, strict=True):
            values = [*(result.summary.get(name) for name in names), *(paid[name] for name in PRICES)]
            writer.writerow([case.policy, case.load, case.seed, *("" if value is None else value for value in values)])


def prices_of_fairness(results: Sequence[tuple[Case, Result]]) -> list[dict[str, float | None]]:
    """Return for each run by what it exceeds the best one of the same load and seed; None where nothing is known.

    `price_of_fairness` compares mean completion times, `price_of_fairness_service` the accelerator-seconds spent. A run
    that finished fewer jobs than others spent less for it: it is the best of none, and its own price is not known.
    """
    prices: list[dict[str, float | None]] = [dict.fromkeys(PRICES) for _ in results]
    group_by_key: dict[tuple[float, int], list[int]] = {}
    for number, (case, _) in enumerate(results):
        group_by_key.setdefault((case.load, case.seed), []).append(number)
    for group in group_by_key.values():
        enough = finished_enough([part_done(results[number][1].summary.get) for number in group])
        able = [number for number, is_whole in zip(group, enough, strict=True) if is_whole]
        for name, spent in zip(PRICES, zip(*(_spent(results[number][1]) for number in able), strict=True), strict=True):
            least = min((each for each in spent if each is not None), default=None)
            for number, each in zip(able, spent, strict=True):
                prices[number][name] = None if each is None or least is None else each / least
    return prices


def _spent(result: Result) -> tuple[float | None, float | None]:
    """Return the mean completion time and the accelerator-seconds held; None = nothing finished, nothing was held."""
    return result.summary["jct_mean_s"], float(result.jobs["attained_service_s"].sum()) or None


def write_tenants(path: Path, results: Sequence[tuple[Case, Result]]) -> None:
    """Write tenants.csv: the tenants under each policy, then the load and the seed of the run."""
    rows = [len(result.figures.tenants["tenant"]) for _, result in results]
    table = tenants_table([(case.policy, result) for case, result in results])
    load = np.repeat([case.load for case, _ in results], rows)
    seed = np.repeat([case.seed for case, _ in results], rows)
    write_columns(path, {**table, "load": load, "seed": seed})
