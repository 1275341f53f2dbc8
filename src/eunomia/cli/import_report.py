"""Prints the quality report of an import: sizes, accelerator-hours of source and import, findings, assumptions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from eunomia.cli.live import printable

if TYPE_CHECKING:
    from eunomia.history.imported_files import Imported
    from eunomia.traces.accelerator_hours import HoursBalance
    from eunomia.traces.import_findings import ImportFinding

ORDER = ("left out", "missing", "assumed", "repaired")
MOST_TENANTS = 5  # listed by name


def show_report(imported: Imported) -> None:
    """Print the quality report; accelerator-hours that no cause explains go to stderr, too."""
    found = imported.quality()
    cluster = ", ".join(f"{count:,} {kind}" for kind, count in found["accelerators"].items())
    print(f"{found['jobs']:,} jobs of {found['tenants']:,} tenants in {_span(found['days'])}, {cluster}")
    if imported.columns:
        print(printable(f"columns: {', '.join(f'{ours} ← {name}' for ours, name in imported.columns.items())}"))
    if imported.balance is not None:
        _show_hours(imported.balance)
    for kind in ORDER:
        for finding in imported.findings:
            if finding.kind == kind:
                _show_finding(finding)
    for sentence in imported.assumed:
        print(f"assumed: {printable(sentence)}")
    if imported.unread:
        print(f"fields not read: {printable(', '.join(imported.unread))}")


def _span(days: float) -> str:
    """Return the time from the first submission to the last end."""
    return f"{days:.1f} days" if days >= 1 else f"{24 * days:.1f} hours"


def _show_hours(balance: HoursBalance) -> None:
    """Print the sums of source and import, and each difference with its cause."""
    source, written = balance.source, balance.written
    print(f"accelerator-hours: {_beside(source.total, written.total)}")
    for key, most in (("type", None), ("tenant", MOST_TENANTS)):
        pair = [getattr(hours, f"by_{key}")() for hours in (source, written)]
        names = list(dict.fromkeys([*pair[0], *pair[1]]))
        for name in names[:most]:
            beside = _beside(pair[0].get(name, 0.0), pair[1].get(name, 0.0))
            print(printable(f"    {key} {name or '(none named)'}: {beside}"))
        if names[most:] and most is not None:
            rest = [sum(sums.get(name, 0.0) for name in names[most:]) for sums in pair]
            print(f"    {len(names) - most:,} more {key}s: {_beside(*rest)}")
    for change in balance.changes:
        total = f"{change.hours.total:+,.2f}" if abs(change.hours.total) >= 0.005 else "moved"
        parts = ", ".join(f"{kind} {hours:+,.2f}" for kind, hours in change.hours.by_type().items())
        print(printable(f"    difference {total}: {change.what} ({parts})"))
    left = balance.unexplained()
    if left:
        parts = ", ".join(f"{kind} of {tenant or '-'} {hours:+,.2f}" for (kind, tenant), hours in left.by_owner.items())
        text = f"error: accelerator-hours that no cause explains: {parts}; do not rely on this import, and report it"
        print(printable(text), file=sys.stderr)


def _beside(source: float, written: float) -> str:
    return f"{source:,.2f} in the source, {written:,.2f} written"


def _show_finding(finding: ImportFinding) -> None:
    hours = "" if finding.hours is None or not finding.hours else f" ({finding.hours.total:,.2f} accelerator-hours)"
    print(f"{finding.kind}: {printable(str(finding))}{hours}")
    place = ":".join(str(part) for part in (finding.file, finding.line) if part)
    if finding.example:
        print(printable(f"    such as {place}  {finding.example}"))
