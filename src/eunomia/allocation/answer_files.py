"""Files of answers: a JSON object, NPZ arrays, or an Arrow table with a row for each job or bidder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np

from eunomia.allocation.answer import Solution
from eunomia.allocation.auctions.auction_result import AuctionResult
from eunomia.inputs.atomic_write import write_output
from eunomia.inputs.json_text import json_pieces
from eunomia.model.arrays import Array, Ints

if TYPE_CHECKING:
    import pyarrow as pa

_Found: TypeAlias = Solution | AuctionResult
_OF_BIDDERS = ("bidders", "pf", "c", "payments", "grants", "leases_s")  # columns of an auction's table


def write_solution(solution: _Found, path: Path) -> None:
    """Write an answer as the suffix says, one of `SUFFIXES`.

    .json: the fields of `as_dict`. .npz: arrays by name, in which `why` are rows of `reasons`. .arrow: what is known of
    each job or bidder as columns, the other fields as JSON in the metadata of the table, under `eunomia`. Raises
    InvalidInput when it cannot be written; an existing file is then unchanged.
    """
    write_output(path, lambda file: WRITERS[path.suffix](solution, file), column="--out")


def _json(solution: _Found, file: BinaryIO) -> None:
    file.writelines(piece.encode() for piece in json_pieces(_named(solution), ascii_only=False))
    file.write(b"\n")


def _npz(solution: _Found, file: BinaryIO) -> None:
    np.savez(file, allow_pickle=False, **_arrays(solution))


def _arrays(solution: _Found) -> dict[str, Array]:
    """Return the solution as arrays; unknown values are left out."""
    if isinstance(solution, AuctionResult):
        return {name: np.asarray(value) for name, value in solution.as_dict().items() if value is not None}
    reasons, why = _distinct(solution.why())
    arrays: dict[str, Any] = {
        "status": solution.status,
        "policy": solution.policy,
        "types": solution.problem.types,
        "job_ids": solution.problem.job_ids,
        "x": solution.x,
        "effective_throughput": solution.effective_throughput,
        "reasons": reasons,
        "why": why,
        "seconds": solution.seconds,
        "compile_seconds": solution.compile_seconds,
    }
    arrays |= solution.origins
    arrays["late"] = np.array(solution.answer.late, dtype=np.int64)
    if solution.certificate is not None:
        proof = solution.certificate
        arrays |= {"objective": proof.objective, "bound": proof.bound, "gap": proof.gap, "prices": proof.price}
        arrays["point"] = proof.point
    if solution.rows is not None:
        partner, _, within = solution.rows.filled()
        arrays |= {"job": solution.rows.job, "type": solution.rows.type, "partner": partner, "within": within}
        arrays["share"] = solution.share
    return {name: np.asarray(value) for name, value in arrays.items() if value is not None}


def _distinct(texts: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the distinct texts in order, and which of them each is; of a million texts few differ."""
    distinct = sorted(set(texts))
    row_of = {text: row for row, text in enumerate(distinct)}
    return distinct, np.fromiter(map(row_of.__getitem__, texts), np.int64, len(texts))


def _arrow(solution: _Found, file: BinaryIO) -> None:
    import pyarrow as pa

    columns, facts = _table(solution)
    table = pa.table(columns).replace_schema_metadata({"eunomia": json.dumps(facts, allow_nan=False)})
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _named(solution: _Found) -> dict[str, Any]:
    return solution.named if isinstance(solution, Solution) else solution.as_dict()


def _table(solution: _Found) -> tuple[dict[str, pa.Array], dict[str, Any]]:
    """Return the columns of the table of jobs or bidders, and what is left of the answer's fields."""
    import pyarrow as pa

    named = _named(solution)
    if isinstance(solution, AuctionResult):
        columns = {name: _column(np.asarray(named[name])) for name in _OF_BIDDERS}
    else:
        ids = solution.problem.job_ids
        reasons, why = _distinct(solution.why())
        columns = {
            "job_ids": pa.array(np.arange(solution.problem.jobs) if ids is None else ids),
            "x": _column(solution.x),
            "effective_throughput": _column(solution.effective_throughput),
            "why": pa.DictionaryArray.from_arrays(pa.array(why, pa.int32()), pa.array(reasons, pa.string())),
        }
        if solution.rows is not None:
            columns["rows"] = _rows_by_job(solution)
    return columns, {name: value for name, value in named.items() if name not in columns}


def _column(values: Array) -> pa.Array:
    """Return an array over (row,), or lists of one length over (row, column)."""
    import pyarrow as pa

    if values.ndim == 1:
        return pa.array(values)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


def _rows_by_job(solution: Solution) -> pa.Array:
    """Return for each job its shares above 0 as a list of {partner, type, share}; a partner is a row, null = alone."""
    import pyarrow as pa

    assert solution.rows is not None  # called for answers with rows only
    job, type, partner = solution.rows.job, solution.rows.type, solution.rows.filled()[0]
    kept = np.flatnonzero(solution.share > 0)
    kept = kept[np.argsort(job[kept], kind="stable")]
    offsets = np.searchsorted(job[kept], np.arange(solution.problem.jobs + 1))
    types = pa.DictionaryArray.from_arrays(pa.array(type[kept], pa.int32()), pa.array(solution.problem.types))
    shares = pa.StructArray.from_arrays(
        [pa.array(partner[kept], mask=partner[kept] < 0), types, pa.array(solution.share[kept])],
        names=["partner", "type", "share"],
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), shares)


WRITERS: Mapping[str, Callable[[_Found, BinaryIO], None]] = {".json": _json, ".npz": _npz, ".arrow": _arrow}
SUFFIXES = tuple(WRITERS)
