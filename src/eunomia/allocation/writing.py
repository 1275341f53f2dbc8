"""Writes a solution as a JSON or NPZ file, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from eunomia.allocation.answer import Solution
from eunomia.allocation.auctions.auction_result import AuctionResult
from eunomia.inputs.atomic_write import write_output
from eunomia.model.arrays import Array

SUFFIXES = (".json", ".npz")


def write_solution(solution: Solution | AuctionResult, path: Path) -> None:
    """Write the fields of `as_dict` as JSON, or as NPZ arrays, in which `why` are rows of `reasons`.

    Raises InvalidInput when it cannot be written; an existing file is then unchanged.
    """
    write_output(path, lambda file: _write(solution, path.suffix, file), column="--out")


def _write(solution: Solution | AuctionResult, suffix: str, file: BinaryIO) -> None:
    if suffix == ".npz":
        np.savez(file, allow_pickle=False, **_arrays(solution))
    else:
        file.write(json.dumps(solution.as_dict(), allow_nan=False, ensure_ascii=False).encode() + b"\n")


def _arrays(solution: Solution | AuctionResult) -> dict[str, Array]:
    """Return the solution as arrays; unknown values are left out."""
    if isinstance(solution, AuctionResult):
        return solution.arrays()
    reasons, why = np.unique(solution.why(), return_inverse=True)
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
