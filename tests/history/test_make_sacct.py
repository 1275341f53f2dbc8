"""A generated accounting is read as the schedule from which it was written."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import numpy as np

from eunomia.history.cluster_guess import guess_nodes
from eunomia.traces import slurm

TOOL = Path(__file__).parents[2] / "tools" / "make_sacct.py"


def generated(trace: Path, lines: int) -> list[str]:
    spec = importlib.util.spec_from_file_location("make_sacct", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return [tool.HEADER, *itertools.islice(tool.lines_of(trace, 4, 1000), lines)]


def test_a_generated_accounting_is_read_as_it_was_scheduled(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{m},{600 * m},{2 ** (m % 5)},LM,{rng.integers(1000, 9000)},t{m % 3}" for m in range(200)]
    trace = tmp_path / "jobs.csv"
    trace.write_text("\n".join(["job_id,submitted_s,scale_factor,job_type,duration_s,tenant", *rows, ""]))
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join([*generated(trace, 5000), ""]))
    found = slurm.read_history([path])
    jobs = found.trace
    waited = found.started_s - jobs.submitted_s
    assert len(jobs) > 1000
    assert (waited >= -1).all()
    assert waited.max() > 0
    whole = jobs.retries == 0
    assert np.allclose((found.ended_s - found.started_s)[whole], jobs.duration_s[whole], atol=1.5)
    assert set(jobs.tenant) == {"t0", "t1", "t2"}
    assert jobs.retries.sum() == next(one.count for one in found.findings if "requeued" in one.what)
    nodes, _ = guess_nodes(found, found.ran_on)
    assert sum(node.accelerators for node in nodes) == 4 * 8
