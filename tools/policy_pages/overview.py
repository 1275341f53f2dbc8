"""The page of all policies: one table of them, and one of the names that other systems give them."""

from __future__ import annotations

from typing import Any

from eunomia.model.taxonomy import AXES
from eunomia.policies import POLICIES, load
from eunomia.policies.presets import PRESETS
from policy_pages.page import needs_oracle, reported

HEAD = """# Policies

A policy is chosen by name, with its parameters: `fifo?backfill=skip` on the command line, keys of `[policy]` in a
[scenario](scenario.md). `eunomia policies` lists them, `eunomia policies NAME` tells of one,
[`eunomia solve`](solve.md) asks one about a problem. [Which one should I use?](which-policy.md) To write one, see the
[tutorial](tutorial.md#write-a-policy).

A policy answers with *shares* of time for each job, an *order* of jobs, or *grants* of seats. Symbols: job m,
accelerator type j, throughput T, allocation X, scale factor z, weight w, capacity C. An oracle knows how much work is
left in a job.

The pages are made from the docstrings by `make docs`."""

TAXONOMY_HEAD = """## Taxonomy

Where each policy stands, its parameters left alone, by the axes of W. Gao et al., "Deep Learning Workload Scheduling in
GPU Datacenters", arXiv 2205.11913, 2022. Rows A are objectives: A1a completion times, A1b utilisation, A1c cost, A2
fairness (of jobs, tenants or apps; instant or long-term), A3 deadlines, A4 accuracy of models. Rows B are what
is made use of: B1 types weighed against each other (*partial*: jobs go to their fastest type, but types are not
weighed), B2 accelerators shared by turns (*temporal*) or by two at once (*spatial*), B3 gangs of several sizes. AutoML:
it looks at learning curves, or at a search as a whole. Knowledge: what must be known of a job beforehand; a *profile*
is its speed on each type or in each size. `eunomia policies --where knowledge=none --where objective=jct` chooses by
these words."""

PRESETS_HEAD = """## Presets

Names under which users of other systems know our policies; `gavel:` are the names of Gavel's command line. Parameters
may be added: `gavel:fifo?backfill=skip`. Two of them stay different on purpose: those ending in `_SLOs` keep as many
deadlines as they can, where the artifact drops all that it cannot meet together, and `gavel:fifo` draws types without
the artifact's [oddities](gavel-mechanism.md#policies-there-and-here)."""


def overview() -> str:
    """Return the page."""
    return "\n\n".join([HEAD, _policies(), TAXONOMY_HEAD, _taxonomy(), PRESETS_HEAD, _presets()]) + "\n"


def _policies() -> str:
    rows = ["| policy | answers with | objective | oracle | use it when |", "| --- | --- | --- | --- | --- |"]
    for name in POLICIES:
        policy: Any = load(name)
        info, oracle = policy.info, "yes" if needs_oracle(policy) else "no"
        rows.append(
            f"| [{name}](policies/{name}.md) | {info.answer_type} | {info.objective} | {oracle} | {use(name)} |"
        )
    return "\n".join(rows)


def _taxonomy() -> str:
    axes = [axis for axis in AXES if axis != "objective"]  # it is in the row
    rows = [f"| policy | {' | '.join(axes)} |", "| --- " * (len(axes) + 1) + "|"]
    for name in POLICIES:
        policy: Any = load(name)
        said = policy.info.taxonomy.axes(policy().info.needs)
        reported = " | ".join(
            ", ".join(word for word in said[axis] if word not in ("none", "no")) or "–" for axis in axes
        )
        rows.append(f"| [{name}](policies/{name}.md) | {reported} |")
    return "\n".join(rows)


def use(name: str) -> str:
    """Return in one sentence when to use a policy."""
    words = " ".join(reported(name).use.split()).removeprefix("Use it when ")
    sentence, _, _ = words.partition(". ")
    return sentence.rstrip(".")


def _presets() -> str:
    rows = ["| preset | policy | parameters |", "| --- | --- | --- |"]
    for preset, (name, parameters) in PRESETS.items():
        said = ", ".join(f"`{key}={str(value).lower()}`" for key, value in parameters.items()) or "as they are"
        rows.append(f"| `{preset}` | [{name}](policies/{name}.md) | {said} |")
    return "\n".join(rows)
