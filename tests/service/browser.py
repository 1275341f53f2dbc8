"""Chromium without a window, driven through its debugging pipe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One page, `width` pixels wide. Raises AssertionError for what its script throws."""

    def __init__(self, profile: Path, width: int = 1280) -> None:
        assert CHROMIUM is not None
        its_input, self._write = os.pipe()
        self._read, its_output = os.pipe()
        self._number, self._rest = 0, b""
        self.violations: list[str] = []  # of the page's own policy, and errors of its script

        def as_three_and_four() -> None:
            first, second = os.dup(its_input), os.dup(its_output)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self._process = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=as_three_and_four,  # noqa: PLW1509 – it only duplicates descriptors
        )  # fmt: skip
        os.close(its_input)
        os.close(its_output)
        targets = self._ask("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self._ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable", self._session)
        self._ask("Emulation.setDeviceMetricsOverride", self._session,
                  width=width, height=900, deviceScaleFactor=1, mobile=False)  # fmt: skip

    def open(self, address: str) -> None:
        """Go to an address; `until` says when something is there."""
        self._ask("Page.navigate", self._session, url=address)

    def run(self, script: str) -> Any:
        """Return the value of an expression; None while a page is being exchanged."""
        answer = self._ask("Runtime.evaluate", self._session, expression=script, returnByValue=True)
        return answer.get("result", {}).get("value")

    def until(self, script: str, within_s: float = 60.0) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + within_s
        while not self.run(f"!!({script})"):
            assert time.monotonic() < deadline, f"{script}: not in {self.run('document.body.innerText')!r}"
            time.sleep(0.05)

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait(60)
        os.close(self._read)
        os.close(self._write)

    def _ask(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        os.write(self._write, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            if answer.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
                self.violations.append(json.dumps(answer["params"]))
        found: dict[str, Any] = answer.get("result", {})
        return found

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._read, 65_536)
            assert part, "the browser has ended"
            self._rest += part
        raw, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(raw)
        return found
