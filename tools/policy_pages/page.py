"""The page of one policy, made from its docstrings, its card and its worked example."""

from __future__ import annotations

import inspect
import json
import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import combinations
from types import UnionType
from typing import Any, get_args, get_type_hints

from eunomia.model.policy import LeaseTerms
from eunomia.policies import load
from eunomia.policies.presets import PRESETS
from policy_pages.examples import Answered, Example, Fate, Part, example, number, percent

EXAMPLE = "Example (examples/two_jobs.json)."
PROBLEM = "[`examples/two_jobs.json`](../../examples/two_jobs.json)"


@dataclass(frozen=True, kw_only=True)
class Reported:
    """What the docstrings of a policy say, in paragraphs."""

    does: tuple[str, ...]  # what it does, with its parameters
    use: str  # when to use it
    worst: str  # what happens to the worst-off
    program: tuple[str, ...]
    example: str
    source: str


def reported(name: str) -> Reported:
    """Read the docstrings of a policy. Raises ValueError where one of them lacks a part."""
    policy: Any = load(name)
    about = _paragraphs(inspect.getdoc(policy))
    program = _paragraphs(inspect.getdoc(inspect.getmodule(policy)))
    marked = ("Use it when", "The worst-off", EXAMPLE, "Reference")
    return Reported(
        does=tuple(part for part in about if not part.startswith(marked)),
        use=_one(about, "Use it when", name),
        worst=_one(about, "The worst-off", name),
        program=tuple(part for part in program if not part.startswith(marked)),
        example=_one(program, EXAMPLE, name).removeprefix(EXAMPLE).strip(),
        source=_one(program, "Reference", name),
    )


def _paragraphs(doc: str | None) -> list[str]:
    return (doc or "").split("\n\n")


def _one(paragraphs: Sequence[str], start: str, name: str) -> str:
    found = [part for part in paragraphs if part.startswith(start)]
    if len(found) != 1:
        raise ValueError(f"{name}: {len(found)} paragraphs of its docstrings start with {start!r}; write one")
    return found[0]


def page(name: str, answers: Sequence[Answered]) -> str:
    """Return the page of a policy."""
    parts = reported(name)
    return "\n\n".join(
        [
            f"# {name}",
            *parts.does,
            parts.use,
            parts.worst,
            "## The program",
            *parts.program,
            "## Two jobs",
            *_example(name, parts.example, answers),
            "## The card",
            card(name),
            parts.source,
            "[All policies](../policies.md) · [Which one should I use?](../which-policy.md)\n",
        ]
    )


def _example(name: str, by_hand: str, answers: Sequence[Answered]) -> Iterator[str]:
    yield _wrapped(f"The problem is {PROBLEM}{_but(example(name))}: {answers[-1].posed}")
    yield f"![What {name} answers](../images/policies/{name}.svg)"
    yield _table(answers)
    if not example(name).changes:
        yield f"`eunomia solve --policy {name} --problem examples/two_jobs.json` prints the same."
    proofs = [f"`{answer.spelling}`: {answer.proof}." for answer in answers if answer.proof]
    if proofs:
        yield "<br>\n".join(proofs)
    yield _wrapped(f"**By hand.** {by_hand}")


def _wrapped(paragraph: str) -> str:
    return "\n".join(textwrap.wrap(" ".join(paragraph.split()), 120, break_long_words=False, break_on_hyphens=False))


def _but(asked: Example) -> str:
    """Say what is changed in the shared problem: in words, and as its fields."""
    return f", but {asked.changed} (`{json.dumps(asked.changes)[1:-1]}`)" if asked.changes else ""


def _table(answers: Sequence[Answered]) -> str:
    head = ["| answer | job | time | steps/s | of its fastest |", "| --- | --- | --- | --- | --- |"]
    rows = [
        f"| `{answer.spelling}` | {fate.job} | {_time(fate, answer.types)} | {number(fate.speed)} | {_relative(fate)} |"
        for answer in answers
        for fate in answer.fates
    ]
    return "\n".join([*head, *rows])


def _time(fate: Fate, types: Sequence[str]) -> str:
    return ", ".join(_part(part, types) for part in fate.parts) or "waits"


def _part(part: Part, types: Sequence[str]) -> str:
    beside = f" beside {part.beside}" if part.beside else ""
    return f"{percent(part.share)} {types[part.type]}{beside}"


def _relative(fate: Fate) -> str:
    return percent(fate.speed / fate.fastest) if fate.fastest > 0 else number(0.0)


def card(name: str) -> str:
    """Return the policy's card as a table."""
    policy: Any = load(name)
    info = policy.info
    also = ", ".join(f"`{preset}`" for preset, (meant, _) in PRESETS.items() if meant == name)
    rows = [
        ("answers with", info.answer_type),
        ("objective", info.objective),
        ("technique", info.technique),
        ("time is cut into", f"{time_is_cut(info.mechanism)}, unless the scenario says otherwise"),
        ("parameters", parameters(policy)),
        ("reads", "<br>".join(_reads(policy))),
        ("needs an oracle", "yes: it must know how much work is left" if needs_oracle(policy) else "no"),
        ("presets", f"{also}; [what they mean](../policies.md#presets)" if also else "none"),
    ]
    return "\n".join(["| card | |", "| --- | --- |", *(f"| {word} | {meaning} |" for word, meaning in rows)])


def needs_oracle(policy: Any) -> bool:
    """Say whether the policy, its parameters left alone, looks at how much work is left."""
    info = policy().info
    return info.oracle or "remaining" in info.needs


def _reads(policy: Any) -> Iterator[str]:
    """Name the columns that the policy reads, and what a parameter adds."""
    usual = policy().info.needs
    yield _columns(usual)
    kinds, alone = get_type_hints(policy), dict[tuple[str, Any], frozenset[str]]()
    for one in fields(policy):
        known = (True, False) if kinds[one.name] is bool else _choices(kinds[one.name])
        for value in known:
            spelling = f"`{one.name}={_shown(value)}`"
            try:
                more = policy(**{one.name: value}).info.needs - usual
            except ValueError as needs_another_parameter:
                yield f"{spelling}: {needs_another_parameter}"
                continue
            if more:
                alone[one.name, value] = more
                yield f"with {spelling} also {_columns(more)}"
    known_alone = usual.union(*alone.values())
    for both in combinations(alone, 2):
        with suppress(ValueError):  # some exclude each other
            if more := policy(**dict(both)).info.needs - known_alone:
                said = " and ".join(f"`{name}={_shown(value)}`" for name, value in both)
                yield f"with {said} also {_columns(more)}"


def _columns(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def time_is_cut(terms: LeaseTerms) -> str:
    """Say in words what mechanism a policy brings."""
    if math.isfinite(terms.length_s):
        return f"rounds of {terms.length_s:g} s" if terms.aligned else f"leases of {terms.length_s:g} s"
    return "endless leases that may be recalled at any moment" if terms.recall else "endless leases"


def parameters(policy: Any) -> str:
    """Name each parameter with what it may be and its default."""
    kinds = get_type_hints(policy)
    said = (f"`{one.name}`: {values(kinds[one.name])}; default `{_shown(one.default)}`" for one in fields(policy))
    return "<br>".join(said) or "none"


def values(kind: Any) -> str:
    """Say what a parameter may be."""
    words = {bool: "`true` or `false`", int: "a whole number", float: "a number", str: "a text"}
    if isinstance(kind, UnionType):
        return " or ".join(values(one) for one in get_args(kind))
    return ", ".join(f"`{word}`" for word in _choices(kind)) or words.get(kind, f"{kind}")


def _choices(kind: Any) -> tuple[Any, ...]:
    """Return the values that a parameter chooses among; nothing where it takes any number or text."""
    return () if isinstance(kind, UnionType) else get_args(kind)


def _shown(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)
