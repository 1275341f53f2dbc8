"""The scenario as a JSON Schema, for editors, and as the Markdown reference of every key."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from eunomia.scenario.model import Scenario

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Return the schema, draft 2020-12, with the rule of each key and a part of the rules between keys."""
    schema: dict[str, Any] = _as_toml(Scenario.model_json_schema(by_alias=True))
    return {"$schema": DIALECT, **schema, "title": "Eunomia scenario"}


def schema_text() -> str:
    """Return the schema as `docs/scenario.schema.json` holds it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _as_toml(value: Any) -> Any:
    """Return the schema without titles and what TOML or JSON cannot write: null, infinities, empty defaults."""
    if isinstance(value, list):
        return [_as_toml(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _as_toml(each) for key, each in value.items() if not _is_unwritable(key, each)}
    alternatives = [each for each in kept.get("anyOf", ()) if each != {"type": "null"}]
    if len(alternatives) == 1:
        del kept["anyOf"]
        kept |= alternatives[0]
    return kept


def _is_unwritable(key: str, value: Any) -> bool:
    if key == "default":
        return value in (None, [], math.inf) or isinstance(value, dict)
    return key == "title" and isinstance(value, str)


def reference_markdown() -> str:
    """Return one table for the top of the scenario and one for each section."""
    schema = json_schema()
    blocks = [_format_table("Top level", "", schema)]

    def add(title: str, section: str, name: str = "") -> None:
        table: dict[str, Any] = schema["$defs"][section]
        blocks.append(_format_table(title, table["description"], table))
        for part, key in table["properties"].items():
            if name and "$ref" in key:
                add(f"`[{name}.{part}]`", _referred(key))

    for name, key in schema["properties"].items():
        if "$ref" in key:
            add(f"`[{name}]`", _referred(key), name)
            if name == "cluster":
                add("An entry of `nodes`", "NodeGroup")
    add("An entry of `[tenants]`", "TenantSection")
    return "\n\n".join(blocks) + "\n"


def _referred(key: dict[str, Any]) -> str:
    """Return the name of the definition that a key refers to."""
    return str(key["$ref"]).rsplit("/", 1)[-1]


def _format_table(title: str, description: str, table: dict[str, Any]) -> str:
    head = [f"### {title}", *([description] if description else [])]
    rows = "\n".join(["| key | value | default | meaning |", "| --- | --- | --- | --- |", *_format_rows(table)])
    return "\n\n".join([*head, rows])


def _format_rows(table: dict[str, Any]) -> Iterator[str]:
    required = table.get("required", ())
    for name, key in table["properties"].items():
        if "$ref" not in key:
            default = (
                "required" if name in required else f"`{_format_default(key['default'])}`" if "default" in key else ""
            )
            yield f"| `{name}` | {_format_values(key)} | {default} | {key['description']} |"


def _format_default(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _format_values(key: dict[str, Any]) -> str:
    """Return the values that a key takes, as text."""
    if "enum" in key:
        return ", ".join(f"`{_format_default(each)}`" for each in key["enum"])
    if "anyOf" in key:
        return " or ".join(_format_values(each) for each in key["anyOf"])
    names = {"integer": "whole number", "string": "text", "object": "table", "boolean": "`true`, `false`"}
    name = names.get(key["type"], str(key["type"]))
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return " ".join([name, *(f"{sign} {key[bound]:,}" for bound, sign in bounds.items() if bound in key)])
