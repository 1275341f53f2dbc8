"""`eunomia policies`: lists the policies and their place in the taxonomy of the survey."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_args

import typer

from eunomia.cli.command import Output, command
from eunomia.cli.options import option
from eunomia.inputs.problems import Problems
from eunomia.model.spelling_suggestions import nearest

FACTS = {  # columns of a view and what a scheduler must believe of jobs to fill them
    "remaining": "run times",
    "total": "run times",
    "throughput": "throughputs",
    "shape_throughput": "throughputs",
    "packed_throughput": "throughputs of pairs",
    "packed_spread_throughput": "throughputs of spread pairs",
    "spread_throughput": "throughputs of spread gangs",
    "slowdown": "throughputs of spread gangs",
}


@command
def policies(
    output: Output,
    name: Annotated[str | None, typer.Argument(help="Show one policy whole.")] = None,
    where: Annotated[
        list[str] | None, option("AXIS=VALUE", "Only those, such as objective=deadline. May be repeated: all hold.")
    ] = None,
    door: Annotated[str | None, option("DOOR", "shares, order or grants only.")] = None,
) -> None:
    """List the policies, or show one.

    The list has names and what they are for; --json adds door, technique, paper, all axes of the survey's taxonomy,
    parameters, what a policy needs to see, and which wrong beliefs it suffers from.
    """
    cards = chosen(policy_cards(name), where or (), door)
    if output.as_json:
        plain = [{**card, "parameters": _plain(card["parameters"])} for card in cards]
        for card in plain:
            del card["rules"]
        output.show(plain)
    elif name is None:
        _show_all(cards)
    elif not cards:
        print(f"{name} does not match: {', '.join([*(where or ()), *([f'door={door}'] if door else [])])}")
    else:
        for card in cards:
            _show(card)


def policy_cards(name: str | None) -> list[dict[str, Any]]:
    """Return the descriptions of all policies, or of one. Raises InvalidInput for an unknown name."""
    from eunomia.setup.policy_lookup import known_policies, policy_class

    return [_card(policy_class(key)) for key in ([name] if name else known_policies(presets=False))]


def chosen(cards: Sequence[dict[str, Any]], where: Sequence[str], door: str | None) -> list[dict[str, Any]]:
    """Return the cards that match every AXIS=VALUE of `where`, and the door.

    Raises InvalidInput naming every unknown axis, value or door.
    """
    conditions = _parse_conditions(where, door)
    return [
        card
        for card in cards
        if (door is None or card["door"] == door)
        and all(card["taxonomy"] is not None and value in card["taxonomy"][axis] for axis, value in conditions)
    ]


def _parse_conditions(where: Sequence[str], door: str | None) -> list[tuple[str, str]]:
    from eunomia.model.policy import AnswerType
    from eunomia.model.taxonomy import AXES

    problems, conditions = Problems("command line"), []
    if door is not None and door not in get_args(AnswerType):
        problems.add("there is no such door", nearest(door, get_args(AnswerType)), column="--door", value=door)
    for condition in where:
        axis, separator, value = condition.partition("=")
        if not separator:
            problems.add("is no AXIS=VALUE", f"write {axis}=…", column="--where", value=condition)
        elif axis not in AXES:
            problems.add(f"there is no axis {axis!r}", nearest(axis, AXES), column="--where", value=condition)
        elif value not in AXES[axis]:
            rule = f"the axis {axis} has no value {value!r}"
            problems.add(rule, nearest(value, AXES[axis]), column="--where", value=condition)
        conditions.append((axis, value))
    problems.raise_if_any()
    return conditions


def _card(policy: Any) -> dict[str, Any]:
    from eunomia.inputs.declared_fields import declared_rules
    from eunomia.policies.presets import PRESETS

    info = policy.info
    needs_value = any(one.default is MISSING and one.default_factory is MISSING for one in fields(policy))
    instance = info if needs_value else policy().info
    needs = instance.needs
    mechanism = info.mechanism
    return {
        "name": info.name,
        "door": info.answer_type,
        "objective": info.objective,
        "technique": info.technique,
        "paper": info.paper,
        "needs": sorted(info.needs),
        "taxonomy": None if info.taxonomy is None else info.taxonomy.axes(needs),
        "suffers_without": sorted({fact for column, fact in FACTS.items() if column in needs}),
        "oracle": info.oracle,
        "learnt_from": instance.learnt_from,
        "fallback": info.fallback,
        "mechanism": {
            "length_s": mechanism.length_s if math.isfinite(mechanism.length_s) else None,
            "aligned": mechanism.aligned,
            "recall": mechanism.recall,
        },
        "parameters": {field.name: field.default for field in fields(policy)},
        "rules": {name: rule.what for name, rule in declared_rules(policy).items()},
        "presets": {preset: values for preset, (name, values) in PRESETS.items() if name == info.name},
        "doc": inspect.getdoc(inspect.getmodule(policy)),
    }


def _plain(parameters: Mapping[str, object]) -> dict[str, object]:
    """Return parameters for JSON: null means infinite, or required."""
    is_finite = {name: not (value is MISSING or value == math.inf) for name, value in parameters.items()}
    return {name: value if is_finite[name] else None for name, value in parameters.items()}


def _show_all(cards: Sequence[dict[str, Any]]) -> None:
    """Print one row a policy: its name, and what it is for."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("policy", no_wrap=True)
    table.add_column("what for")
    for card in cards:
        table.add_row(card["name"], card["objective"])
    console = Console(highlight=False)
    console.print(table)
    names = [name for card in cards for name in card["presets"] if ":" in name]
    if names:
        console.print(f"\nNames of other systems: {', '.join(names)}")
    console.print("\neunomia policies NAME shows one whole: formula, paper, parameters; --json shows all of each.")


def _show(card: dict[str, Any]) -> None:
    """Print everything about one policy."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{card['name']} ({card['door']})\n\n{card['doc']}\n", markup=False)
    lines = [
        f"\n  {name} = {value!r}" + (f": {card['rules'][name]}" if name in card["rules"] else "")
        for name, value in card["parameters"].items()
    ]
    console.print(f"parameters:{''.join(lines) or ' none'}\nneeds: {', '.join(card['needs'])}", markup=False)
    suffers = ", ".join(card["suffers_without"])
    console.print(f"wrong beliefs: {f'suffers from those of {suffers}' if suffers else 'it reads none'}", markup=False)
    if card["learnt_from"]:
        console.print(
            f"has learnt: {card['learnt_from']}\nin the service, where it fails: {card['fallback']}", markup=False
        )
    if card["taxonomy"] is not None:
        axes = "; ".join(f"{axis} {', '.join(values)}" for axis, values in card["taxonomy"].items())
        console.print(f"taxonomy: {axes}", markup=False)
    for preset, values in card["presets"].items():
        meaning = "&".join(f"{key}={str(value).lower()}" for key, value in values.items())
        console.print(f"{preset} = {card['name']}{'?' * bool(values)}{meaning}", markup=False)
