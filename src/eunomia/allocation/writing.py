"""Writes a solution as a JSON or NPZ file, whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from eunomia.allocation.answer import Solution
from eunomia.allocation.auctions.auction_result import AuctionResult
from eunomia.model.arrays import Array
from eunomia.model.problems import InvalidInput, Problem

SUFFIXES = (".json", ".npz")


def check_place(path: Path, *, force: bool) -> None:
    """Raise InvalidInput when `path` has a wrong suffix or folder, or exists and `force` is not set."""
    if path.suffix not in SUFFIXES:
        raise _refusal(path, "a solution is a .json or .npz file", "give such a name")
    if not path.parent.is_dir():
        raise _refusal(path, "there is no such folder", "make it, or give another one")
    if path.is_dir() or (path.exists() and not force):
        raise _refusal(path, "it exists", "give another name" if path.is_dir() else "give another, or --force")


def write_solution(solution: Solution | AuctionResult, path: Path) -> None:
    """Write the fields of `as_dict` as JSON, or as NPZ arrays, in which `why` are rows of `reasons`.

    Raises InvalidInput when it cannot be written; an existing file is then unchanged.
    """
    try:
        descriptor, draft = tempfile.mkstemp(prefix=".draft-", suffix=path.suffix, dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                _write(solution, path.suffix, file)
            Path(draft).chmod(0o666 & ~_mask())
            Path(draft).replace(path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _refusal(path, f"it cannot be written ({error.strerror})", "give another name") from error


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


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _refusal(path: Path, rule: str, fix: str) -> InvalidInput:
    return InvalidInput([Problem(file=str(path), column="--out", rule=rule, fix=fix)])
