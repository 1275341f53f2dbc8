"""Values as Slurm writes them: resources, lists of hosts, time spans and states of jobs.

Reference: SchedMD, sacct(1), scontrol(1), squeue(1), "Job State Codes".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

MOST_HOSTS = 100_000  # of one list: beyond any cluster
SPAN = r"^(?:(?P<d>\d+)-)?(?:(?P<h>\d+):)?(?P<m>\d+):(?P<s>\d+)(?:\.\d+)?$"
_DAYS = re.compile(r"(?P<d>\d+)-(?P<h>\d+)(?::(?P<m>\d+))?")  # of a limit
_THOUSANDS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_GIB = {"": 2.0**30, "K": 2.0**20, "M": 2.0**10, "G": 1.0, "T": 2.0**-10, "P": 2.0**-20}  # units of a GiB
_SHARES = ("shard", "mps")
JOB_STATES = {  # state → whether its job waits, starts, runs, resizes or is over; status of a run that ended in it
    "PENDING": ("waits", ""),
    "REQUEUED": ("waits", ""),
    "REQUEUE_HOLD": ("waits", ""),
    "REQUEUE_FED": ("waits", ""),
    "RESV_DEL_HOLD": ("waits", ""),
    "SPECIAL_EXIT": ("waits", "failed"),
    "CONFIGURING": ("starts", ""),
    "RUNNING": ("runs", ""),
    "COMPLETING": ("runs", ""),
    "SUSPENDED": ("runs", ""),
    "STOPPED": ("runs", ""),
    "SIGNALING": ("runs", ""),
    "STAGE_OUT": ("runs", ""),
    "RESIZING": ("resizes", ""),
    "COMPLETED": ("over", "finished"),
    "FAILED": ("over", "failed"),
    "OUT_OF_MEMORY": ("over", "failed"),
    "NODE_FAIL": ("over", "failed"),
    "BOOT_FAIL": ("over", "failed"),
    "LAUNCH_FAILED": ("over", "failed"),
    "RECONFIG_FAIL": ("over", "failed"),
    "TIMEOUT": ("over", "failed"),
    "DEADLINE": ("over", "failed"),
    "CANCELLED": ("over", "cancelled"),
    "PREEMPTED": ("over", "cancelled"),
    "REVOKED": ("over", "cancelled"),
}
NODE_LOST = frozenset({"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL"})


def states_of(*phases: str) -> tuple[str, ...]:
    """Return the states whose job waits, starts, runs, resizes or is over."""
    return tuple(state for state, (phase, _) in JOB_STATES.items() if phase in phases)


def seconds(text: str) -> float | None:
    """Return a duration such as `1-02:03:04`, `02:03:04`, `05:00` or `2-12`; None for UNLIMITED and the like."""
    found = _DAYS.fullmatch(text.strip()) or re.match(SPAN, text.strip())
    if found is None:
        return None
    parts = {name: int(digits or 0) for name, digits in found.groupdict().items()}
    return float(((parts["d"] * 24 + parts["h"]) * 60 + parts["m"]) * 60 + parts.get("s", 0))


@dataclass(frozen=True, slots=True)
class Resources:
    """What a TRES or GRES text says of one job or node."""

    by_type: tuple[tuple[str, int], ...] = ()  # accelerators of each type as Slurm names it, most first; "" = not named
    shares: int = 0  # parts of accelerators: shards or MPS
    cpus: float = 0.0
    memory_gib: float = 0.0

    @property
    def accelerators(self) -> int:
        """Accelerators of all types."""
        return sum(count for _, count in self.by_type)

    @property
    def type(self) -> str:
        """The most numerous type, "" if it is not named."""
        return self.by_type[0][0] if self.by_type else ""

    def on_nodes(self, nodes: int) -> Resources:
        """Return the accelerators of so many nodes with these on each."""
        return replace(
            self,
            by_type=tuple((kind, count * max(nodes, 1)) for kind, count in self.by_type),
            shares=self.shares * nodes,
        )


def parse_tres(text: str, gres: str = "gpu") -> Resources:
    """Return the resources of `cpu=8,mem=64G,gres/gpu=4,gres/gpu:a100=4`: the total and the typed counts agree.

    Where the database does not name its resources, as in `1=8,2=65536,1001=4`, `gres` is the number of the accelerator.
    """
    total, shares, cpus, memory_gib = 0, 0, 0.0, 0.0
    count_by_type: dict[str, int] = {}
    for item in text.split(","):
        name, _, value = item.partition("=")
        if name in ("cpu", "1"):
            cpus = _amount(value)
        elif name == "mem":
            memory_gib = parse_memory_gib(value)
        elif name == "2":
            memory_gib = parse_memory_gib(value if value[-1:].isalpha() else f"{value}M")
        elif name in (f"gres/{gres}", gres):
            total = int(_amount(value))
        elif name.startswith(f"gres/{gres}:"):
            kind = name.split(":", 1)[1]
            count_by_type[kind] = count_by_type.get(kind, 0) + int(_amount(value))
        elif name.partition(":")[0] in [f"gres/{share}" for share in _SHARES]:
            shares += int(_amount(value))
    return Resources(_by_type(total, count_by_type), shares, cpus, memory_gib)


def gres_counts(text: str, gres: str = "gpu") -> dict[str, int]:
    """Return the counts of `gpu:a100:4(S:0-1),gpu:k80:2` by type, also of fields before Slurm 21; "" = not named."""
    counts: dict[str, int] = {}
    for name, kind, count in _gres_items(text):
        if name == gres and count:
            counts[kind] = counts.get(kind, 0) + count
    return counts


def parse_gres(text: str, gres: str = "gpu") -> Resources:
    """Return the resources of one node as `gpu:a100:4(S:0-1),shard:16` writes them."""
    counts = gres_counts(text, gres)
    shares = sum(count for name, _, count in _gres_items(text) if name in _SHARES and name != gres)
    total = sum(counts.values())
    counts.pop("", None)
    return Resources(_by_type(total, counts), shares)


def _gres_items(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield name, type and count of each generic resource; `gpu` and `gpu:a100` are one."""
    for item in re.split(r",(?![^(]*\))", text):  # not at commas in brackets
        word = re.sub(r"\(.*", "", item.strip()).removeprefix("gres:").removeprefix("gres/").replace("=", ":")
        name, *kinds = word.split(":")
        count = int(kinds.pop()) if kinds and kinds[-1].isdigit() else 1
        yield name, ":".join(kinds), count


def _by_type(total: int, count_by_type: dict[str, int]) -> tuple[tuple[str, int], ...]:
    """Return the accelerators of each type, most first; what `total` has beyond typed counts is of the first type."""
    here = sorted(((kind, count) for kind, count in count_by_type.items() if count), key=lambda each: -each[1])
    rest = max(total - sum(count for _, count in here), 0)
    if not here:
        return (("", rest),) if rest else ()
    return ((here[0][0], here[0][1] + rest), *here[1:])


def _amount(text: str) -> float:
    """Return a count, which may end in a unit of thousands; 0 for none."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", text)
    return 0.0 if found is None else float(found[1]) * _THOUSANDS[found[2]]


def parse_memory_gib(text: str) -> float:
    """Return GiB of `64G`, `65536M` or bytes; 0 for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)(?:i?B)?[nc]?", text)
    return 0.0 if found is None else float(found[1]) / _GIB[found[2]]


def expand_hosts(text: str) -> tuple[str, ...]:
    """Return the names in a list of hosts such as `gpu[01-03,07],login1`; () for no list, or one too long."""
    if not text or text.startswith("(") or text.casefold() in ("none assigned", "unknown", "none"):
        return ()
    names: list[str] = []
    for part in re.split(r",(?![^\[]*\])", text):  # not at commas in brackets
        names += _expand_part(part)
        if len(names) > MOST_HOSTS:
            return ()
    return tuple(names)


def _expand_part(part: str) -> list[str]:
    """Return the names of `rack[1-2]node[01-03]`: every combination of its brackets."""
    prefixes = [""]
    for literal, bracket in re.findall(r"([^\[\]]*)(?:\[([^\]]*)\])?", part):
        middles = _expand_ranges(bracket) if bracket else [""]
        prefixes = [prefix + literal + middle for prefix in prefixes for middle in middles]
        if len(prefixes) > MOST_HOSTS:
            break
    return [prefix for prefix in prefixes if prefix]


def _expand_ranges(text: str) -> list[str]:
    """Return the numbers of `01-03,07` with their leading zeros."""
    numbers: list[str] = []
    for item in text.split(","):
        low, dash, high = item.partition("-")
        if not dash:
            numbers.append(low)
        elif low.isdigit() and high.isdigit() and 0 <= int(high) - int(low) < MOST_HOSTS:
            numbers += [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
    return numbers
