"""Text from outside made safe to show: names from traces and policies are words here, never markup."""

from __future__ import annotations

import html
import json
import unicodedata

REPLACEMENT = "\ufffd"
TURNS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # orders to write backwards


def plain(text: str) -> str:
    """Return `text` without what is not seen: controls, halves of characters, and orders to write backwards."""
    return "".join(REPLACEMENT if unseen(character) else character for character in text)


def unseen(character: str) -> bool:
    """Return whether a character is no text: a control, half of a pair, or a turn of the direction."""
    control = unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\r\t"
    return control or character in TURNS


def escaped(text: str) -> str:
    """Return `text` for the inside of an element or a quoted attribute.

    An address is written so that it reads the same but is not one, since the page must hold none.
    """
    return html.escape(plain(text), quote=True).replace("://", ":&#47;&#47;")


def json_block(value: object) -> str:
    """Return JSON that may stand inside a script element: pure ASCII, no `<` in it. Raises ValueError on NaN."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.replace("://", ":\\/\\/")
