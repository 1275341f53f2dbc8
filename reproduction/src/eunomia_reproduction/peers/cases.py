"""A case of a peer: a folder with a trace, the size of a cluster, and results by policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from eunomia.inputs.problems import InvalidInput, Problem, Problems
from eunomia.model.job import InvalidJob, Job
from eunomia.model.topology import Node
from eunomia_reproduction.peers.peer_sheet import PeerSheet, read

MOST_MACHINES = 1_000_000


def cases(folder: Path) -> list[Path]:
    """Return the cases of a system: the folder itself if it has a trace, else its folders that have one."""
    if (folder / "trace.csv").is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob("*/trace.csv"))


def trace(case: Path, work: str) -> PeerSheet:
    """Return the trace of a case; the column `work` is what a job has to do, in seconds."""
    return read(case / "trace.csv", numbers=("num_gpu", "submit_time", work), texts=("job_id",))


def jobs(
    sheet: PeerSheet, nodes: Sequence[Node], work: Callable[[float], float], at: Callable[[float], float] = float
) -> list[Job]:
    """Return the jobs of a trace, with `work` and `at` done to what they have to do and to their submissions.

    Raises InvalidInput with every row that is no job, or one that no cluster of these nodes can run.
    """
    problems, found, most = Problems(str(sheet.path)), list[Job](), sum(node.accelerators for node in nodes)
    columns = zip(sheet.texts["job_id"], *sheet.numbers.values(), strict=True)
    for row, (name, size, submitted, seconds) in enumerate(columns):
        if not (size == int(size) and size <= most):
            rule = f"is a whole number of at most the {most} accelerators that there are"
            problems.add(rule, "fix the row, or the size of the cluster", row=row + 2, column="num_gpu", value=size)
            continue
        try:
            found.append(
                Job(
                    job_id=name,
                    sequence=row,
                    scale_factor=int(size),
                    submitted=at(submitted),
                    total_steps=work(seconds),
                )
            )
        except InvalidJob as error:
            problems.add(f"it is no job: {error}", "fix the row", row=row + 2)
    if len({job.job_id for job in found}) < len(found):
        problems.add("two rows have the same job_id", "give each job one row")
    problems.raise_if_any()
    return found


def submissions(sheet: PeerSheet) -> dict[str, float]:
    """Return when each job was submitted, in seconds."""
    return dict(zip(sheet.texts["job_id"], sheet.numbers["submit_time"], strict=True))


def machines(path: Path, columns: tuple[str, ...], accelerators: str) -> list[Node]:
    """Return the machines that each row of a table tells: their number is the product of `columns`.

    Raises InvalidInput for none of them, and for rows that tell different ones.
    """
    sheet = read(path, numbers=(*columns, accelerators))
    problems = Problems(str(path))
    for name, values in sheet.numbers.items():
        for row, value in enumerate(values, 2):
            if value != values[0]:
                rule, fix = f"row 2 says {values[0]:g}, and there is one cluster", "give each its own folder"
                problems.add(rule, fix, row=row, column=name, value=value)
    problems.raise_if_any()
    count, size = math.prod(sheet.numbers[name][0] for name in columns), sheet.numbers[accelerators][0]
    if not (1 <= count <= MOST_MACHINES and size >= 1):
        rule = f"it tells {count:g} machines of {size:g} accelerators"
        raise InvalidInput([Problem(file=str(path), row=2, rule=rule, fix="a cluster has at least one of each")])
    return [Node(type="gpu", accelerators=int(size))] * int(count)
