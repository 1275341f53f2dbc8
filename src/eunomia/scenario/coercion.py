"""Values from outside as plain TOML values: what Python or a command line wrote, before any rule is asked."""

from __future__ import annotations

import math
import numbers
import tomllib
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


def plain(value: Any) -> Any:
    """Return a deep copy in dict, list, int, float, bool and str.

    For JSON's sake "inf" becomes the number, and a key that is null is left out.
    """
    match value:
        case Mapping():
            return {str(key): plain(each) for key, each in value.items() if each is not None}
        case list() | tuple():
            return [plain(each) for each in value]
        case str():
            return _INFINITIES.get(value, value)
        case PurePath():
            return str(value)
        case bool():
            return value
        case numbers.Integral():
            return int(value)
        case numbers.Real():
            return float(value)
    return value


def parse_value(text: str) -> Any:
    """Read a TOML value; a bare word is a text. Raises `ValueError` for quotes or brackets that are not TOML."""
    text = text.strip()
    if not text:
        raise ValueError("there is no value")
    try:
        table = tomllib.loads(f"value = {text}")
        if len(table) == 1:
            return table["value"]
    except RecursionError as error:
        raise ValueError("values are nested too deeply") from error
    except ValueError:
        if text[0] in "\"'[{":
            raise
    return text
