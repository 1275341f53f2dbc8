"""The scenario as a JSON Schema, for editors that complete and check TOML."""

from __future__ import annotations

import json
import math
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
