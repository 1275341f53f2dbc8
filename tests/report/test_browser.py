"""The page in a real browser: it sorts, hides runs, saves charts, fits a phone, and is readable in both modes."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eunomia
from eunomia.report.page import page
from eunomia.report.sweep.page import page as sweep_page
from eunomia.report.trace_charts import trace_charts, trace_page
from eunomia.traces.statistics import describe
from eunomia.verdict.run_figures import TenantFigures
from eunomia.verdict.sweep_content import BaselineDifference, Group, Interval, SweepContent, SweepSetting, Verdict

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt-get install chromium)"),
]
PROBE = """
const found = { errors: [] };
(async () => {
  addEventListener("error", (event) => found.errors.push(event.message));
  document.addEventListener("securitypolicyviolation", (event) => found.errors.push(event.violatedDirective));
  const wait = (ms) => new Promise((go) => setTimeout(go, ms));
  for (let k = 0; k < 100 && !document.querySelector("svg.picture"); k++) await wait(20);
  const luminance = (rgb) => rgb.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const channels = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  found.small = []; found.faint = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement, style = getComputedStyle(element);
    if (!node.textContent.trim() || !element.getClientRects().length || element.closest("script, .unseen")) continue;
    const size = parseFloat(style.fontSize), drawn = element instanceof SVGElement, root = element.ownerSVGElement;
    const scale = drawn ? root.getBoundingClientRect().width / root.viewBox.baseVal.width : 1;
    if (size * scale < 11.9) found.small.push([node.textContent.slice(0, 40), size * scale]);
    const ink = luminance(channels(drawn ? style.fill : style.color).slice(0, 3)), paper = luminance(ground(element));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) found.faint.push([node.textContent.slice(0, 40), ratio]);
  }
  found.width = innerWidth; found.page = document.documentElement.scrollWidth;
  found.paper = ground(document.body);
  const tables = [...document.querySelectorAll(".wide")].filter((one) => !one.closest("details:not([open])"));
  found.unreachable = tables.filter((one) => one.scrollWidth > one.clientWidth + 1 && one.tabIndex !== 0).length;
  if (!document.getElementById("runs")) return;
  const labels = () => [...document.querySelectorAll("#runs tbody th")].map((head) => head.textContent);
  const heads = [...document.querySelectorAll("#runs thead button")];
  const sort = heads.find((one) => one.textContent.startsWith("JCT average"));
  sort.click(); found.up = labels();
  sort.click(); found.down = labels();
  const curves = () => document.querySelectorAll('[data-chart="jct_cdf"] .curve').length;
  found.before = curves();
  document.querySelector("#legend button").click();
  found.after = curves();
  found.pressed = document.querySelector("#legend button").getAttribute("aria-pressed");
  const saved = [], blobs = {};
  const make = URL.createObjectURL;
  URL.createObjectURL = (blob) => { const address = make(blob); blobs[address] = blob; return address; };
  HTMLAnchorElement.prototype.click = function () { saved.push([this.download, blobs[this.href]]); };
  const figure = document.querySelector('[data-chart="jct_cdf"]');
  for (const form of ["SVG", "CSV", "PNG"]) figure.querySelector(`[aria-label$="as ${form}"]`).click();
  document.getElementById("save-runs").click();
  for (let k = 0; k < 100 && saved.length < 4; k++) await wait(20);
  found.saved = Object.fromEntries(await Promise.all(saved.map(async ([name, blob]) => [name,
    name.endsWith("png") ? [...new Uint8Array(await blob.arrayBuffer())].slice(0, 4) : await blob.text()])));
})().catch((error) => found.errors.push(String(error.stack))).finally(() => {
  parent.postMessage(JSON.stringify(found), "*");
});
"""
FRAME = """<!doctype html><iframe src="page.html" width="{width}" height="900" style="border:0"></iframe><script>
onmessage = (message) => {{
  const found = document.createElement("pre");
  found.id = "found";
  found.textContent = message.data;
  document.body.append(found);
}};
</script>"""  # as headless windows have a least width


def look(text: str, folder: Path, width: int, *, dark: bool = False) -> dict[str, Any]:
    """Return what the probe finds in the page; it runs beside the page's own script, under the page's own policy."""
    digest = base64.b64encode(hashlib.sha256(PROBE.encode()).digest()).decode()
    text = text.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    text = text.replace("</body>", f"<script>{PROBE}</script></body>")
    (folder / "page.html").write_text(text, encoding="utf-8")
    (folder / "frame.html").write_text(FRAME.format(width=width), encoding="utf-8")
    assert CHROMIUM is not None
    dom = ""
    for budget_ms in (8_000, 60_000, 300_000):  # of the page's clock, which a busy machine outruns
        command = [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            f"--user-data-dir={folder / 'profile'}", "--window-size=1400,1000", f"--virtual-time-budget={budget_ms}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--dump-dom", (folder / "frame.html").as_uri(),
        ]  # fmt: skip
        dom = subprocess.run(command, capture_output=True, check=True, timeout=120, text=True).stdout
        if found := re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL):
            return json.loads(html.unescape(found[1]))  # type: ignore[no-any-return]
    pytest.fail(dom[-2000:])


def tenants(*parts: float) -> TenantFigures:
    """Return tenants that got these parts of what they were owed."""
    n, hours = len(parts), np.full(len(parts), 360000.0)
    return TenantFigures(
        names=tuple(f"group-{k}" for k in range(n)), quota=np.ones(n), jobs=np.full(n, 9),
        total_wait_s=np.full(n, 90.0), deserved=hours, received=hours * np.array(parts), lent=np.zeros((n, n)),
        paid=np.full((n, n), 7200.0) - np.eye(n) * 7200, at_s=np.array([3600.0, 7200.0]), ltgf=np.ones((n, 2)),
    )  # fmt: skip


@pytest.fixture
def text(a_report, a_run):
    """Return the page of three policies, two seeds and three tenants."""
    names = {"fifo": 3.0, "max_min_fairness?a_parameter=with_a_long_value": 1.0, "las": 2.0}
    runs = [
        a_run(label, [3600.0 * hours * (1 + 0.1 * seed), 1800.0 * hours], seed=seed, tenant=("a", "b"),
              tenants=tenants(0.5, 1.2, 1.0), offered_load=0.9)
        for seed in (0, 1) for label, hours in names.items()
    ]  # fmt: skip
    return page(a_report(*runs, notes=("The types of jobs were drawn.",)))


def test_it_sorts_hides_a_run_and_saves_charts_and_numbers(text, tmp_path: Path):
    found = look(text, tmp_path, 1280)
    assert found["errors"] == []
    names = ["max_min_fairness?a_parameter=with_a_long_value", "las", "fifo"]
    assert (found["up"], found["down"]) == (names, names[::-1])
    assert (found["before"], found["after"], found["pressed"]) == (3, 2, "false")
    saved = found["saved"]
    assert saved["jct_cdf.svg"].startswith("<svg xmlns=")
    assert "time from submission to finish" in saved["jct_cdf.svg"]
    assert (
        saved["jct_cdf.csv"].splitlines()[0]
        == "panel,name,time from submission to finish,share of finished jobs,low,high"
    )
    assert saved["jct_cdf.png"] == [0x89, 0x50, 0x4E, 0x47]
    assert len(saved["runs.csv"].splitlines()) == 7


def a_sweep() -> str:
    """Return the page of a sweep of two policies at two loads, with an interval and a verdict of each kind."""
    settings = []
    for place in (0.8, 1.2):
        mean = Interval(mean=7200 * place, low=7000.0, high=9000.0, seeds=3)
        settings.append(SweepSetting(name="fifo", place=place, averages={"jct_mean_s": mean}, versus={}))
        kinds: tuple[Verdict, ...] = ("better", "worse", "noise", "alike")
        names = ("jct_mean_s", "jct_p99_s", "makespan_s", "utilization")
        change = Interval(mean=-900.0, low=-1000.0, high=-800.0, seeds=3)
        part = Interval(mean=-0.2, low=-0.25, high=-0.15, seeds=3)
        versus = {
            n: BaselineDifference(change=change, relative=part, verdict=v) for n, v in zip(names, kinds, strict=True)
        }
        averages = dict.fromkeys(names, mean)
        settings.append(SweepSetting(name="max_min_fairness_agnostic", place=place, averages=averages, versus=versus))
    content = SweepContent(
        title="Tiny", subtitle="six runs", compared=("fifo", "max_min_fairness_agnostic"), baseline="fifo",
        along="load", places=(0.8, 1.2), groups=(Group(name="", settings=tuple(settings)),), confidence=0.95,
        failures=(), notes=("A note.",), sweep_toml="seed = 0",
    )  # fmt: skip
    return sweep_page(content)


def a_trace() -> str:
    """Return the page of a trace with tenants and outcomes."""
    trace = eunomia.generate_trace("philly-like", seed=0, jobs=200)
    status, tenant = ("finished", "failed") * 100, ("a-tenant-with-a-long-name", "b") * 100
    trace = replace(trace, status=status, tenant=tenant)
    found = describe(trace)
    return trace_page("jobs.csv", found, trace_charts(trace, found))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1600])
@pytest.mark.parametrize("made", ["report", "sweep", "trace"])
def test_it_fits_the_screen_and_is_readable(text, tmp_path: Path, made, width, dark):
    page_text = {"report": lambda: text, "sweep": a_sweep, "trace": a_trace}[made]()
    found = look(page_text, tmp_path, width, dark=dark)
    assert found["errors"] == []
    assert (sum(found["paper"]) < 200) == dark
    assert found["width"] == width
    assert found["page"] <= width
    assert found["unreachable"] == 0
    assert found["small"] == []
    assert found["faint"] == []


def test_forty_two_runs_are_a_page_of_less_than_a_megabyte_and_a_half(a_report, a_run, tmp_path: Path):
    rng = np.random.default_rng(0)
    bins = {"utilization_at_s": np.arange(400) * 60.0, "utilization": rng.random((1, 400)),
            "running_jobs": rng.random(400), "waiting_jobs": rng.random(400)}  # fmt: skip
    runs = [a_run(f"policy_{k}", rng.exponential(3600, 500) * (k + 9), **bins) for k in range(42)]
    text = page(a_report(*runs))
    assert len(text.encode()) < 1.5e6
    found = look(text, tmp_path, 1280)
    assert found["errors"] == []
    assert (found["before"], found["after"]) == (5, 4)
