"""The frame of every report: no URL is in it, and only its own style and script are allowed to run."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from eunomia.inputs.html import Templates
from eunomia.verdict.number_format import plural, shown


def keep_units(text: str) -> str:
    """Return a sentence with no line break between a number and its unit."""
    return re.sub(r"(?<=\d) (?=(?:s|min|h|d|%)(?!\w))", "\u00a0", text)


def anchor(name: str) -> str:
    """Return the id of the section with this name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


TEMPLATES = Templates("eunomia.report", keep_units=keep_units, anchor=anchor, plural=plural, shown=shown)


def framed(template: str, title: str, subtitle: str | None, numbers: object, **values: object) -> str:
    """Return a whole page, to which the template gives the block `main`; `numbers` are for charts.js, as JSON."""
    frame = {"title": title, "subtitle": subtitle, "numbers": numbers, "sections": []}
    return TEMPLATES.render(template, **frame, **_constants(), **values)


@cache
def _constants() -> dict[str, str]:
    """Return style, script, and the security policy that allows these two, by their hashes, and pictures made here."""
    style, script = (files("eunomia.report").joinpath(name).read_text("utf-8") for name in ("report.css", "charts.js"))
    own = f"style-src {_digest(style)}; script-src {_digest(script)}"
    policy = f"default-src 'none'; {own}; img-src blob:; base-uri 'none'; form-action 'none'"
    return {"style": style, "script": script, "policy": policy}


def _digest(text: str) -> str:
    """Return the CSP source expression of an inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
