"""Dominant resource fairness carried out exactly, from a trace that tells CPUs and memory to the ends of its jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from eunomia.scenario import load_scenario
from eunomia.setup.run_config import set_up

if TYPE_CHECKING:
    from conftest import Desk

SCENARIO = """
[cluster]
nodes = [{ type = "gpu", count = 1, accelerators = 80, cpus = 9, memory_gib = 18 }]
[workload]
trace = "jobs.csv"
[throughputs]
source = "speeds.csv"
reference_type = "gpu"
[policy]
name = "drf_divisible"
[mechanism]
name = "ideal"
"""


def test_the_example_of_the_paper_in_turns(desk: Desk) -> None:
    """A's four jobs have 3/4 of their time each, B's four 1/2, as in section 4.1 of the paper. A's are done with their
    100 s after 400/3 s. B's have done 200/3 s each by then; 9 CPUs are enough for three of the four, so that the rest
    takes 100/3 · 4/3 = 400/9 s."""
    rows = [f"a{i},0,1,LM,100,A,1,4" for i in range(4)] + [f"b{i},0,1,LM,100,B,3,1" for i in range(4)]
    head = "job_id,submitted_s,scale_factor,job_type,total_steps,tenant,cpus,memory_gib"
    desk.write("jobs.csv", "\n".join([head, *rows]) + "\n")
    desk.write("speeds.csv", "type,job_type,scale_factor,steps_per_s\ngpu,LM,1,1\n")
    desk.write("drf.toml", SCENARIO)
    assert desk.type("simulate", "drf.toml", "--check", "--out", "out") == 0, desk.stderr
    names, *lines = (line.split(",") for line in (desk.folder / "out" / "jobs.csv").read_text().splitlines())
    ends = [float(line[names.index("finished_s")]) for line in lines]
    assert ends == pytest.approx([400 / 3] * 4 + [400 / 3 + 400 / 9] * 4)


@pytest.mark.parametrize(
    ("policy", "mechanism", "cpus", "noted"),
    [
        ("drf_divisible", "leases", 3, True),
        ("hierarchical?inner=drf_divisible", "leases", 3, True),
        ("drf_divisible", "leases", 2, False),  # all of them together have room
        ("drf_divisible", "ideal", 3, False),
        ("drf", "leases", 3, False),
    ],
)
def test_a_run_that_may_exceed_cpus_has_a_note(desk: Desk, policy: str, mechanism: str, cpus: int, noted: bool) -> None:
    """Four jobs on a machine of 9 CPUs: 3 each are too many at once, 2 each are not."""
    rows = [f"a{i},0,1,LM,100,A,{cpus},1" for i in range(4)]
    head = "job_id,submitted_s,scale_factor,job_type,total_steps,tenant,cpus,memory_gib"
    desk.write("jobs.csv", "\n".join([head, *rows]) + "\n")
    desk.write("speeds.csv", "type,job_type,scale_factor,steps_per_s\ngpu,LM,1,1\n")
    said = SCENARIO.replace('"drf_divisible"', f'"{policy.partition("?")[0]}"').replace('"ideal"', f'"{mechanism}"')
    if "?" in policy:
        said = said.replace('"hierarchical"', '"hierarchical"\ninner = "drf_divisible"')
    desk.write("drf.toml", said)
    notes = set_up(load_scenario(desk.folder / "drf.toml")).notes
    assert any("keeps shares of time within the CPUs and memory" in note for note in notes) == noted
