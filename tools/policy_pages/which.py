"""The part of the page "Which policy should I use?" that is measured: a row of numbers for each story."""

from __future__ import annotations

from collections.abc import Iterable

from policy_pages.workload import JOBS, PRICES, RATES, WORLD, Story

BEGIN, END = "<!-- made by make docs: do not edit from here -->", "<!-- to here -->"


def with_numbers(page: str, stories: Iterable[Story]) -> str:
    """Return the page with the measured part made anew. Raises ValueError where its marks are missing."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"docs/which-policy.md lost the marks {BEGIN!r} and {END!r}; put them back")
    return f"{before}{BEGIN}\n\n{_workload()}\n\n{_table(stories)}\n\n{END}{after}"


def _workload() -> str:
    """Return the workload as a table."""
    rows = [
        "| job | tenant | trains | accelerators | submitted | hours on v100s | hours on k80s | deadline |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for job in JOBS:
        v100, k80 = (job.total_steps / speed / 3600 for speed in RATES.solo_throughput(job.job_type, job.scale_factor))
        due = f"{job.deadline / 3600:g} h" if job.deadline < float("inf") else "–"
        rows.append(
            f"| {job.job_id} | {job.tenant} | {job.job_type} | {job.scale_factor} | {job.submitted / 3600:g} h "
            f"| {v100:.3g} | {k80:.3g} | {due} |"
        )
    there = " and ".join(f"{node.accelerators} {node.type}s on one machine" for node in WORLD.nodes)
    prices = ", ".join(f"US$ {price} for a {name}" for name, price in PRICES.items())
    return f"There are {there}; an hour costs {prices}.\n\n" + "\n".join(rows)


def _table(stories: Iterable[Story]) -> str:
    rows = [
        "| policy | mean JCT, h | makespan, h | worst slowdown | US$ | deadlines missed | stops |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in stories:
        name, _, parameters = one.spelling.partition("?")
        said = f" `{parameters}`" if parameters else ""
        rows.append(
            f"| [{name}](policies/{name}.md){said} | {one.jct:.2f} | {one.makespan:.2f} | {one.slowdown:.2f} "
            f"| {one.cost:.1f} | {one.late} | {one.preemptions} |"
        )
    return "\n".join(rows)
