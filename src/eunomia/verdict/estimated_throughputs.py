"""Says how many of the throughputs that results rest on are estimates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eunomia.model.speeds import ESTIMATED, USED


def on_estimates(counts: Iterable[Mapping[str, float | int | None]]) -> tuple[str, ...]:
    """Return the sentence about results with these counts, as in summary.json; none where nothing is estimated.

    Of results that differ, as those of several loads may, the one with the most estimates is described.
    """
    found = [(int(each.get(ESTIMATED) or 0), int(each.get(USED) or 0)) for each in counts]
    estimated, used = max(found, default=(0, 0))
    return (f"{estimated:,} of {used:,} throughputs are estimates, not measurements.",) if estimated else ()
