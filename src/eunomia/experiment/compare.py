"""The same jobs on the same cluster under several policies, loads and seeds."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eunomia.experiment.policy import find_policy
from eunomia.experiment.simulation import Progress, Result, simulate
from eunomia.experiment.variation import spelling, varied
from eunomia.model.problems import InvalidInput, Problem
from eunomia.scenario import Scenario


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
            rule, mend = f"{times} policies would share the folder {folder}", "give the same policy once"
            problems.append(Problem(file="command line", column="--policy", rule=rule, mend=mend))
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


def write_table(path: Path, results: Sequence[tuple[Case, Result]]) -> None:
    """Write compare.csv: policy, load, seed, then the names of summary.json."""
    names = list(dict.fromkeys(name for _, result in results for name in result.summary))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["policy", "load", "seed", *names])
        for case, result in results:
            values = [result.summary.get(name) for name in names]
            writer.writerow([case.policy, case.load, case.seed, *("" if value is None else value for value in values)])
