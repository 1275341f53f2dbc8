"""Figures of the service in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from eunomia.service import living_state
from eunomia.service.job_row import STATES
from eunomia.service.latency_histogram import LatencyHistogram

if TYPE_CHECKING:
    from eunomia.service.http.api import Service


def metrics_text(service: Service) -> str:
    """Return all figures of the service, and none of its process."""
    encoded: bytes = generate_latest(_Figures(service))
    return encoded.decode()


class _Figures:
    """The figures of a service at the moment when they are asked for."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """Yield each figure."""
        service, writer = self._service, self._service.writer
        counts = service.reader.counts()
        by_state = [((state,), counts.get(state, 0)) for state in STATES]
        yield _gauge("eunomia_jobs", "Jobs by state.", ("state",), by_state)
        with writer.lock:
            types = living_state.cluster(writer.controller)["types"]
            fairness = living_state.ltgf(writer.controller, writer.clock.now())
        states = ("free", "busy", "taken", "drained", "draining")
        counts_of = {name: {**one, "busy": one["busy"] - one["draining"]} for name, one in types.items()}
        by_type = [((name, state), one[state]) for name, one in counts_of.items() for state in states]
        yield _gauge("eunomia_accelerators", "Accelerators by type and state.", ("type", "state"), by_type)
        yield _histogram("eunomia_decision_seconds", "Time that decisions took, s.", writer.decision_times)
        yield _histogram("eunomia_commit_seconds", "Time that commits to the store took, s.", writer.commit_times)
        by_tenant = [((name,), float(f"{value:.6g}")) for name, value in fairness.items()]
        what = "Accelerator time received of what was deserved in the last day, by tenant (LTGF)."
        yield _gauge("eunomia_tenant_ltgf", what, ("tenant",), by_tenant)
        for name, what, value in (
            ("eunomia_commits", "Commits to the store.", writer.store.commits),
            ("eunomia_moments", "Moments that the scheduler took.", writer.controller.moments),
            ("eunomia_lease_renewals", "Renewals of leases by the world.", service.renewals()),
            ("eunomia_stale_writes_refused", "Reports of starts that are over.", writer.controller.stale_reports),
            ("eunomia_solver_overruns", "Asks of the policy that took too long.", service.overruns()),
            ("eunomia_policy_fallbacks", "Asks that the fallback answered.", writer.controller.fallbacks),
            ("eunomia_policy_answers_refused", "Answers that broke a rule.", writer.controller.refused_answers),
            ("eunomia_notices_sent", "Notices that receivers have taken.", service.notices.counts["sent"]),
            ("eunomia_notices_given_up", "Notices that no receiver took.", service.notices.counts["given up"]),
            ("eunomia_notices_tried_again", "Attempts that failed.", service.notices.counts["tried again"]),
            ("eunomia_requests_refused", "Requests that were refused.", service.refused),
        ):
            yield CounterMetricFamily(name, what, value)
        what = "Number of the leadership: it grows with each start or fail-over."
        yield GaugeMetricFamily("eunomia_generation", what, writer.store.generation)
        coverage = service.scores.coverage()
        found = [] if coverage is None else [((), coverage)]
        yield _gauge("eunomia_forecast_coverage_ratio", "Starts that were in their 80 % interval.", (), found)


def _gauge(
    name: str, what: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], float]]
) -> GaugeMetricFamily:
    """Return a gauge with a value for each combination of its labels."""
    family = GaugeMetricFamily(name, what, labels=labels)
    for names, value in values:
        family.add_metric(names, value)
    return family


def _histogram(name: str, what: str, times: LatencyHistogram) -> HistogramMetricFamily:
    return HistogramMetricFamily(name, what, times.buckets(), times.total_s)
