"""Figures of the service in the text format of Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eunomia.forecasts.scoring import score
from eunomia.service import living_state
from eunomia.service.forecast_log import outcomes_of
from eunomia.service.job_row import STATES

if TYPE_CHECKING:
    from eunomia.service.http.api import Service


def metrics_text(service: Service) -> str:
    """Return all figures."""
    writer, counts = service.writer, service.reader.counts()
    lines = ["# TYPE eunomia_jobs gauge"]
    lines += [f'eunomia_jobs{{state="{state}"}} {counts.get(state, 0)}' for state in STATES]
    with writer.lock:
        types = living_state.cluster(writer.controller)["types"]
        fairness = living_state.ltgf(writer.controller, writer.clock.now())
    lines.append("# TYPE eunomia_accelerators gauge")
    for name, found in types.items():
        for state in ("free", "busy", "taken"):
            lines.append(f'eunomia_accelerators{{type="{_escaped(name)}",state="{state}"}} {found[state]}')
    lines += writer.decision_times.lines("eunomia_decision_seconds")
    lines += writer.commit_times.lines("eunomia_commit_seconds")
    lines.append("# TYPE eunomia_tenant_ltgf gauge")
    lines += [f'eunomia_tenant_ltgf{{tenant="{_escaped(name)}"}} {value:.6g}' for name, value in fairness.items()]
    for name, value in (
        ("eunomia_commits_total", writer.store.commits),
        ("eunomia_moments_total", writer.controller.moments),
        ("eunomia_lease_renewals_total", service.renewals()),
        ("eunomia_stale_writes_refused_total", writer.controller.stale_reports),
        ("eunomia_solver_overruns_total", service.overruns()),
        ("eunomia_policy_fallbacks_total", writer.controller.fallbacks),
        ("eunomia_policy_answers_refused_total", writer.controller.refused_answers),
        ("eunomia_requests_refused_total", service.refused),
        ("eunomia_generation", writer.store.generation),
    ):
        lines += [f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}", f"{name} {value}"]
    lines.append("# TYPE eunomia_forecast_coverage_ratio gauge")
    coverage = score(outcomes_of(service.site.place))["start_coverage"]
    if coverage is not None:
        lines.append(f"eunomia_forecast_coverage_ratio {coverage}")
    return "\n".join([*lines, ""])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
