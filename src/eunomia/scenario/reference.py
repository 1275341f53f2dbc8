"""The reference of every key as Markdown, from the schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from eunomia.scenario.published_schema import json_schema


def reference_markdown() -> str:
    """Return one table for the top of the scenario and one for each section."""
    schema = json_schema()
    definitions: dict[str, Any] = schema["$defs"]
    blocks = [_format_table("Top level", "", schema)]
    for name, key in schema["properties"].items():
        if "$ref" in key:
            section = definitions[str(key["$ref"]).rsplit("/", 1)[-1]]
            blocks.append(_format_table(f"`[{name}]`", section["description"], section))
            if name == "cluster":
                blocks.append(
                    _format_table(
                        "An entry of `nodes`", definitions["NodeGroup"]["description"], definitions["NodeGroup"]
                    )
                )
    blocks.append(
        _format_table(
            "An entry of `[tenants]`", definitions["TenantSection"]["description"], definitions["TenantSection"]
        )
    )
    return "\n\n".join(blocks) + "\n"


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
