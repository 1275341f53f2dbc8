"""Escaping of untrusted text, such as names from traces and policies, for HTML and JSON."""

from __future__ import annotations

import html
import json
import unicodedata

REPLACEMENT = "\ufffd"
BIDI_CONTROLS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(text: str) -> str:
    """Return `text` with control characters, surrogates and bidirectional controls replaced."""
    return "".join(REPLACEMENT if is_invisible(character) else character for character in text)


def is_invisible(character: str) -> bool:
    """Return whether a character is a control (but for newline and tab), a surrogate or a bidirectional control."""
    control = unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\r\t"
    return control or character in BIDI_CONTROLS


def escaped(text: str) -> str:
    """Return `text` for an element or a quoted attribute; `://` is written with entities, so the page has no URL."""
    return html.escape(plain(text), quote=True).replace("://", ":&#47;&#47;")


def json_block(value: object) -> str:
    """Return JSON for a script element: ASCII without `<`, `>` and `&`. Raises ValueError on NaN."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.replace("://", ":\\/\\/")
