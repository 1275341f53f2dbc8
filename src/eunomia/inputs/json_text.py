"""JSON as users write it: every name of an object once, and what is wrong with its line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from eunomia.inputs.problems import Problems, refused


def read_json(
    file: str, text: str, fix: str, *, integer: Callable[[str], int | float] = int, unique: bool = True
) -> Any:
    """Return the value of a JSON text; `integer` reads whole numbers.

    Raises InvalidInput for a text that is not JSON, with `fix`, and if `unique` for names that an object has twice.
    """
    problems = Problems(file)

    def once(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            twice = next(name for name, count in Counter(name for name, _ in items).items() if count > 1)
            problems.add("a name stands once in its object", "give it once", column=twice)
        return found

    try:
        value = json.loads(text, object_pairs_hook=once if unique else None, parse_int=integer)
    except json.JSONDecodeError as error:
        rule = f"it is not JSON: {error.msg} (column {error.colno})"
        raise refused(file, None, None, rule, fix, row=error.lineno) from None
    except RecursionError:
        raise refused(file, None, None, "it is not JSON: values are nested too deeply", fix) from None
    except ValueError as error:  # a number of thousands of digits
        raise refused(file, None, None, f"it is not JSON: {error}", fix) from None
    problems.raise_if_any()
    return value
