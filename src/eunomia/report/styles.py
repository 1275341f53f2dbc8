"""Colours of policies: a policy keeps its colour from report to report."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

COLOURS = 8
USUAL = {  # policy → colour
    "as_it_was": 6,
    "fifo": 6,
    "srtf": 1,
    "las": 4,
    "max_min_fairness": 0,
    "max_min_fairness_agnostic": 5,
    "finish_time_fairness": 3,
    "themis": 2,
    "tiresias": 7,
    "slurm_fair_share": 1,
    "astraea": 3,
}


def styles_of(labels: Sequence[str], first: Sequence[str] = ()) -> dict[str, int]:
    """Return the style of each label: its policy's own colour, or the next that is free; dashes differ beyond eight.

    No two of the `first` eight labels share a colour. Which of two other labels gets a colour that both want does not
    depend on their order in the report.
    """
    taken: dict[int, str] = {}
    for label in sorted(labels, key=lambda label: (label not in first, _name(label) not in USUAL, len(label), label)):
        name = _name(label)
        wanted = USUAL.get(name, zlib.crc32(name.encode("utf-8", "replace")) % COLOURS)
        block = len(taken) // COLOURS * COLOURS
        style = next(
            block + (wanted + k) % COLOURS for k in range(COLOURS) if block + (wanted + k) % COLOURS not in taken
        )
        taken[style] = label
    style_by_label = {label: style for style, label in taken.items()}
    return {label: style_by_label[label] for label in labels}


def _name(label: str) -> str:
    """Return the name of the policy without parameters and file: `fifo?backfill=skip` → `fifo`."""
    return label.partition("?")[0].rpartition(":")[2]
