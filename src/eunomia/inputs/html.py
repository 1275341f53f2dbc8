"""HTML from templates, which escape every value where it is put in, and text without what cannot be seen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

INVISIBLE = re.compile(  # controls, surrogates, bidirectional and zero-width controls; joiners of scripts stay
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def plain(text: str) -> str:
    """Return untrusted text, such as names from traces and policies, with each invisible character replaced."""
    return INVISIBLE.sub("\ufffd", text)


class Templates:
    """The templates in the folder `templates` of a package; each is compiled when it is first used."""

    def __init__(self, package: str, **filters: Callable[..., Any]) -> None:
        self._package, self._filters = package, filters

    def render(self, name: str, **values: object) -> str:
        """Return a page without invisible characters and without any URL: `://` is written with entities.

        Raises jinja2.UndefinedError where the template names a value that is not given.
        """
        text = self._environment.get_template(name).render(values)
        return plain(text).replace("://", ":&#47;&#47;").replace("\u00a0", "&nbsp;")

    @cached_property
    def _environment(self) -> Environment:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        found = Environment(
            loader=PackageLoader(self._package),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.do"],
        )
        found.filters |= {"json_block": _json_block, **self._filters}
        return found


def _json_block(value: object) -> Markup:
    """Return JSON for a script element: ASCII without `<`, `>`, `&` and URLs. Raises ValueError on NaN."""
    from markupsafe import Markup

    text = json.dumps(value, allow_nan=False, separators=(",", ":")).replace("://", ":\\/\\/")
    return Markup(re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", text))
