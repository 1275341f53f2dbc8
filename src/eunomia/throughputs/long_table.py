"""Reads the long table: one row a measurement, as CSV (gzip or not) or Parquet.

Columns `type, job_type, scale_factor, steps_per_s`; optional `partner_job_type, partner_steps_per_s, placement`, and
`steps_per_s_p10, steps_per_s_p90`, the ends of the rate's 80 % interval, and `origin`: "measured" or "estimated". A row
without an origin is an estimate if its interval is wider than its rate. A rate of 0 says "cannot run". A row
with a partner is the rate beside it. `placement` is empty, "consolidated" or "unconsolidated"; the last is kept as an
accelerator type of its own, "<type>_unconsolidated", as Gavel's table does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np

from eunomia.inputs.bounds import MOST
from eunomia.inputs.field_rules import Rule
from eunomia.inputs.open_table import read_table
from eunomia.inputs.table import InputTable
from eunomia.model.arrays import Bools, Floats
from eunomia.model.spelling_suggestions import nearest
from eunomia.throughputs.measured_table import Intervals, Measurements, Pairs, Rates

COUNT = Rule(what="a whole number of at least 1", least=1, most=MOST, whole=True, fix="correct the value")
ABOVE_0 = Rule(what="a finite number above 0", above=0.0, fix="correct the value")
RATE = Rule(what="a finite number of steps/s, at least 0", least=0.0, fix="give the measured rate, or 0 for cannot run")
AT_LEAST_0 = Rule(what="a finite number of at least 0", least=0.0, fix="correct the value")
NEEDED = ("type", "job_type", "scale_factor", "steps_per_s")
INTERVAL = ("steps_per_s_p10", "steps_per_s_p90")
ORIGINS = ("", "measured", "estimated")
OPTIONAL = ("partner_job_type", "partner_steps_per_s", "placement", *INTERVAL, "origin")
SUFFIX_BY_PLACEMENT = {"": "", "consolidated": "", "unconsolidated": "_unconsolidated"}
SIZE = Rule(
    what="a whole number of accelerators, at least 1", least=1, most=MOST, whole=True, fix="give the size of the gang"
)


def layout_of(header: Iterable[str], layouts: Mapping[str, Sequence[str]]) -> str | None:
    """Return the first layout all of whose columns are there."""
    found = set(header)
    return next((name for name, columns in layouts.items() if found.issuperset(columns)), None)


def read_layout(path: Path, name: str, layouts: Mapping[str, Sequence[str]]) -> tuple[str, InputTable]:
    """Return the layout of a table and the table. Raises InvalidInput when it has none of them; bad rows are noted."""
    table = read_table(path, name).stripped()
    layout = layout_of(table.columns, layouts)
    if layout is None:
        known = "; or ".join(", ".join(columns) for columns in layouts.values())
        header = ",".join(table.columns)
        table.note(table.header_line, None, header, "the header is of no known table", f"give the columns {known}")
        table.raise_if_any()
    elif not len(table) and not table.count:
        table.note(None, None, None, "the table has no rows", "give at least one measurement")
    return layout or "", table


def read(path: Path, name: str) -> Measurements:
    """Return the measurements of a file. Raises InvalidInput with everything that is wrong with it."""
    table = read_table(path, name).stripped()
    table.expect(NEEDED, OPTIONAL, f"the table must hold at least one row of {', '.join(NEEDED)}")
    placements, partners = table.text("placement"), table.text("partner_job_type")
    for line, word in zip(table.line.tolist(), placements, strict=True):
        if word not in SUFFIX_BY_PLACEMENT:
            fix = nearest(word, filter(None, SUFFIX_BY_PLACEMENT))
            table.note(line, "placement", word, "this placement is not known", fix)
    sizes, rates = table.whole("scale_factor", SIZE), table.number("steps_per_s", RATE)
    partner_rates = table.number("partner_steps_per_s", replace(RATE, empty=nan))
    estimated, ends = _estimates(table, rates)
    lonely = table.empty("partner_job_type") & ~table.empty("partner_steps_per_s")
    rule = "a partner's rate needs its job type"
    table.refuse("partner_steps_per_s", lonely, rule, "give partner_job_type too")
    types, job_types = table.filled("type", "give one"), table.filled("job_type", "give one")
    alone: Rates = {}
    pairs: Pairs = {}
    intervals: Intervals = {}
    reverse: Pairs = {}  # partners' rates; a row of their own goes before
    again = np.zeros(len(table), dtype=np.bool_)
    columns = (types, placements, job_types, sizes.tolist(), rates.tolist(), partners, partner_rates.tolist())
    for m, (type, placement, job_type, size, rate, partner, partner_rate) in enumerate(zip(*columns, strict=True)):
        place = type + SUFFIX_BY_PLACEMENT.get(placement, "")
        if partner:
            again[m] = (place, job_type, partner, size) in pairs
            pairs.setdefault((place, job_type, partner, size), rate)
            if not np.isnan(partner_rate):
                reverse[place, partner, job_type, size] = partner_rate
        else:
            again[m] = (place, job_type, size) in alone
            alone.setdefault((place, job_type, size), rate)
            if not np.isnan(ends[m]).any():
                intervals[place, job_type, size] = (float(ends[m, 0]), float(ends[m, 1]))
    table.refuse("job_type", again & (sizes > 0), "this measurement stands in an earlier row", "keep one of the two")
    if not alone and not table.count:
        fix = f"give rows of {', '.join(NEEDED)}"
        table.note(None, None, None, "the table holds no throughput of a job alone", fix)
    table.raise_if_any()
    keys = zip(types, placements, job_types, sizes.tolist(), partners, estimated.tolist(), strict=True)
    guessed = {
        (type + SUFFIX_BY_PLACEMENT[at], job, size)
        for type, at, job, size, partner, is_estimated in keys
        if is_estimated and not partner
    }
    return Measurements(name, alone, {**reverse, **pairs}, intervals, frozenset(guessed))


def _estimates(table: InputTable, rates: Floats) -> tuple[Bools, Floats]:
    """Return which rows are estimates, (row,), and the ends of the interval of each, (row, 2); nan = none."""
    origins = table.text("origin")
    for line, word in zip(table.line.tolist(), origins, strict=True):
        if word not in ORIGINS:
            table.note(line, "origin", word, "this origin is not known", nearest(word, filter(None, ORIGINS)))
    low, high = (table.number(column, replace(RATE, empty=nan)) for column in INTERVAL)
    rule = "the ends of an interval enclose its rate, and are above 0 where that is"
    for column, wrong in zip(INTERVAL, ((low > rates) | ((low == 0) & (rates > 0)), high < rates), strict=True):
        table.refuse(column, wrong, rule, "give p10 ≤ steps_per_s ≤ p90")
    half = np.isnan(low) != np.isnan(high)
    table.refuse(INTERVAL[0], half, "an interval has two ends", f"give {' and '.join(INTERVAL)}, or neither")
    said = np.array([word == "estimated" for word in origins], dtype=np.bool_)
    rule = "an estimate says how sure it is"
    table.refuse("origin", said & np.isnan(low) & (rates > 0), rule, f"give {' and '.join(INTERVAL)} of this row")
    unsaid = np.array([not word for word in origins], dtype=np.bool_)
    return said | (unsaid & (low < high)), np.stack((low, high), axis=1)
