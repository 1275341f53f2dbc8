"""Pages from templates: values are escaped, what cannot be seen is shown as such, and no page has a URL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from eunomia.inputs.html import Templates, plain


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Templates:
    """The templates of a package with one template."""
    folder = tmp_path / "a_package_of_pages" / "templates"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "page.html").write_text(
        '<p title="{{ text }}">{{ text|twice }}</p><script>{{ [text]|json_block }}</script>'
    )
    monkeypatch.syspath_prepend(tmp_path)
    return Templates("a_package_of_pages", twice=lambda text: 2 * text)


def test_a_value_is_escaped_in_text_attribute_and_script(templates: Templates) -> None:
    page = templates.render("page.html", text="</script><b>\"'&")
    escaped = "&lt;/script&gt;&lt;b&gt;&#34;&#39;&amp;"
    script = '["\\u003c/script\\u003e\\u003cb\\u003e\\"\'\\u0026"]'
    assert page == f'<p title="{escaped}">{2 * escaped}</p><script>{script}</script>'


def test_a_page_has_no_url_even_when_a_value_is_one(templates: Templates) -> None:
    page = templates.render("page.html", text="https://evil.example")
    assert "://" not in page
    assert '["https:\\/\\/evil.example"]' in page


def test_a_value_that_a_template_names_has_to_be_given(templates: Templates) -> None:
    with pytest.raises(UndefinedError):
        templates.render("page.html", words="other")


@pytest.mark.parametrize(
    "hidden", ["\x00", "\x1b", "\x9f", "\u200b", "\u202e", "\u2066", "\ufeff", "\ud800", "\U000e0041"]
)
def test_what_cannot_be_seen_is_replaced(hidden: str) -> None:
    assert plain(f"a{hidden}b") == "a\ufffdb"


@pytest.mark.parametrize("text", ["a\tb\r\n", "نمی\u200cخواهم", "👩\u200d🔬", "é ü 漢字 ρ\u00a0≤ 1"])
def test_what_scripts_and_layout_need_stays(text: str) -> None:
    assert plain(text) == text


def test_a_package_that_makes_no_page_loads_no_templates() -> None:
    asks = "import sys, eunomia, eunomia.report, eunomia.service.pages.render; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asks], check=False).returncode == 0
