"""The section about tenants says what each was owed and got, lent and paid."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import numpy as np
import pytest

from eunomia.report.all_charts import charts
from eunomia.report.page import page
from eunomia.verdict.run_figures import TenantFigures

HOUR = 3600.0


def tenants_of(**changes: Any) -> TenantFigures:
    """Return two tenants: `lab` was owed 100 hours and got 60; `shop` got 30 of the rest, 10 were idle."""
    fields: dict[str, Any] = {
        "names": ("lab", "shop"),
        "quota": np.array([3.0, 1.0]),
        "jobs": np.array([7, 1]),
        "total_wait_s": np.array([1800.0, 0.0]),
        "deserved": np.array([100.0, 50.0]) * HOUR,
        "received": np.array([60.0, 85.0]) * HOUR,
        "lent": np.array([[0.0, 5.0], [0.0, 0.0]]) * HOUR,
        "paid": np.array([[0.0, 30.0], [0.0, 0.0]]) * HOUR,
        "at_s": np.array([HOUR, 2 * HOUR]),
        "ltgf": np.array([[0.5, 0.6], [np.nan, 1.7]]),
    }
    return TenantFigures(**(fields | changes))


def section(text: str) -> str:
    """Return the words of the section."""
    found = re.search(r'<section id="for-the-committee".*?</section>', text, re.DOTALL)
    assert found
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", found[0])).split())


def test_each_tenant_has_a_row_with_what_it_was_owed_and_got(a_report, a_run):
    words = section(page(a_report(a_run("fifo", [60.0], tenants=tenants_of()))))
    assert "lab 3 accelerators, 7 jobs 60 % 60.0 of 100 h; waited 30.0 min" in words
    assert "shop 1 accelerator, 1 job 170 % 85.0 of 50.0 h; did not wait" in words


def test_payments_and_loans_are_listed(a_report, a_run):
    words = section(page(a_report(a_run("fifo", [60.0], tenants=tenants_of()))))
    assert "Loans and payments under fifo Accelerator-hours that each row paid to each column" in words
    assert "From to lab to shop lab 30.0 (5.00) shop" in words
    assert (
        "lab paid 30.0 hours that it asked for: 30.0 to shop. "
        "It did not get another 10.0 hours that no tenant used. "
        "lab lent 5.00 hours that it did not ask for: 5.00 to shop." in words
    )


def test_where_all_got_what_they_were_owed_no_tenant_paid(a_report, a_run):
    fair = tenants_of(received=np.array([100.0, 50.0]) * HOUR, paid=np.zeros((2, 2)), lent=np.zeros((2, 2)))
    words = section(page(a_report(a_run("fifo", [60.0], tenants=fair))))
    assert "No tenant paid for another." in words
    assert words.count("100 % 100 of 100 h") + words.count("100 % 50.0 of 50.0 h") == 2


def test_refused_jobs_are_counted_by_tenant_and_replace_the_line_that_no_tenant_paid(a_report, a_run):
    """All of lab's seven jobs were refused, so that nothing was owed to it and no wait is known."""
    gone = tenants_of(
        refused=np.array([7, 0]),
        total_wait_s=np.array([np.nan, 0.0]),
        deserved=np.array([0.0, 50.0]) * HOUR,
        received=np.array([0.0, 50.0]) * HOUR,
        paid=np.zeros((2, 2)),
        lent=np.zeros((2, 2)),
    )
    words = section(page(a_report(a_run("fifo", [60.0], tenants=gone))))
    assert "never served 0 of 0 h; 7 of 7 jobs were refused" in words
    assert "Loans and payments under fifo Refused, and so never served: 7 of 7 jobs of lab." in words
    assert "No tenant paid" not in words
    assert "nothing owed" not in words


def test_a_tenant_with_some_refused_jobs_shows_its_refusals_and_its_payments(a_report, a_run):
    words = section(page(a_report(a_run("fifo", [60.0], tenants=tenants_of(refused=np.array([1, 0]))))))
    assert "60.0 of 100 h; waited 30.0 min; 1 of 7 jobs was refused" in words
    assert "Refused, and so never served: 1 of 7 jobs of lab. lab paid 30.0 hours" in words


@pytest.mark.parametrize(
    ("quota", "text"),
    [(2.5, "2.5 accelerators"), (0.5, "0.5 accelerators"), (1.0, "1 accelerator"), (1024.0, "1,024 accelerators"),
     (0.0, "0 accelerators"), (1 / 3, "0.333 accelerators")],
)  # fmt: skip
def test_quotas_read_as_they_are(a_report, a_run, quota, text):
    words = section(page(a_report(a_run("fifo", [60.0], tenants=tenants_of(quota=np.array([quota, 1.0]))))))
    assert f"lab {text}, 7 jobs" in words


def test_a_tenant_with_others_below_it_is_said_to_share_its_part_with_them(a_report, a_run):
    words = section(page(a_report(a_run("fifo", [60.0], tenants=tenants_of(names=("lab", "lab/vision"))))))
    assert "lab 3 accelerators with those below it, 7 jobs" in words
    assert "lab/vision 1 accelerator, 1 job" in words


def test_every_policy_has_its_column_and_the_bars_one_scale(a_report, a_run):
    other = tenants_of(received=np.array([100.0, 50.0]) * HOUR)
    text = page(a_report(a_run("fifo", [60.0], tenants=tenants_of()), a_run("las", [60.0], tenants=other)))
    widths = [float(width) for width in re.findall(r'class="had" x="0" y="2" width="([\d.]+)"', text)]
    assert widths == pytest.approx([120, 200, 170, 100])
    assert text.count("Loans and payments under") == 2


def test_a_single_tenant_has_no_section(a_report, a_run):
    one = tenants_of(names=("-",), ltgf=np.ones((1, 2)))
    report = a_report(a_run("fifo", [60.0], tenants=one), a_run("las", [60.0]))
    assert "For the committee" not in page(report)
    assert "ltgf_over_time" not in [chart.name for chart in charts(report)]


def test_names_of_tenants_are_words_and_never_markup(a_report, a_run):
    text = page(a_report(a_run("fifo", [60.0], tenants=tenants_of(names=("<b>lab</b>", "shop")))))
    assert "<b>lab" not in text
    assert "&lt;b&gt;lab&lt;/b&gt; paid" in text


def test_long_term_fairness_has_a_panel_for_each_run_and_a_line_for_each_tenant(a_report, a_run):
    report = a_report(a_run("fifo", [60.0], tenants=tenants_of()), a_run("las", [60.0], tenants=tenants_of()))
    (chart,) = (chart for chart in charts(report) if chart.name == "ltgf_over_time")
    assert [panel.title for panel in chart.panels] == ["fifo", "las"]
    assert [line.name for line in chart.panels[0].series] == ["lab", "shop"]
    assert chart.panels[0].series[0].y.tolist() == [0.5, 0.6]
