"""The chart of what a cluster's accelerator-hours went to besides work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.report.chart import Axis, Chart, Panel, Series
from eunomia.report.number_format import HOUR, shown
from eunomia.report.seed_groups import SeedGroup

WORD_BY_CAUSE = {
    "start": "starts",
    "restore": "restores",
    "placement": "places",
    "neighbours": "neighbours",
    "sharing": "partners",
    "rolled_back": "undone",
    "failed_jobs": "failed",
    "cancelled_jobs": "killed",
    "standing": "standing",
    "unheard": "late word",
    "fragmentation": "too narrow",
    "held_back": "held back",
    "out_of_service": "down",
}
NOT_LOST = "no_demand"  # nobody waited
MOST = 8  # bars that there is room for
LEAST = 5e-5  # of the cluster's whole time: what is less is not shown


def losses(group: Sequence[SeedGroup], styles: dict[str, int]) -> list[Chart]:
    """Return the chart of one load, with the causes that took most; none where no run knows of any."""
    shares = {setting: share for setting in group if (share := lost_shares(setting)) is not None}
    most = {cause: max((share[cause] for share in shares.values()), default=0.0) for cause in WORD_BY_CAUSE}
    largest = sorted(most, key=lambda cause: -most[cause])[:MOST]
    causes = [cause for cause in WORD_BY_CAUSE if cause in largest and most[cause] >= LEAST]
    if not causes:
        return []
    series = tuple(bars(setting, share, causes, styles) for setting, share in shares.items())
    return [
        Chart(
            name="lost_accelerator_time",
            title="What accelerators were lost to",
            how_to_read=f"Accelerator-hours that became no work that stays: the {MOST} largest kinds, idle time in "
            "which nobody waited left out. Too narrow: everybody who waited needed more accelerators than "
            "were free of the type. Held back: somebody would have fitted, and the policy or the end of a round was "
            "waited for. Failed, killed: work of jobs that ended so. Undone: work that a failure undid.",
            kind="bars",
            x=Axis(label="lost to", unit="plain"),
            y=Axis(label="accelerator-hours", unit="count", low=0.0),
            categories=tuple(WORD_BY_CAUSE[cause] for cause in causes),
            panels=(Panel(series=series),),
        )
    ]


def lost_shares(setting: SeedGroup) -> dict[str, float] | None:
    """Return by cause the part of all accelerator time, on average over the seeds; None where it is not known."""
    found = {cause: setting.mean(f"lost_{cause}_accelerator_s") for cause in (*WORD_BY_CAUSE, NOT_LOST)}
    known = {cause: lost for cause, lost in found.items() if lost is not None}
    useful = setting.mean("useful_accelerator_s")
    total = sum(known.values()) + (useful or 0.0)
    if useful is None or len(known) < len(found) or total <= 0:
        return None
    return {cause: lost / total for cause, lost in known.items()}


def bars(setting: SeedGroup, share: dict[str, float], causes: Sequence[str], styles: dict[str, int]) -> Series:
    """Return the bars of one setting; partners that do more together than one alone lose nothing."""
    hours = [max(0.0, float(setting.values(f"lost_{cause}_accelerator_s").mean())) / HOUR for cause in causes]
    return Series(
        name=setting.label,
        style=styles[setting.label],
        x=np.arange(float(len(causes))),
        y=np.array(hours),
        details=tuple(f"{shown(share[cause], 'share')} of the whole time" for cause in causes),
    )
