"""How many accelerators each virtual cluster of a Helios cluster had, day by day (Q. Hu et al., SC 2021).

One line per day, a column per virtual cluster and one for the total. Machines have 8 Volta accelerators.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import ACCELERATORS
from eunomia.inputs.open_table import read_table
from eunomia.inputs.problems import refused
from eunomia.traces.machine_lists.machines import NONE_HERE, MachineList, machines

REQUIRED = ("date", "total")
OPTIONAL = ()
OPEN = True  # further columns are virtual clusters
PER_MACHINE = 8


def read(path: Path, *, date: str = "", type: str = "v100") -> MachineList:
    """Return the machines of one `date`, by default the first of the file, all of one accelerator `type`.

    Raises InvalidInput with everything that is wrong with the file.
    """
    sheet = read_table(path)
    clusters = [name for name in sheet.columns if name not in REQUIRED]
    sheet.expect(REQUIRED, clusters, NONE_HERE)
    sheet.moment("date")
    days = sheet.unique("date", "keep one of the two days")
    total, parts = sheet.whole("total", ACCELERATORS), [sheet.whole(name, ACCELERATORS) for name in clusters]
    unequal = total != sum(parts, np.zeros_like(total))
    sheet.refuse("total", unequal, "must be the sum of the virtual clusters", "correct one of the numbers of this row")
    sheet.raise_if_any()
    if date and date not in days:
        raise refused(sheet.file, "date", date, f"must be a day from {min(days)} to {max(days)}", "name one of them")
    day = days.index(date) if date else 0
    whole = np.array([part[day] // PER_MACHINE for part in parts], dtype=np.int64)
    rest = np.array([part[day] % PER_MACHINE for part in parts], dtype=np.int64)
    count, size = np.concatenate([whole, (rest > 0).astype(np.int64)]), np.concatenate([whole * 0 + PER_MACHINE, rest])
    used = np.count_nonzero(whole + rest)
    said = f"the cluster of {days[day]}: {int(total[day]):,} accelerators in {used} virtual clusters"
    notes = (f"{said}; all machines are shared, {PER_MACHINE} accelerators each",)
    return machines(sheet, (str(type),) * len(count), count, size, ("",) * len(count), notes)
