"""Figure 4: how long gangs waited, by the number of machines of their first start.

The trace that is at hand has no placements, so these are the waits of the played jobs. Beside them stand the longest
waits that the figure shows, read off the plot of the notebook beside the trace: of jobs of 5 to 8 on one machine and on
more. Of wider ones it does not tell which were on as few machines as they need.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia_reproduction.philly.tries import FirstStart, size_class
from eunomia_reproduction.table import FigureRow

LARGEST_MACHINE = 8
MINUTE_S = 60.0
LONGEST_MIN = {("5-8", "on the fewest machines"): 7e4, ("5-8", "on more"): 8e2}
SOURCE = "Jeon et al., ATC 2019, Figure 4 (plot of the notebook in philly-traces)"


def waits_by_spread(starts: Sequence[FirstStart], how: str) -> list[FigureRow]:
    """Return the 90th percentile and the longest of the waits, by size and spread; `how` names the play."""
    size = np.array([start.size for start in starts], dtype=np.int64)
    machines = np.array([start.machines for start in starts], dtype=np.int64)
    waited = np.array([start.waited_s for start in starts]) / MINUTE_S
    spread = machines > -(-size // LARGEST_MACHINE)
    rows = []
    for place, name in ((2, "5-8"), (3, ">8")):
        for where, these in (("on the fewest machines", ~spread), ("on more", spread)):
            mine = waited[(size_class(size) == place) & these]
            for quantity, percent in (("wait_p90", 90.0), ("wait_longest", 100.0)):
                rows.append(
                    FigureRow(
                        series=f"Figure 4 {how}: {where}",
                        x=name,
                        quantity=quantity,
                        unit="min",
                        published=LONGEST_MIN.get((name, where)) if quantity == "wait_longest" else None,
                        measured=float(np.percentile(mine, percent)) if len(mine) else None,
                        source=SOURCE,
                        note=f"{len(mine):,} jobs",
                    )
                )
    return rows
