"""The reference of every key as Markdown, made from the schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from eunomia.scenario.published_schema import json_schema


def reference_markdown() -> str:
    """Return one table for the top of the scenario and one for each section."""
    schema = json_schema()
    kinds: dict[str, Any] = schema["$defs"]
    blocks = [_block("Top level", "", schema)]
    for name, key in schema["properties"].items():
        if "$ref" in key:
            kind = kinds[_kind(key)]
            blocks.append(_block(f"`[{name}]`", kind["description"], kind))
            if name == "cluster":
                blocks.append(_block("An entry of `nodes`", kinds["NodeGroup"]["description"], kinds["NodeGroup"]))
    blocks.append(_block("An entry of `[tenants]`", kinds["TenantSection"]["description"], kinds["TenantSection"]))
    return "\n\n".join(blocks) + "\n"


def _kind(key: dict[str, Any]) -> str:
    return str(key["$ref"]).rsplit("/", 1)[-1]


def _block(title: str, description: str, table: dict[str, Any]) -> str:
    head = [f"### {title}", *([description] if description else [])]
    rows = "\n".join(["| key | value | default | meaning |", "| --- | --- | --- | --- |", *_rows(table)])
    return "\n\n".join([*head, rows])


def _rows(table: dict[str, Any]) -> Iterator[str]:
    required = table.get("required", ())
    for name, key in table["properties"].items():
        if "$ref" not in key:
            default = "required" if name in required else f"`{_toml(key['default'])}`" if "default" in key else ""
            yield f"| `{name}` | {_values(key)} | {default} | {key['description']} |"


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _values(key: dict[str, Any]) -> str:
    """Say which values a key takes."""
    if "enum" in key:
        return ", ".join(f"`{_toml(each)}`" for each in key["enum"])
    if "anyOf" in key:
        return " or ".join(_values(each) for each in key["anyOf"])
    names = {"integer": "whole number", "string": "text", "object": "table", "boolean": "`true`, `false`"}
    name = names.get(key["type"], str(key["type"]))
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return " ".join([name, *(f"{sign} {key[bound]:,}" for bound, sign in bounds.items() if bound in key)])
