"""The dashboard in a real browser: its forms work, it follows what happens, and it fits a phone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.service.bench import LiveService
from tests.service.browser import CHROMIUM, Browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt-get install chromium)"),
]
PAGES = ("/", "/jobs", "/tenants", "/nodes", "/policy")


@pytest.fixture
def browse(tmp_path: Path) -> Iterator[Callable[[int], Browser]]:
    opened: list[Browser] = []

    def browse(width: int) -> Browser:
        opened.append(Browser(tmp_path / f"profile-{len(opened)}", width))
        return opened[-1]

    yield browse
    for one in opened:
        one.close()


def log_in(browser: Browser, service: LiveService, token: str) -> None:
    browser.open(f"{service.url}/")
    browser.until("document.querySelector('input[type=password]')")
    browser.run(f"document.querySelector('input[type=password]').value = {json.dumps(token)};"
                "document.querySelector('main button').click()")  # fmt: skip
    browser.until("document.querySelector('main h1') && document.querySelector('main h1').innerText === 'Now'")


def test_whoever_logs_in_sees_a_submission_on_the_open_page_and_its_name_as_text(
    shared: LiveService, browse: Callable[[int], Browser]
) -> None:
    ann, browser = shared.client("ann", "browsed"), browse(1280)
    log_in(browser, shared, ann.address.token)
    command = f"-m eunomia submit --url {shared.url} --name from-the-shell --gpus 2 -- sh -c".split()
    job = subprocess.run(
        [sys.executable, *command, "sleep 600", "<img src=x onerror=alert(1)>"],
        check=True, text=True, env={"EUNOMIA_TOKEN": ann.address.token}, stdout=subprocess.PIPE,
    ).stdout.strip()  # fmt: skip
    browser.until("document.body.innerText.includes('from-the-shell')")
    browser.open(f"{shared.url}/jobs/{job}")
    browser.until("document.body.innerText.includes('<img src=x onerror=alert(1)>')")
    assert browser.run("document.querySelectorAll('img').length") == 0
    browser.run("document.querySelector('main form button').click()")  # Cancel
    browser.until("document.body.innerText.includes('cancelled by ann') && document.readyState === 'complete'")
    assert ann.get(f"/v1/jobs/{job}")["state"] == "cancelled"
    browser.run("document.querySelector('header form button').click()")  # Log out
    browser.until("document.querySelector('input[type=password]')")
    assert browser.violations == []


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_its_window(width: int, shared: LiveService, browse: Callable[[int], Browser]) -> None:
    browser = browse(width)
    log_in(browser, shared, shared.operator.address.token)
    for path in PAGES:
        browser.open(shared.url + path)
        browser.until(f"location.pathname === '{path}' && document.readyState === 'complete'")
        assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.violations == []
