"""Says how many of the throughputs that results rest on are estimates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

USED, ESTIMATED = "throughputs_used", "throughputs_estimated"  # fields of summary.json


def on_estimates(summaries: Iterable[Mapping[str, float | int | None]]) -> tuple[str, ...]:
    """Return the sentence for a verdict on runs with these numbers; none where nothing is estimated.

    Of runs that differ, as several seeds may, the one with the most estimates is told.
    """
    counts = [(int(each.get(ESTIMATED) or 0), int(each.get(USED) or 0)) for each in summaries]
    estimated, used = max(counts, default=(0, 0))
    if not estimated:
        return ()
    return (
        f"{estimated:,} of {used:,} throughputs are estimates, not measurements: with draw = true in [throughputs] "
        "several seeds show how much rests on them.",
    )
