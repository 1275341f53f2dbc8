"""Columns of values as Slurm writes them: times, time spans and numbers."""

from __future__ import annotations

from math import nan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eunomia.inputs.slurm_values import SPAN
from eunomia.model.arrays import Bools, Floats

ABSENT = ("", "unknown", "none", "(null)", "n/a", "invalid", "0", "-1", "unlimited")  # words for "no time", in any case
YEAR_S = 31_536_000.0  # dates of 1970 and before stand for "never"


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
    parts = pc.extract_regex(texts, pattern=SPAN)
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
