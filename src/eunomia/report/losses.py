"""The chart of accelerator-hours that were not useful work, by cause."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.report.chart import Axis, Chart, Panel, Series
from eunomia.verdict.number_format import HOUR, shown
from eunomia.verdict.seed_groups import SeedGroup

LABEL_BY_CAUSE = {
    "start": "starts",
    "restore": "restores",
    "placement": "placement",
    "neighbours": "neighbours",
    "sharing": "partners",
    "rolled_back": "undone",
    "failed_jobs": "failed",
    "cancelled_jobs": "killed",
    "standing": "standing",
    "unheard": "late reports",
    "fragmentation": "too narrow",
    "held_back": "held back",
    "out_of_service": "down",
}
NOT_LOST = "no_demand"  # no job waited
MOST = 8  # bars
LEAST = 5e-5  # of the cluster's whole time: smaller causes are not shown


def losses(group: Sequence[SeedGroup], styles: dict[str, int]) -> list[Chart]:
    """Return the chart of one load, with the largest causes; none where no run has the figures."""
    shares = {setting: share for setting in group if (share := lost_shares(setting)) is not None}
    most = {cause: max((share[cause] for share in shares.values()), default=0.0) for cause in LABEL_BY_CAUSE}
    largest = sorted(most, key=lambda cause: -most[cause])[:MOST]
    causes = [cause for cause in LABEL_BY_CAUSE if cause in largest and most[cause] >= LEAST]
    if not causes:
        return []
    series = tuple(bars(setting, share, causes, styles) for setting, share in shares.items())
    return [
        Chart(
            name="lost_accelerator_time",
            title="Lost accelerator-hours by cause",
            how_to_read=f"Accelerator-hours that were not useful work: the {MOST} largest causes, without idle time "
            "in which no job waited. Too narrow: every waiting job needed more accelerators than were free of the "
            "type. Held back: a waiting job would have fitted, but the policy or the round did not let it start. "
            "Failed, killed: work of jobs that ended so. Undone: work that a failure undid.",
            kind="bars",
            x=Axis(label="lost to", unit="plain"),
            y=Axis(label="accelerator-hours", unit="count", low=0.0),
            categories=tuple(LABEL_BY_CAUSE[cause] for cause in causes),
            panels=(Panel(series=series),),
        )
    ]


def lost_shares(setting: SeedGroup) -> dict[str, float] | None:
    """Return by cause the part of all accelerator time, averaged over the seeds; None where it is unknown."""
    causes = (*LABEL_BY_CAUSE, NOT_LOST)
    known = {c: lost for c in causes if (lost := setting.mean(f"lost_{c}_accelerator_s")) is not None}
    useful = setting.mean("useful_accelerator_s")
    total = sum(known.values()) + (useful or 0.0)
    if useful is None or len(known) < len(causes) or total <= 0:
        return None
    return {cause: lost / total for cause, lost in known.items()}


def bars(setting: SeedGroup, share: dict[str, float], causes: Sequence[str], styles: dict[str, int]) -> Series:
    """Return the bars of one setting; a negative loss (a pair that outruns one job) counts as 0."""
    hours = [max(0.0, float(setting.values(f"lost_{cause}_accelerator_s").mean())) / HOUR for cause in causes]
    return Series(
        name=setting.label,
        style=styles[setting.label],
        x=np.arange(float(len(causes))),
        y=np.array(hours),
        details=tuple(f"{shown(share[cause], 'share')} of the whole time" for cause in causes),
    )
