"""What a generated history holds: accelerator-hours of its source, what an import must write of them, and waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from eunomia.history.importing import build_import, whole_machines
from eunomia.traces.import_findings import History

TYPES = ("v100", "t4", "h100")
TENANTS = ("ann", "bo", "cy d", "é")
BEGAN = 1_704_067_200  # 2024-01-01 00:00:00 UTC
HOUR_S = 3600.0
Owner = tuple[str, str]  # accelerator type, tenant


@dataclass(kw_only=True)
class Truth:
    """Sums and waits, added up while the source is written."""

    source: dict[Owner, float] = field(default_factory=dict)  # accelerator-hours of the lines that say how long
    written: dict[Owner, float] = field(default_factory=dict)
    wait_s: dict[str, float] = field(default_factory=dict)  # to the first start, by job; none for jobs without a start

    def add(self, kind: str, tenant: str, hours: float, *, written: float | None = None) -> None:
        """Add accelerator-hours; `written` are those of the import, if others."""
        for sums, each in ((self.source, hours), (self.written, hours if written is None else written)):
            sums[kind, tenant] = sums.get((kind, tenant), 0.0) + each


def check(engine: str, history: History, truth: Truth) -> None:
    """Assert that an import has the sums and waits of the truth, and explains each difference."""
    nodes = whole_machines(dict.fromkeys((*TYPES, "gpu"), 1000.0))
    imported = build_import(engine, ("generated",), history, nodes=nodes)
    assert imported.balance is not None
    assert not imported.balance.unexplained(), imported.balance.unexplained()
    assert_same(imported.balance.source.by_owner, truth.source)
    assert_same(imported.hours.by_owner, truth.written)
    waited = dict(zip(imported.trace.job_id, imported.trace.started_s - imported.trace.submitted_s, strict=True))
    for name, wait_s in truth.wait_s.items():
        assert abs(waited[name] - wait_s) < 1.5, (name, waited[name], wait_s)  # times are written as whole seconds


def assert_same(found: Mapping[Owner, float], wanted: Mapping[Owner, float]) -> None:
    """Assert that sums are within 0.1 % of each other."""
    for owner in {*found, *wanted}:
        a, b = found.get(owner, 0.0), wanted.get(owner, 0.0)
        assert abs(a - b) <= 1e-3 * max(abs(a), abs(b)) + 1e-9, (owner, a, b)


def chance(rng: Random, part: float) -> bool:
    """Return True in this part of the calls."""
    return rng.random() < part
