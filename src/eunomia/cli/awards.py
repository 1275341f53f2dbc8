"""What `eunomia solve` shows a person of an auction."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from eunomia.allocation.auctions.auction_result import AuctionResult
from eunomia.model.arrays import Array

SHOWN = 20  # bidders


def show_awards(found: AuctionResult) -> None:
    """Print how good an auction is, then the first bidders, one row each."""
    console, problem = Console(highlight=False), found.problem
    bidders, names = len(problem.bidders), problem.classes
    told = f"{found.policy}: {found.status} in {found.seconds:.3g} s, {bidders:,} bidder{'s' * (bidders != 1)}"
    console.print(told, markup=False, soft_wrap=True)
    reached = f"objective {found.partial.objective:.10g} (sum of logarithms), relative gap {found.gap:.2g}"
    console.print(reached, markup=False, soft_wrap=True)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("bidder")
    shortened = problem.indivisible == "lease"
    for name in ("fair", "c", "granted", *["for, s"] * shortened):
        table.add_column(name, justify="right")
    for i, name in enumerate(problem.bidders[:SHOWN]):
        table.add_row(
            escape(name), escape(_amounts(found.pf[i], names)), f"{found.c[i]:.4f}",
            escape(_amounts(found.grants[i], names)), *[f"{found.leases_s[i]:.4g}"] * shortened,
        )  # fmt: skip
    console.print(table)
    if bidders > SHOWN:
        console.print(f"… and {bidders - SHOWN:,} bidders more; --json or --out FILE tells them all")
    console.print(f"left over: {_amounts(found.leftover, names)}", markup=False, soft_wrap=True)


def _amounts(by_class: Array, names: Sequence[str]) -> str:
    """Return amounts as a person writes them: of the only class, or of each of which there are some."""
    if len(by_class) == 1:
        return f"{by_class[0]:.4g}"
    some = [f"{amount:.4g} {name}" for name, amount in zip(names, by_class.tolist(), strict=True) if amount > 0]
    return ", ".join(some) or "0"
