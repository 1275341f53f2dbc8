"""Values as Slurm writes them: trackable resources, lists of hosts, times and time spans."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import nan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eunomia.model.arrays import Bools, Floats

ABSENT = ("", "unknown", "none", "(null)", "n/a", "invalid", "0", "-1", "unlimited")  # words for "no time", in any case
YEAR_S = 31_536_000.0  # dates of 1970 and before stand for "never"
MOST_HOSTS = 100_000  # of one list: beyond any cluster
_SPAN = r"^(?:(?P<d>\d+)-)?(?:(?P<h>\d+):)?(?P<m>\d+):(?P<s>\d+)(?:\.\d+)?$"
_THOUSANDS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_GIB = {"": 2.0**30, "K": 2.0**20, "M": 2.0**10, "G": 1.0, "T": 2.0**-10, "P": 2.0**-20}  # units of a GiB
_SHARES = ("shard", "mps")


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


def parse_gres(text: str, gres: str = "gpu") -> Resources:
    """Return the resources of one node as `gpu:a100:4(S:0-1),shard:16` writes them, also of fields before Slurm 21."""
    total, shares = 0, 0
    count_by_type: dict[str, int] = {}
    for item in re.split(r",(?![^(]*\))", text):  # not at commas in brackets
        words = (
            re.sub(r"\(.*", "", item.strip()).removeprefix("gres:").removeprefix("gres/").replace("=", ":").split(":")
        )
        name, *kinds = words
        count = int(kinds.pop()) if kinds and kinds[-1].isdigit() else 1  # `gpu` and `gpu:a100` are one
        if name == gres and kinds:
            count_by_type[":".join(kinds)] = count_by_type.get(":".join(kinds), 0) + count
        elif name == gres:
            total += count
        elif name in _SHARES:
            shares += count
    return Resources(_by_type(total + sum(count_by_type.values()), count_by_type), shares)


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


def read_moments(cells: pa.Array) -> tuple[Floats, Bools]:
    """Return (row,) seconds since 1970 of local times or of numbers of seconds, and where a text is neither.

    Absent times are nan, and are no wrong texts.
    """
    texts = pc.utf8_trim_whitespace(cells)
    dates = pc.strptime(texts, format="%Y-%m-%dT%H:%M:%S", unit="s", error_is_null=True)
    at = _floats(pc.cast(dates, pa.int64()))
    never = at < YEAR_S
    at = np.where(never, np.nan, at)
    if np.isnan(at).any():
        is_number = pc.match_substring_regex(texts, r"^\d{6,12}$")
        numbers = pc.cast(pc.if_else(is_number, texts, pa.scalar(None, pa.string())), pa.float64())
        at = np.where(np.isnan(at), _floats(numbers), at)
    wrong = np.isnan(at) & ~never
    return at, wrong & ~_is_absent(texts) if wrong.any() else wrong


def read_spans(cells: pa.Array) -> tuple[Floats, Bools]:
    """Return (row,) seconds of `[days-[hours:]]minutes:seconds`, and where a text is none; an absent one is nan."""
    texts = pc.utf8_trim_whitespace(cells)
    parts = pc.extract_regex(texts, pattern=_SPAN)
    seconds = np.zeros(len(texts))
    for name, size in (("d", 86400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0)):
        digits = pc.struct_field(parts, name)
        digits = pc.if_else(pc.equal(digits, ""), "0", digits)
        seconds += size * _floats(pc.cast(digits, pa.float64()))
    return seconds, np.isnan(seconds) & ~_is_absent(texts)


def _is_absent(texts: pa.Array) -> Bools:
    """Return (row,) whether a text stands for no value."""
    return _bools(pc.is_in(pc.utf8_lower(texts), pa.array(ABSENT)))


def read_numbers(cells: pa.Array) -> Floats:
    """Return (row,) whole numbers; nan where a text is none."""
    texts = pc.utf8_trim_whitespace(cells)
    is_number = pc.match_substring_regex(texts, r"^\d{1,15}$")
    return _floats(pc.cast(pc.if_else(is_number, texts, pa.scalar(None, pa.string())), pa.float64()))


def _floats(array: pa.Array) -> Floats:
    """Return the numbers of an Arrow array; nan for null."""
    return np.asarray(pc.fill_null(pc.cast(array, pa.float64()), nan), dtype=np.float64)


def _bools(array: pa.Array) -> Bools:
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), dtype=np.bool_)
