"""Write docs/policies.md: one section for each policy, made from its docstrings and its card.

python tools/make_policies_page.py
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from eunomia.model.policy import LeaseTerms
from eunomia.policies import POLICIES, load

PAGE = Path(__file__).parent.parent / "docs" / "policies.md"
HEAD = """# Policies

Made from the docstrings by `python tools/make_policies_page.py`; `eunomia policies NAME` shows the same. A policy is
chosen by name, with its parameters: `fifo?backfill=skip` on the command line, keys of `[policy]` in a
[scenario](scenario.md). To write one, see the [tutorial](tutorial.md#write-a-policy).

A policy answers through one of three doors: *shares* of time that each job should get, an *order* of who is next, or
*grants* of seats. Symbols: job m, accelerator type j, throughput T, allocation X, scale factor z, weight w, capacity C.

"""


def time_is_cut(terms: LeaseTerms) -> str:
    """Say in words what mechanism a policy brings."""
    if math.isfinite(terms.length_s):
        return f"rounds of {terms.length_s:g} s" if terms.aligned else f"leases of {terms.length_s:g} s"
    return "endless leases that may be recalled at any moment" if terms.recall else "endless leases"


def parameters(policy: Any) -> str:
    """Name each parameter with what it may be and its default."""
    kinds = get_type_hints(policy)
    told = (f"`{one.name}`: {values(kinds[one.name])}; default `{one.default}`" for one in fields(policy))
    return "<br>".join(told) or "none"


def values(kind: Any) -> str:
    """Say what a parameter may be."""
    words = {bool: "`true` or `false`", int: "a whole number", float: "a number", str: "a text"}
    return ", ".join(f"`{word}`" for word in get_args(kind)) or words.get(kind, f"{kind}")


def section(name: str) -> Iterator[str]:
    """Yield the paragraphs about one policy."""
    policy: Any = load(name)
    info = policy.info
    yield f"## {name}"
    yield f"{inspect.getdoc(policy)}"
    twin = next(other for other in POLICIES if load(other).__module__ == policy.__module__)
    yield f"{inspect.getdoc(inspect.getmodule(policy))}" if twin == name else f"Formula and paper: [{twin}](#{twin})."
    yield "\n".join(
        [
            "| card | |",
            "| --- | --- |",
            f"| door | {info.door} |",
            f"| objective | {info.objective} |",
            f"| technique | {info.technique} |",
            f"| time is cut into | {time_is_cut(info.mechanism)}, unless the scenario says otherwise |",
            f"| parameters | {parameters(policy)} |",
            f"| reads | {', '.join(f'`{column}`' for column in sorted(info.needs))} |",
            f"| needs an oracle | {'yes: it must know how much work is left' if info.oracle else 'no'} |",
        ]
    )


def page() -> str:
    """Return the whole page."""
    return HEAD + "\n\n".join(part for name in POLICIES for part in section(name)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
